// The stream to a service's host and port. Agents that know how connect to it themselves, without an account
// (tunnel/targets.ts). On other devices the gateway logs in with the account that the service names, as for a
// login by key, and opens a `direct-tcpip` channel; one such login serves all connections of a service, and
// ends when it was idle for a while.
import type { Duplex } from 'node:stream'
import tls from 'node:tls'
import { isIP } from 'node:net'
import { targetDial_ms } from '@hawser/contract/tunnel'
import { channelStream, ChannelRefused, OpenFailure, writeTcpForward, type Connection } from '@hawser/ssh'
import type { Admitted } from '../../domain/access/service-access.ts'
import type { TargetRefused, WhyNoTarget } from '../../tunnel/targets.ts'
import { deviceLeg, type DeviceLeg, type DeviceLegParts } from '../device/device-leg.ts'

/** Why a service cannot be reached; `pages.ts` has the sentences. */
export type WhyUnreachable = WhyNoTarget | 'offline' | 'login' | 'certificate' | 'broken' | 'slow'

export class TargetUnreachable extends Error {
  override readonly name = 'TargetUnreachable'
  readonly why: WhyUnreachable
  constructor(why: WhyUnreachable, cause?: unknown) {
    super(why, { cause })
    this.why = why
  }
}

export interface TargetParts extends Omit<DeviceLegParts, 'grace_s' | 'openResumable'> {
  /** Stores the first certificate of a service; false: another one was stored before. */
  pin(service: Admitted['service'], fingerprint: string): Promise<boolean>
  newId(): string
}

export interface Targets extends Disposable {
  /** Throws TargetUnreachable. `gone` stops the attempt: its request is over. */
  open(to: Pick<Admitted, 'service' | 'device'>, gone: AbortSignal): Promise<Duplex>
}

/** How long a login without connections waits for the next one. */
const idleLogin_ms = 60_000

interface Login {
  readonly leg: DeviceLeg
  readonly ready: Promise<Connection>
  streams: number
  idle: NodeJS.Timeout | undefined
}

export function targets(parts: TargetParts): Targets {
  const logins = new Map<string, Login>()
  const over = new AbortController()

  /** The login of this account on the device, which is made when it is first needed. */
  function loginOf(device: Admitted['device'], username: string): Login {
    const key = `${device.uid} ${username}`
    const known = logins.get(key)
    if (known) return known
    const leg = deviceLeg(parts, device, parts.newId(), over.signal)
    const forget = (): void => {
      if (logins.get(key) === login) logins.delete(key)
      clearTimeout(login.idle)
    }
    const connect = async (): Promise<Connection> => {
      if ((await leg.publicKey(username)) !== 'accepted') throw new TargetUnreachable('login')
      const connection = leg.connection()
      void connection.ended.then(forget)
      return connection
    }
    const login: Login = { leg, ready: connect(), streams: 0, idle: undefined }
    login.ready.catch(() => {
      forget()
      leg.end()
    })
    logins.set(key, login)
    return login
  }

  async function byLogin(
    { service, device }: Pick<Admitted, 'service' | 'device'>,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const login = loginOf(device, service.username)
    clearTimeout(login.idle)
    login.streams += 1
    const left = (): void => {
      login.streams -= 1
      if (login.streams === 0) login.idle = setTimeout(() => login.leg.end(), idleLogin_ms).unref()
    }
    try {
      const connection = await unlessAborted(login.ready, signal)
      const { host, port } = service
      const channel = await connection.open(
        'direct-tcpip',
        writeTcpForward({ host, port, origin: '127.0.0.1', originPort: 0 }),
        signal,
      )
      return channelStream(channel).once('close', left)
    } catch (error) {
      left()
      throw error
    }
  }

  async function connect(to: Pick<Admitted, 'service' | 'device'>, signal: AbortSignal): Promise<Duplex> {
    const { service, device } = to
    const tunnel = await parts.findTunnel(device)
    if (!tunnel) throw new TargetUnreachable('offline')
    if (tunnel.openTarget)
      try {
        return await tunnel.openTarget({ host: service.host, port: service.port }, signal)
      } catch (error) {
        if ((error as Partial<TargetRefused>).why !== 'unsupported') throw error
      }
    if (service.username === '') throw new TargetUnreachable('unsupported')
    return byLogin(to, signal)
  }

  return {
    async open(to, gone) {
      const limit = AbortSignal.any([over.signal, gone, AbortSignal.timeout(targetDial_ms)])
      try {
        const stream = await connect(to, limit)
        return to.service.scheme === 'https' ? await encrypted(parts, stream, to.service, limit) : stream
      } catch (error) {
        throw unreachable(error, limit)
      }
    },
    [Symbol.dispose]() {
      over.abort()
      for (const { leg } of logins.values()) leg.end()
    },
  }
}

/** The work goes on for others who wait for it. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function unreachable(error: unknown, limit: AbortSignal): TargetUnreachable {
  if (error instanceof TargetUnreachable) return error
  const { why } = error as Partial<TargetRefused>
  if (why !== undefined) return new TargetUnreachable(why, error)
  if (error instanceof ChannelRefused)
    return new TargetUnreachable(error.reason === OpenFailure.prohibited ? 'forbidden' : 'closed', error)
  return new TargetUnreachable(limit.aborted ? 'timeout' : 'offline', error)
}

/** TLS towards the device, with what the service expects of the certificate. */
async function encrypted(
  { pin }: Pick<TargetParts, 'pin'>,
  stream: Duplex,
  service: Admitted['service'],
  signal: AbortSignal,
): Promise<Duplex> {
  const { certificate: check, tls_name, host } = service
  const name = tls_name || host
  const socket = tls.connect({
    socket: stream,
    host: name,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    rejectUnauthorized: check === 'verify',
    ALPNProtocols: ['http/1.1'],
  })
  const stop = (): void => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve)
      socket.once('error', (cause) => reject(new TargetUnreachable(whyNoTls(cause), cause)))
      socket.once('close', () => reject(new TargetUnreachable(signal.aborted ? 'timeout' : 'broken')))
    })
    socket.on('error', () => undefined)
    if (check === 'pin' && !(await isPinned(pin, service, socket))) throw new TargetUnreachable('certificate')
    return socket
  } catch (error) {
    socket.destroy()
    stream.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Errors of the protocol have codes of OpenSSL or of the socket; those of a certificate say what is wrong with it. */
const whyNoTls = ({ code = '' }: NodeJS.ErrnoException): WhyUnreachable =>
  /^(?:ERR_SSL_|EPROTO|ECONNRESET|EPIPE)/.test(code) ? 'broken' : 'certificate'

async function isPinned(
  pin: TargetParts['pin'],
  service: Admitted['service'],
  socket: tls.TLSSocket,
): Promise<boolean> {
  const shown = socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase()
  if (shown === undefined) return false
  return service.pinned === '' ? pin(service, shown) : service.pinned === shown
}
