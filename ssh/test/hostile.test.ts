// Peers that break the rules: at every state, before and after keys and authentication, each ends in a named
// goodbye, and never in an exception, in memory without bound or in a wait without end.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { Message } from '../src/messages.ts'
import type { Transport } from '../src/transport/transport.ts'
import { message, Writer, type Writer as W } from '../src/wire.ts'
import type { Duplex } from 'node:stream'
import { rudeClient, servedLine, type TestedOptions } from './pairs.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Why the server let this line go. */
async function refusal(write: (line: Duplex) => void, options: TestedOptions = {}): Promise<string> {
  const { line, server } = servedLine(options)
  line.resume()
  line.on('error', () => undefined)
  write(line)
  return server.then(
    () => 'got in',
    (error: Error) => error.message,
  )
}

const packet = (payload: Buffer, padding = 8 - ((5 + payload.length) % 8) + 8): Buffer => {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(1 + payload.length + padding)
  head[4] = padding
  return Buffer.concat([head, payload, Buffer.alloc(padding)])
}
const kexInit = (...kex: string[]): Buffer => {
  const writer = new Writer().byte(Message.kexInit).raw(randomBytes(16)).names(kex).names(['ssh-ed25519'])
  for (const list of [
    ['aes128-gcm@openssh.com'],
    ['aes128-gcm@openssh.com'],
    [],
    [],
    ['none'],
    ['none'],
    [],
    [],
  ])
    writer.names(list)
  return Buffer.from(writer.boolean(false).uint32(0).bytes())
}
const strict = kexInit('curve25519-sha256', 'kex-strict-c-v00@openssh.com')
const ident = 'SSH-2.0-Rude\r\n'

describe('before there are keys', () => {
  test.each<[string, (line: Duplex) => void, string]>([
    ['a web browser', (line) => line.write('GET / HTTP/1.1\r\n\r\n'), 'This is not SSH.'],
    ['an endless ident', (line) => line.write(`SSH-2.0-${'x'.repeat(300)}`), 'The ident is too long.'],
    ['the first version', (line) => line.write('SSH-1.5-Old\r\n'), 'Only version 2 of SSH is spoken here.'],
    [
      'a huge packet',
      (line) => line.write(Buffer.concat([Buffer.from(ident), Buffer.of(0x7f, 0, 0, 0)])),
      'A packet has an impossible length.',
    ],
    [
      'an empty packet',
      (line) => line.write(Buffer.concat([Buffer.from(ident), Buffer.alloc(8)])),
      'A packet has an impossible length.',
    ],
    [
      'a packet of odd size',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(Buffer.of(2), 9)])),
      'A packet is not padded to whole blocks.',
    ],
    [
      'more padding than packet',
      (line) =>
        line.write(Buffer.concat([Buffer.from(ident), Buffer.of(0, 0, 0, 12, 200), Buffer.alloc(11)])),
      'A packet has an impossible padding.',
    ],
    [
      'a KEXINIT that is cut short',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(strict.subarray(0, 40))])),
      'A message is cut short.',
    ],
    [
      'a KEXINIT with no common method',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(kexInit('rot13'))])),
      'There is no key exchange that both sides know.',
    ],
    [
      'two KEXINITs',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(strict), packet(strict)])),
      'A KEXINIT came during a key exchange.',
    ],
    [
      'NEWKEYS without keys',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(Buffer.of(Message.newKeys))])),
      'NEWKEYS came out of order.',
    ],
    [
      'an answer to an exchange that was not begun',
      (line) =>
        line.write(Buffer.concat([Buffer.from(ident), packet(Buffer.of(Message.kexStart, 0, 0, 0, 0))])),
      'A message of a key exchange came without one.',
    ],
    [
      'an exchange out of order',
      (line) =>
        line.write(Buffer.concat([Buffer.from(ident), packet(strict), packet(Buffer.of(Message.kexReply))])),
      'A message of the key exchange came out of order.',
    ],
    [
      'a useless value',
      (line) =>
        line.write(
          Buffer.concat([
            Buffer.from(ident),
            packet(strict),
            packet(Buffer.from(new Writer().byte(30).string(Buffer.alloc(32)).bytes())),
          ]),
        ),
      'The X25519 value is not usable.',
    ],
    [
      'a request for a service',
      (line) =>
        line.write(
          Buffer.concat([
            Buffer.from(ident),
            packet(Buffer.from(new Writer().byte(5).string('ssh-userauth').bytes())),
          ]),
        ),
      'A message came before the first keys.',
    ],
    [
      'a message hidden before the exchange, as in the Terrapin attack',
      (line) =>
        line.write(
          Buffer.concat([Buffer.from(ident), packet(Buffer.of(Message.ignore, 0, 0, 0, 0)), packet(strict)]),
        ),
      'Something came before the KEXINIT.',
    ],
    [
      'a message hidden within it',
      (line) =>
        line.write(
          Buffer.concat([Buffer.from(ident), packet(strict), packet(Buffer.of(Message.ignore, 0, 0, 0, 0))]),
        ),
      'A message came before the first keys.',
    ],
    ['silence', () => undefined, 'It took too long to log in.'],
    ['half an ident', (line) => line.write('SSH-2.0-Ru'), 'It took too long to log in.'],
    [
      'half a packet',
      (line) => line.write(Buffer.concat([Buffer.from(ident), packet(strict).subarray(0, 50)])),
      'It took too long to log in.',
    ],
    ['a line that is cut', (line) => line.end(ident), 'The connection was lost.'],
  ])('%s', async (_, write, reason) => {
    expect(await refusal(write, { handshake_ms: 400 })).toBe(reason)
  })

  test('idents and packets may come in pieces of any size', async () => {
    const sent = Buffer.concat([Buffer.from(ident), packet(kexInit('rot13'))])
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 }),
        async (sizes) => {
          const reason = await refusal((line) => {
            let at = 0
            for (let turn = 0; at < sent.length; turn += 1)
              line.write(sent.subarray(at, (at += sizes[turn % sizes.length]!)))
          })
          expect(reason).toBe('There is no key exchange that both sides know.')
        },
      ),
      { numRuns: 20 },
    )
  })

  test('anything at all', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 400 }),
        fc.boolean(),
        async (bytes, polite) => {
          const reason = await refusal((line) => {
            if (polite) line.write(ident)
            line.end(bytes)
          })
          expect(reason).toMatch(/\.$/)
          expect(reason).not.toBe('Internal error.')
        },
      ),
      { numRuns: 150 },
    )
  })
})

/** The goodbye that the server says to what is sent under keys. */
async function goodbye(send: (transport: Transport) => void, options: TestedOptions = {}): Promise<string> {
  const { transport, server } = await rudeClient(options)
  send(transport)
  const { message: reason, by } = await transport.ended
  await server.then(async (connection) => connection.end()).catch(() => undefined)
  return by === 'peer' ? reason : `not by the peer: ${reason}`
}

const authService = (): W => message(Message.serviceRequest).string('ssh-userauth')
const authRequest = (method: string, user = 'olga'): W =>
  message(Message.authRequest).string(user).string('ssh-connection').string(method)

describe('before authentication', () => {
  test.each<[string, (transport: Transport) => void, string]>([
    [
      'a channel',
      (t) => t.send(message(Message.channelOpen).string('session').uint32(0).uint32(1).uint32(1)),
      'A service must be requested first.',
    ],
    [
      'a channel after the service',
      (t) => {
        t.send(authService())
        t.send(message(Message.channelOpen).string('session').uint32(0).uint32(1).uint32(1))
      },
      'Only authentication is possible now.',
    ],
    [
      'another service',
      (t) => t.send(message(Message.serviceRequest).string('ssh-connection')),
      'Before authentication there is no other service.',
    ],
    [
      'a packet larger than a stranger may send',
      (t) => t.send(message(Message.ignore).string(Buffer.alloc(40_000))),
      'A packet has an impossible length.',
    ],
    [
      'another user name at the second attempt',
      (t) => {
        t.send(authService())
        t.send(authRequest('none', 'olga'))
        t.send(authRequest('none', 'root'))
      },
      'The user name changed between attempts.',
    ],
    [
      'an attempt that is cut short',
      (t) => {
        t.send(authService())
        t.send(authRequest('password').boolean(false))
      },
      'A message is cut short.',
    ],
    ['a second NEWKEYS', (t) => t.send(message(Message.newKeys)), 'NEWKEYS came out of order.'],
  ])('%s', async (_, send, reason) => {
    expect(await goodbye(send, { authenticate: async () => 'refuse' })).toBe(reason)
  })

  test('attempts that nobody has judged yet wait outside, and the memory with them', async () => {
    let judged = 0
    const { transport, line } = await rudeClient({
      authenticate: async ({ signal }) => {
        judged += 1
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('refuse')))
      },
    })
    // So that it is not its own bound for strangers which stops the client.
    transport.takeOver(
      () => undefined,
      () => undefined,
    )
    transport.send(authService())
    for (let turn = 0; turn < 2_000; turn += 1)
      transport.send(authRequest('password').boolean(false).string('x'.repeat(1_000)))
    // The server stops reading: what was sent stays on our side of the line.
    await eventually(() => expect(line.writableLength).toBeGreaterThan(500_000))
    expect(judged).toBe(1)
    line.destroy()
  })

  test('a forged signature proves nothing', async () => {
    const methods: string[] = []
    const { transport, server } = await rudeClient({
      authenticate: async (attempt) => {
        methods.push(attempt.method)
        return attempt.method === 'publickey' ? 'accept' : 'refuse'
      },
    })
    transport.send(authService())
    await transport.receive()
    const blob = Buffer.from(new Writer().string('ssh-ed25519').string(randomBytes(32)).bytes())
    const forged = new Writer().string('ssh-ed25519').string(randomBytes(64)).bytes()
    transport.send(authRequest('publickey').boolean(true).string('ssh-ed25519').string(blob).string(forged))
    expect((await transport.receive())[0]).toBe(Message.authFailure)
    expect(methods).toEqual([])
    transport.end(Object.assign(new Error('done'), { reason: 11 }))
    await expect(server).rejects.toThrow()
  })

  test('questions that are left for another attempt get no answer of their own', async () => {
    const attempts: string[] = []
    const { transport, line } = await rudeClient({
      authenticate: async (attempt) => {
        attempts.push(attempt.method)
        if (attempt.method !== 'keyboard-interactive') return 'refuse'
        // Swallows the failure, as careless rules might.
        return attempt.ask([{ text: 'Name?', echo: true }]).then(
          () => 'accept' as const,
          () => 'accept' as const,
        )
      },
    })
    const answers: number[] = []
    const next = async (): Promise<void> => void answers.push((await transport.receive())[0]!)
    transport.send(authService())
    await next()
    transport.send(authRequest('keyboard-interactive').string('').string(''))
    await next()
    transport.send(authRequest('password').boolean(false).string('x'))
    await next()
    transport.send(authRequest('none'))
    await next()
    expect(answers).toEqual([
      Message.serviceAccept,
      Message.authInfoRequest,
      Message.authFailure,
      Message.authFailure,
    ])
    expect(attempts).toEqual(['keyboard-interactive', 'password', 'none'])
    line.destroy()
  })

  test('a message of no known kind is answered with its number', async () => {
    const { transport, line } = await rudeClient()
    transport.send(authService())
    await transport.receive()
    const before = transport.received
    transport.send(message(150))
    await eventually(() => expect(transport.received).toBe(before + 1))
    line.destroy()
  })
})

/** Somebody who is in and then breaks the rules. */
async function insider(options: TestedOptions = {}) {
  const rude = await rudeClient(options)
  rude.transport.send(authService())
  rude.transport.send(authRequest('none'))
  const received: Buffer[] = []
  for (let type = 0; type !== Message.authSuccess;) type = (await rude.transport.receive())[0]!
  rude.transport.takeOver(
    (payload) => void received.push(payload),
    () => undefined,
  )
  const connection = await rude.server
  void (async () => {
    // Accepts everything and reads nothing.
    for await (const opening of connection.channels) opening.accept()
  })()
  return { ...rude, connection, received }
}

const openChannel = (id: number, window = 1_000_000): W =>
  message(Message.channelOpen).string('session').uint32(id).uint32(window).uint32(32_768)
const data = (bytes: Buffer, channel = 0): W => message(Message.channelData).uint32(channel).string(bytes)

describe('within a connection', () => {
  const small = { window_bytes: 10_000, packet_bytes: 4_000 }
  test.each<[string, W[], string]>([
    [
      'more data than the window',
      [openChannel(0), data(Buffer.alloc(4_000)), data(Buffer.alloc(4_000)), data(Buffer.alloc(4_000))],
      'More data came than the window allows.',
    ],
    [
      'a packet larger than agreed',
      [openChannel(0), data(Buffer.alloc(4_001))],
      'A packet of data is larger than was allowed.',
    ],
    ['data for nobody', [data(Buffer.from('x'), 7)], 'A message came for a channel that does not exist.'],
    [
      'data after EOF',
      [openChannel(0), message(Message.channelEof).uint32(0), data(Buffer.from('x'))],
      'Data came after the end of a channel.',
    ],
    [
      'EOF twice',
      [openChannel(0), message(Message.channelEof).uint32(0), message(Message.channelEof).uint32(0)],
      'A second EOF came.',
    ],
    [
      'CLOSE twice',
      [openChannel(0), message(Message.channelClose).uint32(0), message(Message.channelClose).uint32(0)],
      'A message came for a channel that does not exist.',
    ],
    [
      'a window beyond all bounds',
      [openChannel(0), message(Message.channelWindowAdjust).uint32(0).uint32(0xffff_ffff)],
      'A window grew too large.',
    ],
    [
      'a reply to no request',
      [openChannel(0), message(Message.channelSuccess).uint32(0)],
      'A reply came to no request.',
    ],
    ['a reply to no global request', [message(Message.requestSuccess)], 'A reply came to no request.'],
    [
      'a channel confirmed that was not asked for',
      [message(Message.channelOpenConfirmation).uint32(0).uint32(0).uint32(1).uint32(1)],
      'The peer confirmed a channel that was not requested.',
    ],
    [
      'a channel without packets',
      [message(Message.channelOpen).string('session').uint32(0).uint32(1).uint32(0)],
      'A channel without packets is of no use.',
    ],
    [
      'a message that is cut short',
      [message(Message.channelOpen).string('session')],
      'A message is cut short.',
    ],
    [
      'a packet beyond all bounds',
      [message(Message.ignore).string(Buffer.alloc(300_000))],
      'A packet has an impossible length.',
    ],
  ])('%s', async (_, messages, reason) => {
    const { transport, connection } = await insider(small)
    for (const one of messages) {
      transport.send(one)
      // Each arrives and is dealt with before the next, as the channel must be accepted.
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    expect((await transport.ended).message).toBe(reason)
    expect((await connection.ended).message).toBe(reason)
  })

  test('a request that comes after both sides have closed is overheard', async () => {
    const { transport, connection, received } = await insider()
    transport.send(openChannel(0))
    await eventually(() =>
      expect(received.some((payload) => payload[0] === Message.channelOpenConfirmation)).toBe(true),
    )
    transport.send(message(Message.channelClose).uint32(0))
    transport.send(message(Message.channelRequest).uint32(0).string('exit-status').boolean(false).uint32(1))
    transport.send(openChannel(1))
    await eventually(() =>
      expect(received.filter((payload) => payload[0] === Message.channelOpenConfirmation).length).toBe(2),
    )
    // For a channel that never was, it is an error.
    transport.send(message(Message.channelRequest).uint32(9).string('exit-status').boolean(false).uint32(1))
    expect((await connection.ended).message).toBe('A message came for a channel that does not exist.')
  })

  test('a flood of channels: some are opened, the others refused, all is answered', async () => {
    const { transport, received, connection } = await insider({ mostChannels: 100 })
    for (let id = 0; id < 1_000; id += 1) transport.send(openChannel(id))
    await eventually(() => expect(received.length).toBeGreaterThanOrEqual(1_000))
    const count = (type: number): number => received.filter((payload) => payload[0] === type).length
    expect(count(Message.channelOpenConfirmation)).toBeLessThanOrEqual(100)
    expect(count(Message.channelOpenConfirmation) + count(Message.channelOpenFailure)).toBe(1_000)
    await connection.end()
  })

  test('a flood of requests that nobody reads: those beyond the bound are refused, then it is over', async () => {
    const { transport, connection } = await insider()
    transport.send(openChannel(0))
    await new Promise(setImmediate)
    for (let turn = 0; turn < 5_000; turn += 1)
      transport.send(
        message(Message.channelRequest).uint32(0).string('env').boolean(true).string('A').string('B'),
      )
    expect((await connection.ended).message).toBe('Too many requests wait for a reply.')
  })

  test('a peer that asks and does not read is let go', async () => {
    const { transport, connection, line } = await insider({ globalRequests: [] })
    line.pause()
    const name = 'x'.repeat(200)
    // Each answer is small, so that it takes many; the peer reads none of them.
    const ask = (): void => {
      for (let turn = 0; turn < 1_000; turn += 1)
        transport.send(message(Message.ping).string(Buffer.alloc(4_000, name)))
    }
    const timer = setInterval(ask, 5)
    expect((await connection.ended).message).toMatch('The peer does not read what it asks for.')
    clearInterval(timer)
    line.destroy()
  })

  test('what comes under the old keys while new ones are made is taken', async () => {
    const { transport, connection } = await insider()
    transport.send(message(Message.kexInit).raw(kexInit('curve25519-sha256').subarray(1)))
    transport.send(openChannel(0))
    // Its answer waits for the end of the exchange, which never comes; the connection stands.
    await new Promise(setImmediate)
    transport.send(message(Message.newKeys))
    expect((await connection.ended).message).toBe('NEWKEYS came out of order.')
  })

  test('a peer that wants new keys again and again without a reason is let go', async () => {
    const { transport, connection } = await insider()
    const timer = setInterval(() => transport.rekey(), 1)
    expect((await connection.ended).message).toBe('The peer wants new keys too often.')
    clearInterval(timer)
  })

  test('a peer that stops answering is gone after a few questions', async () => {
    const { transport, connection, line } = await insider({ keepalive_ms: 20, mostUnanswered: 3 })
    line.removeAllListeners('data')
    line.resume()
    const { message: reason } = await connection.ended
    expect(reason).toBe('The peer does not answer.')
    expect(transport.received).toBeGreaterThan(0)
  })

  test('anything at all, properly encrypted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(
            fc.oneof(fc.integer({ min: 80, max: 100 }), fc.integer({ min: 0, max: 255 })),
            fc.uint8Array({ maxLength: 60 }),
          ),
          { minLength: 1, maxLength: 20 },
        ),
        async (messages) => {
          const { transport, connection, line } = await insider()
          transport.send(openChannel(0))
          for (const [type, bytes] of messages) transport.send(message(type).raw(bytes))
          await new Promise(setImmediate)
          await new Promise(setImmediate)
          line.destroy()
          const { message: reason } = await connection.ended
          expect(reason).not.toBe('Internal error.')
        },
      ),
      { numRuns: 150 },
    )
  })

  test('a bit that changes on the way ends the connection', async () => {
    for (const at of [0, 5, 20]) {
      const { transport, connection, line } = await insider()
      const write = line.write.bind(line)
      line.write = ((chunk: Buffer) => {
        const changed = Buffer.from(chunk)
        changed[at % changed.length]! ^= 1
        return write(changed)
      }) as typeof line.write
      transport.send(message(Message.ignore).string('something'))
      const { message: reason } = await connection.ended
      expect(reason).toMatch(
        /A packet was changed on its way\.|A packet has an impossible length\.|A packet is not padded/,
      )
    }
  })
})
