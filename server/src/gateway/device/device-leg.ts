// The device leg: the SSH connection from the gateway to the SSH server of a device's agent, through its
// tunnel. The agent must prove with its host key that it is the device before it gets a password. Wrong
// passwords do not end the leg, so that the next attempt costs no new key exchange. For a login by public key
// the gateway logs in with a key of its own, which lives in memory: the agent asks the server
// whether it is making this login with that key (domain/access/signer.ts), and the client's key never leaves the client.
// Agents in the field have RSA host keys and support only RSA here. Hawser's own has a certificate by the
// device's key for an Ed25519 key, and gets an Ed25519 key from us, which saves three RSA signatures for each
// login. It also gets an approval with that key (`Approver`), and asks the server only if it cannot
// check it. A device without an agent has its own SSH server; there the gateway logs in with the login key of
// the namespace.
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { hostCertificate, type Feature } from '@hawser/contract/tunnel'
import {
  blobOf,
  ChannelClosed,
  clientAlgorithms,
  fingerprintMd5,
  isCertifiedHostKey,
  openClient,
  ownCompression,
  privateKeyFrom,
  Reason,
  SshError,
  startSession,
  type Algorithms,
  type Answer,
  type CompressionMode,
  type Connection,
  type PrivateKey,
  type Proof,
  type Questions,
} from '@hawser/ssh'
import type { Reachable } from '../../domain/access/logins.ts'
import type { Signer } from '../../domain/access/signer.ts'
import type { ResumableStream } from '../../tunnel/resumable.ts'
import type { RemoteTunnel } from '../../tunnel/tunnel.ts'
import type { OpenLeg, SpareLegs } from './spare-legs.ts'

/**
 * On this node or another. Throws a Failure while other nodes cannot be asked, and an error when one is
 * silent.
 */
export type FindTunnel = (device: Reachable['device']) => Promise<RemoteTunnel | undefined>

export interface DeviceLeg {
  prepare(): void
  password(username: string, password: string): Promise<boolean>
  publicKey(username: string): Promise<KeyAnswer>
  connection(): Connection
  /** The stream under the connection, if it outlives the tunnel. */
  resumable(): ResumableStream | undefined
  end(): void
}

/** `no account`: no such account, or one without a home folder, which its agent cannot tell apart. */
export type KeyAnswer = 'accepted' | 'refused' | 'no account'

/** Approves a login for agents that do not ask the server about it (login/approvals.ts). */
export interface Approver {
  approve(
    key: PrivateKey,
    login: {
      readonly device_uid: string
      readonly username: string
      /** Identifies the SSH connection to the device. */
      readonly sessionId: Buffer
    },
  ): Promise<PrivateKey>
}

export interface DeviceLegParts {
  findTunnel: FindTunnel
  signer: Signer
  approvals: Approver
  gatewayKey(type: GatewayKeyType): Promise<PrivateKey>
  loginKey(tenant_id: string): Promise<KeyObject>
  /** Opens a stream that outlives the tunnel; undefined: the agent does not support it. */
  openResumable?(
    device: Reachable['device'],
    tunnel: RemoteTunnel,
    opening: { readonly id: string; readonly grace_s: number },
    signal: AbortSignal,
  ): Promise<ResumableStream | undefined>
  /** How long a leg waits for the device's next tunnel; 0: it ends with its tunnel. */
  grace_s?: number
  spares: SpareLegs
  /** Only for our own agents. The default is `auto`. */
  readonly compression?: CompressionMode | 'never'
}

/** RSA unless the agent is known to support Ed25519. */
export type GatewayKeyType = 'ed25519' | 'rsa'

/** The device has no tunnel, does not answer in it, or has another host key. */
export class DeviceUnreachable extends Error {
  override readonly name = 'DeviceUnreachable'
  /** Whether the host key has changed. */
  readonly changed: boolean
  constructor(message: string, changed: boolean, options?: ErrorOptions) {
    super(message, options)
    this.changed = changed
  }
}

const dial_ms = 30_000
/** Before a spare leg is dialled after a login: the person's first steps have the link to themselves. */
const refill_ms = 1_000
/** A leg that opens faster is not worth a spare one. */
const far_ms = 40
/** Channels that the agent may open towards the client. channels.ts checks that the client asked for them. */
const fromDevice = ['forwarded-tcpip', 'forwarded-streamlocal@openssh.com', 'auth-agent@openssh.com']
/** Large packets cost less, and both ends of the leg are often Hawser. */
const packet_bytes = 128 * 1024
/** Hawser's own agents answer with their certificate, all others with the device's key. */
const agentAlgorithms: Algorithms = {
  ...clientAlgorithms,
  hostKey: [hostCertificate.algorithm, ...clientAlgorithms.hostKey],
}

/** Compression is offered only where it is wanted; old agents know none. */
const forAgents = (compress: DeviceLegParts['compression'] = 'auto') =>
  compress === 'never'
    ? { algorithms: agentAlgorithms }
    : { algorithms: { ...agentAlgorithms, compression: ownCompression }, compress }

/** Throws DeviceUnreachable. Aborting the signal also ends a leg that is open already. */
export async function dialDevice(
  parts: Pick<DeviceLegParts, 'findTunnel' | 'openResumable' | 'grace_s' | 'compression'>,
  device: Reachable['device'],
  id: string,
  signal: AbortSignal,
): Promise<OpenLeg> {
  const hasAgent = device.enrolment_key === null
  const tunnel = await parts.findTunnel(device).catch((cause: unknown) => {
    throw new DeviceUnreachable('The tunnel of the device cannot be found.', false, { cause })
  })
  if (!tunnel) throw new DeviceUnreachable('The device has no tunnel.', false)
  const began_ms = performance.now()
  const features: ReadonlySet<Feature> = (hasAgent && tunnel.features) || new Set()
  let same = true
  try {
    // Computed for each check: a stored key would keep a shared block of 64 KiB for the life of the leg.
    const isDevice = async (key: Buffer): Promise<boolean> => {
      const expected = blobOf(createPublicKey(device.public_key))
      return (
        key.equals(expected) ||
        (hasAgent && (await isCertifiedHostKey(key, expected, hostCertificate.principal)))
      )
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(dial_ms)])
    const { grace_s = 0 } = parts
    const resumable =
      grace_s > 0 ? await parts.openResumable?.(device, tunnel, { id, grace_s }, limit) : undefined
    // Before the login the leg ends with its tunnel: the person wants to know now.
    const giveUp = (): void => void resumable?.destroy()
    resumable?.once('away', giveUp)
    const stream = resumable ?? (await tunnel.openSsh(id, limit))
    const pipelining = features.has('pipelining')
    const client = await openClient(stream, {
      speakSecond: !pipelining,
      pipelining,
      // A device that is away does not answer; the stream itself ends when it stays away.
      ...(resumable ? { keepalive_ms: 0 } : {}),
      handshake_ms: dial_ms,
      ...(hasAgent ? forAgents(parts.compression) : {}),
      checkHostKey: async (key) => (same = await isDevice(key)),
      channelTypes: fromDevice,
      packet_bytes,
      signal,
    })
    return {
      client,
      features,
      dialled_ms: performance.now() - began_ms,
      resumable,
      keep: () => resumable?.off('away', giveUp),
    }
  } catch (cause) {
    throw new DeviceUnreachable('The device does not answer as it should.', !same, { cause })
  }
}

export function deviceLeg(
  parts: DeviceLegParts,
  device: Reachable['device'],
  id: string,
  signal: AbortSignal,
): DeviceLeg {
  let dialled: Promise<OpenLeg> | undefined
  let untried: OpenLeg | undefined
  let connection: Connection | undefined
  let under: ResumableStream | undefined
  const hasAgent = device.enrolment_key === null

  const isFar = ({ dialled_ms, features }: OpenLeg): boolean =>
    dialled_ms >= far_ms && features.has('pipelining')

  /** Takes the spare leg, unless it was lost, or dials one. */
  async function open(): Promise<OpenLeg> {
    const spare = await parts.spares.take(device, parts.grace_s ?? 0)?.catch(() => undefined)
    if (!spare) return dialDevice(parts, device, id, signal)
    untried = spare
    endWith(spare, signal)
    return spare
  }

  async function leg(): Promise<OpenLeg> {
    const opening = (dialled ??= open())
    try {
      const found = await opening
      void found.client.transport.ended.then(() => {
        if (dialled === opening) dialled = undefined
      })
      return found
    } catch (error) {
      if (dialled === opening) dialled = undefined
      throw error
    }
  }

  const refused: Answer = { accepted: false, partial: false, methods: [] }

  /** One attempt, with a proof for the leg. */
  async function attempt(
    username: string,
    proofFor: (leg: OpenLeg) => Proof | Promise<Proof>,
  ): Promise<Answer> {
    const found = await leg()
    const wasSpare = found === untried
    untried = undefined
    try {
      const answer = await found.client.attempt(username, await proofFor(found))
      if (answer.accepted) {
        found.keep()
        connection = found.client.connection()
        under = found.resumable
      }
      if (answer.accepted && isFar(found))
        setTimeout(() => parts.spares.refill(device, parts.grace_s ?? 0), refill_ms).unref()
      return answer
    } catch {
      // Agents disconnect after too many attempts; the client sees one more refusal.
      if (!wasSpare) return refused
    }
    // The spare leg was lost unnoticed, which says nothing about the proof.
    dialled = undefined
    return attempt(username, proofFor)
  }

  /** Many SSH servers accept passwords only by keyboard-interactive. */
  async function password(username: string, secret: string): Promise<boolean> {
    const answer = await attempt(username, () => ({ method: 'password', password: secret }))
    if (
      answer.accepted ||
      answer.methods.includes('password') ||
      !answer.methods.includes('keyboard-interactive')
    )
      return answer.accepted
    const answers = async ({ prompts }: Questions) => prompts.map(({ echo }) => (echo ? '' : secret))
    return (await attempt(username, () => ({ method: 'keyboard-interactive', answer: answers }))).accepted
  }

  /** Returns the gateway's key for this leg, or an approval of it, and registers the login with the signer. */
  async function ownProof(
    username: string,
    { client, features }: OpenLeg,
    pending: DisposableStack,
  ): Promise<Proof> {
    const { negotiated, sessionId } = client.transport
    const certified = negotiated.hostKey === hostCertificate.algorithm
    const key = await parts.gatewayKey(certified ? 'ed25519' : 'rsa')
    const login = parts.signer.open({
      tenant_id: device.tenant_id,
      device_uid: device.uid,
      username,
      fingerprint: fingerprintMd5(key.blob),
      privateKey: key.object,
    })
    pending.use(login)
    await login.known()
    if (!certified || !features.has('approval')) return { method: 'publickey', key }
    const approved = await parts.approvals.approve(key, { device_uid: device.uid, username, sessionId })
    return { method: 'publickey', key: approved }
  }

  return {
    prepare() {
      // A person who has proved nothing does not use up a spare leg.
      if (!parts.spares.has(device)) leg().catch(() => undefined)
    },
    password,
    async publicKey(username) {
      if (!hasAgent) {
        const own = privateKeyFrom(await parts.loginKey(device.tenant_id))
        const { accepted } = await attempt(username, () => ({ method: 'publickey', key: own }))
        return accepted ? 'accepted' : 'refused'
      }
      {
        using pending = new DisposableStack()
        // Only when connected, because the login stays pending for just the seconds that the agent needs to
        // ask.
        const proofFor = (found: OpenLeg): Promise<Proof> => ownProof(username, found, pending)
        if (!(await attempt(username, proofFor)).accepted) return 'refused'
      }
      if (!connection || !panicsForUnknown(device) || (await hasAccount(connection))) return 'accepted'
      await connection.end(Reason.byApplication, 'There is no such account.')
      connection = undefined
      return 'no account'
    },
    connection() {
      if (!connection) throw new Error('Nobody is logged in on the device yet.')
      return connection
    },
    resumable: () => under,
    end() {
      void dialled?.then(
        ({ client }) => client.transport.end(new SshError(Reason.byApplication, 'The session is over.')),
        () => undefined,
      )
    },
  }
}

function endWith({ client: { transport } }: OpenLeg, signal: AbortSignal): void {
  const end = (): void => transport.end(new SshError(Reason.byApplication, 'The session is over.'))
  if (signal.aborted) return end()
  signal.addEventListener('abort', end, { once: true })
  void transport.ended.then(() => signal.removeEventListener('abort', end))
}

/**
 * Agents of ShellHub before 0.19.2 accept a key for a user that the device does not have, and crash with the
 * first program of that user. An agent in a container of its own cannot answer `hasAccount` for the users of
 * the device, so only native agents count.
 */
function panicsForUnknown({ info_version, info_platform }: Reachable['device']): boolean {
  const [, major, minor, patch, before] = /^v?(\d+)\.(\d+)\.(\d+)(-)?/.exec(info_version) ?? []
  if (info_platform !== 'native' || major !== '0') return false
  const [release, fix] = [Number(minor), Number(patch)]
  return release < 19 || (release === 19 && (fix < 2 || (fix === 2 && before !== undefined)))
}

const sftpInit = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])
const probe_ms = 10_000

/**
 * Starts SFTP: for an unknown user, or one without a home folder, such an agent only closes the channel.
 * Without any answer the user counts as existing. */
async function hasAccount(connection: Connection): Promise<boolean> {
  const late = Promise.withResolvers<true>()
  const timer = setTimeout(() => late.resolve(true), probe_ms)
  const ask = async (): Promise<boolean> => {
    await using session = await startSession(connection, { program: { type: 'subsystem', name: 'sftp' } })
    await session.channel.write(sftpInit)
    return (await Promise.race([session.channel.read(), late.promise])) !== undefined
  }
  try {
    return await Promise.race([ask(), late.promise])
  } catch (error) {
    return !(error instanceof ChannelClosed)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * New keys every hour. One key of a type serves all logins of that time; the signer limits what each login
 * allows.
 */
export function gatewayKeys(): (type: GatewayKeyType) => Promise<PrivateKey> {
  const renew_ms = 3_600_000
  const made = new Map<GatewayKeyType, { readonly at: number; readonly key: Promise<PrivateKey> }>()
  return (type) => {
    const known = made.get(type)
    if (known && performance.now() - known.at <= renew_ms) return known.key
    const key = (
      type === 'rsa'
        ? promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
        : promisify(generateKeyPair)('ed25519')
    ).then(({ privateKey }) => privateKeyFrom(privateKey))
    made.set(type, { at: performance.now(), key })
    key.catch(() => made.delete(type))
    return key
  }
}
