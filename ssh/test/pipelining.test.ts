// Fewer round trips between two ends of this package: the key exchange begins on a guess, proofs do not wait
// for the authentication service, and channels do not wait for their confirmation. The line here delays every
// byte, so the time says how often it was crossed.
import { randomBytes } from 'node:crypto'
import { duplexPair, type Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { serverAlgorithms } from '../src/algorithms.ts'
import { openClient, type ClientOptions } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { ChannelRefused } from '../src/errors.ts'
import { Message } from '../src/messages.ts'
import { acceptConnection, type ServerConnection, type ServerOptions } from '../src/server.ts'
import { message } from '../src/wire.ts'
import { hostKey } from './server.ts'
import { rudeClient } from './pairs.ts'

const delay_ms = 150

/** Two ends of a line that takes its time. */
function slowLine(): [Duplex, Duplex] {
  const [near, nearInside] = duplexPair()
  const [far, farInside] = duplexPair()
  const carry = (from: Duplex, to: Duplex): void => {
    from.on('data', (chunk: Buffer) => setTimeout(() => to.write(chunk), delay_ms))
    from.on('end', () => setTimeout(() => to.end(), delay_ms))
  }
  carry(nearInside, farInside)
  carry(farInside, nearInside)
  return [near, far]
}

interface Ends extends AsyncDisposable {
  readonly client: Connection
  readonly server: ServerConnection
  roundTrips(): number
}

async function logIn(
  options: Partial<ServerOptions> = {},
  clientOptions: Partial<ClientOptions> = {},
): Promise<Ends> {
  const [near, far] = slowLine()
  const began_ms = performance.now()
  const accepting = acceptConnection(far, {
    hostKeys: [hostKey],
    methods: ['password'],
    authenticate: async (attempt) =>
      attempt.method === 'password' && attempt.password === 'secret' ? 'accept' : 'refuse',
    channelTypes: ['session'],
    earlyChannels: true,
    ...options,
  })
  accepting.catch(() => undefined)
  const unauthenticated = await openClient(near, {
    checkHostKey: () => true,
    pipelining: true,
    ...clientOptions,
  })
  const { accepted } = await unauthenticated.attempt('olga', { method: 'password', password: 'secret' })
  expect(accepted).toBe(true)
  const client = unauthenticated.connection()
  const server = await accepting
  return {
    client,
    server,
    roundTrips: () => (performance.now() - began_ms) / (2 * delay_ms),
    async [Symbol.asyncDispose]() {
      await client.end()
      await server.end()
    },
  }
}

/** Answers every request of one channel, and repeats its first data. */
async function echoOnce(server: ServerConnection): Promise<void> {
  const opening = await server.channels.next()
  const channel = opening!.accept()
  void (async () => {
    for await (const request of channel.requests) request.reply(true)
  })()
  const chunk = await channel.read()
  if (chunk) await channel.write(chunk.bytes)
}

test('key exchange, login, channel, request and data take three round trips', async () => {
  await using ends = await logIn()
  const echo = echoOnce(ends.server)
  const channel = ends.client.openEarly!('session')
  const replied = channel.request('exec', Buffer.alloc(4), true)
  await channel.write(Buffer.from('hello'))
  expect(await replied).toBe(true)
  expect((await channel.read())?.bytes.toString()).toBe('hello')
  expect(ends.roundTrips()).toBeGreaterThan(2.9)
  expect(ends.roundTrips()).toBeLessThan(3.9)
  await echo
})

test('to a server that is not known to understand it, nothing is sent ahead', async () => {
  await using ends = await logIn({}, { pipelining: false })
  expect(ends.client.openEarly).toBeUndefined()
  const echo = echoOnce(ends.server)
  const channel = await ends.client.open('session')
  await channel.write(Buffer.from('hello'))
  expect((await channel.read())?.bytes.toString()).toBe('hello')
  expect(ends.roundTrips()).toBeGreaterThan(4.9)
  await echo
})

test.each(['curve25519-sha256', 'diffie-hellman-group16-sha512'])(
  'a wrong guess costs a round trip and nothing else: %s',
  async (kex) => {
    await using ends = await logIn({ algorithms: { ...serverAlgorithms, kex: [kex] } })
    expect(ends.client.transport.negotiated.kex.name).toBe(kex)
  },
)

test('a server with another host key hears neither a user nor a password', async () => {
  const attempts: string[] = []
  const server = logIn(
    {
      authenticate: async ({ user }) => {
        attempts.push(user)
        return 'accept'
      },
    },
    { checkHostKey: async () => false },
  )
  await expect(server).rejects.toThrow('The host key is not the one that was expected.')
  expect(attempts).toEqual([])
})

test('what follows an early channel waits until it is accepted, within the window', async () => {
  await using ends = await logIn()
  const channel = ends.client.openEarly!('session')
  const bytes = randomBytes(300_000)
  const written = channel.write(bytes)
  await channel.request('env', Buffer.from('first'))
  const opening = await ends.server.channels.next()
  const accepted = opening!.accept()
  expect((await accepted.requests.next())?.payload.toString()).toBe('first')
  const chunks: Buffer[] = []
  for (let length = 0; length < bytes.length; length += chunks.at(-1)!.length) {
    const chunk = await accepted.read()
    chunks.push(Buffer.from(chunk!.bytes))
  }
  await written
  expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
})

test.each(['now', undefined] as const)(
  'an early channel that is closed before anybody has accepted it takes nothing along: %s',
  async (when) => {
    await using ends = await logIn()
    const channel = ends.client.openEarly!('session')
    const replied = channel.request('env', Buffer.from('first'), true).catch(() => undefined)
    const closing = channel.close(when)
    // Later than everything that the client could send without an answer.
    await ends.client.request('are you there')
    const accepted = (await ends.server.channels.next())!.accept()
    // This answer and the client's CLOSE cross on the line.
    ;(await accepted.requests.next())!.reply(true)
    await Promise.all([replied, closing, channel.closed, accepted.closed])
    const echo = echoOnce(ends.server)
    const next = ends.client.openEarly!('session')
    await next.write(Buffer.from('hello'))
    expect((await next.read())?.bytes.toString()).toBe('hello')
    await echo
  },
)

test('an early channel that is refused breaks off with the reason, and the connection goes on', async () => {
  await using ends = await logIn({ mostChannels: 1 })
  const first = ends.client.openEarly!('session')
  const accepted = (await ends.server.channels.next())!.accept()
  const second = ends.client.openEarly!('session')
  const replied = second.request('exec', Buffer.alloc(4), true)
  replied.catch(() => undefined)
  await second.write(Buffer.from('for nobody'))
  await expect(second.read()).rejects.toBeInstanceOf(ChannelRefused)
  await expect(replied).rejects.toThrow('There are too many channels.')
  await second.closed
  await first.write(Buffer.from('still here'))
  expect((await accepted.read())?.bytes.toString()).toBe('still here')
})

test('an early channel that its owner refuses leaves nothing behind', async () => {
  await using ends = await logIn()
  const channel = ends.client.openEarly!('session')
  await channel.request('env', Buffer.alloc(1_000))
  await channel.write(Buffer.alloc(10_000))
  const opening = await ends.server.channels.next()
  opening!.refuse(1, 'Not now.')
  await expect(channel.read()).rejects.toThrow('Not now.')
  const next = ends.client.openEarly!('session')
  await next.write(Buffer.from('next'))
  const accepted = (await ends.server.channels.next())!.accept()
  expect((await accepted.read())?.bytes.toString()).toBe('next')
})

const open = (type: string, id: number) =>
  message(Message.channelOpen).string(type).uint32(7).uint32(100_000).uint32(32_768).uint32(id)

test('a server without early channels refuses them as an unknown type', async () => {
  const { transport, server } = await rudeClient()
  await enter(transport)
  transport.send(open('session+early@hawser', 0x8000_0000))
  expect((await answers(transport, 1))[0]).toBe(Message.channelOpenFailure)
  await (await server).end()
})

test.each([
  ['is not an early one', [0]],
  ['leaves some out', [0x8000_0001]],
  ['was used before', [0x8000_0000, 0x8000_0000]],
])('an early channel with a number that %s ends the connection', async (_, ids) => {
  const { transport, server } = await rudeClient({ earlyChannels: true })
  await enter(transport)
  for (const id of ids) transport.send(open('session+early@hawser', id))
  expect((await (await server).ended).message).toBe('An early channel has a wrong number.')
})

test('a message for an early channel that was never opened ends the connection', async () => {
  const { transport, server } = await rudeClient({ earlyChannels: true })
  await enter(transport)
  transport.send(message(Message.channelData).uint32(0x8000_0000).string('x'))
  expect((await (await server).ended).message).toBe('A message came for a channel that does not exist.')
})

/** Logs in without a proof. */
async function enter(transport: Awaited<ReturnType<typeof rudeClient>>['transport']): Promise<void> {
  transport.send(message(Message.serviceRequest).string('ssh-userauth'))
  transport.send(message(Message.authRequest).string('olga').string('ssh-connection').string('none'))
  for (;;) if ((await transport.receive())[0] === Message.authSuccess) return
}

async function answers(
  transport: Awaited<ReturnType<typeof rudeClient>>['transport'],
  count: number,
): Promise<number[]> {
  const types: number[] = []
  while (types.length < count) {
    const [type] = await transport.receive()
    if (type !== undefined && type >= Message.channelOpenConfirmation) types.push(type)
  }
  return types
}
