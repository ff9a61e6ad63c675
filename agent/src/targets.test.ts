// Targets of web services: who may have one connected, and that both directions pass everything, each at its own pace.
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { proofText, targetText, type TargetAddress } from '@hawser/contract/tunnel'
import { multistream } from '@hawser/mux'
import { blobOf } from '@hawser/ssh'
import { muxPair } from '../../mux/test/pairs.ts'
import { freePort } from '../../ssh/test/programs.ts'
import { eventually } from '../../tests/harness/eventually.ts'
import { readServices } from './services-setting.ts'
import { targetsOf, type TargetParts } from './targets.ts'

const [server, stranger] = [0, 1].map(() => generateKeyPairSync('ed25519').privateKey)
const tunnel = { uid: 'crane', nonce: 'ab'.repeat(16) }
const signed = (address: TargetAddress, key: KeyObject = server!, of = tunnel): string =>
  sign(null, Buffer.from(targetText(of.uid, of.nonce, address)), key).toString('base64')

let sessions = 0
/** Streams of a tunnel whose agent has this setting. */
function agent(setting: string, more: Partial<TargetParts> = {}) {
  const pair = muxPair()
  const connect = targetsOf({
    setting: readServices(setting)!,
    serverKey: () => blobOf(server!),
    session() {
      sessions += 1
      return { [Symbol.dispose]: () => void (sessions -= 1) }
    },
    ...more,
  })
  void (async () => {
    for await (const stream of pair.server.incoming) {
      stream.on('error', () => undefined)
      void (async () => {
        const request: unknown = JSON.parse(await multistream.readLine(stream, 4_096))
        const refused = await connect(stream, request, tunnel)
        if (refused) stream.end(`${JSON.stringify({ refused })}\n`).resume()
      })()
    }
  })()
  const ask = async (request: unknown): Promise<{ answer: unknown; stream: Duplex }> => {
    const stream = pair.client.open(Buffer.from(`${JSON.stringify(request)}\n`))
    return { stream, answer: JSON.parse(await multistream.readLine(stream, 4_096)) }
  }
  return {
    ask,
    answerTo: async (host: string, port = target.port) => {
      const { stream, answer } = await ask({ host, port, signature: signed({ host, port }) })
      stream.destroy()
      return answer
    },
    open: async (host = '127.0.0.1', port = target.port): Promise<Duplex> => {
      const { stream, answer } = await ask({ host, port, signature: signed({ host, port }) })
      expect(answer).toEqual({ open: true })
      return stream
    },
    [Symbol.dispose]: () => pair.client.close(),
  }
}

/** A target on the loopback, new for each test, and its connections that no test has taken. */
let target: { readonly port: number; readonly listener: Server; readonly sockets: Socket[] }
const connected = async (): Promise<Socket> =>
  eventually(() => target.sockets.shift() ?? expect.fail(), undefined, 5)
const closed = async (each: Duplex): Promise<void> =>
  new Promise((resolve) => void (each.closed ? resolve() : each.once('close', () => resolve())))
/** All that comes, without closing the other direction. */
const bytesOf = async (stream: Duplex): Promise<Buffer> =>
  new Promise((resolve) => {
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => void pieces.push(piece))
    stream.once('end', () => resolve(Buffer.concat(pieces)))
  })
const text = async (stream: Duplex): Promise<string> => (await bytesOf(stream)).toString()
const refused = (why: string) => ({ refused: why })

beforeEach(async () => {
  const sockets: Socket[] = []
  const listener = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    sockets.push(socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  target = { port: (listener.address() as AddressInfo).port, listener, sockets }
})
afterEach(() => {
  for (const socket of target.sockets) socket.destroy()
  target.listener.close()
})

describe('a request', () => {
  const host = '127.0.0.1'
  const request = () => ({ host, port: target.port })

  test('is the server’s for this host, this port, this device and this tunnel', async () => {
    using ours = agent('localhost')
    const unapproved = [
      { ...request(), signature: signed(request(), stranger) },
      { ...request(), signature: signed(request(), server, { ...tunnel, nonce: 'cd'.repeat(16) }) },
      { ...request(), signature: signed(request(), server, { ...tunnel, uid: 'buoy' }) },
      { ...request(), signature: signed({ ...request(), host: 'localhost' }) },
      { ...request(), signature: signed({ ...request(), port: 80 }) },
      {
        ...request(),
        signature: sign(null, Buffer.from(proofText(tunnel.uid, tunnel.nonce)), server!).toString('base64'),
      },
      { ...request(), signature: '' },
      { ...request(), signature: [signed(request())] },
      request(),
    ]
    for (const each of unapproved) expect((await ours.ask(each)).answer).toEqual(refused('unapproved'))
    expect(await ours.answerTo(host)).toEqual({ open: true })
  })

  test('is not approved without a pinned key, or with one that is no key', async () => {
    using without = agent('localhost', { serverKey: () => undefined })
    expect(await without.answerTo(host)).toEqual(refused('unapproved'))
    using other = agent('localhost', { serverKey: () => Buffer.from('no key') })
    expect(await other.answerTo(host)).toEqual(refused('unapproved'))
  })

  test('that nobody can read is refused', async () => {
    using ours = agent('network')
    const bad = [
      null,
      7,
      'localhost:80',
      {},
      { host, port: String(target.port), signature: 'x' },
      { host, port: 0 },
      { host, port: 65_536 },
      { host, port: 80.5 },
      { host: '', port: 80 },
      { host: 'a b', port: 80 },
      { host: 'x'.repeat(254), port: 80 },
      { host: ['localhost'], port: 80 },
      { host: 'fe80::1%lo', port: 80 },
      { host: '2130706433', port: 80 },
    ]
    for (const each of bad)
      expect((await ours.ask(each)).answer, JSON.stringify(each)).toEqual(refused('forbidden'))
  })
})

describe('a name', () => {
  test('is judged by what it stands for, and the agent connects only to that', async () => {
    const asked: string[] = []
    const found = (...addresses: string[]) => ({
      lookup: async (host: string) => {
        asked.push(host)
        return addresses
      },
    })
    const answer = async (setting: string, host: string, ...addresses: string[]) => {
      using ours = agent(setting, found(...addresses))
      return await ours.answerTo(host)
    }
    for (const address of [
      '169.254.169.254',
      'fe80::1',
      'fe80::1%lo',
      '::ffff:169.254.169.254',
      '0.0.0.0',
      '::',
    ])
      for (const setting of ['network', `rebound.example:*`, '0.0.0.0/0:*'])
        expect(await answer(setting, 'rebound.example', address)).toEqual(refused('forbidden'))
    expect(await answer('network', 'rebound.example', '169.254.169.254', '127.0.0.1')).toEqual({ open: true })
    expect(await answer('network', 'empty.example')).toEqual(refused('forbidden'))
    expect(await answer('printer.lan:*', 'Printer.lan.', '127.0.0.1')).toEqual({ open: true })
    expect(await answer('printer.lan:*', 'other.lan', '127.0.0.1')).toEqual(refused('forbidden'))
    asked.length = 0
    expect(await answer('localhost', 'rebound.example', '127.0.0.1')).toEqual(refused('forbidden'))
    expect(await answer('localhost', '10.0.0.1')).toEqual(refused('forbidden'))
    expect(await answer('localhost', 'LocalHost', '169.254.169.254')).toEqual({ open: true })
    expect(asked).toEqual([])
  })

  test('that does not resolve is unreachable', async () => {
    const lookup = async () => Promise.reject(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }))
    using ours = agent('network', { lookup })
    expect(await ours.answerTo('nosuch.example')).toEqual(refused('unreachable'))
  })
})

describe('of a container', () => {
  test('localhost is the container, and nothing else is reached', async () => {
    const asked: string[] = []
    const at = (...addresses: string[]) => ({
      ownAddresses: async () => addresses,
      lookup: async (host: string) => {
        asked.push(host)
        return ['127.0.0.1']
      },
    })
    const own = await otherLoopback()
    using server = own
    for (const setting of ['localhost', 'network', 'localhost:*']) {
      using ours = agent(setting, at('127.0.0.2', '169.254.0.1', '::1', '0.0.0.0'))
      for (const host of ['localhost', '127.0.0.1', '::1'])
        expect(await ours.answerTo(host, server.port)).toEqual(refused('unreachable'))
      for (const host of ['10.0.0.1', 'printer.lan', '127.0.0.1.example'])
        expect(await ours.answerTo(host, server.port)).toEqual(refused('forbidden'))
    }
    using none = agent('localhost', at())
    expect(await none.answerTo('localhost')).toEqual(refused('unreachable'))
    using listed = agent('localhost:1', at('192.0.2.1'))
    expect(await listed.answerTo('localhost')).toEqual(refused('forbidden'))
    if (server.address !== undefined) {
      using ours = agent('localhost', at(server.address))
      expect(await ours.answerTo('127.0.0.1', server.port)).toEqual({ open: true })
    }
    const broken = async () => Promise.reject(new Error('The engine did not answer in time.'))
    using lost = agent('localhost', { ownAddresses: broken })
    expect(await lost.answerTo('localhost')).toEqual(refused('failed'))
    expect(asked).toEqual([])
  })
})

describe('a target', () => {
  test('on which nothing listens is closed', async () => {
    const port = await freePort()
    using ours = agent('localhost')
    for (const host of ['127.0.0.1', 'localhost'])
      expect(await ours.answerTo(host, port)).toEqual(refused('closed'))
  })

  test('is connected to by any of its addresses', async () => {
    using ours = agent('network', { lookup: async () => ['127.0.0.7', '127.0.0.1'] })
    expect(await ours.answerTo('two.example')).toEqual({ open: true })
    using local = agent('localhost')
    expect(await local.answerTo('localhost')).toEqual({ open: true })
  })

  test('is refused when too many are being connected, and not afterwards', async () => {
    const looking: PromiseWithResolvers<readonly string[]>[] = []
    const lookup = async (host: string) => {
      if (host !== 'slow.example') return ['127.0.0.1']
      looking.push(Promise.withResolvers())
      return looking.at(-1)!.promise
    }
    using ours = agent('network', { lookup })
    const answers = Array.from({ length: 64 }, async () => ours.answerTo('slow.example'))
    await eventually(() => expect(looking).toHaveLength(64))
    expect(await ours.answerTo('localhost')).toEqual(refused('busy'))
    for (const each of looking) each.reject(Object.assign(new Error('later'), { code: 'EAI_AGAIN' }))
    expect(await Promise.all(answers)).toEqual(answers.map(() => refused('unreachable')))
    expect(await ours.answerTo('localhost')).toEqual({ open: true })
  })
})

describe('a connection', () => {
  test('passes what the server sent before the answer, and each end by itself', async () => {
    using ours = agent('localhost')
    const request = { host: '127.0.0.1', port: target.port }
    const { stream, answer } = await ours.ask({ ...request, signature: signed(request) })
    expect(answer).toEqual({ open: true })
    expect(sessions).toBe(1)
    stream.end('question')
    const socket = await connected()
    expect(await text(socket)).toBe('question')
    // The target answers although the other side has ended.
    socket.write('ans')
    socket.end('wer')
    expect(await text(stream)).toBe('answer')
    await eventually(() => expect([stream.closed, socket.closed, sessions]).toEqual([true, true, 0]))
  })

  test('passes bytes to a target that has ended its side', async () => {
    using ours = agent('localhost')
    const stream = await ours.open()
    const socket = await connected()
    socket.end('goodbye')
    expect(await text(stream)).toBe('goodbye')
    stream.write('still ')
    stream.end('here')
    expect(await text(socket)).toBe('still here')
    await eventually(() => expect([stream.closed, socket.closed, sessions]).toEqual([true, true, 0]))
  })

  test('ends at once when the stream is reset, also while it is silent or half closed', async () => {
    using ours = agent('localhost')
    for (const half of ['none', 'target', 'stream']) {
      const stream = await ours.open()
      const socket = await connected()
      const gone = closed(socket)
      if (half === 'target') {
        socket.end()
        expect(await text(stream)).toBe('')
      }
      if (half === 'stream') {
        stream.end()
        expect(await text(socket)).toBe('')
      } else socket.resume()
      stream.destroy()
      if (half !== 'target') socket.write('x')
      await eventually(() => expect(sessions, half).toBe(0), 5_000)
      socket.destroy()
      await gone
    }
  })

  test('ends when the target resets it', async () => {
    using ours = agent('localhost')
    const stream = await ours.open()
    ;(await connected()).resetAndDestroy()
    await closed(stream)
    expect(stream.readableEnded).toBe(false)
    await eventually(() => expect(sessions).toBe(0))
  })

  test('ends with the tunnel, and while it is being made', async () => {
    const ours = agent('localhost')
    await ours.open()
    const socket = await connected()
    const gone = once(socket.resume(), 'end')
    ours[Symbol.dispose]()
    await gone
    await eventually(() => expect(sessions).toBe(0))
    const looked = Promise.withResolvers<readonly string[]>()
    const later = agent('network', { lookup: async () => looked.promise })
    const answer = later.answerTo('slow.example').catch(() => 'lost')
    await new Promise(setImmediate)
    later[Symbol.dispose]()
    expect(await answer).toBe('lost')
    looked.resolve(['127.0.0.1'])
    using another = agent('localhost')
    const stream = await another.open()
    await connected()
    expect([target.sockets, sessions]).toEqual([[], 1])
    stream.destroy()
  })

  const large = 64 * 1024 * 1024
  const piece = Buffer.alloc(64 * 1024, 'hawser')

  /** Writes with back-pressure; the count is of what the writer was allowed. */
  function pour(into: Duplex, progress: { bytes: number }): void {
    const go = (): void => {
      while (progress.bytes < large) {
        progress.bytes += piece.length
        if (!into.write(piece)) return void into.once('drain', go)
      }
      into.end()
    }
    go()
  }

  test.each(['down', 'up'])('waits for a slow reader, and loses nothing (%s)', async (direction) => {
    using ours = agent('localhost')
    const stream = await ours.open()
    const socket = await connected()
    const [from, to] = direction === 'down' ? [socket, stream] : [stream, socket]
    const progress = { bytes: 0 }
    pour(from, progress)
    // Nobody reads: what the agent takes is bounded by windows and by the buffers of the kernel.
    let before = -1
    await eventually(
      () => {
        const now = progress.bytes
        const rests = now === before
        before = now
        expect(rests).toBe(true)
      },
      10_000,
      200,
    )
    expect(progress.bytes).toBeLessThan(large / 2)
    const arrived = await bytesOf(to)
    expect(arrived.length).toBe(large)
    expect(arrived.subarray(-piece.length).equals(piece)).toBe(true)
    to.end()
    await closed(from.resume())
  })
})

/** A server on an address of this machine that is not the loopback, if it has one. */
async function otherLoopback() {
  const { networkInterfaces } = await import('node:os')
  const address = Object.values(networkInterfaces())
    .flat()
    .find((each) => each && !each.internal && each.family === 'IPv4')?.address
  const listener = net.createServer((socket) => void socket.on('error', () => undefined))
  listener.listen(0, address ?? '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  return { address, port, [Symbol.dispose]: () => void listener.close() }
}
