// A program for bench/hostile.ts: what somebody does who wants to stop the server, or to fill its memory.
// Each attack takes as little of this machine as an attacker elsewhere would: bytes are made beforehand and
// sent, nothing that comes is looked at. Attackers come from addresses of their own (127.66.0.x), so that
// what is limited by address does not meet bystanders.
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { client } from '@hawser/contract/client'
import {
  allAlgorithms,
  clientAlgorithms,
  openClient,
  parsePrivateKey,
  startSession,
  type Connection,
} from '../ssh/src/index.ts'
import { Message } from '../ssh/src/messages.ts'
import { message, Writer } from '../ssh/src/wire.ts'
import { rudeTransport } from '../ssh/test/pairs.ts'
import { kexInit } from '../tests/attacks/rude-client.ts'
import { crowd, going, type Attack, type Target } from './crowd.ts'
import { memberAttacks } from './member-attacks.ts'
import { takeOrders } from './programs.ts'

export interface AttackOrder extends Target {
  readonly attack: AttackName
  readonly seconds: number
}

/** Attempts, and how many the server allowed. */
export interface Attacked {
  readonly tries: number
  readonly refused: number
}

const from = (last: number): string => `127.66.0.${last}`

async function dial(port: number, source: string): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: source, noDelay: true })
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) => void socket.once('connect', resolve).once('close', () => resolve()))
  return socket
}

const ident = 'SSH-2.0-OpenSSH_9.2p1\r\n'

function packet(payload: Uint8Array): Buffer {
  const padding = 4 + ((8 - ((9 + payload.length) % 8)) % 8)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(1 + payload.length + padding)
  head[4] = padding
  return Buffer.concat([head, payload, Buffer.alloc(padding)])
}

function kexInitFor(kex: string, hostKey: string): Buffer {
  const writer = new Writer(512).byte(Message.kexInit).raw(Buffer.alloc(16, 9)).names([kex]).names([hostKey])
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
  return packet(writer.boolean(false).uint32(0).bytes())
}

/** The most expensive exchange: a public value of 4096 bits and a signature with RSA. */
const dearest = Buffer.concat([
  Buffer.from(ident),
  kexInitFor('diffie-hellman-group16-sha512', 'rsa-sha2-512'),
  packet(
    new Writer(600)
      .byte(Message.kexStart)
      .string(Buffer.concat([Buffer.alloc(1), Buffer.alloc(511, 0x5a)]))
      .bytes(),
  ),
])

async function logIn({ sshPort, sshid, keyFile }: Target, source: string): Promise<Connection> {
  const socket = await dial(sshPort, source)
  const unauthenticated = await openClient(socket, { checkHostKey: () => true })
  const key = parsePrivateKey(readFileSync(keyFile, 'utf8'))
  const { accepted } = await unauthenticated.attempt(sshid, { method: 'publickey', key })
  if (!accepted) throw new Error('The attacker’s own key is refused.')
  return unauthenticated.connection()
}

function post(port: number, source: string, path: string, body: string, token?: string): Promise<number> {
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ]
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress: source })
    let came = ''
    socket
      .on('error', () => undefined)
      .on('close', () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(came)?.[1] ?? 0)))
    socket.on('data', (chunk) => (came = (came + chunk.toString('latin1')).slice(0, 1_000)))
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  })
}

const deep = `{"username":${'['.repeat(250_000)}{"constructor":1}${']'.repeat(250_000)},"constructor":1,"password":"x"}`

/** By name; the sentence describes it in the table. */
export const attacks = {
  'deeply nested JSON to an open operation': ({ httpPort }, until) =>
    crowd(until, 8, async (index) => (await post(httpPort, from(1 + index), '/api/login', deep)) === 401),

  'firewall rules that take long, and attempts that meet them': async function* (
    { httpPort, sshPort, sshid, token },
    until,
  ) {
    const api = client({ url: `http://127.0.0.1:${httpPort}`, token })
    const body = {
      action: 'deny',
      active: true,
      filter: { hostname: '.*' },
      priority: 1,
      source_ip: 'x',
      username: '',
    } as const
    for (let made = 0; made < 60 && going(until); made += 1) {
      const username = `${'\\p{L}{0,450}'.repeat(3)}${made}$`
      yield await api.firewall.create({ body: { ...body, username } }).then(
        () => true,
        () => false,
      )
    }
    yield* crowd(until, 2, async (index) => {
      const socket = await dial(sshPort, from(20 + index))
      try {
        const unauthenticated = await openClient(socket, { checkHostKey: () => true })
        const long = `${'ü'.repeat(400)}@${sshid.split('@')[1]}`
        await unauthenticated.attempt(long, { method: 'none' })
        return true
      } finally {
        socket.destroy()
      }
    })
  },

  'one-byte messages while keys are renewed, before login': ({ sshPort }, until) =>
    crowd(until, 10, async (index) => {
      const socket = await dial(sshPort, from(30 + index))
      try {
        const transport = await rudeTransport(socket, clientAlgorithms)
        transport.send(kexInit())
        for (let sent = 0; sent < 100_000 && !socket.destroyed && going(until); sent += 1) {
          transport.send(message(Message.serviceRequest).string('ssh-userauth'))
          if (sent % 1_000 === 0) await wait(1)
        }
        return !socket.destroyed
      } finally {
        socket.destroy()
      }
    }),

  'proofs of host keys': async function* (target, until) {
    const blob = Buffer.from(target.rsaHostKey, 'base64')
    const asked = new Writer(256 * 1024)
    for (let count = 0; count < Math.floor((250 * 1024) / (blob.length + 4)); count += 1) asked.string(blob)
    const payload = asked.bytes()
    yield* crowd(until, 1, async (index) => {
      await using connection = await logIn(target, from(40 + index))
      let signed = 0
      for (let round = 0; round < 20 && going(until); round += 1)
        signed += (await connection.request('hostkeys-prove-00@openssh.com', payload)) ? 1 : 0
      return signed > 10
    })
  },

  'small pieces of large reads for a program that does not read': async function* (target, until) {
    await using connection = await logIn(target, from(50))
    const ignored = message(Message.ignore, 33_000).string(Buffer.alloc(32 * 1024))
    for (let opened = 0; opened < 16 && going(until); opened += 1) {
      const { channel } = await startSession(connection, { program: { type: 'exec', command: 'sleep 60' } })
      const writing = (async () => {
        for (let sent = 0; sent < 2_000; sent += 1) {
          await channel.write(Buffer.alloc(1_025))
          connection.transport.send(ignored)
        }
      })()
      await Promise.race([writing.catch(() => undefined), wait(500)])
      yield true
    }
    while (going(until)) await wait(100)
  },

  'new keys again and again, before login': ({ sshPort }, until) =>
    crowd(until, 2, async (index) => renewing(await dial(sshPort, from(60 + index)), until)),

  'new keys again and again, logged in': async function* (target, until) {
    await using connection = await logIn(target, from(65))
    const ignored = message(Message.ignore, 33_000).string(Buffer.alloc(32 * 1024))
    while (going(until)) {
      connection.rekey()
      for (let paid = 0; paid < 4; paid += 1) connection.transport.send(ignored)
      await wait(5)
      yield true
    }
  },

  'a thousand connections that say nothing': async function* ({ sshPort }, until) {
    const sockets: net.Socket[] = []
    for (let opened = 0; opened < 1_000 && going(until); opened += 1) {
      const socket = await dial(sshPort, from(70 + (opened % 2)))
      sockets.push(socket)
      yield !socket.destroyed
    }
    while (going(until)) await wait(100)
    for (const socket of sockets) socket.destroy()
  },

  'the dearest key exchange, on new connections': ({ sshPort }, until) =>
    crowd(until, 8, async (index) => {
      const socket = await dial(sshPort, from(80 + (index % 4)))
      socket.write(dearest)
      const answered = Promise.withResolvers<boolean>()
      let came = 0
      socket.on('close', () => answered.resolve(false))
      // The reply with key and signature is more than any KEXINIT.
      socket.on('data', (chunk) => (came += chunk.length) >= 2_500 && answered.resolve(true))
      const answer = await Promise.race([answered.promise, wait(1_000, false)])
      socket.destroy()
      return answer
    }),

  'passwords for devices that do not exist': ({ sshPort }, until) =>
    crowd(until, 4, async (index) => {
      const socket = await dial(sshPort, from(90 + index))
      try {
        const unauthenticated = await openClient(socket, {
          checkHostKey: () => true,
          algorithms: allAlgorithms,
        })
        for (let tries = 0; tries < 6; tries += 1)
          await unauthenticated.attempt(`root@harbour.nobody-${tries}`, {
            method: 'password',
            password: 'guess',
          })
        return true
      } finally {
        socket.destroy()
      }
    }),

  ...memberAttacks,
} satisfies Record<string, Attack>

export type AttackName = keyof typeof attacks

async function renewing(socket: net.Socket, until: number): Promise<boolean> {
  try {
    const transport = await rudeTransport(socket, {
      ...clientAlgorithms,
      kex: ['diffie-hellman-group16-sha512'],
    })
    let rounds = 0
    const junk = message(Message.ignore, 33_000).string(Buffer.alloc(32 * 1024))
    for (; going(until) && !socket.destroyed; rounds += 1) {
      transport.send(kexInit())
      transport.send(junk)
      transport.send(junk)
      await wait(5)
    }
    return rounds > 64
  } finally {
    socket.destroy()
  }
}

takeOrders(async ({ attack, seconds, ...target }: AttackOrder): Promise<Attacked> => {
  let [tries, refused] = [0, 0]
  const until = performance.now() + seconds * 1000
  for await (const let_in of attacks[attack](target, until)) {
    tries += 1
    if (!let_in) refused += 1
    if (!going(until)) break
  }
  return { tries, refused }
})
