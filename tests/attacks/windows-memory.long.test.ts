// Whoever is logged in and makes a server hold what nobody reads: small pieces of data in large reads, pieces
// of many streams, requests without answers, many channels. What is held is the windows and a little more,
// and the windows of a connection together are small, however many channels it has.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Message } from '../../ssh/src/messages.ts'
import { connect, startSession } from '../../ssh/src/index.ts'
import { memoryPool } from '../../ssh/src/memory.ts'
import { message, Reader, type Writer } from '../../ssh/src/wire.ts'
import { checker, flow } from '../../ssh/test/flow.ts'
import { startServer } from '../../ssh/test/server.ts'
import { atRest, eventually } from '../harness/eventually.ts'
import { rudeClient, type RudeClient } from './rude-client.ts'

vi.setConfig({ testTimeout: 120_000 })

const MiB = 1024 * 1024
/** Of one connection, however it is attacked. */
const most_bytes = 48 * MiB

const child = spawn(process.execPath, ['--expose-gc', path.join(import.meta.dirname, 'holding-server.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const lines = createInterface({ input: child.stdout })
const printed = async (): Promise<string> => ((await once(lines, 'line')) as [string])[0]
let port: number
beforeAll(async () => {
  port = Number(/listening on (\d+)/.exec(await printed())![1])
  // Once before anything is measured, so that what is loaded at the first time does not count.
  using first = await insider()
  await openChannels(first, 1)
})
afterAll(async () => {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
})

async function holding(): Promise<number> {
  const line = printed()
  child.kill('SIGUSR2')
  return Number(/holding (\d+)/.exec(await line)![1])
}

async function insider(to = port): Promise<RudeClient> {
  const rude = await rudeClient(to)
  await rude.logIn()
  return rude
}

interface Opened {
  readonly id: number
  readonly window_bytes: number
}

async function openChannels(rude: RudeClient, count: number): Promise<Opened[]> {
  await rude.flood(count, (id) =>
    message(Message.channelOpen).string('session').uint32(id).uint32(MiB).uint32(32_768),
  )
  const opened = (): Buffer[] => rude.received.filter(([type]) => type === Message.channelOpenConfirmation)
  await eventually(() => expect(opened()).toHaveLength(count))
  return opened().map((payload) => {
    const fields = new Reader(payload, 5)
    return { id: fields.uint32(), window_bytes: fields.uint32() }
  })
}

/** What the server holds more than before, when it has read what it will read of this. */
async function heldBy(rude: RudeClient, before: number, attack: () => Promise<unknown>): Promise<number> {
  await Promise.race([attack(), standsStill(rude)])
  await standsStill(rude)
  return (await holding()) - before
}

/** The server has read all that was sent, or no longer reads. */
const standsStill = async ({ socket }: RudeClient): Promise<unknown> =>
  atRest(() => socket.bytesWritten - socket.writableLength, 1_000)

const ignored = Buffer.alloc(64 * 1024)
const data = (channel: number, bytes: Buffer): Writer =>
  message(Message.channelData, 8 + bytes.length)
    .uint32(channel)
    .string(bytes)

test('small pieces of data between large messages do not keep those alive', async () => {
  using rude = await insider()
  const opened = await openChannels(rude, 16)
  const before = await holding()
  const piece = Buffer.alloc(1_025)
  const held = await heldBy(rude, before, async () => {
    for (const { id, window_bytes } of opened) {
      const pieces = Math.min(256, Math.floor(window_bytes / piece.length))
      await rude.flood(pieces * 2, (at) =>
        at % 2 === 0 ? message(Message.ignore, ignored.length + 4).string(ignored) : data(id, piece),
      )
    }
  })
  expect(held).toBeLessThan(most_bytes)
})

test('single bytes of changing streams are held as what they cost', async () => {
  using rude = await insider()
  const [one] = await openChannels(rude, 1)
  const before = await holding()
  const held = await heldBy(rude, before, () =>
    rude.flood(Math.min(one!.window_bytes, 200_000), (at) =>
      message(Message.channelExtendedData)
        .uint32(one!.id)
        .uint32(1 + (at % 2))
        .string('x'),
    ),
  )
  expect(held).toBeLessThan(most_bytes)
})

test('requests without an answer, of channels and of the whole', async () => {
  using rude = await insider()
  const opened = await openChannels(rude, 64)
  const before = await holding()
  const body = Buffer.alloc(100 * 1024)
  const held = await heldBy(rude, before, async () => {
    await rude.flood(255, () =>
      message(Message.globalRequest, body.length + 64)
        .string('tell')
        .boolean(false)
        .raw(body),
    )
    for (const { id } of opened)
      await rude.flood(64, () =>
        message(Message.channelRequest, body.length + 64)
          .uint32(id)
          .string('tell')
          .boolean(false)
          .raw(body),
      )
  })
  expect(held).toBeLessThan(most_bytes)
})

test('256 channels are promised no more than a connection may hold', async () => {
  using rude = await insider()
  const opened = await openChannels(rude, 256)
  const before = await holding()
  const promised = opened.reduce((sum, { window_bytes }) => sum + window_bytes, 0)
  expect(promised).toBeLessThanOrEqual(16 * MiB)
  const held = await heldBy(rude, before, async () => {
    for (const { id, window_bytes } of opened)
      await rude.flood(Math.floor(window_bytes / 32_768), () => data(id, Buffer.alloc(32_768)))
  })
  expect(held).toBeLessThan(most_bytes)
})

test('many connections hold no more than the process may, and somebody who is read is not slowed by them', async () => {
  const memory = memoryPool(4 * MiB)
  const check = checker()
  await using server = await startServer({
    memory,
    async onSession({ channel, exit }) {
      for await (const { bytes } of channel) check.take(bytes)
      await exit(0)
    },
  })
  const attackers: RudeClient[] = []
  let most = 0
  const timer = setInterval(() => void (most = Math.max(most, memory.held_bytes)), 5)
  for (let count = 0; count < 6; count += 1) {
    const rude = await insider(server.port)
    attackers.push(rude)
    // No program is asked for, so that nobody reads.
    const opened = await openChannels(rude, 32)
    const attack = async (): Promise<void> => {
      for (const { id, window_bytes } of opened)
        await rude.flood(Math.floor(window_bytes / 32_768), () => data(id, Buffer.alloc(32_768)))
    }
    await Promise.race([attack(), standsStill(rude)])
  }
  expect(most).toBeGreaterThan(4 * MiB)
  await using connection = await connect(net.connect(server.port, '127.0.0.1'), {
    user: 'olga',
    proofs: [{ method: 'none' }],
    checkHostKey: () => true,
  })
  const bystander = await startSession(connection, { program: { type: 'exec', command: 'anything' } })
  for (const piece of flow(32 * MiB)) await bystander.channel.write(piece)
  await bystander.channel.end()
  expect(await bystander.exit).toEqual({ type: 'exit-status', status: 0 })
  expect(check.result).toEqual({ bytes: 32 * MiB, right: true })
  clearInterval(timer)
  // Twice the limit, and what is counted before somebody goes.
  expect(most).toBeLessThan(8.1 * MiB)
  expect(server.endings).toContain('Too much unread data is waiting here.')
  for (const rude of attackers) rude[Symbol.dispose]()
  await connection.end()
})
