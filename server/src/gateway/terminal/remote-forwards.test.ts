// Forwards that a client leaves on a slow device: each of them is cancelled, however much the client has asked.
import { expect, test } from 'vitest'
import { queue, readListen, writeListen, type GlobalRequest } from '@hawser/ssh'
import { withoutLeftForwards } from './remote-forwards.ts'

test('every forward is cancelled after its client, behind all that the client still had to ask', async () => {
  const asked = queue<GlobalRequest>(256)
  const ended = Promise.withResolvers<void>()
  const passed = withoutLeftForwards({ requests: asked }, ended.promise)
  let refused = 0
  const request = (name: string, port: number): GlobalRequest => ({
    name,
    payload: writeListen('localhost', port),
    wantReply: true,
    accept: () => undefined,
    refuse: () => void (refused += 1),
  })
  for (let port = 1; port <= 129; port += 1) {
    asked.push(request('tcpip-forward', port))
    if (port <= 128) (await passed.next())!.accept()
  }
  // One at a time, so that none finds the client's own queue full; the device takes none of them.
  for (let port = 1; port <= 256; port += 1) {
    asked.push(request('keepalive@openssh.com', port))
    await new Promise(setImmediate)
  }
  expect(refused).toBeGreaterThan(0)
  asked.end()
  await new Promise(setImmediate)
  ended.resolve()

  const cancelled = new Set<string>()
  for await (const { name, payload } of passed)
    if (name === 'cancel-tcpip-forward') cancelled.add(payload.toString('hex'))
  expect(cancelled.size).toBe(128)
})

/** A client whose requests a device answers as it likes. */
function place() {
  const asked = queue<GlobalRequest>(256)
  const ended = Promise.withResolvers<void>()
  const passed = withoutLeftForwards({ requests: asked }, ended.promise)
  const answers: (number | undefined)[] = []
  const ask = (name: string, port: number, wantReply = true): void =>
    void asked.push({
      name,
      payload: writeListen('localhost', port),
      wantReply,
      accept: (answer) => void answers.push(answer && Buffer.from(answer).readUInt32BE()),
      refuse: () => void answers.push(-1),
    })
  const next = async (): Promise<GlobalRequest> => (await passed.next())!
  return {
    ask,
    next,
    answers,
    leave: () => asked.end(),
    /** What the device still gets. */
    async rest(): Promise<string[]> {
      await new Promise(setImmediate)
      ended.resolve()
      const names: string[] = []
      for await (const { name, payload } of passed) names.push(`${name} ${readListen(payload).port}`)
      return names
    },
  }
}
const port = (number: number): Buffer => {
  const answer = Buffer.alloc(4)
  answer.writeUInt32BE(number)
  return answer
}

test('a forward to a port that the device chose is cancelled at this port', async () => {
  const { ask, next, answers, leave, rest } = place()
  ask('tcpip-forward', 0)
  ;(await next()).accept(port(40_000))
  leave()
  expect(await rest()).toEqual(['cancel-tcpip-forward 40000'])
  expect(answers).toEqual([40_000])
})

test('a forward that the device grants after the client is gone is cancelled, too', async () => {
  const { ask, next, leave, rest } = place()
  ask('tcpip-forward', 8_080)
  const late = await next()
  leave()
  await new Promise(setImmediate)
  late.accept()
  expect(await rest()).toEqual(['cancel-tcpip-forward 8080'])
})

test('what the client cancelled, or the device refused, is not cancelled again', async () => {
  const { ask, next, answers, leave, rest } = place()
  for (const one of [1, 2]) ask('tcpip-forward', one)
  ;(await next()).accept()
  ;(await next()).refuse()
  ask('cancel-tcpip-forward', 1)
  ;(await next()).accept()
  leave()
  expect(await rest()).toEqual([])
  expect(answers).toEqual([undefined, -1, undefined])
})

test('a client that wants no answer gets none, and its forward is cancelled all the same', async () => {
  const { ask, next, answers, leave, rest } = place()
  ask('tcpip-forward', 1, false)
  ;(await next()).accept()
  leave()
  expect([await rest(), answers]).toEqual([['cancel-tcpip-forward 1'], []])
})

test('one client has so many forwards, and more when it has cancelled some', async () => {
  const { ask, next, answers } = place()
  for (let one = 1; one <= 128; one += 1) {
    ask('tcpip-forward', one)
    ;(await next()).accept()
  }
  ask('tcpip-forward', 129)
  ask('cancel-tcpip-forward', 1)
  ;(await next()).accept()
  ask('tcpip-forward', 129)
  ;(await next()).accept()
  expect(answers.filter((one) => one === -1)).toHaveLength(1)
})
