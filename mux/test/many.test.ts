// As many streams as a session may have, all at once, both ways, over a real pair of WebSockets.
import { createHash, randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { openMux, StreamRefused } from '../src/index.ts'
import { bytePair, closed, takeAll } from './pairs.ts'

const bytesEach = 300_000

function sum(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Sends random bytes in uneven chunks and then their checksum. */
function sendAndSum(stream: Duplex): void {
  const bytes = randomBytes(bytesEach)
  for (let at = 0, step = 1; at < bytes.length; at += step, step = (step * 7) % 30_011)
    stream.write(bytes.subarray(at, at + step))
  stream.end(sum(bytes))
}

async function takeAndCheck(stream: Duplex): Promise<void> {
  const all = await takeAll(stream)
  expect(all.length).toBe(bytesEach + 64)
  expect(sum(all.subarray(0, bytesEach))).toBe(all.toString('latin1', bytesEach))
}

test('256 streams carry bytes both ways at once, every one whole and in order', async () => {
  await using pair = await bytePair()
  const client = openMux(pair.client, { role: 'client' })
  const server = openMux(pair.server, { role: 'server', window_bytes: 256 * 1024 })
  const served = (async () => {
    const work: Promise<void>[] = []
    for await (const stream of server.incoming) {
      sendAndSum(stream)
      work.push(takeAndCheck(stream))
      if (work.length === 256) break
    }
    await Promise.all(work)
  })()
  const streams = Array.from({ length: 256 }, () => client.open())
  expect(await closed(client.open())).toBeInstanceOf(StreamRefused)
  for (const stream of streams) sendAndSum(stream)
  await Promise.all(streams.map(takeAndCheck))
  await served
  for (const stream of streams) expect(await closed(stream)).toBeUndefined()
  expect([client.streams, server.streams]).toEqual([0, 0])
  // The session is as good as new.
  client.open(Buffer.from('another')).end()
  for await (const stream of server.incoming) {
    expect((await takeAll(stream)).toString()).toBe('another')
    break
  }
})

test('both sides may open', async () => {
  await using pair = await bytePair()
  const client = openMux(pair.client, { role: 'client' })
  const server = openMux(pair.server, { role: 'server' })
  await Promise.all(
    [
      [client, server],
      [server, client],
    ].map(async ([from, to]) => {
      const streams = Array.from({ length: 10 }, () => from!.open())
      streams.forEach(sendAndSum)
      const work: Promise<void>[] = []
      for await (const stream of to!.incoming) {
        stream.end()
        work.push(takeAndCheck(stream))
        if (work.length === 10) break
      }
      await Promise.all(work)
    }),
  )
})
