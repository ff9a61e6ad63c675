// Auth SSH public key: an agent asks the server to prove that a public-key login comes from it. The server
// signs only for a login that it is making on that very device at that moment, with a key that was made for
// it: the gateway opens such a login here, and each is good for one device, one user name, one signature and
// some seconds. An agent does not say which of several equal logins it asks for, so signatures are counted:
// as many as logins were opened, never more than are going on. A key lives in memory only. Without an open
// login there is nothing to sign with, and the answer is 404. The agent may ask another node than the one
// that makes the login; that one is found by the key.
import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../../bus/bus.ts'
import { minute_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { DeviceCaller } from '../callers/callers.ts'

export interface Login {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly fingerprint: string
  readonly privateKey: string | KeyObject
}

export interface Signer {
  /** Lets one signature be made until it is disposed. */
  open(login: Login): Disposable
  sign(caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>, fingerprint: string, data: string): Promise<string>
  /** Questions that were not answered with a signature. */
  readonly refused: number
}

const login_ms = 30_000
const mostHeld = 3
/**
 * Of one device: real agents ask only for logins that are being made. After these, other nodes are not asked
 * any more.
 */
const refusalsPerDevice = { max: 30, window_ms: minute_ms }

interface Question {
  readonly caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>
  readonly fingerprint: string
  readonly data: string
}

/** Logins that are the same to an agent: same device, user name and key. */
interface EqualLogins {
  readonly privateKey: Login['privateKey']
  /** Those that are going on, oldest first. */
  readonly open: Set<{ readonly expires_at: number }>
  /** Signatures that may still be made for them. */
  left: number
}

const nameOfEquals = ({ tenant_id, device_uid, username, fingerprint }: Omit<Login, 'privateKey'>): string =>
  JSON.stringify([tenant_id, device_uid, username, fingerprint])

/** As a name on the bus. */
const nameOf = (fingerprint: string): string => `login.${hashOf(fingerprint)}`

export function signer(
  clock: Clock,
  bus: Bus,
  onRefused: (device: string, fingerprint: string) => void = () => undefined,
): Signer {
  const refusals = limiter(clock, refusalsPerDevice)
  let refused = 0
  const logins = new Map<string, EqualLogins>()
  /** One key makes many logins; its name is held once. */
  const held = new Map<string, Disposable>()

  function hold(fingerprint: string): void {
    if (held.has(fingerprint)) return
    // Keys are renewed every hour or so; the ones before the last two make no logins any more.
    for (const [old, name] of held) {
      if (held.size < mostHeld) break
      name[Symbol.dispose]()
      held.delete(old)
    }
    const answer = async (question: string): Promise<string | undefined> => {
      const asked = JSON.parse(question) as Question
      return signHere(asked.caller, asked.fingerprint, asked.data)
    }
    held.set(fingerprint, bus.hold(nameOf(fingerprint), answer))
  }

  /** The login is spent before its signature is made, by another thread. */
  async function signHere(
    { uid, tenant_id }: Question['caller'],
    fingerprint: string,
    data: string,
  ): Promise<string | undefined> {
    const username = usernameIn(data)
    if (username === undefined) return undefined
    const name = nameOfEquals({ tenant_id, device_uid: uid, username, fingerprint })
    const equals = logins.get(name)
    if (!equals) return undefined
    for (const login of equals.open) if (login.expires_at <= clock.now()) close(name, equals, login)
    if (equals.left === 0) return undefined
    equals.left -= 1
    const key =
      typeof equals.privateKey === 'string' ? createPrivateKey(equals.privateKey) : equals.privateKey
    return (await promisify(sign)('sha256', Buffer.from(data), key)).toString('base64')
  }

  function close(name: string, equals: EqualLogins, login: { readonly expires_at: number }): void {
    if (!equals.open.delete(login)) return
    // Whether this one was signed for or another is not known; what is left is for those that still go on.
    equals.left = Math.min(equals.left, equals.open.size)
    if (equals.open.size === 0) logins.delete(name)
  }

  return {
    open(login) {
      const name = nameOfEquals(login)
      const equals = logins.get(name) ?? { privateKey: login.privateKey, open: new Set(), left: 0 }
      const entry = { expires_at: clock.now() + login_ms }
      logins.set(name, equals)
      equals.open.add(entry)
      equals.left += 1
      hold(login.fingerprint)
      return { [Symbol.dispose]: () => close(name, equals, entry) }
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
 * Agents send {"Username": …, "Namespace": …}; the namespace there may be out of date, so only the name
 * counts.
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
