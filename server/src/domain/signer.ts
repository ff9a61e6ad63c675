// Auth SSH public key: an agent asks the server to prove that a public-key login comes from it. The server signs only
// for a login that it is making on that very device at that moment, with a key that was made for it: the gateway opens
// such a login here, and each is good for one device, one user name, one signature and some seconds. A key lives in
// memory only. Without an open login there is nothing to sign with, and the answer is 404. The agent may ask another node
// than the one that makes the login; that one is found by the key.
import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../bus/bus.ts'
import type { Clock } from '../kit/clock.ts'
import { hashOf } from '../kit/secrets.ts'
import type { DeviceCaller } from './callers.ts'

export interface Login {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly fingerprint: string
  readonly privateKey: string | KeyObject
}

export interface Signer {
  /** Lets one signature be made; disposing it takes that back. */
  open(login: Login): Disposable
  sign(caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>, fingerprint: string, data: string): Promise<string>
}

const login_ms = 30_000
const mostHeld = 3

interface Question {
  readonly caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>
  readonly fingerprint: string
  readonly data: string
}

/** As a name on the bus. */
const nameOf = (fingerprint: string): string => `login.${hashOf(fingerprint)}`

export function signer(clock: Clock, bus: Bus): Signer {
  const logins = new Set<Login & { expires_at: number }>()
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
    const answer = (question: string): string | undefined => {
      const asked = JSON.parse(question) as Question
      return signHere(asked.caller, asked.fingerprint, asked.data)
    }
    held.set(fingerprint, bus.hold(nameOf(fingerprint), answer))
  }

  function signHere(caller: Question['caller'], fingerprint: string, data: string): string | undefined {
    const now = clock.now()
    const username = usernameIn(data)
    for (const login of logins) {
      if (login.expires_at <= now) logins.delete(login)
      else if (
        login.device_uid === caller.uid &&
        login.tenant_id === caller.tenant_id &&
        login.fingerprint === fingerprint &&
        login.username === username
      ) {
        logins.delete(login)
        const key = typeof login.privateKey === 'string' ? createPrivateKey(login.privateKey) : login.privateKey
        return sign('sha256', Buffer.from(data), key).toString('base64')
      }
    }
    return undefined
  }

  return {
    open(login) {
      const entry = { ...login, expires_at: clock.now() + login_ms }
      logins.add(entry)
      hold(login.fingerprint)
      return { [Symbol.dispose]: () => void logins.delete(entry) }
    },
    async sign({ uid, tenant_id }, fingerprint, data) {
      const question: Question = { caller: { uid, tenant_id }, fingerprint, data }
      const signature = signHere(question.caller, fingerprint, data) ?? (await bus.seek(nameOf(fingerprint), JSON.stringify(question)))
      if (signature === undefined) throw new Failure('notFound', { message: 'No login with this key is going on on this device.' })
      return signature
    },
  }
}

/** Agents send {"Username": …, "Namespace": …}; the namespace there may be out of date, so only the name counts. */
function usernameIn(data: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(data)
    return typeof parsed === 'object' && parsed !== null && 'Username' in parsed && typeof parsed.Username === 'string'
      ? parsed.Username
      : undefined
  } catch {
    return undefined
  }
}
