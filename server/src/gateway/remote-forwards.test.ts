// Forwards that a client leaves on a slow device: each of them is cancelled, however much the client has asked.
import { expect, test } from 'vitest'
import { writeListen, type GlobalRequest } from '@hawser/ssh'
import { boundedQueue } from './bounded-queue.ts'
import { withoutLeftForwards } from './remote-forwards.ts'

test('every forward is cancelled after its client, behind all that the client still had to ask', async () => {
  const asked = boundedQueue<GlobalRequest>()
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
