// Auth SSH public key: an agent asks the server to prove that a public-key login comes from it. The server
// signs only for a login that it is making on that device at that moment, with a key that was made for it.
// The gateway opens such a pending login here; each allows one signature for one device and one user name
// within some seconds. An agent does not say which of several identical logins it asks for, so signatures are
// counted: as many as logins were opened, never more than are pending. Keys live in memory only. Without a
// pending login the answer is 404. The agent may ask another node than the one that makes the login; the key
// leads to the right one.
import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import type { Bus, HeldName } from '../../bus/bus.ts'
import { minute_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { DeviceCaller } from '../callers/callers.ts'

/** A login that the gateway is making on a device. */
export interface PendingLogin {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly fingerprint: string
  readonly privateKey: string | KeyObject
}

export interface Signer {
  /** Allows one signature for the login, until it is disposed; by way of any node once it is known. */
  open(login: PendingLogin): HeldName
  sign(caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>, fingerprint: string, data: string): Promise<string>
  /** Requests that got no signature. */
  readonly refused: number
}

const login_ms = 30_000
const mostKeys = 6
/**
 * Refusals of one device: real agents ask only for pending logins. After so many the node does not ask the
 * other nodes any more.
 */
const refusalsPerDevice = { max: 30, window_ms: minute_ms }

interface Question {
  readonly caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>
  readonly fingerprint: string
  readonly data: string
}

/** Logins that an agent cannot tell apart: same device, user name and key. */
interface IdenticalLogins {
  readonly privateKey: PendingLogin['privateKey']
  /** The pending ones, oldest first. */
  readonly open: Set<{ readonly expires_at: number }>
  /** Signatures that may still be made for them. */
  left: number
}

const keyOf = ({ tenant_id, device_uid, username, fingerprint }: Omit<PendingLogin, 'privateKey'>): string =>
  JSON.stringify([tenant_id, device_uid, username, fingerprint])

/** The name under which other nodes find the key on the bus. */
const nameOf = (fingerprint: string): string => `login.${hashOf(fingerprint)}`

export function signer(
  clock: Clock,
  bus: Bus,
  onRefused: (device: string, fingerprint: string) => void = () => undefined,
): Signer {
  const refusals = limiter(clock, refusalsPerDevice)
  let refused = 0
  const logins = new Map<string, IdenticalLogins>()
  /** The keys that this node answers for on the bus. One key makes many logins. */
  const registered = new Map<string, HeldName>()

  /** Answers other nodes that ask for a signature by this key. */
  function register(fingerprint: string): HeldName {
    const before = registered.get(fingerprint)
    if (before) return before
    // The gateway has a key of each of two types and renews them about every hour. Keys before the last two
    // of a type make no logins any more.
    for (const [old, name] of registered) {
      if (registered.size < mostKeys) break
      name[Symbol.dispose]()
      registered.delete(old)
    }
    const answer = async (question: string): Promise<string | undefined> => {
      const asked = JSON.parse(question) as Question
      return signHere(asked.caller, asked.fingerprint, asked.data)
    }
    const name = bus.hold(nameOf(fingerprint), answer)
    // One key makes many logins: it is waited for once.
    const known = name.known()
    const held: HeldName = { known: () => known, [Symbol.dispose]: () => name[Symbol.dispose]() }
    registered.set(fingerprint, held)
    return held
  }

  /** Counts the login as used before the signature is made: of RSA by another thread. */
  async function signHere(
    { uid, tenant_id }: Question['caller'],
    fingerprint: string,
    data: string,
  ): Promise<string | undefined> {
    const username = usernameIn(data)
    if (username === undefined) return undefined
    const key = keyOf({ tenant_id, device_uid: uid, username, fingerprint })
    const same = logins.get(key)
    if (!same) return undefined
    for (const login of same.open) if (login.expires_at <= clock.now()) close(key, same, login)
    if (same.left === 0) return undefined
    same.left -= 1
    const signing = typeof same.privateKey === 'string' ? createPrivateKey(same.privateKey) : same.privateKey
    const signature =
      signing.asymmetricKeyType === 'ed25519'
        ? sign(null, Buffer.from(data), signing)
        : await promisify(sign)('sha256', Buffer.from(data), signing)
    return signature.toString('base64')
  }

  function close(key: string, same: IdenticalLogins, login: { readonly expires_at: number }): void {
    if (!same.open.delete(login)) return
    // Nobody knows which of them got a signature; the signatures that are left belong to those still pending.
    same.left = Math.min(same.left, same.open.size)
    if (same.open.size === 0) logins.delete(key)
  }

  return {
    open(login) {
      const key = keyOf(login)
      const same = logins.get(key) ?? { privateKey: login.privateKey, open: new Set(), left: 0 }
      const entry = { expires_at: clock.now() + login_ms }
      logins.set(key, same)
      same.open.add(entry)
      same.left += 1
      const { known } = register(login.fingerprint)
      return { known, [Symbol.dispose]: () => close(key, same, entry) }
    },
    async sign({ uid, tenant_id }, fingerprint, data) {
      const question: Question = { caller: { uid, tenant_id }, fingerprint, data }
      const wait_s = refusals.peek(uid)
      const elsewhere = async () =>
        wait_s > 0 ? undefined : bus.seek(nameOf(fingerprint), JSON.stringify(question))
      const signature = (await signHere(question.caller, fingerprint, data)) ?? (await elsewhere())
      if (signature !== undefined) return signature
      refused += 1
      if (wait_s > 0) throw new Failure('tooMany', { retryAfter: wait_s })
      refusals.take(uid)
      onRefused(uid, fingerprint)
      throw new Failure('notFound', { message: 'No login with this key is going on on this device.' })
    },
    get refused() {
      return refused
    },
  }
}

/**
 * Agents send {"Username": …, "Namespace": …}. Only the name counts, because the namespace may be out of
 * date.
 */
function usernameIn(data: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(data)
    return typeof parsed === 'object' &&
      parsed !== null &&
      'Username' in parsed &&
      typeof parsed.Username === 'string'
      ? parsed.Username
      : undefined
  } catch {
    return undefined
  }
}
