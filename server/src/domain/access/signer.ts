// Auth SSH public key: an agent asks the server to prove that a public-key login comes from it. The server
// signs only for a login that it is making on that device at that moment, with a key made for it. The gateway
// opens such a pending login, good for one signature within some seconds. An agent cannot tell identical
// logins apart, so signatures are counted and never exceed pending logins. Keys live in memory only; the key
// leads from any node to the right one.
import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import type { Bus, HeldName } from '../../bus/bus.ts'
import type { Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { DeviceCaller } from '../callers/callers.ts'

export interface PendingLogin {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly fingerprint: string
  readonly privateKey: string | KeyObject
}

export interface Signer {
  /** Allows one signature for the login, until disposed; from any node once it is `known`. */
  open(login: PendingLogin): HeldName
  sign(caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>, fingerprint: string, data: string): Promise<string>
  readonly refused: number
}

const login_ms = 30_000
const mostKeys = 6

interface Question {
  readonly caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>
  readonly fingerprint: string
  readonly data: string
}

/** Logins that an agent cannot tell apart: same device, user name and key. */
interface IdenticalLogins {
  readonly privateKey: PendingLogin['privateKey']
  /** Oldest first. */
  readonly open: Set<{ readonly expires_at: number }>
  left: number
}

const keyOf = ({ tenant_id, device_uid, username, fingerprint }: Omit<PendingLogin, 'privateKey'>): string =>
  JSON.stringify([tenant_id, device_uid, username, fingerprint])

const nameOf = (fingerprint: string): string => `login.${hashOf(fingerprint)}`

export function signer(
  clock: Clock,
  bus: Bus,
  onRefused: (device: string, fingerprint: string) => void = () => undefined,
): Signer {
  /** Real agents ask only for pending logins: beyond this, other nodes are not asked for the device. */
  const refusals = limiter(clock, deviceLimits.refusedSignatures)
  let refused = 0
  const logins = new Map<string, IdenticalLogins>()
  /** Keys that this node answers for on the bus. One key makes many logins. */
  const registered = new Map<string, HeldName>()

  function register(fingerprint: string): HeldName {
    const before = registered.get(fingerprint)
    if (before) return before
    // The gateway renews its keys, one of each of two types, about every hour; keys before the last two are
    // unused.
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
    const known = name.known()
    const held: HeldName = { known: () => known, [Symbol.dispose]: () => name[Symbol.dispose]() }
    registered.set(fingerprint, held)
    return held
  }

  /** Counts the login as used before signing, which for RSA takes another thread. */
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
    // Which login used its signature is unknown, so only the pending ones keep theirs.
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
      if (wait_s > 0) throw beyond(deviceLimits.refusedSignatures, wait_s)
      refusals.take(uid)
      onRefused(uid, fingerprint)
      throw new Failure('notFound', { message: 'No login with this key is in progress on this device.' })
    },
    get refused() {
      return refused
    },
  }
}

/** Agents send {"Username": …, "Namespace": …}. The namespace may be out of date, so only the name counts. */
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
