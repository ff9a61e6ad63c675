// Who gets in, for one connection. Every attempt is judged alone, by what it proves itself; the only thing
// remembered is what the server said about a key, because it answers once. A key that is merely offered makes
// us ask the server and nothing else. Refusals leave in step, so that their time does not tell an unknown
// user from a wrong password, a locked account or a key that the server did not approve.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attempt, Decision, ShownKey } from '@hawser/ssh'
import type { Account, Admission, Users } from './users.ts'

/** Somebody shows a key: the server says whether it stands behind this login. */
export type ApproveKey = (
  login: { readonly user: string; readonly blob: Buffer },
  signal?: AbortSignal,
) => Promise<boolean>

export interface LoginOptions {
  readonly users: Users
  readonly approveKey: ApproveKey
  log(event: Record<string, unknown>): void
}

export interface Login {
  authenticate(attempt: Attempt): Promise<Decision>
  /** Whoever got in. */
  account(): Account
}

/** A refusal takes this long, or a multiple of it. */
const step_ms = 500
/** Keys that the server is asked about on one connection. */
const mostKeys = 16

export function login({ users, approveKey, log }: LoginOptions): Login {
  const approvals = new Map<string, Promise<boolean>>()
  let accepted: Account | undefined

  const approve = async (user: string, key: ShownKey, signal: AbortSignal): Promise<boolean> => {
    // The gateway has plain keys only, so a certificate is somebody else's.
    if (key.certificate) return false
    const name = key.blob.toString('base64')
    let approval = approvals.get(name)
    if (!approval) {
      if (approvals.size >= mostKeys) return false
      approval = approveKey({ user, blob: key.blob }, signal).catch((error: unknown) => {
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
    const [approved, admission] = await Promise.all([
      approve(attempt.user, attempt.key, attempt.signal),
      users.admit(attempt.user),
    ])
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
