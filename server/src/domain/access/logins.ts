// Who may log in to a device: which device a name means, whether the firewall allows the caller, and what a
// public key is good for. Each question stands alone and changes nothing, so that an earlier attempt can
// never help a later one. Unknown devices, devices that are not accepted and devices of others get the same
// answer.
import { keyRefusals } from '@hawser/contract/logins'
import { unknownPerson, type SessionOrigin, type SessionPerson } from '@hawser/contract/sessions'
import type { Clock } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { Stores } from '../../storage/stores.ts'
import { isOver } from '../billing/device-limit.ts'
import { decide, keyFits, mostEvaluated, type Match, type Mismatch, type Rule } from './firewall-rules.ts'
import { fingerprintSha256 } from './public-keys.ts'
import { readFilter } from './tag-use.ts'

/** An SSHID: the user on the device, and the device as `namespace.name` or by its uid. */
export interface Target {
  readonly username: string
  readonly data: string
}

export interface Reachable {
  readonly device: DeviceRow
  readonly namespace: NamespaceRow
}

/** A public key: its fingerprint to find it by, and its line to compare it with. */
export interface KeyName {
  /** MD5, under which public keys are stored. Somebody can make two keys that share it. */
  readonly fingerprint: string
  /** The whole key as OpenSSH writes it, without a comment. */
  readonly line: string
}

/** A key that a client has shown. With a certificate: the plain key that the certificate is for. */
export interface LoginKey extends KeyName {
  /** SHA-256, as OpenSSH shows it: for the log. */
  readonly sha256: string
  readonly type: string
  readonly bits: number | null
  readonly certificate?:
    | {
        /** The key that signed it. */
        readonly authority: KeyName
        /** The key id: whom the certificate names, in the authority's words. */
        readonly id: string
        judge(use: { principal: string; now: Date; address: string }): CertificateDecision
      }
    | undefined
}

export type KeyDecision = AcceptedKey | RefusedKey
export type CertificateDecision = { readonly allowed: true; readonly limits?: LoginLimits } | RefusedKey

/** A key that is good for the login. */
export interface AcceptedKey {
  readonly allowed: true
  readonly limits?: LoginLimits | undefined
  /** Of the registered key; with a certificate, of its authority. */
  readonly name: string
  /** Whose key it is: its owner, or whom the certificate names. */
  readonly person: SessionPerson
}

/** Why a key is no good. */
export interface RefusedKey {
  readonly allowed: false
  readonly reason: 'unknown-key' | 'key-scope' | 'weak-key' | 'certificate' | 'old-agent'
  readonly because: string
  /** The name of the registered key that does not fit. */
  readonly rule?: string
  /** What of it does not fit; undefined: a pattern of it cannot be run. */
  readonly differs?: Mismatch | undefined
}

export interface FirewallDecision {
  readonly allowed: boolean
  /** The id of the rule that decided; null when none matched. */
  readonly rule: string | null
}

/** What a certificate restricts in a login. */
export interface LoginLimits {
  /** The only command that may run. */
  readonly forceCommand: string | undefined
  /** The OpenSSH extensions that it has, such as permit-pty. */
  readonly permits: ReadonlySet<string>
}

export interface Logins {
  find(data: string): Promise<Reachable | undefined>
  /** Whether a device that was found is still there and accepted. */
  isThere(device: Pick<DeviceRow, 'tenant_id' | 'uid'>): Promise<boolean>
  /** `onRule` hears what came of each rule that was run. */
  firewall(
    to: Reachable,
    username: string,
    source: string,
    onRule?: (rule: Rule, match: Match) => void,
  ): Promise<FirewallDecision>
  /**
   * Whether the namespace has no more devices than it may have. After a subscription ends the owner has to
   * choose some.
   */
  withinLimit(to: Reachable): Promise<boolean>
  key(to: Reachable, username: string, source: string, key: LoginKey): Promise<KeyDecision>
  /**
   * Whether the namespace has such a key for such a name. It does not look for the device, so that the answer
   * reveals nothing about it; `key` checks the tags of a filter.
   */
  offered(target: Target, source: string, key: LoginKey): Promise<KeyDecision>
  /** The line of a registered key, for those who only have its fingerprint. */
  registered(to: Reachable, fingerprint: string): Promise<string | undefined>
}

const longest_id = 128

/** Whom a certificate of a registered authority names; a key id of nothing but spaces names nobody. */
function certified(id: string): SessionPerson {
  const name = safeText(id.trim(), longest_id)
  return name === '' ? unknownPerson : { kind: 'certificate', id: name, name }
}

const lineOf = ({ data }: PublicKeyRow): string => Buffer.from(data, 'base64').toString('utf8')

const longest_username = 128
const longest_data = 256
const shortest_rsa = 2048
/** The first version of agents that check that a public-key login comes from the server. */
const firstToCheckLogins = [0, 6, 0] as const

const filtered = (device: DeviceRow) => ({ name: device.name, tags: JSON.parse(device.tags) as string[] })

/** Whether the patterns and the filter of a registered key fit this user of this device. */
const reaches = async ({ username: pattern, filter }: PublicKeyRow, username: string, device: DeviceRow) =>
  keyFits({ username: pattern, filter: readFilter(filter) }, { username, device: filtered(device) })

/** A login that a registered key has let in. */
export interface PastLogin {
  readonly username: string
  readonly person: SessionPerson
  readonly via: SessionOrigin
  /** SHA-256 of the key that the client has; with a certificate, the registered key is another. */
  readonly shown: string | undefined
}

/**
 * Whether a registered key would let the same person in again, by the same judgement as at a login. Undefined: a pattern
 * could not be run now.
 */
export async function stillLetsIn(
  row: PublicKeyRow,
  device: DeviceRow,
  login: PastLogin,
): Promise<boolean | undefined> {
  const { username, person, via, shown } = login
  const isCertificate = person.kind === 'certificate' || fingerprintSha256(lineOf(row)) !== shown
  if (isCertificate !== (row.certificate_authority === 1)) return false
  // Nobody but the key says who is at a plain SSH client.
  const owner = person.kind === 'user' ? person.id : null
  if (via === 'ssh' && row.owner !== owner) return false
  return (await reaches(row, username, device)).applies
}

/** Clients send everything before the last @. The user's name ends at the first @ of that. */
export function parseTarget(sshid: string): Target | undefined {
  const at = sshid.indexOf('@')
  const target = { username: sshid.slice(0, at), data: sshid.slice(at + 1) }
  if (at < 1 || target.data === '') return undefined
  return target.username.length > longest_username || target.data.length > longest_data ? undefined : target
}

export interface LoginParts {
  stores: Stores
  clock: Clock
  /** Whether there is a payment provider. */
  billed: boolean
  /** Reports firewall rules that could not be run within their bound; they allow nobody. */
  onUnrunnable(tenant_id: string, rules: readonly string[]): void
}

export function logins({ stores, clock, billed, onUnrunnable }: LoginParts): Logins {
  async function byName(data: string): Promise<Reachable | undefined> {
    const dot = data.indexOf('.')
    const namespace = await stores.namespaces.findByName(data.slice(0, dot).toLowerCase())
    const device = await stores
      .of(namespace?.tenant_id ?? '')
      .devices.findAcceptedByName(data.slice(dot + 1).toLowerCase())
    return namespace && device && { device, namespace }
  }

  async function byUid(uid: string): Promise<Reachable | undefined> {
    const tenant_id = (await stores.callers.namespaceOfDevice(uid.toLowerCase())) ?? ''
    const namespace = await stores.namespaces.find(tenant_id)
    const device = await stores.of(tenant_id).devices.find(uid.toLowerCase())
    return namespace && device?.status === 'accepted' ? { device, namespace } : undefined
  }

  /** The namespace that a name points to, and the device's name there, whether or not the device exists. */
  async function locate(data: string): Promise<{ tenant_id: string; name: string }> {
    if (data.includes('.')) {
      const dot = data.indexOf('.')
      const namespace = await stores.namespaces.findByName(data.slice(0, dot).toLowerCase())
      return { tenant_id: namespace?.tenant_id ?? '', name: data.slice(dot + 1).toLowerCase() }
    }
    const tenant_id = (await stores.callers.namespaceOfDevice(data.toLowerCase())) ?? ''
    return { tenant_id, name: (await stores.of(tenant_id).devices.find(data.toLowerCase()))?.name ?? '' }
  }

  /** What a key is good for, where `fits` says whether the patterns and the filter of the registered one match. */
  async function judgeKey(
    tenant_id: string,
    username: string,
    source: string,
    key: LoginKey,
    fits: (row: PublicKeyRow) => Promise<Match>,
  ): Promise<KeyDecision> {
    const refuse = (reason: RefusedKey['reason'], because: string): RefusedKey => ({
      allowed: false,
      reason,
      because,
    })
    if (key.type === 'ssh-dss' || (key.type === 'ssh-rsa' && (key.bits ?? 0) < shortest_rsa))
      return refuse('weak-key', keyRefusals.weak)
    // A certificate allows what the registered key that signed it allows, and no more than its own text says.
    const { fingerprint, line } = key.certificate?.authority ?? key
    const row = await stores.of(tenant_id).publicKeys.find(fingerprint)
    if (tenant_id === '') return refuse('unknown-key', keyRefusals.nowhere)
    if (!row || lineOf(row) !== line) return refuse('unknown-key', keyRefusals.unknown)
    // As in sshd: a key lets its holder in, or it signs certificates for others; never both.
    if (key.certificate && row.certificate_authority !== 1)
      return refuse('certificate', keyRefusals['no-authority'])
    if (!key.certificate && row.certificate_authority === 1)
      return refuse('certificate', keyRefusals['only-signs'])
    const match = await fits(row)
    if (match.applies !== true)
      return {
        ...refuse('key-scope', keyRefusals.scope),
        rule: row.name,
        differs: match.applies === false ? match.differs : undefined,
      }
    const { name, owner } = row
    if (key.certificate) {
      const decision = key.certificate.judge({
        principal: username,
        now: new Date(clock.now()),
        address: source,
      })
      return decision.allowed ? { ...decision, name, person: certified(key.certificate.id) } : decision
    }
    if (owner === null) return { allowed: true, name, person: unknownPerson }
    // A key goes with its owner's membership; one that was added at that moment is stopped here.
    const standing = await stores.callers.user(owner, tenant_id)
    if (!standing?.role) return refuse('unknown-key', keyRefusals['former-member'])
    return { allowed: true, name, person: { kind: 'user', id: owner, name: standing.username } }
  }

  return {
    find: (data) => (data.includes('.') ? byName(data) : byUid(data)),

    isThere: async ({ tenant_id, uid }) =>
      (await stores.of(tenant_id).devices.find(uid))?.status === 'accepted',

    async firewall({ device }, username, source, onRule) {
      // The rules are read each time, so that a new one counts from the next attempt on, on every node.
      const rules = (await stores.of(device.tenant_id).firewall.active(mostEvaluated + 1)).map((row) => ({
        ...row,
        id: String(row.id),
        active: row.active === 1,
        filter: readFilter(row.filter),
      }))
      const { allowed, rule, unrunnable } = await decide(
        rules,
        { source_ip: source, username, device: filtered(device) },
        onRule,
      )
      if (unrunnable.length > 0) onUnrunnable(device.tenant_id, unrunnable)
      return { allowed, rule }
    },

    async withinLimit({ namespace: { tenant_id, max_devices } }) {
      return (
        !billed ||
        max_devices <= 0 ||
        !isOver({ accepted: await stores.namespaces.deviceCount(tenant_id), max_devices })
      )
    },

    async key({ device }, username, source, key) {
      const decision = await judgeKey(device.tenant_id, username, source, key, async (row) =>
        reaches(row, username, device),
      )
      if (!decision.allowed || checksLogins(device.info_version)) return decision
      return { allowed: false, reason: 'old-agent', because: keyRefusals['old-agent'] }
    },

    async offered({ username, data }, source, key) {
      const { tenant_id, name } = await locate(data)
      const fits = async (row: PublicKeyRow): Promise<Match> => {
        const filter = readFilter(row.filter)
        return keyFits(
          { username: row.username, filter: 'tags' in filter ? { hostname: '.*' } : filter },
          { username, device: { name, tags: [] } },
        )
      }
      return judgeKey(tenant_id, username, source, key, fits)
    },

    async registered({ device }, fingerprint) {
      const row = await stores.of(device.tenant_id).publicKeys.find(fingerprint)
      return row && lineOf(row)
    },
  }
}

/** Whether agents of this version check that a public-key login comes from the server. */
function checksLogins(version: string): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  // Agents built from the newest sources say `latest`, or something else that is no version.
  if (!numbers) return true
  const [major = 0, minor = 0, patch = 0] = numbers.slice(1).map(Number)
  const [a, b, c] = firstToCheckLogins
  return major !== a ? major > a : minor !== b ? minor > b : patch >= c
}
