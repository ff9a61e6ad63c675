// The whole contract as one object: noun → verb → operation.
import { acceptRules } from './accept-rules.ts'
import { agents } from './agents.ts'
import { announcements } from './announcements.ts'
import { apiKeys } from './api-keys.ts'
import { audit } from './audit.ts'
import { auditStreams } from './audit-streams.ts'
import { billing } from './billing.ts'
import { budgets } from './budgets.ts'
import { connectors } from './connectors.ts'
import { notes } from './device-notes.ts'
import { devices } from './devices.ts'
import { enrolmentKeys } from './enrolment-keys.ts'
import { enrolmentTokens } from './enrolment-tokens.ts'
import { firewall } from './firewall.ts'
import { invitations } from './invitations.ts'
import { logins } from './logins.ts'
import { identityCertificates } from './identity-certificates.ts'
import { mfa } from './mfa.ts'
import { namespaces } from './namespaces.ts'
import type { Operation } from './operation.ts'
import { pairings } from './pairings.ts'
import { policies } from './policies.ts'
import { publicKeys } from './public-keys.ts'
import { recordings } from './recordings.ts'
import { sessions } from './sessions.ts'
import { services, webEndpoints } from './services.ts'
import { signIns } from './sign-ins.ts'
import { system } from './system.ts'
import { tags } from './tags.ts'
import { terminals } from './terminals.ts'
import { users } from './users.ts'

export const contract = {
  devices,
  notes,
  enrolmentTokens,
  pairings,
  acceptRules,
  agents,
  budgets,
  enrolmentKeys,
  services,
  webEndpoints,
  tags,
  publicKeys,
  identityCertificates,
  apiKeys,
  namespaces,
  invitations,
  sessions,
  terminals,
  recordings,
  firewall,
  policies,
  logins,
  announcements,
  users,
  signIns,
  mfa,
  billing,
  connectors,
  audit,
  auditStreams,
  system,
} as const

export type Contract = typeof contract

export interface NamedOperation {
  readonly id: string
  readonly noun: keyof Contract
  readonly verb: string
  readonly op: Operation
}

export const operations: readonly NamedOperation[] = Object.entries(contract).flatMap(([noun, verbs]) =>
  Object.entries(verbs as Record<string, Operation>).map(([verb, op]) => ({
    id: `${noun}.${verb}`,
    noun: noun as keyof Contract,
    verb,
    op,
  })),
)

export function addresses(op: Operation): { method: Operation['method']; path: string }[] {
  return [
    { method: op.method, path: op.path },
    ...(op.aliases ?? []).map((alias) => ({ method: alias.method ?? op.method, path: alias.path })),
  ]
}

/** The version that agents get: that of the interface this server implements. */
export const interfaceVersion = 'v0.16.4'
