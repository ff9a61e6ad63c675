// Auth SSH public key: an agent asks the server to prove that a public-key login comes from it. The server signs only
// for a login that it is making on that very device at that moment, with a key that was made for it: the gateway opens
// such a login here, and each is good for one device, one user name, one signature and some seconds. A key lives in
// memory only. Without an open login there is nothing to sign with, and the answer is 404.
import { createPrivateKey, sign, type KeyObject } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import type { Clock } from '../kit/clock.ts'
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
  sign(caller: Pick<DeviceCaller, 'uid' | 'tenant_id'>, fingerprint: string, data: string): string
}

const login_ms = 30_000

export function signer(clock: Clock): Signer {
  const logins = new Set<Login & { expires_at: number }>()
  return {
    open(login) {
      const entry = { ...login, expires_at: clock.now() + login_ms }
      logins.add(entry)
      return { [Symbol.dispose]: () => void logins.delete(entry) }
    },
    sign(caller, fingerprint, data) {
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
      throw new Failure('notFound', { message: 'No login with this key is going on on this device.' })
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
