// Others in the terminal of a live session: the contract between their WebSocket endpoint and the gateway,
// which has the terminal.
import type { AuditAction } from '@hawser/contract/audit-actions'
import type { InvitationMode } from '@hawser/contract/session-invitations'
import type { OwnerMessage, Presence, SizeRule } from '@hawser/contract/sharing'
import type { MemberCaller } from '../callers/callers.ts'

/** A viewer or guest; none of these may throw. */
export interface Visitor {
  readonly caller: MemberCaller
  readonly name: string
  /** The inviter's user name. */
  readonly invitedBy?: string | undefined
  /** Why they may not even ask to type. */
  readonly mayNotAsk?: string | undefined
  /** Whether they may type without the person's consent. */
  needsNoConsent(): Promise<boolean>
  present(presence: Presence): void
  note(sentence: string): void
  /** The guest may type. */
  admitted(): void
  /** The guest was refused or stops typing; one who may not watch has to leave. */
  dismissed(sentence: string): void
}

export interface Seat extends Disposable {
  readonly mayType: boolean
  /** Whether the person of the session has allowed typing. */
  readonly hasConsent: boolean
  /** Asks whether they may type. */
  ask(): Promise<void>
  /** Resolves when the device has room for more. Input without permission is dropped. */
  type(bytes: Uint8Array): Promise<void>
  watch(): void
  withdraw(sentence: string): void
  take(): void
  hand(to: number): void
  share(): void
  resize(size: { readonly width: number; readonly height: number }): void
  follow(rule: SizeRule): void
}

export interface SharedTerminal {
  enter(visitor: Visitor): Seat
}

/** The person of a session decides about others in its terminals. */
export interface SharingDesk extends Disposable {
  decide(decision: Decision): void
}

export type Decision = Exclude<OwnerMessage, { kind: 'hear' }>

export interface SharingNote {
  readonly action: AuditAction
  /** Undefined: the person of the session did it. */
  readonly by: MemberCaller | undefined
  readonly detail: Readonly<Record<string, unknown>>
}

export interface Invited {
  readonly mode: InvitationMode
  /** The user on whose right it rests. */
  readonly maker_id: string
  readonly maker: string
  /** Milliseconds since 1970. */
  readonly ends_at: number
}

export interface GuestSignIn {
  readonly user_id: string
  readonly epoch: number
  readonly token_id: string
}

/** Throws a Failure when the guest may no longer be there by the invitation. */
export type InvitationStanding = (
  tenant_id: string,
  id: string,
  guest: GuestSignIn,
) => Promise<{ readonly username: string; readonly invited: Invited }>
