// Whoever wants new keys all the time: each exchange costs a server milliseconds of its only thread, and
// costs whoever asks nothing. Before the login there is none but the first; after it they are paid for with
// data that reached somebody, and not with messages that are thrown away. Those who renew their keys as they
// should are let do so.
import { afterEach, beforeAll, afterAll, expect, test, vi } from 'vitest'
import { allAlgorithms } from '../../ssh/src/algorithms.ts'
import { Message } from '../../ssh/src/messages.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { startServer, type TestServer } from '../../ssh/test/server.ts'
import { eventually, longestWait_ms, until } from '../harness/eventually.ts'
import { rudeClient, type RudeClient } from './rude-client.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    async onSession({ channel }) {
      // Reads what comes, and sends as much.
      for await (const { bytes } of channel) await channel.write(Buffer.alloc(bytes.length))
    },
  })
})
afterAll(() => server[Symbol.asyncDispose]())
afterEach(() => void vi.useRealTimers())

/** What costs little, and what costs the most. */
const cheap = { ...allAlgorithms, kex: ['curve25519-sha256'] }
const dear = { ...allAlgorithms, kex: ['diffie-hellman-group16-sha512'] }

/** Exchanges that the server itself begins, for a quicker cipher. */
const free = 4

const junk = Buffer.alloc(30_000)
const ignored = (): Writer => message(Message.ignore, junk.length + 4).string(junk)

/** So many exchanges of so many were made. */
async function renew(
  { transport }: RudeClient,
  wanted: number,
  pay: () => Promise<unknown>,
): Promise<number> {
  let made = 0
  const over = transport.ended.then(() => true)
  while (made < wanted) {
    await pay()
    const before = transport.negotiated
    transport.rekey()
    const done = until(() => transport.negotiated !== before, longestWait_ms, 1).then(() => false)
    if (await Promise.race([over, done])) {
      done.catch(() => undefined)
      break
    }
    made += 1
  }
  return made
}

test('before the login there is no second exchange, whatever is sent for it', async () => {
  using rude = await rudeClient(server.port)
  expect(await renew(rude, 64, () => rude.flood(10, ignored))).toBe(0)
  expect((await rude.transport.ended).message).toBe('New keys are not made before the login.')
})

test.each([
  ['cheap', cheap, 64],
  ['dear', dear, 8],
])('messages that are thrown away pay for nothing: %s exchanges', async (_, algorithms, most) => {
  // No time passes, or it would pay for a few.
  vi.useFakeTimers({ toFake: ['performance'] })
  using rude = await rudeClient(server.port, algorithms)
  await rude.logIn()
  // Two megabytes of every kind that needs no answer, or a short one.
  const kinds = [
    ignored,
    () =>
      message(Message.debug, junk.length + 16)
        .boolean(false)
        .string(junk)
        .string(''),
    () => message(150, junk.length).raw(junk),
  ]
  expect(
    await renew(rude, most + 20, () => rude.flood(70, (at) => kinds[at % kinds.length]!())),
  ).toBeLessThanOrEqual(most + free)
  await rude.closed
  // The attacker may be computing when it is told, and then only sees that it is over.
  await until(() => server.endings.includes('The peer wants new keys too often.'))
  server.endings.length = 0
})

/**
 * A session whose program reads; returns what sends data to it, within its window, and waits until as much
 * came back.
 */
async function session(rude: RudeClient): Promise<(bytes: number) => Promise<void>> {
  const { received, transport } = rude
  await rude.logIn()
  transport.send(
    message(Message.channelOpen)
      .string('session')
      .uint32(0)
      .uint32(2 ** 31)
      .uint32(32_768),
  )
  const is = (type: number) => (payload: Buffer) => payload[0] === type
  await eventually(() => expect(received.some(is(Message.channelOpenConfirmation))).toBe(true))
  const id = received.find(is(Message.channelOpenConfirmation))!.readUInt32BE(5)
  transport.send(message(Message.channelRequest).uint32(id).string('exec').boolean(true).string('anything'))
  await eventually(() => expect(received.some(is(Message.channelSuccess))).toBe(true))
  return async (bytes) => {
    for (let sent = 0; sent < bytes; sent += junk.length) {
      received.length = 0
      transport.send(
        message(Message.channelData, junk.length + 8)
          .uint32(id)
          .string(junk),
      )
      const back = (): number =>
        received.filter(is(Message.channelData)).reduce((sum, payload) => sum + payload.readUInt32BE(5), 0)
      await until(() => back() >= junk.length, longestWait_ms, 1)
    }
  }
}

test.each([
  ['cheap', cheap, 100, junk.length],
  ['dear', dear, 12, 5 * junk.length],
])('data that was delivered pays for %s exchanges', async (_, algorithms, count, bytes) => {
  vi.useFakeTimers({ toFake: ['performance'] })
  using rude = await rudeClient(server.port, algorithms)
  const deliver = await session(rude)
  expect(await renew(rude, count, () => deliver(bytes))).toBe(count)
})

test('so does the time that passed', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  using rude = await rudeClient(server.port, dear)
  await rude.logIn()
  expect(
    await renew(rude, 20, async () => {
      vi.advanceTimersByTime(30_000)
    }),
  ).toBe(20)
})
