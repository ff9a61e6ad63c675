// Whoever is logged in could make a few bytes into much work and memory by compression, once it was offered.
// A packet may become no larger than packets may be, messages that no window bounds may not grow far beyond
// their packet, other connections come first after each megabyte, and contexts have a limit together and are
// gone with their connections.
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allAlgorithms } from '../../ssh/src/algorithms.ts'
import { contextMemory } from '../../ssh/src/compression/zlib-context.ts'
import { Message } from '../../ssh/src/messages.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { startServer, type TestServer } from '../../ssh/test/server.ts'
import { held_bytes, mib } from './held.ts'
import { rudeClient, type RudeClient } from './rude-client.ts'

const methods = ['zlib@openssh.com', 'zstd@hawser'] as const
const { limit_bytes } = contextMemory
let before_bytes = 0
beforeEach(() => {
  before_bytes = contextMemory.held_bytes
})
afterEach(() => {
  contextMemory.limit_bytes = limit_bytes
})

const serverWith = async (compression: string): Promise<TestServer> =>
  startServer({ algorithms: { ...allAlgorithms, compression: [compression] }, compress: 'always' })

/** The contexts of a test are gone. */
async function released(): Promise<void> {
  await expect.poll(() => contextMemory.held_bytes).toBe(before_bytes)
}

/** Logged in, with a session whose program reads nothing. */
async function insider({ port }: TestServer): Promise<RudeClient> {
  const rude = await rudeClient(port, { ...allAlgorithms, compression: [...methods] })
  await rude.logIn()
  rude.transport.send(message(Message.channelOpen).string('session').uint32(0).uint32(65_536).uint32(32_768))
  await expect.poll(() => rude.received.some(([type]) => type === Message.channelOpenConfirmation)).toBe(true)
  return rude
}

const data = (bytes: Uint8Array): Writer =>
  message(Message.channelData, bytes.length + 16)
    .uint32(0)
    .string(bytes)
const ignored = (bytes: number): Writer => message(Message.ignore, bytes + 8).string(Buffer.alloc(bytes))

test.each(methods)('%s: a packet that becomes a megabyte ends the connection', async (method) => {
  await using server = await serverWith(method)
  using rude = await insider(server)
  const [sent_bytes, at_first] = [rude.socket.bytesWritten, await held_bytes()]
  rude.transport.send(data(Buffer.alloc(mib)))
  await rude.closed
  expect(rude.socket.bytesWritten - sent_bytes).toBeLessThan(8_192)
  await expect.poll(() => server.endings).toEqual(['A packet is too large once it is decompressed.'])
  expect((await held_bytes()) - at_first).toBeLessThan(mib)
  await released()
})

test('zlib@openssh.com: messages that no window bounds may not grow a hundred times', async () => {
  await using server = await serverWith('zlib@openssh.com')
  using rude = await insider(server)
  rude.transport.send(ignored(30_000))
  rude.transport.send(ignored(200_000))
  await rude.closed
  await expect.poll(() => server.endings).toEqual(['A packet is too large once it is decompressed.'])
  await released()
})

test('zlib@openssh.com: others have their turn after each megabyte', async () => {
  await using server = await serverWith('zlib@openssh.com')
  using rude = await insider(server)
  const [{ transport }] = server.connections as [TestServer['connections'][number]]
  const each_bytes = 34_000
  // All of it is in few packets of TCP.
  const flooding = rude.flood(2_000, () => ignored(each_bytes))
  let [most, seen] = [0, transport.received]
  const last = seen + 2_000
  while (seen < last) {
    await turn()
    most = Math.max(most, transport.received - seen)
    seen = transport.received
  }
  await flooding
  expect(most * each_bytes).toBeLessThan(4 * mib)
  rude[Symbol.dispose]()
  await released()
})

test.each(methods)('%s: contexts of many connections have one limit, and end with them', async (method) => {
  contextMemory.limit_bytes = before_bytes + mib
  await using server = await serverWith(method)
  const many: RudeClient[] = []
  for (let count = 0; count < 20; count += 1) many.push(await insider(server))
  // Both ends are in this process. What a peer sends is taken in any case, so the smaller
  // contexts are not bounded.
  for (const rude of many) rude.transport.send(data(Buffer.alloc(5_000, 'rope ')))
  await turn()
  const receiving_bytes = 20 * 2 * 240 * 1024
  expect(contextMemory.held_bytes).toBeLessThan(contextMemory.limit_bytes + 512 * 1024 + receiving_bytes)
  expect(server.endings).toEqual([])
  for (const rude of many) rude[Symbol.dispose]()
  await released()
})
