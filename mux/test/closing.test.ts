// How streams and sessions end: each side for itself, at once, by a reset, with the carrier, or not at all.
import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { ConnectionLost, MuxClosed, openMux, StreamRefused, StreamReset } from '../src/index.ts'
import { accept, closed, muxPair, rudePeer, takeAll, takeBytes, turns, written } from './pairs.ts'

test('each side can finish first and still gets the other side whole', async () => {
  for (const clientFirst of [true, false]) {
    const { client, server } = muxPair()
    const opened = client.open()
    const accepted = await accept(server)
    const [first, second] = clientFirst ? [opened, accepted] : [accepted, opened]
    first.end('question')
    expect((await takeAll(second)).toString()).toBe('question')
    expect(second.destroyed).toBe(false)
    await turns()
    expect(client.streams).toBe(1)
    second.end(Buffer.alloc(2_000_000, 5))
    expect((await takeAll(first)).length).toBe(2_000_000)
    expect(await closed(first)).toBeUndefined()
    expect(await closed(second)).toBeUndefined()
    expect([client.streams, server.streams]).toEqual([0, 0])
  }
})

test('what came before the end is read, however late', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  opened.end('the last words')
  accepted.end()
  await turns()
  // Both have finished: the sessions have forgotten the stream, its reader has not.
  expect([client.streams, server.streams]).toEqual([0, 0])
  client.close()
  await turns()
  expect((await takeAll(accepted)).toString()).toBe('the last words')
  expect(await closed(accepted)).toBeUndefined()
})

test("when the carrier is lost, a reader that has all of the peer's bytes still gets them", async () => {
  const { client, server, line } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  accepted.end('the last words')
  await turns()
  line.destroy()
  await turns()
  expect((await takeBytes(opened, 14)).toString()).toBe('the last words')
  opened.resume()
  expect(await closed(opened)).toBeInstanceOf(ConnectionLost)
})

test('destroying one end resets the other', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  opened.write('unread')
  await turns()
  opened.destroy()
  expect(await closed(opened)).toBeUndefined()
  expect(await closed(accepted)).toBeInstanceOf(StreamReset)
  expect([client.streams, server.streams]).toEqual([0, 0])
})

test('a write that waits fails when the stream is reset', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  const writing = written(opened, Buffer.alloc(3_000_000))
  const next = written(opened, 'next')
  next.catch(() => undefined)
  await turns()
  accepted.destroy()
  await expect(writing).rejects.toThrow(StreamReset)
  await expect(next).rejects.toThrow()
})

test('a write that waits fails when its own side is destroyed', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  await accept(server)
  const writing = written(opened, Buffer.alloc(3_000_000))
  await turns()
  opened.destroy()
  await expect(writing).rejects.toThrow(MuxClosed)
})

test('bytes that were under way when we gave a stream up are passed over', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  const writing = written(accepted, Buffer.alloc(900_000))
  writing.catch(() => undefined)
  await takeBytes(opened, 10)
  opened.destroy()
  await closed(accepted)
  const other = client.open(Buffer.from('still here'))
  other.end()
  expect((await takeAll(await accept(server))).toString()).toBe('still here')
})

test('a stream that is reset before it was accepted is not offered', async () => {
  const { client, server } = muxPair()
  client.open().destroy()
  client.open(Buffer.from('second')).end()
  await turns()
  expect((await takeAll(await accept(server))).toString()).toBe('second')
})

test('the loss of the carrier is an error of the session and of every stream', async () => {
  const { client, server, line } = muxPair()
  const streams = [client.open(), client.open()]
  const accepted = await accept(server)
  const measure = client.ping()
  line.destroy(new Error('cut'))
  for (const stream of streams) expect(await closed(stream)).toBeInstanceOf(ConnectionLost)
  await expect(measure).rejects.toThrow(ConnectionLost)
  expect(await client.ended).toBeInstanceOf(ConnectionLost)
  expect((await client.ended)!.cause).toMatchObject({ message: 'cut' })
  await closed(accepted)
  expect(await server.ended).toBeInstanceOf(ConnectionLost)
})

test('closing a session ends both sides in good order, streams excepted', async () => {
  const { client, server } = muxPair()
  const opened = client.open()
  const accepted = await accept(server)
  const waiting = accept(server)
  client.close()
  expect(await client.ended).toBeUndefined()
  expect(await server.ended).toBeUndefined()
  expect(await closed(opened)).toBeInstanceOf(MuxClosed)
  expect(await closed(accepted)).toBeInstanceOf(MuxClosed)
  await expect(waiting).rejects.toThrow('The session ended.')
  const late = client.open()
  expect(await closed(late)).toBeInstanceOf(MuxClosed)
  await expect(client.ping()).rejects.toThrow(MuxClosed)
})

test("a reason to close is the session's and its streams'", async () => {
  const { client } = muxPair()
  const opened = client.open()
  const reason = new Error('displaced')
  client.close(reason)
  client.close()
  expect(await client.ended).toBe(reason)
  expect(await closed(opened)).toBe(reason)
})

test('a carrier that ends between frames is a goodbye, within one it is not', async () => {
  const between = rudePeer({ role: 'server' })
  between.say('00020001000000000000002a')
  between.line.end()
  expect(await between.mux.ended).toBeUndefined()

  const within = rudePeer({ role: 'server' })
  within.say('00020001')
  within.line.end()
  expect(await within.mux.ended).toMatchObject({ name: 'ProtocolError', rule: 'truncated' })
})

test('a session on a carrier that is gone already ends', async () => {
  const carrier = new PassThrough()
  carrier.destroy()
  expect(await openMux(carrier, { role: 'client' }).ended).toBeInstanceOf(ConnectionLost)
})

test('whoever goes away takes no new streams and keeps the old ones', async () => {
  const { client, server } = muxPair()
  const old = client.open()
  const accepted = await accept(server)
  server.goAway()
  const early = client.open()
  expect(await closed(early)).toBeInstanceOf(StreamReset)
  await turns()
  expect(await closed(client.open())).toBeInstanceOf(StreamRefused)
  old.end('old')
  expect((await takeAll(accepted)).toString()).toBe('old')
  // The other direction is open.
  server.open(Buffer.from('new')).end()
  expect((await takeAll(await accept(client))).toString()).toBe('new')
})

test('a peer that never finishes its side after we have is reset after five silent minutes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const peer = rudePeer({ role: 'client' })
    const stream = peer.mux.open()
    stream.end()
    expect(await peer.hear(24)).toBe('0001000100000001000c0000000100040000000100000000')
    vi.advanceTimersByTime(4 * 60_000)
    // It is not silent: it sends, and we read.
    peer.say('000000000000000100000001 61')
    expect((await takeBytes(stream, 1)).toString()).toBe('a')
    vi.advanceTimersByTime(4 * 60_000)
    await turns()
    expect(stream.destroyed).toBe(false)
    vi.advanceTimersByTime(6 * 60_000)
    expect(await peer.hear(12)).toBe('000100080000000100000000')
    expect(await closed(stream)).toBeInstanceOf(MuxClosed)
    expect(peer.mux.streams).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('a carrier that cannot finish is destroyed after some seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const peer = rudePeer({ role: 'client' })
    const stream = peer.mux.open()
    stream.write(Buffer.alloc(100_000))
    await turns()
    peer.mux.close()
    await turns()
    expect(peer.line.readableEnded).toBe(false)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(5_000)
    await turns()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
