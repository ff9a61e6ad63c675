// The inner leg: from us to the SSH server of a device's agent, through its tunnel. The agent must prove with
// its host key that it is the device; only then is a password said to it. Wrong passwords do not end the leg,
// so that the next attempt costs no new key exchange. For a login by public key we vouch with a key of our
// own, which lives in memory: the agent asks the server whether that key is making this login (see
// domain/access/signer.ts), and the client's key never leaves the client. A device without an agent is its
// own SSH server: there we log in with the key that the namespace has for it.
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import {
  blobOf,
  ChannelClosed,
  fingerprintMd5,
  openClient,
  privateKeyFrom,
  Reason,
  SshError,
  startSession,
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

/** The way to a device: its tunnel here, or one that another node has. */
export type WayTo = (device: Reachable['device']) => Promise<Pick<Tunnel, 'openSsh'> | undefined>

export interface InnerLeg {
  /** Begins to connect, for whoever will need it soon. */
  prepare(): void
  password(username: string, password: string): Promise<boolean>
  /** Our word that the client has proved itself with a key that is good for this user. */
  vouch(username: string): Promise<boolean>
  /** After one of them was true. */
  connection(): Connection
  end(): void
}

export interface InnerParts {
  find: WayTo
  signer: Signer
  voucher(): Promise<PrivateKey>
  /** For devices without an agent. */
  loginKey(tenant_id: string): Promise<KeyObject>
}

/** The device has no tunnel, or does not answer in it, or is not who it should be. */
export class DeviceAway extends Error {
  override readonly name = 'DeviceAway'
  /** Something answered, with another host key. */
  readonly changed: boolean
  constructor(message: string, changed: boolean, options?: ErrorOptions) {
    super(message, options)
    this.changed = changed
  }
}

const dial_ms = 30_000
/** What the agent may open towards the client; whether the client asked for it is seen to in channels.ts. */
const fromDevice = ['forwarded-tcpip', 'forwarded-streamlocal@openssh.com', 'auth-agent@openssh.com']
/** Both ends of the leg are often ours, and large packets cost less. */
const packet_bytes = 128 * 1024

export function innerLeg(
  parts: InnerParts,
  device: Reachable['device'],
  id: string,
  signal: AbortSignal,
): InnerLeg {
  let dialled: Promise<Unauthenticated> | undefined
  let connection: Connection | undefined

  async function dial(): Promise<Unauthenticated> {
    const tunnel = await parts.find(device)
    if (!tunnel) throw new DeviceAway('The device has no tunnel.', false)
    let same = true
    try {
      const expected = blobOf(createPublicKey(device.public_key))
      const stream = await tunnel.openSsh(id, AbortSignal.any([signal, AbortSignal.timeout(dial_ms)]))
      return await openClient(stream, {
        speakSecond: true,
        handshake_ms: dial_ms,
        checkHostKey: (key) => (same = key.equals(expected)),
        channelTypes: fromDevice,
        packet_bytes,
        signal,
      })
    } catch (cause) {
      throw new DeviceAway('The device does not answer as it should.', !same, { cause })
    }
  }

  /** The leg, dialled now if it is not, or if the agent has given it up. */
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
      // Agents hang up after too many attempts; to the client that is one more refusal.
      return refused
    }
  }

  /** Many SSH servers take passwords only as the answer to a question. */
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
    async vouch(username) {
      if (device.enrolment_key !== null) {
        const own = privateKeyFrom(await parts.loginKey(device.tenant_id))
        return (await attempt(username, { method: 'publickey', key: own })).accepted
      }
      const key = await parts.voucher()
      // A login is open for some seconds only: they are for the agent's question, not for getting there.
      await leg()
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
 * Up to 0.16 agents take a key for a user that the device does not have, and their process dies with the
 * first program for it. Where an agent runs in a container of its own, it does not know by what is asked here
 * who is on the device.
 */
function panicsForUnknown({ info_version, info_platform }: Reachable['device']): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(info_version) ?? []
  return info_platform === 'native' && major === '0' && Number(minor) <= 16
}

/** SSH_FXP_INIT of version 3. */
const sftpInit = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])
const probe_ms = 10_000

/**
 * Asked by SFTP: for a user who is not there such an agent only closes the channel. No answer at all says
 * nothing.
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
 * Agents only know RSA here. One key for all logins of some time: what each is good for is bound in the
 * signer.
 */
export function vouchers(): () => Promise<PrivateKey> {
  const renew_ms = 3_600_000
  let made_at = -Infinity
  let made: Promise<PrivateKey> | undefined
  return () => {
    if (!made || performance.now() - made_at > renew_ms) {
      made_at = performance.now()
      made = promisify(generateKeyPair)('rsa', { modulusLength: 2048 }).then(({ privateKey }) =>
        privateKeyFrom(privateKey),
      )
      made.catch(() => (made = undefined))
    }
    return made
  }
}
