// The endpoint for devices without an agent: an SSH client signs in as `<tenant>` or `<tenant>.<name>` with
// an enrolment key of the namespace and forwards one port to the device's own SSH server. That forward is the
// device's tunnel, like an agent's.
//   1. Each attempt's key is checked by itself; an unknown namespace is refused like a wrong key.
//   2. One forward is accepted, whichever port it names. Nothing is opened on the server, and every other use
//      of the connection is refused. A client that wants a shell, too, does not join.
//   3. A key exchange through the forward proves the SSH server's host key, which identifies the device.
//   4. The device, new or known, gets its tunnel, which from here on belongs to the registry. A tunnel that is
//      there gives way to the same enrolment key, and to another one only if it does not answer.
// When something goes wrong the client gets a sentence and is disconnected.
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { agentlessPlatform, ping_ms, pong_ms } from '@hawser/contract/tunnel'
import {
  channelStream,
  fingerprintMd5,
  fingerprintSha256,
  knownKey,
  openClient,
  OpenFailure,
  publicKeyLine,
  readListen,
  readRequest,
  Reason,
  SshError,
  writePort,
  writeRequest,
  writeTcpForward,
  type Attempt,
  type Channel,
  type Connection,
  type ConnectionEnded,
  type Decision,
} from '@hawser/ssh'
import type { AgentlessRules, JoiningDevice, SshHost } from '../../domain/devices/agentless.ts'
import { neighbourhood } from '../../kit/address.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { safeText, type Log } from '../../kit/log.ts'
import type { TunnelArrival } from '../../tunnel/endpoints.ts'
import type { Meter } from '../../tunnel/meter.ts'
import type { Tunnel, TunnelDevice, TunnelEnd, TunnelOrigin } from '../../tunnel/tunnel.ts'
import { uncheckable } from './login.ts'
import type { LoginReports } from './login-report.ts'

export interface AgentlessParts {
  rules: AgentlessRules
  failures: Limiter
  reports: LoginReports
  /**
   * Makes this the tunnel of its device. False: it did not become that, and was closed. Throws a Failure when
   * there are too many, or when the device belongs to another namespace.
   */
  enter(tunnel: Tunnel, origin: TunnelOrigin, arrival: TunnelArrival): Promise<boolean>
  seen(device: TunnelDevice): void
  meter(socket: Duplex): Meter
  log: Log
}

export interface EnrolmentLogin extends Disposable {
  isFor(user: string): boolean
  authenticate(attempt: Attempt): Promise<Decision>
  joining(): JoiningDevice | undefined
}

export interface Agentless {
  login(source: string): EnrolmentLogin
  /** Resolves when the connection is the tunnel of its device, or has ended. */
  join(near: Connection, joining: JoiningDevice, socket: Duplex): Promise<void>
  removed(tenant_id: string, enrolment_key: string): void
  recheck(): Promise<void>
}

type Forward = ReturnType<typeof readListen>

const userName = new RegExp(`^(${patterns.uuid.slice(1, -1)})(?:\\.([^@]{1,64}))?$`, 'i')
/** Time for the client to ask for the forward. */
const forward_ms = 15_000
/** Time for the device's SSH server to answer. */
const answer_ms = 15_000
/** The port number for a client that leaves the choice to the server. No port is opened. */
const namedPort = 22
const shortest_rsa = 2048
const how = 'ssh -N -R 0:localhost:22'
const notThis = `This login is for devices that join, and opens nothing: run ${how} …, with -N.`
const otherKey =
  'This device is already connected with another enrolment key. Stop that connection first, or use its key.'
const copied =
  'Another machine is connected with the host key of this one. If this is a copy, create new SSH host keys on it.'
const lost =
  'This connection was not accepted for the device: a newer one replaced it, or the client did not answer.'

/** A refusal whose message goes to the client, which is then disconnected. */
class Refused extends Error {}

export function agentlessEndpoint(parts: AgentlessParts): Agentless {
  const { rules, log } = parts
  const connections = new Map<Connection, JoiningDevice>()

  const endRemoved = (near: Connection): void =>
    void near.end(Reason.byApplication, 'The enrolment key was removed.')

  async function openTunnel(near: Connection, joining: JoiningDevice, meter: Meter): Promise<void> {
    const others = refuseChannels(near)
    // From here on, news of the key's removal reach this connection; earlier ones show in the database.
    if (!(await rules.hasKey(joining.tenant_id, joining.enrolment_key))) return endRemoved(near)
    const forward = await firstForward(near)
    // Without -N, clients open a session right behind the forward. Messages stay in order, so that channel
    // has arrived when the client answers.
    await answered(near, AbortSignal.timeout(answer_ms)).catch((cause: unknown) => {
      throw new Refused('The client does not answer.', { cause })
    })
    if (others.explained) {
      await Promise.race([others.explained, delay(answer_ms, undefined, { ref: false })])
      throw new Refused(notThis)
    }
    const host = await identify(near, forward)
    const { device, status, isRival, connected } = await rules.join(joining, host)
    const { source, enrolment_key } = joining
    const recheck = (): Promise<unknown> => rules.join(joining, host)
    const tunnel = tunnelOn(near, forward, device, meter)
    const arrival = { isRival, recheck }
    const isOwn = await parts.enter(tunnel, { via: 'ssh', source }, arrival).catch((error: unknown) => {
      if (!(error instanceof Failure) || error.kind !== 'conflict') throw error
      throw new Refused(isRival ? otherKey : copied, { cause: error })
    })
    if (!isOwn) throw new Refused(lost)
    log.info({ event: 'device.joined', device: device.uid, status, enrolment_key, source })
    keepAlive(near, () => parts.seen(device))
    await connected()
  }

  return {
    login(source) {
      let joining: JoiningDevice | undefined
      const report = parts.reports.open({ source, via: 'ssh', event: 'enrolment.refused' })
      return {
        isFor: (user) => userName.test(user),
        joining: () => joining,
        async authenticate(attempt) {
          report.asked(attempt.user)
          if (parts.failures.peek(neighbourhood(source)) > 0) {
            report.refused({ reason: 'rate-limited' })
            const sentence = 'Too many failed attempts from your address; wait a while.'
            attempt.banner(`${sentence}\n`)
            throw new SshError(Reason.noMoreAuthMethods, sentence)
          }
          const refused: Decision = { refuse: ['publickey'] }
          if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return refused
          const [, tenant = '', name = ''] = userName.exec(attempt.user) ?? []
          const tenant_id = tenant.toLowerCase()
          const { type, blob, certificate } = attempt.key
          const enrolment_key = fingerprintMd5(blob)
          const namespace = certificate
            ? undefined
            : await rules
                .admit(tenant_id, { fingerprint: enrolment_key, line: publicKeyLine(type, blob) })
                .catch((error: unknown) => {
                  if (!(error instanceof Failure) || error.kind !== 'unavailable') throw error
                  report.refused({ reason: 'unavailable', method: 'publickey' })
                  attempt.banner(`${uncheckable}.\n`)
                  throw new SshError(Reason.byApplication, uncheckable)
                })
          if (namespace === undefined) {
            if (attempt.method === 'publickey') parts.failures.take(neighbourhood(source))
            const fingerprint = fingerprintSha256(blob)
            report.refused({ reason: 'enrolment-key', method: 'publickey', fingerprint })
            return refused
          }
          if (attempt.method === 'publickey') {
            joining = { tenant_id, enrolment_key, name, source }
            report.accepted('publickey', fingerprintSha256(blob))
            attempt.banner(
              `This device joins the namespace ${namespace}. A new device waits there as pending until somebody accepts it.\n`,
            )
          }
          return 'accept'
        },
        [Symbol.dispose]: () => report[Symbol.dispose](),
      }
    },

    async join(near, joining, socket) {
      connections.set(near, joining)
      void near.ended.then(() => connections.delete(near))
      try {
        await openTunnel(near, joining, parts.meter(socket))
      } catch (error) {
        if (!(error instanceof Refused) && !(error instanceof Failure)) {
          log.error({ event: 'enrolment.failed', source: joining.source, err: error })
          return near.end(Reason.byApplication, 'The device could not join; see the log of the server.')
        }
        log.info({ event: 'enrolment.refused', source: joining.source, why: error.message, err: error.cause })
        await near.end(Reason.byApplication, error.message)
      }
    },
    removed(tenant_id, enrolment_key) {
      for (const [near, joining] of connections)
        if (joining.tenant_id === tenant_id && joining.enrolment_key === enrolment_key) endRemoved(near)
    },
    async recheck() {
      const byKey = Map.groupBy(
        connections,
        ([, { tenant_id, enrolment_key }]) => `${tenant_id} ${enrolment_key}`,
      )
      for (const joined of byKey.values()) {
        const { tenant_id, enrolment_key } = joined[0]![1]
        if (!(await rules.hasKey(tenant_id, enrolment_key))) for (const [near] of joined) endRemoved(near)
      }
    },
  }
}

/**
 * The connection carries a tunnel only; a request for a shell gets a sentence. `explained`: undefined while
 * no channel was opened, then resolves when the client has the sentence.
 */
function refuseChannels(near: Connection): { readonly explained: Promise<void> | undefined } {
  const others: { explained: Promise<void> | undefined } = { explained: undefined }
  void (async () => {
    for await (const opening of near.channels) {
      const isSession = opening.type === 'session'
      if (!isSession) opening.refuse(OpenFailure.prohibited, notThis)
      const told = isSession ? explain(opening.accept()).catch(() => undefined) : Promise.resolve()
      others.explained ??= told
    }
  })()
  return others
}

/** Writes the sentence to stderr, where every client shows it, and exits with status 1. */
async function explain(channel: Channel): Promise<void> {
  for await (const request of channel.requests) {
    const { type } = readRequest(request.type, request.payload)
    request.reply(type === 'pty-req' || type === 'shell' || type === 'exec')
    if (type !== 'shell' && type !== 'exec') continue
    await channel.write(Buffer.from(`${notThis}\r\n`), 1)
    const { name, payload } = writeRequest({ type: 'exit-status', status: 1 })
    await channel.request(name, payload)
    break
  }
  await channel.close()
}

/** Resolves when the client answers; a refusal counts. */
async function answered(near: Connection, signal: AbortSignal): Promise<void> {
  const late = Promise.withResolvers<never>()
  const stop = (): void => late.reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  await Promise.race([near.request('keepalive@openssh.com'), late.promise]).finally(() =>
    signal.removeEventListener('abort', stop),
  )
}

/** Accepts the first forward of a port and refuses every other request, now and later. */
async function firstForward(near: Connection): Promise<Forward> {
  const found = Promise.withResolvers<Forward>()
  const late = setTimeout(
    () => found.reject(new Refused(`Nothing was forwarded: run ${how} on the device.`)),
    forward_ms,
  )
  void (async () => {
    let taken = false
    for await (const request of near.requests) {
      const fits = request.name === 'tcpip-forward' && !taken
      if (!fits) {
        request.refuse()
        continue
      }
      taken = true
      const { host, port } = readListen(request.payload)
      // The number is only a name. A client that sends 0 gets one in the answer (RFC 4254 section 7.1).
      request.accept(port === 0 ? writePort(namedPort) : undefined)
      found.resolve({ host, port: port === 0 ? namedPort : port })
    }
    found.reject(new Refused('The connection ended before anything was forwarded.'))
  })().catch((cause: unknown) => found.reject(new Refused('The forward cannot be understood.', { cause })))
  return found.promise.finally(() => clearTimeout(late))
}

async function openThrough(near: Connection, { host, port }: Forward, signal: AbortSignal) {
  const payload = writeTcpForward({ host, port, origin: '127.0.0.1', originPort: 0 })
  return channelStream(await near.open('forwarded-tcpip', payload, signal))
}

/** Identifies the SSH server at the other end of the forward by a key exchange, without a login. */
async function identify(near: Connection, forward: Forward): Promise<SshHost> {
  const signal = AbortSignal.timeout(answer_ms)
  let blob: Buffer | undefined
  let ident: string
  try {
    const stream = await openThrough(near, forward, signal)
    stream.on('error', () => undefined)
    try {
      const { transport } = await openClient(stream, {
        speakSecond: true,
        signal,
        checkHostKey: (key) => ((blob = Buffer.from(key)), true),
      })
      ident = transport.peerIdent
      transport.end(new SshError(Reason.byApplication, 'That was all.'))
      await transport.ended
    } finally {
      stream.destroy()
    }
  } catch (cause) {
    throw new Refused(
      'No SSH server answered at the other end of the forward: is it running, and does -R lead to it?',
      { cause },
    )
  }
  const { type, bits, object } = knownKey(blob!)
  if (type === 'ssh-rsa' && (bits ?? 0) < shortest_rsa)
    throw new Refused(`The host key of the device is too weak: RSA needs ${shortest_rsa} bits.`)
  return {
    public_key: object.export({ type: 'spki', format: 'pem' }),
    fingerprint: fingerprintSha256(blob!),
    software: ident.replace(/^SSH-[\d.]+-/, '').replaceAll(/[^\x20-\x7e]/g, '?') || agentlessPlatform,
  }
}

function tunnelOn(near: Connection, forward: Forward, device: TunnelDevice, meter: Meter): Tunnel {
  return {
    device,
    meter,
    openSsh: async (_, signal) => meter.session(await openThrough(near, forward, signal)),
    // This connection has proved the host key already, so any answer will do.
    prove: async (signal) => answered(near, signal).then(() => true),
    close: (why) => void near.end(Reason.byApplication, why),
    ended: near.ended.then(endOf),
  }
}

function endOf({ by, reason, message }: ConnectionEnded): TunnelEnd {
  if (by === 'peer') return { ending: 'closed', detail: safeText(message) }
  if (by === 'network' || reason === Reason.connectionLost) return { ending: 'lost', detail: message }
  return { ending: 'revoked', detail: message }
}

/** Detects half-open connections and ends them. Any answer counts, a refusal too. */
function keepAlive(near: Connection, seen: () => void): void {
  let late: NodeJS.Timeout | undefined
  const timer = setInterval(() => {
    late ??= setTimeout(() => void near.end(Reason.connectionLost, 'The device does not answer.'), pong_ms)
    near.request('keepalive@openssh.com').then(
      () => {
        clearTimeout(late)
        late = undefined
        seen()
      },
      () => undefined,
    )
  }, ping_ms)
  void near.ended.then(() => {
    clearInterval(timer)
    clearTimeout(late)
  })
}
