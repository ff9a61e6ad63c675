// Which connections the firewall lets through, and which logins a public key is good for. Pure: the same rules and the
// same connection always give the same answer, whatever order the rules come in. A rule whose pattern cannot be run
// throws, so that the connection is refused; it never counts as a rule that does not match.
import { plainAddress } from '../kit/address.ts'
import { matches } from './patterns.ts'

/** Which devices a rule or a key is about: by a pattern on the name, or by having at least one of the tags. */
export type DeviceFilter = { readonly hostname: string } | { readonly tags: readonly string[] }

export interface FilteredDevice {
  readonly name: string
  readonly tags: readonly string[]
}

export interface Rule {
  /** A decimal number, as text. */
  readonly id: string
  readonly priority: number
  readonly action: 'allow' | 'deny'
  readonly active: boolean
  readonly source_ip: string
  readonly username: string
  readonly filter: DeviceFilter
}

export interface Connection {
  readonly source_ip: string
  readonly username: string
  readonly device: FilteredDevice
}

export interface Decision {
  readonly allowed: boolean
  /** The id of the rule that decided; null when none matched. */
  readonly rule: string | null
}

/** Lowest priority number first, older rule first among equals; the first active rule that matches decides. */
export function decide(rules: readonly Rule[], connection: Connection): Decision {
  const source_ip = plainAddress(connection.source_ip)
  const rule = rules
    .filter((candidate) => candidate.active)
    .toSorted((a, b) => a.priority - b.priority || Number(a.id) - Number(b.id))
    .find(
      (candidate) =>
        matches(candidate.source_ip, source_ip) &&
        matches(candidate.username, connection.username) &&
        filterMatches(candidate.filter, connection.device),
    )
  return rule ? { allowed: rule.action === 'allow', rule: rule.id } : { allowed: true, rule: null }
}

export function filterMatches(filter: DeviceFilter, device: FilteredDevice): boolean {
  if ('hostname' in filter) return matches(filter.hostname, device.name)
  return filter.tags.some((tag) => device.tags.includes(tag))
}

/** May this key log in under this name on this device? Whether the key was proved is not asked here. */
export function keyFits(
  key: { readonly username: string; readonly filter: DeviceFilter },
  login: { readonly username: string; readonly device: FilteredDevice },
): boolean {
  return matches(key.username, login.username) && filterMatches(key.filter, login.device)
}
