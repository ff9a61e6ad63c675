// Authentication of one SSH connection. Every attempt is judged alone, by its own proof. Only the server's
// answer about a key is remembered, because the server answers once; an offered key causes nothing but that
// question. Refusals take a multiple of a fixed time, so that an unknown user, a wrong password, a locked
// account and an unapproved key look the same.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attempt, Decision } from '@hawser/ssh'
import type { ApproveKey } from './key-approval.ts'
import type { Account, Admission, Users } from './users.ts'

export interface AuthenticatorOptions {
  readonly users: Users
  readonly approveKey: ApproveKey
  log(event: Record<string, unknown>): void
}

export interface Authenticator {
  authenticate(attempt: Attempt): Promise<Decision>
  /** Throws before an attempt was accepted. */
  account(): Account
}

type KeyAttempt = Extract<Attempt, { readonly key: unknown }>

/** The time of a refusal, or a multiple of it. */
const step_ms = 500
/** Keys for each connection that the server is asked about. */
const mostKeys = 16

export function authenticator({ users, approveKey, log }: AuthenticatorOptions): Authenticator {
  const approvals = new Map<string, Promise<boolean>>()
  let accepted: Account | undefined

  const approve = async ({ user, key, sessionId, signal }: KeyAttempt): Promise<boolean> => {
    const name = key.blob.toString('base64')
    let approval = approvals.get(name)
    if (!approval) {
      if (approvals.size >= mostKeys) return false
      const { blob, certificate } = key
      approval = approveKey({ user, blob, certificate, sessionId }, signal).catch((error: unknown) => {
        log({ event: 'key.unapproved', user, error: (error as Error).message })
        return false
      })
      approvals.set(name, approval)
    }
    return approval
  }

  const judge = async (attempt: Attempt): Promise<Admission> => {
    if (attempt.method === 'password') return users.admitWithPassword(attempt.user, attempt.password)
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer')
      return { refused: 'no such method' }
    // Also for users who do not exist: approval takes the longest.
    const [approved, admission] = await Promise.all([approve(attempt), users.admit(attempt.user)])
    return approved ? admission : { refused: 'key not approved' }
  }

  return {
    async authenticate(attempt) {
      if (attempt.method === 'none') return 'refuse'
      const began_ms = performance.now()
      const admission = await judge(attempt)
      const { user, method } = attempt
      if ('refused' in admission) {
        log({ event: 'login.refused', user, method, reason: admission.refused })
        const took_ms = performance.now() - began_ms
        await sleep(Math.ceil(took_ms / step_ms) * step_ms - took_ms)
        return 'refuse'
      }
      if (method !== 'publickey-offer') {
        accepted = admission.account
        log({ event: 'login.accepted', user, method, account: accepted.name })
      }
      return 'accept'
    },
    account() {
      if (!accepted) throw new Error('Nobody is logged in.')
      return accepted
    },
  }
}
