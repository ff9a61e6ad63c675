// Who may call an operation. Every operation names one of these rules, without a default, so that nothing is
// open by accident. The server's gate turns an `Access` and a request into a caller or a refusal; the access
// matrix of the reference and the refusals that the contract tests expect are derived from it.
import Type, { type Static } from './type.ts'

/** Lowest first. Each may do everything that the ones before it may. */
export const roles = ['observer', 'operator', 'administrator', 'owner'] as const
export const Role = Type.Enum([...roles], { description: 'A member’s role in a namespace.' })
export type Role = Static<typeof Role>

/** Ownership cannot be granted, only handed over. */
export const memberRoles = ['observer', 'operator', 'administrator'] as const satisfies readonly Role[]
export type MemberRole = (typeof memberRoles)[number]

export function rank(role: Role): number {
  return roles.indexOf(role)
}

/** Own and lower roles may be managed, but never the owner's. */
export function mayManage(actor: Role, role: Role): boolean {
  return role !== 'owner' && rank(actor) >= rank(role)
}

export type Access =
  /** Needs no credential, and ignores one that is sent. */
  | { readonly who: 'anyone' }
  /** A signed-in user, with or without a namespace. `anyRole`: also a token that a role change has ended. */
  | { readonly who: 'user'; readonly anyRole: boolean }
  /** A signed-in user, or an API key, which acts for its own namespace only. */
  | { readonly who: 'user-or-key' }
  /** A member of the caller's namespace, or of the one that the path names, with at least this role. */
  | { readonly who: 'member'; readonly role: Role; readonly apiKey: boolean; readonly of: 'caller' | 'path' }
  | { readonly who: 'device' }
  /** The device that the resource belongs to, or a member with at least this role. */
  | { readonly who: 'device-or-member'; readonly role: Role; readonly apiKey: boolean }

export const anyone = { who: 'anyone' } as const satisfies Access
export const device = { who: 'device' } as const satisfies Access
export const user = { who: 'user', anyRole: false } as const satisfies Access
export const userOfAnyRole = { who: 'user', anyRole: true } as const satisfies Access
export const userOrKey = { who: 'user-or-key' } as const satisfies Access

export function member(role: Role, options: { apiKey?: boolean; of?: 'caller' | 'path' } = {}) {
  return { who: 'member', role, apiKey: options.apiKey ?? true, of: options.of ?? 'caller' } as const
}

export function deviceOr(role: Role) {
  return { who: 'device-or-member', role, apiKey: true } as const
}
