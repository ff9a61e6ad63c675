// Tickets for watching a session from a browser, which cannot set headers on a WebSocket: without a ticket
// the user's token would appear in an address. A ticket works once, for half a minute and for one session. It
// is sealed under the master key that all nodes share. Only the node on which the session runs redeems it, so
// that node also remembers which tickets were redeemed.
import { rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits, type Limit } from '@hawser/contract/limits'
import { second_ms } from '../../kit/clock.ts'
import { newUid } from '../../kit/ids.ts'
import type { With } from '../audit/parts.ts'
import { standingOf, type MemberCaller, type RequestOrigin, type UserCaller } from '../callers/callers.ts'
import type { Invited, InvitationStanding } from './sharing.ts'

/** To watch, to ask whether one may type, or for an invitation. */
export type TicketKind = 'watch' | 'join' | 'invitation'

/** A guest has no role of their own in the session. */
export type WatchingCaller = MemberCaller & { readonly invited?: Invited }

export interface OpenedTicket {
  readonly purpose: TicketKind
  /** The user with the present role. Throws when the user may no longer be there. */
  authorise(from: RequestOrigin): Promise<WatchingCaller>
}

export interface WatchTickets {
  give(caller: MemberCaller, session_uid: string, purpose: 'watch' | 'join'): string
  /** For a guest who has accepted an invitation. */
  invite(
    caller: UserCaller,
    to: { readonly tenant_id: string; readonly session_uid: string; readonly invitation: string },
  ): string
  /** Redeems the ticket, which then is worthless. Throws wrongToken. */
  take(ticket: string, session_uid: string): OpenedTicket
}

interface Ticket {
  readonly id: string
  readonly purpose: TicketKind
  readonly session_uid: string
  readonly user_id: string
  readonly tenant_id: string
  /** The epoch of the token that asked for the ticket; a change of password starts a new epoch. */
  readonly epoch: number
  /** The id of the same token; the token that changes the password stays good. */
  readonly token_id: string
  readonly ends_at: number
  readonly invitation?: string
}

const life_ms = 30 * second_ms
const sealedFor = 'watch ticket'
const leastRole = { watch: 'administrator', join: 'operator' } as const

/** Tickets of the last half minute, counted by user. */
function recent(limit: Limit & { readonly max: number }) {
  const tickets = new Map<string, Pick<Ticket, 'user_id' | 'ends_at'>>()
  const counts = new Map<string, number>()

  function drop(id: string): void {
    const user_id = tickets.get(id)?.user_id
    if (user_id === undefined) return
    tickets.delete(id)
    const left = (counts.get(user_id) ?? 0) - 1
    if (left > 0) counts.set(user_id, left)
    else counts.delete(user_id)
  }

  return {
    drop,
    has: (id: string): boolean => tickets.has(id),
    /** Throws tooMany. */
    add({ id, user_id, ends_at }: Ticket, now: number): void {
      for (const [old, end] of tickets) {
        if (end.ends_at > now) break
        drop(old)
      }
      const own = counts.get(user_id) ?? 0
      if (own >= limit.max) throw beyond(limit, life_ms / second_ms)
      tickets.set(id, { user_id, ends_at })
      counts.set(user_id, own + 1)
    },
  }
}

export function watchTickets({
  stores,
  vault,
  clock,
  invited,
}: With<'stores' | 'vault' | 'clock'> & { invited: InvitationStanding }): WatchTickets {
  /** Tickets that this node issued and that nobody redeemed here. */
  const given = recent(sessionLimits.watchTickets)
  const taken = recent(sessionLimits.usedWatchTickets)

  function opened(sealed: string): Ticket {
    try {
      return JSON.parse(vault.open(sealedFor, sealed)) as Ticket
    } catch (cause) {
      throw new Failure('wrongToken', { cause })
    }
  }

  type Purpose = Pick<Ticket, 'purpose' | 'session_uid' | 'tenant_id' | 'invitation'>

  function issue({ id: user_id, epoch, token_id }: UserCaller, purpose: Purpose): string {
    const now = clock.now()
    const ticket: Ticket = { ...purpose, id: newUid(), user_id, epoch, token_id, ends_at: now + life_ms }
    given.add(ticket, now)
    return Buffer.from(vault.seal(sealedFor, JSON.stringify(ticket)), 'base64').toString('base64url')
  }

  return {
    give(caller, session_uid, purpose) {
      // The contract admits no API keys, but the types do not say so.
      if (caller.kind !== 'user') throw new Failure('apiKeyRefused')
      return issue(caller, { purpose, session_uid, tenant_id: caller.tenant_id })
    },
    invite: (caller, to) => issue(caller, { ...to, purpose: 'invitation' }),

    take(sealed, session_uid) {
      const ticket = opened(sealed)
      const { id, purpose, user_id, tenant_id, epoch, token_id, invitation } = ticket
      const now = clock.now()
      if (ticket.session_uid !== session_uid || ticket.ends_at <= now || taken.has(id))
        throw new Failure('wrongToken')
      taken.add(ticket, now)
      given.drop(id)
      const exp = ticket.ends_at / second_ms
      const sameSignIn = { kind: 'user', id: user_id, token_id, epoch, exp, tenant_id } as const
      const authorise: OpenedTicket['authorise'] = async (from) => {
        if (purpose === 'invitation') {
          const guest = await invited(tenant_id, invitation ?? '', { user_id, epoch, token_id })
          return { ...from, ...sameSignIn, ...guest, role: 'observer' }
        }
        const standing = await standingOf(stores, ticket)
        if (!standing || standing.role === null) throw new Failure('unauthenticated')
        if (rank(standing.role) < rank(leastRole[purpose])) throw new Failure('roleTooLow')
        const { username, role } = standing
        return { ...from, ...sameSignIn, username, role }
      }
      return { purpose, authorise }
    },
  }
}
