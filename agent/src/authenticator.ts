// Authentication of one SSH connection. Every attempt is judged alone, by its own proof. The authenticator
// remembers only what the server said about a key, because the server answers once. A key that is merely
// offered makes the agent ask the server and nothing else. Refusals take a multiple of a fixed time, so that
// it does not tell an unknown user from a wrong password, a locked account or a key that the server did not
// approve.
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
  /** The account of the attempt that was accepted; throws before there is one. */
  account(): Account
}

type KeyAttempt = Extract<Attempt, { readonly key: unknown }>

/** A refusal takes this long, or a multiple of it. */
const step_ms = 500
/** Keys that the server is asked about on one connection. */
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
    // Also for users who do not exist: asking takes the longest.
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
