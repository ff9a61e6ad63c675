// The device leg: the SSH connection from the gateway to the SSH server of a device's agent, through its
// tunnel. The agent must prove with its host key that it is the device before it gets a password. Wrong
// passwords do not end the leg, so that the next attempt costs no new key exchange. For a login by public key
// the gateway logs in with a key of its own, which lives in memory: the agent asks the server whether that
// key is making this login (see domain/access/signer.ts), and the client's key never leaves the client. Agents
// in the field have RSA host keys and support only RSA here. Hawser's own has a certificate by the device's key
// for an Ed25519 key, and gets an Ed25519 key from us: three RSA signatures less for each login. A device
// without an agent has its own SSH server; there the gateway logs in with the login key of the namespace.
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { hostCertificate } from '@hawser/contract/tunnel'
import {
  blobOf,
  ChannelClosed,
  clientAlgorithms,
  fingerprintMd5,
  isCertifiedHostKey,
  openClient,
  privateKeyFrom,
  Reason,
  SshError,
  startSession,
  type Algorithms,
  type Answer,
  type Connection,
  type PrivateKey,
  type Proof,
  type Questions,
  type Unauthenticated,
} from '@hawser/ssh'
import type { Reachable } from '../domain/access/logins.ts'
import type { Signer } from '../domain/access/signer.ts'
import type { Tunnel } from '../tunnel/tunnel.ts'

/** Finds the tunnel of a device, on this node or on another one. */
export type FindTunnel = (device: Reachable['device']) => Promise<Pick<Tunnel, 'openSsh'> | undefined>

export interface DeviceLeg {
  /** Starts to connect, because a login will soon need it. */
  prepare(): void
  password(username: string, password: string): Promise<boolean>
  /** Logs in a user whose client has proved that it has a valid key. */
  publicKey(username: string): Promise<boolean>
  /** The connection, after one of the logins succeeded. */
  connection(): Connection
  end(): void
}

export interface DeviceLegParts {
  findTunnel: FindTunnel
  signer: Signer
  /** The gateway's own key of this type for logins by public key. */
  gatewayKey(type: GatewayKeyType): Promise<PrivateKey>
  /** The key of a namespace for devices without an agent. */
  loginKey(tenant_id: string): Promise<KeyObject>
}

/** What the gateway proves itself with to an agent: RSA unless the agent is known to support the other. */
export type GatewayKeyType = 'ed25519' | 'rsa'

/** The device has no tunnel, does not answer in it, or has another host key. */
export class DeviceUnreachable extends Error {
  override readonly name = 'DeviceUnreachable'
  /** Whether an SSH server answered with another host key. */
  readonly changed: boolean
  constructor(message: string, changed: boolean, options?: ErrorOptions) {
    super(message, options)
    this.changed = changed
  }
}

const dial_ms = 30_000
/** Channels that the agent may open towards the client. channels.ts checks that the client asked for them. */
const fromDevice = ['forwarded-tcpip', 'forwarded-streamlocal@openssh.com', 'auth-agent@openssh.com']
/** Large packets cost less, and both ends of the leg are often Hawser. */
const packet_bytes = 128 * 1024
/** For agents: Hawser's own answers with its certificate, all others with the device's key. */
const agentAlgorithms: Algorithms = {
  ...clientAlgorithms,
  hostKey: [hostCertificate.algorithm, ...clientAlgorithms.hostKey],
}

export function deviceLeg(
  parts: DeviceLegParts,
  device: Reachable['device'],
  id: string,
  signal: AbortSignal,
): DeviceLeg {
  let dialled: Promise<Unauthenticated> | undefined
  let connection: Connection | undefined
  const hasAgent = device.enrolment_key === null

  async function dial(): Promise<Unauthenticated> {
    const tunnel = await parts.findTunnel(device)
    if (!tunnel) throw new DeviceUnreachable('The device has no tunnel.', false)
    let same = true
    try {
      const expected = blobOf(createPublicKey(device.public_key))
      const isDevice = async (key: Buffer): Promise<boolean> =>
        key.equals(expected) ||
        (hasAgent && (await isCertifiedHostKey(key, expected, hostCertificate.principal)))
      const stream = await tunnel.openSsh(id, AbortSignal.any([signal, AbortSignal.timeout(dial_ms)]))
      return await openClient(stream, {
        speakSecond: true,
        handshake_ms: dial_ms,
        ...(hasAgent ? { algorithms: agentAlgorithms } : {}),
        checkHostKey: async (key) => (same = await isDevice(key)),
        channelTypes: fromDevice,
        packet_bytes,
        signal,
      })
    } catch (cause) {
      throw new DeviceUnreachable('The device does not answer as it should.', !same, { cause })
    }
  }

  /** The leg; dials it unless it is open, again if the agent has closed it. */
  async function leg(): Promise<Unauthenticated> {
    const open = (dialled ??= dial())
    try {
      const client = await open
      void client.transport.ended.then(() => {
        if (dialled === open) dialled = undefined
      })
      return client
    } catch (error) {
      if (dialled === open) dialled = undefined
      throw error
    }
  }

  const refused: Answer = { accepted: false, partial: false, methods: [] }

  async function attempt(username: string, proof: Proof): Promise<Answer> {
    const client = await leg()
    try {
      const answer = await client.attempt(username, proof)
      if (answer.accepted) connection = client.connection()
      return answer
    } catch {
      // Agents disconnect after too many attempts; the client sees one more refusal.
      return refused
    }
  }

  /** Many SSH servers accept passwords only by keyboard-interactive. */
  async function password(username: string, secret: string): Promise<boolean> {
    const answer = await attempt(username, { method: 'password', password: secret })
    if (
      answer.accepted ||
      answer.methods.includes('password') ||
      !answer.methods.includes('keyboard-interactive')
    )
      return answer.accepted
    const answers = async ({ prompts }: Questions) => prompts.map(({ echo }) => (echo ? '' : secret))
    return (await attempt(username, { method: 'keyboard-interactive', answer: answers })).accepted
  }

  return {
    prepare: () => void leg().catch(() => undefined),
    password,
    async publicKey(username) {
      if (!hasAgent) {
        const own = privateKeyFrom(await parts.loginKey(device.tenant_id))
        return (await attempt(username, { method: 'publickey', key: own })).accepted
      }
      // Connects first, because the login stays pending for some seconds only, which the agent needs to ask.
      const { transport } = await leg()
      const certified = transport.negotiated.hostKey === hostCertificate.algorithm
      const key = await parts.gatewayKey(certified ? 'ed25519' : 'rsa')
      const login = parts.signer.open({
        tenant_id: device.tenant_id,
        device_uid: device.uid,
        username,
        fingerprint: fingerprintMd5(key.blob),
        privateKey: key.object,
      })
      try {
        if (!(await attempt(username, { method: 'publickey', key })).accepted) return false
      } finally {
        login[Symbol.dispose]()
      }
      if (!connection || !panicsForUnknown(device) || (await hasAccount(connection))) return true
      await connection.end(Reason.byApplication, 'There is no such account.')
      connection = undefined
      return false
    },
    connection() {
      if (!connection) throw new Error('Nobody is logged in on the device yet.')
      return connection
    },
    end() {
      void dialled?.then(
        (client) => client.transport.end(new SshError(Reason.byApplication, 'The session is over.')),
        () => undefined,
      )
    },
  }
}

/**
 * Agents up to 0.16 accept a key for a user that the device does not have, and crash with the first program
 * of that user. An agent in a container of its own cannot answer `hasAccount` for the users of the device, so
 * only native agents count.
 */
function panicsForUnknown({ info_version, info_platform }: Reachable['device']): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(info_version) ?? []
  return info_platform === 'native' && major === '0' && Number(minor) <= 16
}

/** SSH_FXP_INIT of version 3. */
const sftpInit = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])
const probe_ms = 10_000

/**
 * Starts SFTP to find out: for an unknown user such an agent only closes the channel. Without any answer the
 * user counts as existing.
 */
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
 * Makes the gateway's keys for logins by public key, and new ones every hour. One key of a type serves all
 * logins of that time; the signer limits what each login allows.
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
