// Channels and connections between our own two ends: credit, order, fairness, and how things end.
import { duplexPair } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { openClient } from '../src/client.ts'
import type { Channel } from '../src/connection/channel.ts'
import { writeTcpForward } from '../src/connection/forwarding.ts'
import { receiveSession, startSession } from '../src/connection/session.ts'
import { writeRequest } from '../src/connection/requests.ts'
import { joinChannels } from '../src/join-channels.ts'
import { acceptConnection } from '../src/server.ts'
import { Reader } from '../src/wire.ts'
import { pair } from './pairs.ts'
import { all } from './reading.ts'
import { hostKey } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

test('a slow reader holds one window, and the writer waits', async () => {
  await using two = await pair({ window_bytes: 100_000 })
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const here = await opening
  let written = 0
  const writing = (async () => {
    for (let turn = 0; turn < 40; turn += 1) {
      await here.write(Buffer.alloc(10_000))
      written += 10_000
    }
    await here.end()
  })()
  await eventually(() => expect(written).toBe(100_000))
  // All data has arrived when this is answered.
  expect(await two.client.request('anything')).toBeUndefined()
  expect(written).toBe(100_000)
  let read = 0
  for await (const { bytes } of there) read += bytes.length
  await writing
  expect(read).toBe(400_000)
})

test('two hundred channels at once, none of which waits for another', async () => {
  await using two = await pair({ window_bytes: 50_000 })
  const serving = (async () => {
    for await (const opening of two.server.channels) {
      const there = opening.accept()
      void (async () => {
        for await (const { bytes } of there) await there.write(bytes)
        await there.close()
      })().catch(() => undefined)
    }
  })()
  // One is never read from: it fills its window and stops, alone.
  const stuck = await two.client.open('session')
  void stuck.write(Buffer.alloc(5_000_000)).catch(() => undefined)
  const echoes = Array.from({ length: 200 }, async (_, n) => {
    const channel = await two.client.open('session')
    const bytes = Buffer.alloc(100_000, n)
    const writing = channel.write(bytes).then(async () => channel.end())
    const parts: Buffer[] = []
    for await (const chunk of channel) parts.push(chunk.bytes)
    await writing
    await channel.close()
    return Buffer.concat(parts).equals(bytes)
  })
  expect((await Promise.all(echoes)).every(Boolean)).toBe(true)
  await two.client.end()
  await serving
})

test('an opening that nobody answers can be given up', async () => {
  await using two = await pair()
  const stop = new AbortController()
  const opening = two.client.open('session', undefined, stop.signal)
  const asked = (await two.server.channels.next())!
  stop.abort(new Error('no longer needed'))
  await expect(opening).rejects.toThrow('no longer needed')
  // Accepted all the same, it is closed at once.
  await asked.accept().closed
})

test('data in tiny pieces that nobody reads is kept in large ones', async () => {
  await using two = await pair()
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const here = await opening
  for (let turn = 0; turn < 20_000; turn += 1) await here.write(Buffer.of(turn & 0xff))
  await here.end()
  expect(await two.client.request('anything')).toBeUndefined()
  const chunks: Buffer[] = []
  for await (const { bytes } of there) chunks.push(bytes)
  const whole = Buffer.concat(chunks)
  expect(whole.length).toBe(20_000)
  expect(whole.every((byte, at) => byte === (at & 0xff))).toBe(true)
  expect(chunks.length).toBeLessThan(10)
})

test('a request passes a full window, and the replies keep their order', async () => {
  await using two = await pair({ window_bytes: 1_000 })
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const here = await opening
  const stuck = here.write(Buffer.alloc(5_000)).catch((error: Error) => error.name)
  const replies = [here.request('first', undefined, true), here.request('second', undefined, true)]
  const [first, second] = [(await there.requests.next())!, (await there.requests.next())!]
  second.reply(true)
  first.reply(false)
  expect(await Promise.all(replies)).toEqual([false, true])
  await there.close('now')
  expect(await stuck).toBe('ChannelClosed')
})

test('a connection that breaks off gives out what had arrived, and then says so', async () => {
  await using two = await pair()
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const here = await opening
  await here.write(Buffer.from('last words'))
  await two.client.end(11, 'gone')
  await two.server.ended
  expect((await there.read())?.bytes.toString()).toBe('last words')
  await expect(there.read()).rejects.toThrow('gone')
  await expect(there.write(Buffer.from('x'))).rejects.toThrow('gone')
  expect(await there.requests.next()).toBeUndefined()
})

describe('whoever takes all of the data', () => {
  async function twoEnds(window_bytes = 100_000) {
    const two = await pair({ window_bytes })
    const opening = two.client.open('session')
    const there = (await two.server.channels.next())!.accept()
    return { two, here: await opening, there }
  }

  test('gets it in order and unchanged, whether it needs time or not', async () => {
    const { two, here, there } = await twoEnds()
    await using _ = two
    const sent = Buffer.alloc(700_000, 'all the way down ')
    const writing = here.write(sent).then(async () => here.end())
    const parts: Buffer[] = []
    let isBusy = false
    await there.readAll(({ bytes }) => {
      expect(isBusy).toBe(false)
      parts.push(Buffer.from(bytes))
      isBusy = parts.length % 3 === 0
      if (!isBusy) return undefined
      return two.client.request('anything').then(() => {
        isBusy = false
      })
    })
    await writing
    expect(Buffer.concat(parts).equals(sent)).toBe(true)
  })

  test('makes the peer wait while it needs time, and gets what came before as well', async () => {
    const { two, here, there } = await twoEnds()
    await using _ = two
    await here.write(Buffer.from('before '))
    expect(await two.client.request('anything')).toBeUndefined()
    const busy = Promise.withResolvers<void>()
    let taken_bytes = 0
    const taking = there.readAll(({ bytes }) => {
      taken_bytes += bytes.length
      return busy.promise
    })
    expect(taken_bytes).toBe(7)
    let isWritten = false
    const writing = here.write(Buffer.alloc(500_000)).then(() => {
      isWritten = true
    })
    expect(await two.client.request('anything')).toBeUndefined()
    expect(isWritten).toBe(false)
    expect(taken_bytes).toBe(7)
    busy.resolve()
    await writing
    await here.end()
    await taking
    expect(taken_bytes).toBe(500_007)
  })

  test('is told when it fails itself, when the connection breaks off, and that it is not the only one', async () => {
    const { two, here, there } = await twoEnds()
    const failing = there.readAll(() => {
      throw new Error('no room')
    })
    await expect(there.readAll(() => undefined)).rejects.toThrow('Only one')
    await expect(there.read()).rejects.toThrow('Only one')
    void here.write(Buffer.from('x'))
    await expect(failing).rejects.toThrow('no room')
    const lost = there.readAll(() => undefined)
    void two.client.end()
    await expect(lost).rejects.toThrow('Goodbye.')
  })

  test('what can leave at once needs no promise, the rest has one', async () => {
    const { two, here, there } = await twoEnds()
    await using _ = two
    expect(here.send(Buffer.alloc(60_000))).toBeUndefined()
    const rest = here.send(Buffer.alloc(60_000))
    expect(rest).toBeInstanceOf(Promise)
    let taken_bytes = 0
    const taking = there.readAll(({ bytes }) => void (taken_bytes += bytes.length))
    await rest
    await here.end()
    await taking
    expect(taken_bytes).toBe(120_000)
  })
})

describe('data that is sent in one turn', () => {
  async function channels(count: number) {
    const two = await pair({ packet_bytes: 32_768 })
    const here: Channel[] = []
    const there: Channel[] = []
    for (let at = 0; at < count; at += 1) {
      const opening = two.client.open('session')
      there.push((await two.server.channels.next())!.accept())
      here.push(await opening)
    }
    /** How many packets the work sends, and the answered request after it. */
    const packets = async (work: () => void): Promise<number> => {
      const before = two.server.transport.received
      work()
      expect(await two.client.request('anything')).toBeUndefined()
      return two.server.transport.received - before - 1
    }
    return { two, here, there, packets }
  }

  test('shares packets, as large as the peer takes them', async () => {
    const { two, here, there, packets } = await channels(1)
    await using _ = two
    const [channel] = here
    const pieces = Array.from({ length: 100 }, (_, at) => Buffer.alloc(1_000, at))
    expect(await packets(() => pieces.forEach((piece) => void channel!.send(piece)))).toBe(4)
    void channel!.end()
    expect((await all(there[0]!)).stdout.equals(Buffer.concat(pieces))).toBe(true)
  })

  test('keeps the order of channels, streams and requests', async () => {
    const { two, here, there, packets } = await channels(2)
    await using _ = two
    const count = await packets(() => {
      for (let at = 0; at < 3; at += 1) for (const channel of here) void channel.send(Buffer.from(`${at}`))
      void here[0]!.send(Buffer.from('out'))
      void here[0]!.send(Buffer.from('err'), 1)
      void here[0]!.request('between')
      void here[0]!.send(Buffer.from('after'), 1)
    })
    expect(count).toBe(6 + 4)
    const chunks = [await there[0]!.read(), await there[0]!.read()]
    expect(chunks.map((chunk) => `${chunk!.stream} ${chunk!.bytes.toString()}`)).toEqual([
      '0 012out',
      '1 errafter',
    ])
    expect((await there[0]!.requests.next())?.type).toBe('between')
    expect((await there[1]!.read())?.bytes.toString()).toBe('012')
  })

  test('is not mixed up between connections', async () => {
    const [one, other] = await Promise.all([channels(1), channels(1)])
    await using ending = new AsyncDisposableStack()
    for (const { two } of [one, other]) ending.use(two)
    const sides = [one, other].map(({ here, there }) => ({ here: here[0]!, there: there[0]! }))
    for (let at = 0; at < 50; at += 1)
      for (const [index, { here }] of sides.entries()) void here.send(Buffer.alloc(100, index))
    for (const [index, { here, there }] of sides.entries()) {
      void here.end()
      expect((await all(there)).stdout.equals(Buffer.alloc(5_000, index))).toBe(true)
    }
  })
})

test('an abort signal ends it', async () => {
  const stop = new AbortController()
  await using two = await pair({ signal: stop.signal })
  stop.abort()
  expect((await two.client.ended).message).toBe('The connection was stopped.')
})

test('the reader of a message never looks past its end', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.array(fc.constantFrom('byte', 'uint32', 'uint64', 'string', 'mpint', 'names', 'text'), {
        maxLength: 8,
      }),
      (bytes, steps) => {
        const reader = new Reader(Buffer.from(bytes))
        try {
          for (const step of steps) (reader[step as 'byte'] as () => unknown).call(reader)
        } catch (error) {
          expect((error as Error).name).toBe('ProtocolError')
        }
      },
    ),
  )
})

test('a client that speaks second says nothing before the server does', async () => {
  const [here, there] = duplexPair()
  const connecting = openClient(here, { speakSecond: true, checkHostKey: () => true })
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  expect(there.readableLength).toBe(0)
  const accepting = acceptConnection(there, {
    hostKeys: [hostKey],
    methods: [],
    authenticate: async () => 'accept',
  })
  const client = await connecting
  expect(await client.attempt('olga', { method: 'none' })).toEqual({ accepted: true })
  const server = await accepting
  await client.connection().end()
  expect((await server.ended).message).toBe('Goodbye.')
})

test('packets of 128 KiB pass where both ends take them', async () => {
  await using two = await pair({ packet_bytes: 128 * 1024 })
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const here = await opening
  await here.write(Buffer.alloc(200_000, 7))
  expect([(await there.read())?.bytes.length, (await there.read())?.bytes.length]).toEqual([
    128 * 1024,
    200_000 - 128 * 1024,
  ])
})

test.each([
  ['a program that says nothing of its end gets a status from the pipe', undefined, 0],
  ['a status that was said is passed on as it is', 9, 9],
])('%s', async (_, said, expected) => {
  await using near = await pair()
  await using far = await pair()
  const joining = (async () => {
    const opening = (await near.server.channels.next())!
    const opened = far.client.open('session')
    const there = (await far.server.channels.next())!.accept()
    const joined = joinChannels(opening.accept(), await opened, {
      async ending(channel, { exited, lost }) {
        const { name, payload } = writeRequest({ type: 'exit-status', status: lost ? 255 : 0 })
        if (!exited) await channel.request(name, payload)
      },
    })
    const session = (await receiveSession(there, () => true))!
    await there.write(Buffer.from('output'))
    await (said === undefined ? there.close() : session.exit(said))
    await joined
  })()
  const session = await startSession(near.client, { program: { type: 'subsystem', name: 'sftp' } })
  expect((await all(session.channel)).stdout.toString()).toBe('output')
  expect(await session.exit).toEqual({ type: 'exit-status', status: expected })
  await joining
})

describe('an EOF that is held back', () => {
  /** A near and a far channel, joined; the far server's side of it is the test's. */
  async function joined(near: Pair, far: Pair, holdEof_ms: number) {
    const opening = near.client.open('direct-tcpip', forward)
    const asked = (await near.server.channels.next())!
    const opened = far.client.open('direct-tcpip', forward)
    const there = (await far.server.channels.next())!.accept()
    const done = joinChannels(asked.accept(), await opened, {}, { holdEof_ms })
    return { here: await opening, there, done }
  }
  const forwards = { channelTypes: ['direct-tcpip'] }
  type Pair = Awaited<ReturnType<typeof pair>>
  const forward = writeTcpForward({ host: '127.0.0.1', port: 80, origin: '127.0.0.1', originPort: 1 })

  test('lets the far side say all it has, however long that takes, and then ends', async () => {
    await using near = await pair(forwards)
    await using far = await pair(forwards)
    const { here, there, done } = await joined(near, far, 3_600_000)
    await here.write(Buffer.from('question'))
    await here.end()
    expect((await there.read())?.bytes.toString()).toBe('question')
    const ended = there.read().then((chunk) => (chunk ? 'more' : 'EOF'))
    const writing = there.write(Buffer.alloc(3_000_000, 7))
    let got = 0
    while (got < 3_000_000) got += (await here.read())!.bytes.length
    await writing
    // Had an EOF been sent, it would be there before an answer to what is asked after it.
    await far.client.request('anything')
    expect(await Promise.race([ended, Promise.resolve('none yet')])).toBe('none yet')
    await there.end()
    expect(await here.read()).toBeUndefined()
    expect(await ended).toBe('EOF')
    await Promise.all([there.close(), here.close(), done])
  })

  test('passes when the far side has nothing to say for so long, counted from the EOF', async () => {
    await using near = await pair(forwards)
    await using far = await pair(forwards)
    const { here, there, done } = await joined(near, far, 50)
    await here.write(Buffer.from('question'))
    expect((await there.read())?.bytes.toString()).toBe('question')
    await here.end()
    expect(await there.read()).toBeUndefined()
    await there.write(Buffer.from('answer'))
    expect((await here.read())?.bytes.toString()).toBe('answer')
    await Promise.all([there.close(), here.close(), done])
  })

  test('goes with a near side that goes', async () => {
    await using near = await pair(forwards)
    await using far = await pair(forwards)
    const { here, there, done } = await joined(near, far, 3_600_000)
    await here.end()
    const ended = there.read()
    void here.close()
    expect(await ended).toBeUndefined()
    await Promise.all([there.close(), done])
  })
})
