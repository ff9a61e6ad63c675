// Others in the terminal of a live session: what the door for them and the gateway, which has the terminal,
// promise each other.
import type { AuditAction } from '@hawser/contract/audit-actions'
import type { InvitationMode } from '@hawser/contract/session-invitations'
import type { OwnerMessage, Presence, SizeRule } from '@hawser/contract/sharing'
import type { MemberCaller } from '../callers/callers.ts'

/** Somebody who watches, or wants to type; none of these may throw. */
export interface Visitor {
  readonly caller: MemberCaller
  readonly name: string
  /** The user name of whoever invited them. */
  readonly invitedBy?: string | undefined
  /** Why they may not even ask to type. */
  readonly mayNotAsk?: string | undefined
  /** Whether they may type without being allowed to by the person of the session. */
  needsNoConsent(): Promise<boolean>
  present(presence: Presence): void
  note(sentence: string): void
  /** They may type from now on. */
  admitted(): void
  /** They were refused, or do not type any more; those who may not watch have to leave. */
  dismissed(sentence: string): void
}

/** What a visitor does. */
export interface Seat extends Disposable {
  readonly mayType: boolean
  /** Whether the person of the session has allowed it. */
  readonly hasConsent: boolean
  /** Asks whether they may type. */
  ask(): Promise<void>
  /** Resolves when the device has room for more. What nobody allowed goes nowhere. */
  type(bytes: Uint8Array): Promise<void>
  watch(): void
  /** They may not type any more. */
  withdraw(sentence: string): void
  take(): void
  hand(to: number): void
  share(): void
  resize(size: { readonly width: number; readonly height: number }): void
  follow(rule: SizeRule): void
}

/** A terminal that several people can use. */
export interface SharedTerminal {
  enter(visitor: Visitor): Seat
}

/** The person of a session decides about others in its terminals. */
export interface SharingDesk extends Disposable {
  decide(decision: Decision): void
}

export type Decision = Exclude<OwnerMessage, { kind: 'hear' }>

/** What the audit log says of a shared session. */
export interface SharingNote {
  readonly action: AuditAction
  /** Undefined: the person of the session did it. */
  readonly by: MemberCaller | undefined
  readonly detail: Readonly<Record<string, unknown>>
}

/** How somebody is in a session who was invited to it. */
export interface Invited {
  readonly mode: InvitationMode
  /** Whose right it rests on. */
  readonly maker_id: string
  readonly maker: string
  /** In milliseconds since 1970. */
  readonly ends_at: number
}

/** A user, and the sign-in that they come with. */
export interface GuestSignIn {
  readonly user_id: string
  readonly epoch: number
  readonly token_id: string
}

/** How an invitation stands now. Throws a Failure when the guest may not be there by it. */
export type InvitationStanding = (
  tenant_id: string,
  id: string,
  guest: GuestSignIn,
) => Promise<{ readonly username: string; readonly invited: Invited }>
