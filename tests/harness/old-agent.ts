// An agent as the field has them, in both versions of the tunnel, with the habits that the original's agents
// were seen to have: version 1 is an HTTP server on each picked-up WebSocket and loses what follows the
// request's head in the same message; version 2 reads the JSON line with a buffer and throws the rest of it
// away; an SFTP session ends without an exit status; a forwarded connection is closed in both directions as
// soon as one of them has ended; public keys are checked by asking the server for a signature, with the token
// that it got when it began. It asks for a token when it begins and, from time to time, while its tunnel is
// up; never while it is down: then it dials again and again with the newest token that it has. It runs
// programs as the user who runs the tests.
import { createHash, createPublicKey, generateKeyPairSync, verify, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { shellHubProxy } from '@hawser/contract/tunnel'
import { multistream, openMux, UpgradeFailed } from '@hawser/mux'
import {
  acceptConnection,
  fingerprintMd5,
  OpenFailure,
  privateKeyFrom,
  readTcpForward,
  receiveSession,
  serveSftp,
  localFiles,
  type Attempt,
  type Opening,
  type PrivateKey,
  type ServerConnection,
  type Session,
} from '@hawser/ssh'
import { runProgram } from '../../ssh/test/server.ts'
import { dialGo } from './go-socket.ts'
import type { Service } from './service.ts'

export interface OldAgentOptions {
  version: 1 | 2
  tenant_id: string
  hostname?: string
  /** A new key by default. */
  key?: KeyObject
  /** For every user. */
  password?: string
  /** Default: the device's key, as of real agents. */
  hostKeys?: readonly PrivateKey[]
  /** Of an impersonated device: its enrolled key, and a stolen token. */
  publicKey?: string
  token?: string
  /** The apparent source of its tunnels. */
  source?: string
  /** An agent that another server gave these answers: it takes no token here before its tunnel is up. */
  begun?: Begun
  /**
   * The accounts of the device; absent: all. A program for any other makes it panic, as 0.16.4 does, except
   * SFTP.
   */
  accounts?: readonly string[]
  /** SFTP of a device that lies about its files. */
  sftp?(channel: Session['channel'], user: string): Promise<void>
  /** Replaces the requested program. */
  run?(session: Session): Promise<void>
  /** It connects to addresses for web services, as agents after 0.16.4 do. */
  httpProxy?: boolean
  /** v0.16.4 by default. */
  agentVersion?: string
  /** Called between the judgement of a proof and the answer. */
  hesitate?(): Promise<void>
  /**
   * Dials again: at once after a loss, after this time when refused (real agents: 10 s). Absent: dials once.
   */
  retry_ms?: number
}

export interface Begun {
  readonly uid: string
  readonly name: string
  readonly token: string
}

export interface OldAgent extends AsyncDisposable {
  readonly uid: string
  readonly name: string
  readonly token: string
  readonly key: KeyObject
  /** Logins that reached the device, and connections to it. */
  readonly seen: Seen
  /** Resolves when the tunnel is gone; with `retry_ms`, when there will be no other. */
  readonly lost: Promise<void>
  /** As a real agent every ten minutes: calls Auth device, and dials with the new token from then on. */
  ping(): Promise<void>
  /** As a power failure would. */
  cut(): void
}

interface Seen {
  readonly attempts: string[]
  streams: number
  readonly sessions: Session[]
  readonly errors: string[]
  /** HTTP statuses of refusals, and `up`. */
  readonly dials: string[]
  /** A program for an unknown user has ended its process. */
  panicked: boolean
}

interface Up {
  cut(): void
  readonly lost: Promise<void>
}

/** Shared, because making a key takes long. */
const anyKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

export async function startOldAgent(
  service: Pick<Service, 'url' | 'api'>,
  options: OldAgentOptions,
): Promise<OldAgent> {
  const { key = anyKey, password = 'pilot', version, tenant_id, hostname = 'crane' } = options
  const publicKey = options.publicKey ?? createPublicKey(key).export({ type: 'pkcs1', format: 'pem' })
  const authorize = async (): Promise<Begun> => {
    const { body } = await service.api().devices.auth({
      body: {
        info: {
          id: 'debian',
          pretty_name: 'Debian',
          version: options.agentVersion ?? 'v0.16.4',
          arch: 'amd64',
          platform: 'native',
        },
        hostname,
        identity: {
          mac: `02:${createHash('md5')
            .update(hostname)
            .digest('hex')
            .slice(0, 10)
            .replaceAll(/(..)(?=.)/g, '$1:')}`,
        },
        public_key: publicKey,
        tenant_id,
      },
    })
    return body
  }
  const device = options.begun ?? (await authorize())
  /** The newest token; logins are checked with the first. */
  let token = options.token ?? device.token
  const seen: Seen = { attempts: [], streams: 0, sessions: [], errors: [], dials: [], panicked: false }

  async function approve(user: string, blob: Buffer): Promise<boolean> {
    const data = JSON.stringify({ Username: user, Namespace: device.name })
    const fingerprint = fingerprintMd5(blob)
    const answer = await fetch(`${service.url}/api/auth/ssh`, {
      method: 'POST',
      headers: { authorization: `Bearer ${device.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ fingerprint, data }),
    })
    if (!answer.ok) return false
    const { signature } = (await answer.json()) as { signature: string }
    const login = blob.subarray(11)
    const e = login.subarray(4, 4 + login.readUInt32BE(0))
    const n = login.subarray(4 + e.length + 4)
    const bare = (bytes: Buffer) => (bytes[0] === 0 ? bytes.subarray(1) : bytes).toString('base64url')
    const offered = createPublicKey({ key: { kty: 'RSA', e: bare(e), n: bare(n) }, format: 'jwk' })
    return verify('sha256', Buffer.from(data), offered, Buffer.from(signature, 'base64'))
  }

  async function judge(attempt: Attempt, approved: Map<string, boolean>): Promise<'accept' | 'refuse'> {
    if (attempt.method === 'password') return attempt.password === password ? 'accept' : 'refuse'
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
    const known = `${attempt.user} ${fingerprintMd5(attempt.key.blob)}`
    if (!approved.has(known)) approved.set(known, await approve(attempt.user, attempt.key.blob))
    return approved.get(known) ? 'accept' : 'refuse'
  }

  const serve = async (stream: Duplex): Promise<void> => {
    seen.streams += 1
    // Asked once for each key on each connection: whether it is offered or signed with does not matter.
    const approved = new Map<string, boolean>()
    const connection = await acceptConnection(stream, {
      software: 'Go',
      hostKeys: options.hostKeys ?? [privateKeyFrom(key)],
      methods: ['password', 'publickey'],
      channelTypes: ['session', 'direct-tcpip'],
      async authenticate(attempt) {
        seen.attempts.push(`${attempt.method} ${attempt.user}`)
        const decision = await judge(attempt, approved)
        if (attempt.method !== 'none') await options.hesitate?.()
        return decision
      },
    })
    try {
      await serveChannels(connection)
    } finally {
      await connection.end()
    }
  }

  const serveChannels = async (connection: ServerConnection): Promise<void> => {
    for await (const opening of connection.channels) {
      if (opening.type === 'direct-tcpip') void forward(opening)
      else if (opening.type !== 'session') opening.refuse(OpenFailure.unknownType, 'unknown channel type')
      else
        void serveSession(opening.accept(), connection.user).catch((error: unknown) =>
          seen.errors.push(String(error)),
        )
    }
  }

  const serveSession = async (channel: Session['channel'], user: string): Promise<void> => {
    const session = await receiveSession(channel, () => true)
    if (!session) return
    seen.sessions.push(session)
    if (options.accounts?.includes(user) === false) {
      if (session.program.type === 'subsystem') return channel.close()
      seen.panicked = true
      ended.abort()
      return up?.cut()
    }
    if (session.program.type === 'subsystem') {
      await (options.sftp?.(channel, user) ?? serveSftp(channel, localFiles(process.cwd())))
      // Never an exit status: clients would take that for a failure if the gateway did not correct it.
      await channel.close()
    } else await (options.run ?? runProgram)(session)
  }

  const address = service.url.replace('http', 'ws')
  const noticed = (error: unknown): void =>
    void seen.errors.push(error instanceof Error ? error.message : String(error))

  const dialStreams = async (headers: Record<string, string>): Promise<Up> => {
    const socket = await dialGo(`${address}/agent/connection`, { headers })
    const mux = openMux(socket, { role: 'server' })
    const take = async (stream: Duplex): Promise<void> => {
      const known = ['/ssh/open/1.0.0', '/ssh/close/1.0.0', ...(options.httpProxy ? [shellHubProxy] : [])]
      const { protocol } = await multistream.negotiate(stream, known)
      if (protocol === shellHubProxy) return proxyByLine(stream)
      if (protocol !== '/ssh/open/1.0.0') return void stream.destroy()
      await loseBuffer(stream)
      await serve(stream)
    }
    void (async () => {
      for await (const stream of mux.incoming) {
        stream.on('error', () => undefined)
        void take(stream).catch(noticed)
      }
    })()
    return { cut: () => void socket.destroy(), lost: mux.ended.then(() => undefined) }
  }

  const dialControl = async (headers: Record<string, string>): Promise<Up> => {
    const control = await dialGo(`${address}/ssh/connection`, { headers })
    const lost = Promise.withResolvers<void>()
    control.on('error', () => undefined)
    control.once('close', () => lost.resolve())
    control.write('{"command":"keep-alive"}\n')
    const pickUp = async (connPath: string): Promise<void> => {
      const stream = await dialGo(`${address}${connPath}`)
      stream.on('error', () => undefined)
      const proxied = await loseHead(stream)
      if (proxied === undefined) return serve(stream)
      if (options.httpProxy) return proxyByHead(stream, proxied)
      stream.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
    }
    let rest = ''
    control.on('data', (chunk: Buffer) => {
      rest += chunk.toString()
      const lines = rest.split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        const { command, connPath } = JSON.parse(line) as { command: string; connPath: string }
        if (command === 'conn-ready') void pickUp(connPath).catch(noticed)
      }
    })
    return { cut: () => void control.destroy(), lost: lost.promise }
  }

  let up: Up | undefined
  const ended = new AbortController()
  const dialTunnel = async (): Promise<Up> => {
    const opened = await (version === 2 ? dialStreams : dialControl)({
      authorization: `Bearer ${token}`,
      ...(options.source ? { 'x-forwarded-for': options.source } : {}),
    })
    seen.dials.push('up')
    up = opened
    void opened.lost.then(() => (up = undefined))
    if (ended.signal.aborted) opened.cut()
    return opened
  }
  const dialAgain = async (retry_ms: number): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        await (
          await dialTunnel()
        ).lost
      } catch (error) {
        seen.dials.push(error instanceof UpgradeFailed ? String(error.status) : String(error))
        await pause(retry_ms, undefined, { signal: ended.signal }).catch(() => undefined)
      }
    }
  }
  const lost = options.retry_ms === undefined ? (await dialTunnel()).lost : dialAgain(options.retry_ms)

  return {
    uid: device.uid,
    name: device.name,
    token: device.token,
    key,
    seen,
    lost,
    async ping() {
      if (up) token = (await authorize()).token
    },
    cut: () => up?.cut(),
    async [Symbol.asyncDispose]() {
      ended.abort()
      up?.cut()
      await lost
    },
  }
}

/** Two copies; the first to end closes both sides, and the rest of the other is lost. */
async function forward(opening: Opening): Promise<void> {
  const { host, port } = readTcpForward(opening.payload)
  const to = net.connect({ host, port, allowHalfOpen: true })
  try {
    await once(to, 'connect')
  } catch (error) {
    return opening.refuse(OpenFailure.connectFailed, `dial tcp ${host}:${port}: ${String(error)}`)
  }
  const channel = opening.accept()
  to.on('error', () => undefined)
  const outward = async (): Promise<void> => {
    for await (const { bytes } of channel) await new Promise((resolve) => void to.write(bytes, resolve))
  }
  const inward = async (): Promise<void> => {
    for await (const bytes of to as AsyncIterable<Buffer>) await channel.write(bytes)
  }
  await Promise.race([outward(), inward()].map(async (copy) => copy.catch(() => undefined)))
  to.destroy()
  await channel.close('now')
}

/** One read: the JSON line, and the bytes behind it, are gone. */
function loseBuffer(stream: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    const onReadable = (): void => {
      const chunk = stream.read() as Buffer | null
      if (chunk === null) return
      stream.off('readable', onReadable)
      if (chunk.includes('}')) resolve()
      else reject(new Error(`no JSON in ${chunk.toString('latin1')}`))
    }
    stream.on('readable', onReadable)
    stream.once('close', () => reject(new Error('the stream ended before its head')))
    onReadable()
  })
}

async function dialled(target: string): Promise<net.Socket> {
  const { hostname, port } = new URL(`http://${target}`)
  const to = net.connect({ host: hostname, port: Number(port || 80) })
  await once(to, 'connect')
  return to.on('error', () => undefined)
}

async function proxyByLine(stream: Duplex): Promise<void> {
  const { host, port } = JSON.parse(await multistream.readLine(stream, 4_096)) as Record<
    'host' | 'port',
    string
  >
  try {
    const to = await dialled(`${host}:${port}`)
    stream.write('{"status":"ok"}\n')
    stream.pipe(to).pipe(stream)
  } catch (error) {
    stream.end(`${JSON.stringify({ error: `dial tcp ${host}:${port}: ${goText(error)}` })}\n`)
  }
}

async function proxyByHead(stream: Duplex, target: string): Promise<void> {
  const to = await dialled(target)
  stream.write('HTTP/1.1 200 OK\r\n\r\n')
  stream.pipe(to).pipe(stream)
}

const goText = (error: unknown): string =>
  String(error).includes('ECONNREFUSED') ? 'connect: connection refused' : String(error)

/**
 * An HTTP server reads a request's head, message by message, and passes the connection on without it. Returns
 * the target of a proxy request.
 */
function loseHead(stream: Duplex): Promise<string | undefined> {
  let head = ''
  return new Promise((resolve, reject) => {
    const onReadable = (): void => {
      const chunk = stream.read() as Buffer | null
      if (chunk === null) return
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      stream.off('readable', onReadable)
      const proxied = /^CONNECT \/http\/proxy\/(\S+) HTTP\/1\.1\r\n/.exec(head)?.[1]
      if (proxied !== undefined) return resolve(proxied)
      if (!/^GET \/ssh\/[0-9a-f]{64} HTTP\/1\.1\r\n/.test(head) || !/\r\nHost:/i.test(head))
        return reject(new Error(`a bad head: ${head}`))
      resolve(undefined)
    }
    stream.on('readable', onReadable)
    stream.once('close', () => reject(new Error('the stream ended before its head')))
    onReadable()
  })
}
