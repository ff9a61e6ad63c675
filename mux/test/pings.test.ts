// Who is alive is kept and who is silent is dropped, by pings of sessions and of bare sockets.
import { once } from 'node:events'
import { expect, test, vi } from 'vitest'
import { ConnectionLost, keepalive, openMux } from '../src/index.ts'
import { bytePair, closed, muxPair, rudePeer, socketPair, turns, written } from './pairs.ts'

/** Resolves when it was called so often. */
function calls(often: number): { call: () => void; done: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = often
  return { call: () => void (--left === 0 && resolve()), done: promise }
}

test('a session measures the way there and back', async () => {
  const { client, server } = muxPair()
  expect(await client.ping()).toBeGreaterThanOrEqual(0)
  expect(await Promise.all([server.ping(), server.ping(), client.ping()])).toHaveLength(3)
})

test('no more pings are under way than a few', async () => {
  const peer = rudePeer({ role: 'client' })
  const measures = Array.from({ length: 65 }, () => peer.mux.ping().catch((error: Error) => error.name))
  expect(await measures[64]).toBe('StreamRefused')
  peer.mux.close()
  expect(await measures[0]).toBe('MuxClosed')
})

test('a peer that answers stays, and every answer is told', async () => {
  const pongs = calls(5)
  const { client, server } = muxPair({ ping: { every_ms: 4, timeout_ms: 2 }, onPong: pongs.call })
  await pongs.done
  client.open(Buffer.from('alive'))
  await turns()
  expect(server.streams).toBe(1)
  client.close()
})

test('a peer that says nothing after a ping is gone', async () => {
  const peer = rudePeer({ role: 'client', ping: { every_ms: 10, timeout_ms: 20 } })
  const stream = peer.mux.open()
  expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
  expect(await closed(stream)).toBeInstanceOf(ConnectionLost)
  expect(await peer.hear(36)).toBe('0001000100000001000c0000000200010000000000000000000300000000000000000000')
})

test('a peer that is too busy to answer, and sends, is not gone; its late answer counts', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    let pongs = 0
    const peer = rudePeer({
      role: 'server',
      ping: { every_ms: 1_000, timeout_ms: 500 },
      onPong: () => pongs++,
    })
    vi.advanceTimersByTime(1_000)
    expect(await peer.hear(12)).toBe('000200010000000000000000')
    for (let count = 0; count < 10; count++) {
      peer.say('00020001000000000000002a')
      await peer.hear(12)
      vi.advanceTimersByTime(500)
    }
    peer.say('000200020000000000000000')
    await turns()
    expect(pongs).toBe(1)
    vi.advanceTimersByTime(500)
    vi.advanceTimersByTime(500)
    expect(await peer.hear(12)).toBe('000200010000000000000001')
    vi.advanceTimersByTime(500)
    expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
    expect(vi.getTimerCount()).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

test('an idle session has one timer when it pings and none when it does not', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval'] })
  try {
    const { client } = muxPair({ ping: { every_ms: 1_000, timeout_ms: 500 } })
    client.open()
    expect(vi.getTimerCount()).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

/** Runs in a time of its own. */
async function inFakeTime(act: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  try {
    await act()
  } finally {
    vi.useRealTimers()
  }
}

test('the pace of pings can change, and every answer says how long the session was idle', () =>
  inFakeTime(async () => {
    const idle: number[] = []
    const peer = rudePeer({
      role: 'server',
      ping: { every_ms: 1_000, timeout_ms: 500 },
      onPong: (idle_ms) => void idle.push(idle_ms),
    })
    vi.advanceTimersByTime(1_000)
    await peer.hear(12)
    peer.say('000200020000000000000000')
    await turns()
    // The answer is here: the new pace counts from the ping on.
    peer.mux.pace({ every_ms: 60_000, timeout_ms: 500 })
    vi.advanceTimersByTime(59_999)
    expect(peer.mux.idle_ms).toBeGreaterThan(58_000)
    vi.advanceTimersByTime(1)
    expect(await peer.hear(12)).toBe('000200010000000000000001')
    peer.say('000200020000000000000001')
    await turns()
    expect(idle[1]).toBeGreaterThan(58_000)
    // Between two pings a new pace counts from now on.
    vi.advanceTimersByTime(500)
    peer.mux.pace({ every_ms: 5_000, timeout_ms: 500 })
    vi.advanceTimersByTime(5_000)
    expect(await peer.hear(12)).toBe('000200010000000000000002')
    vi.advanceTimersByTime(500)
    expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
    // How long it was idle before the ping that nobody answered.
    expect(peer.mux.idle_ms).toBe(5_500)
  }))

test('bytes that pass between two pings are no idle time', () =>
  inFakeTime(async () => {
    const idle: number[] = []
    const peer = rudePeer({ role: 'server', onPong: (idle_ms) => void idle.push(idle_ms) })
    peer.mux.pace({ every_ms: 10_000, timeout_ms: 500 })
    vi.advanceTimersByTime(10_000)
    await peer.hear(12)
    peer.say('000200020000000000000000')
    await turns()
    vi.advanceTimersByTime(6_000)
    peer.mux.open()
    await peer.hear(12)
    vi.advanceTimersByTime(4_000)
    await peer.hear(12)
    peer.say('000200020000000000000001')
    await turns()
    expect(idle).toEqual([10_000, 4_000])
  }))

test('a session that is pinged ends when the pings stay away, and its peer is not asked', () =>
  inFakeTime(async () => {
    let pings = 0
    const peer = rudePeer({ role: 'server', onPing: () => pings++ })
    peer.mux.allowSilence(1_000)
    for (let count = 0; count < 5; count++) {
      vi.advanceTimersByTime(900)
      peer.say('00020001000000000000002a')
      expect(await peer.hear(12)).toBe('00020002000000000000002a')
    }
    expect(pings).toBe(5)
    peer.mux.allowSilence(5_000)
    vi.advanceTimersByTime(4_999)
    await turns()
    peer.say('00020001000000000000002a')
    await peer.hear(12)
    vi.advanceTimersByTime(5_000)
    expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
  }))

test('what wants an answer has to get one in time, or anything else', () =>
  inFakeTime(async () => {
    const peer = rudePeer({ role: 'client' })
    peer.mux.allowSilence(600_000)
    peer.mux.expectWord(1_000)
    vi.advanceTimersByTime(999)
    peer.say('00020001000000000000002a')
    await peer.hear(12)
    vi.advanceTimersByTime(10_000)
    await turns()
    peer.mux.expectWord(1_000)
    vi.advanceTimersByTime(1_000)
    expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
    expect(vi.getTimerCount()).toBe(1)
  }))

test('a peer that was silent as it may is not lost when less silence is allowed', () =>
  inFakeTime(async () => {
    const peer = rudePeer({ role: 'client' })
    peer.mux.allowSilence(600_000)
    vi.advanceTimersByTime(300_000)
    let isOver = false
    void peer.mux.ended.then(() => (isOver = true))
    // As when somebody logs in.
    peer.mux.expectWord(15_000)
    peer.mux.allowSilence(65_000)
    vi.advanceTimersByTime(14_000)
    await turns()
    expect(isOver).toBe(false)
    peer.say('00020001000000000000002a')
    await peer.hear(12)
    vi.advanceTimersByTime(65_000)
    expect(await peer.mux.ended).toBeInstanceOf(ConnectionLost)
  }))

test('a session over a socket whose other end went silent ends', async () => {
  await using pair = await bytePair()
  // TCP takes the bytes, nobody answers.
  pair.tcp.pause()
  const mux = openMux(pair.client, { role: 'client', ping: { every_ms: 10, timeout_ms: 30 } })
  expect(await mux.ended).toBeInstanceOf(ConnectionLost)
})

test('a socket of bytes that answers pings stays, and every answer is told', async () => {
  const pongs = calls(2)
  await using pair = await bytePair({ ping: { every_ms: 20, timeout_ms: 500 }, onPong: pongs.call })
  pair.server.resume()
  pair.client.resume()
  await pongs.done
  await written(pair.client, 'alive')
  expect(pair.server.destroyed).toBe(false)
})

test('a socket of bytes whose other end says nothing is lost', async () => {
  await using pair = await bytePair({ ping: { every_ms: 10, timeout_ms: 30 } })
  // Its answers do not reach us.
  pair.tcp.pause()
  expect(await closed(pair.server)).toMatchObject({ name: 'SocketLost', code: 1006 })
})

test('a bare socket that answers pings stays, and every answer is told', async () => {
  await using pair = await socketPair()
  const pongs = calls(2)
  keepalive(pair.server, { every_ms: 20, timeout_ms: 500, onPong: pongs.call })
  pair.server.resume()
  pair.client.resume()
  await pongs.done
  expect(pair.server.readyState).toBe(pair.server.OPEN)
})

test('a bare socket that answers nothing is terminated', async () => {
  await using pair = await socketPair()
  keepalive(pair.server, { every_ms: 10, timeout_ms: 30 })
  pair.server.resume()
  expect(await once(pair.server, 'close')).toMatchObject([1006, {}])
})

test('a bare socket that we do not read is not judged', async () => {
  await using pair = await socketPair()
  pair.client.resume()
  pair.server.pause()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    keepalive(pair.server, { every_ms: 1_000, timeout_ms: 500 })
    for (let count = 0; count < 10; count++) vi.advanceTimersByTime(1_000)
    expect(pair.server.readyState).toBe(pair.server.OPEN)
  } finally {
    vi.useRealTimers()
  }
})

test('pinging that was ended leaves no timer and no listener', async () => {
  await using pair = await socketPair()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    keepalive(pair.server, { every_ms: 10, timeout_ms: 5 })[Symbol.dispose]()
    expect(vi.getTimerCount()).toBe(0)
    expect(pair.server.listenerCount('pong')).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
