// Tickets for terminals in a browser. Who is signed in, and a member of the device's namespace, gets one; it
// is good once, for half a minute, and holds what the login on the device needs, so that no password stands
// in an address. All of it is in memory: nothing of a ticket is written anywhere. A terminal lasts as long as
// its person's sign-in does.
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../../bus/bus.ts'
import { newUid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import { outlivesPasswords, type MemberCaller } from '../callers/callers.ts'
import type { KeyReader } from '../access/public-keys.ts'
import type { Rules } from '../callers/rules.ts'

/** Whose it is. */
export interface Holder {
  readonly user_id: string
  readonly username: string
  readonly tenant_id: string
  /** Of the token that asked for it: a changed password makes another one. */
  readonly epoch: number
  /** Of the same token: the one that changes the password stays. */
  readonly token_id: string
}

export type TerminalTicket = Holder &
  (
    | {
        readonly kind: 'terminal' | 'old terminal'
        readonly device_uid: string
        readonly login: string
        readonly proof: { readonly password: string } | { readonly fingerprint: string }
      }
    | { readonly kind: 'files'; readonly session_uid: string }
  )

export interface TerminalTickets {
  /** Gives up the ticket. Throws wrongToken. */
  take(token: string): TerminalTicket
  has(token: string): boolean
  /** Whether its person may still have a terminal there. */
  holds(holder: Holder): Promise<boolean>
  /** The person has a terminal open, and may see files beside it, until this is disposed of. */
  opened(holder: Holder, session_uid: string): Disposable
}

const life_ms = 30 * second_ms
/** Nobody needs more at once; together they bound the memory. */
const mostOfOne = 20
const mostOfAll = 10_000

export interface TerminalParts {
  stores: Stores
  clock: Clock
  keys: KeyReader
  bus: Bus
  /** Lets other nodes find what is here under this name. */
  hold(name: string): Disposable
}

/** The token itself is nobody's business. */
export const ticketName = (token: string): string => `ticket.${hashOf(token)}`
const terminalName = (session_uid: string): string => `terminal.${session_uid}`

export function terminals({
  stores,
  clock,
  keys,
  bus,
  hold,
}: TerminalParts): Rules<'terminals'> & { tickets: TerminalTickets } {
  const given = new Map<
    string,
    { readonly ticket: TerminalTicket; readonly ends_at: number; forget(): void }
  >()
  const open = new Map<string, Holder>()

  function holderOf(caller: MemberCaller): Holder {
    // The contract admits no keys; this is what the types do not say.
    if (caller.kind !== 'user') throw new Failure('apiKeyRefused')
    const { id: user_id, username, tenant_id, epoch, token_id } = caller
    return { user_id, username, tenant_id, epoch, token_id }
  }

  function give(ticket: TerminalTicket): { token: string } {
    let own = 0
    for (const one of given.values()) if (one.ticket.user_id === ticket.user_id) own += 1
    if (own >= mostOfOne || given.size >= mostOfAll)
      throw new Failure('tooMany', { retryAfter: life_ms / second_ms })
    const token = newUid()
    // What nobody came for is forgotten, and with it the password.
    const name = hold(ticketName(token))
    const forget = (): void => {
      clearTimeout(timer)
      name[Symbol.dispose]()
      given.delete(token)
    }
    const timer = setTimeout(forget, life_ms).unref()
    given.set(token, { ticket, ends_at: clock.now() + life_ms, forget })
    return { token }
  }

  /** A device of the caller's namespace to which one can connect. */
  async function requireDevice(tenant_id: string, uid: string): Promise<void> {
    const device = await stores.of(tenant_id).devices.find(uid)
    if (device?.status !== 'accepted')
      throw new Failure('notFound', { message: 'There is no such device to connect to.' })
  }

  function fingerprintOf(line: string): string {
    try {
      return keys.fingerprint(keys.parse(line.trim()).blob)
    } catch (error) {
      throw new Failure('invalid', {
        message: `public_key: ${error instanceof Error ? error.message : 'not a public key'}`,
      })
    }
  }

  function filesTicket(session_uid: string, holder: Holder): string | undefined {
    const terminal = open.get(session_uid)
    if (terminal?.user_id !== holder.user_id || terminal.tenant_id !== holder.tenant_id) return undefined
    // By name: another node's question is no more than a text.
    const { user_id, username, tenant_id, epoch, token_id } = holder
    return give({ user_id, username, tenant_id, epoch, token_id, kind: 'files', session_uid }).token
  }

  return {
    async open({ body }, caller) {
      const { password, public_key } = body
      const fingerprint =
        body.fingerprint ?? (public_key === undefined ? undefined : fingerprintOf(public_key))
      if ((password === undefined) === (fingerprint === undefined))
        throw new Failure('invalid', {
          message: 'Either a password, or a fingerprint or public_key is needed.',
        })
      await requireDevice(caller.tenant_id, body.device)
      const proof = password === undefined ? { fingerprint: fingerprint! } : { password }
      return give({
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
      await requireDevice(caller.tenant_id, body.device)
      return give({
        ...holderOf(caller),
        kind: 'old terminal',
        device_uid: body.device,
        login: body.username,
        proof: { password },
      })
    },
    async files({ body }, caller) {
      const holder = holderOf(caller)
      // The terminal may be on another node, which then gives the ticket.
      const token =
        filesTicket(body.session, holder) ??
        (await bus.seek(terminalName(body.session), JSON.stringify(holder)))
      if (token === undefined) throw new Failure('notFound', { message: 'You have no such terminal open.' })
      return { token }
    },
    tickets: {
      has: (token) => given.has(token),
      take(token) {
        const found = given.get(token)
        found?.forget()
        if (!found || found.ends_at <= clock.now()) throw new Failure('wrongToken')
        return found.ticket
      },
      async holds({ user_id, tenant_id, epoch, token_id }) {
        const standing = await stores.callers.user(user_id, tenant_id)
        return (
          standing !== undefined && standing.role !== null && outlivesPasswords(standing, epoch, token_id)
        )
      },
      opened(holder, session_uid) {
        open.set(session_uid, holder)
        const name = bus.hold(terminalName(session_uid), (asking) =>
          filesTicket(session_uid, JSON.parse(asking) as Holder),
        )
        return {
          [Symbol.dispose]() {
            name[Symbol.dispose]()
            open.delete(session_uid)
          },
        }
      },
    },
  }
}
