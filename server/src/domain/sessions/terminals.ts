// Tickets for terminals in a browser, for signed-in members of the device's namespace. A ticket works once,
// for half a minute, and contains what the login on the device needs, so that no password appears in an
// address. Tickets live in memory only. A terminal lasts as long as its user's sign-in.
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import type { HeldName } from '../../bus/bus.ts'
import { newUid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import { standingOf, type MemberCaller } from '../callers/callers.ts'
import type { KeyReader } from '../access/public-keys.ts'
import type { Rules } from '../callers/rules.ts'

export interface TicketHolder {
  readonly user_id: string
  readonly username: string
  readonly tenant_id: string
  /** The epoch of the token that asked for the ticket; a change of password starts a new epoch. */
  readonly epoch: number
  /** The id of the same token; the token that changes the password stays good. */
  readonly token_id: string
}

export type TerminalTicket = TicketHolder &
  (
    | {
        readonly kind: 'terminal' | 'old terminal'
        readonly device_uid: string
        readonly login: string
        readonly proof: { readonly password: string } | { readonly fingerprint: string }
      }
    | { readonly kind: 'files'; readonly session_uid: string }
    | ({ readonly kind: 'attach'; readonly session_uid: string } & AttachWish)
  )

interface AttachWish {
  readonly scrollback: boolean
  /** The earlier ticket of a page that reconnects by itself. */
  readonly after?: string | undefined
}

export interface TerminalTickets {
  /** Redeems the ticket, which then is gone. Throws wrongToken. */
  take(token: string): TerminalTicket
  has(token: string): boolean
  /** Whether the user may still have a terminal in the namespace. */
  holds(holder: TicketHolder): Promise<boolean>
  /** The user has a terminal open, and may see its files, until this is disposed. */
  opened(holder: TicketHolder, session_uid: string): Disposable
  /** The user can reattach to a session on this node, until this is disposed. */
  attachable(session_uid: string, user_id: string): Disposable
}

const life_ms = 30 * second_ms

export interface TerminalParts extends With<'stores' | 'clock' | 'bus'> {
  keys: KeyReader
  /** Lets other nodes find this node under the name. */
  register(name: string): HeldName
}

/** Contains the token's hash, because other nodes must not learn the token. */
export const ticketName = (token: string): string => `ticket.${hashOf(token)}`
const terminalName = (session_uid: string): string => `terminal.${session_uid}`
const attachName = (session_uid: string): string => `attach.${session_uid}`

export function terminals({
  stores,
  clock,
  keys,
  bus,
  register,
}: TerminalParts): Rules<'terminals'> & { tickets: TerminalTickets } {
  const given = givenTickets(clock, register)
  const open = new Map<string, TicketHolder>()
  /** The user of each session that can be continued. */
  const continuable = new Map<string, string>()

  async function filesTicket(session_uid: string, holder: TicketHolder): Promise<string | undefined> {
    const terminal = open.get(session_uid)
    if (terminal?.user_id !== holder.user_id || terminal.tenant_id !== holder.tenant_id) return undefined
    // Copies field by field: another node's question may have extra ones.
    const { user_id, username, tenant_id, epoch, token_id } = holder
    const ticket = { user_id, username, tenant_id, epoch, token_id, kind: 'files', session_uid } as const
    return (await given.give(ticket)).token
  }

  async function attachTicket(
    session_uid: string,
    { holder, scrollback, after }: { readonly holder: TicketHolder } & AttachWish,
  ): Promise<string | undefined> {
    if (continuable.get(session_uid) !== holder.user_id) return undefined
    // Copies field by field, as above.
    const { user_id, username, tenant_id, epoch, token_id } = holder
    const whose = { user_id, username, tenant_id, epoch, token_id }
    return (await given.give({ ...whose, kind: 'attach', session_uid, scrollback, after })).token
  }

  return {
    async open({ body }, caller) {
      const { password, public_key } = body
      const fingerprint =
        body.fingerprint ?? (public_key === undefined ? undefined : fingerprintOf(keys, public_key))
      if ((password === undefined) === (fingerprint === undefined))
        throw new Failure('invalid', {
          message: 'Either a password, or a fingerprint or public_key is needed.',
        })
      await requireDevice(stores, caller.tenant_id, body.device)
      const proof = password === undefined ? { fingerprint: fingerprint! } : { password }
      return given.give({
        ...holderOf(caller),
        kind: 'terminal',
        device_uid: body.device,
        login: body.username,
        proof,
      })
    },
    async openOld({ body }, caller) {
      const { password } = body
      if (body.signature !== undefined || body.fingerprint !== undefined)
        throw new Failure('invalid', {
          message:
            'A signature of the user name alone could be used again by others; sign in with a key at /ws/ssh/session.',
        })
      if (password === undefined) throw new Failure('invalid', { message: 'password: it is needed' })
      await requireDevice(stores, caller.tenant_id, body.device)
      return given.give({
        ...holderOf(caller),
        kind: 'old terminal',
        device_uid: body.device,
        login: body.username,
        proof: { password },
      })
    },
    async files({ body }, caller) {
      const holder = holderOf(caller)
      // The terminal may be on another node, which then issues the ticket.
      const token =
        (await filesTicket(body.session, holder)) ??
        (await bus.seek(terminalName(body.session), JSON.stringify(holder)))
      if (token === undefined) throw new Failure('notFound', { message: 'You have no such terminal open.' })
      return { token }
    },
    async attach({ body }, caller) {
      const holder = holderOf(caller)
      const row = await stores.of(caller.tenant_id).sessions.find(body.session)
      const isOwn = row?.active === 1 && row.person_kind === 'user' && row.person_id === holder.user_id
      const asked = { holder, scrollback: body.scrollback ?? false, after: body.after }
      // The session may be on another node, which then issues the ticket.
      const token = isOwn
        ? ((await attachTicket(body.session, asked)) ??
          (await bus.seek(attachName(body.session), JSON.stringify(asked))))
        : undefined
      if (token === undefined && isOwn && row.held_until !== '')
        throw new Failure('unavailable', {
          message: 'The session waits for its device; try again in a moment.',
          retryAfter: 2,
        })
      if (token === undefined)
        throw new Failure('notFound', { message: 'You have no such session to continue.' })
      return { token }
    },
    tickets: {
      has: given.has,
      take: given.take,
      async holds(holder) {
        return ((await standingOf(stores, holder))?.role ?? null) !== null
      },
      opened(holder, session_uid) {
        open.set(session_uid, holder)
        const name = bus.hold(terminalName(session_uid), (asking) =>
          filesTicket(session_uid, JSON.parse(asking) as TicketHolder),
        )
        return {
          [Symbol.dispose]() {
            name[Symbol.dispose]()
            if (open.get(session_uid) === holder) open.delete(session_uid)
          },
        }
      },
      attachable(session_uid, user_id) {
        continuable.set(session_uid, user_id)
        const name = bus.hold(attachName(session_uid), (asking) =>
          attachTicket(session_uid, JSON.parse(asking) as Parameters<typeof attachTicket>[1]),
        )
        return {
          [Symbol.dispose]() {
            name[Symbol.dispose]()
            continuable.delete(session_uid)
          },
        }
      },
    },
  }
}

function givenTickets(clock: Clock, register: TerminalParts['register']) {
  const given = new Map<
    string,
    { readonly ticket: TerminalTicket; readonly ends_at: number; forget(): void }
  >()

  /** Resolves when the ticket is good on every node. */
  async function give(ticket: TerminalTicket): Promise<{ token: string }> {
    let own = 0
    for (const one of given.values()) if (one.ticket.user_id === ticket.user_id) own += 1
    const { tickets, ticketsOfAll } = sessionLimits
    if (own >= tickets.max || given.size >= ticketsOfAll.max) throw beyond(tickets, life_ms / second_ms)
    const token = newUid()
    // A ticket that is not redeemed in time is dropped, and its password with it.
    const name = register(ticketName(token))
    const forget = (): void => {
      clearTimeout(timer)
      name[Symbol.dispose]()
      given.delete(token)
    }
    const timer = setTimeout(forget, life_ms).unref()
    given.set(token, { ticket, ends_at: clock.now() + life_ms, forget })
    await name.known()
    return { token }
  }

  return {
    give,
    has: (token: string): boolean => given.has(token),
    take(token: string): TerminalTicket {
      const found = given.get(token)
      found?.forget()
      if (!found || found.ends_at <= clock.now()) throw new Failure('wrongToken')
      return found.ticket
    },
  }
}

function holderOf(caller: MemberCaller): TicketHolder {
  // The contract admits no API keys, but the types do not say so.
  if (caller.kind !== 'user') throw new Failure('apiKeyRefused')
  const { id: user_id, username, tenant_id, epoch, token_id } = caller
  return { user_id, username, tenant_id, epoch, token_id }
}

async function requireDevice(stores: Stores, tenant_id: string, uid: string): Promise<void> {
  const device = await stores.of(tenant_id).devices.find(uid)
  if (device?.status !== 'accepted')
    throw new Failure('notFound', { message: 'There is no such device to connect to.' })
}

function fingerprintOf(keys: KeyReader, line: string): string {
  try {
    return keys.fingerprint(keys.parse(line.trim()).blob)
  } catch (error) {
    throw new Failure('invalid', {
      message: `public_key: ${error instanceof Error ? error.message : 'not a public key'}`,
    })
  }
}
