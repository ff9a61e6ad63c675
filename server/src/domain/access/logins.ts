// Who may log in to a device: which device a name means, whether the firewall allows the caller, and what a
// public key is good for. Each question stands alone and changes nothing, so that no attempt helps a later
// one. Unknown devices, devices that are not accepted and devices of others get the same answer.
import { keyRefusals } from '@hawser/contract/logins'
import { unknownPerson, type SessionOrigin, type SessionPerson } from '@hawser/contract/sessions'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { With } from '../audit/parts.ts'
import { isOver } from '../billing/device-limit.ts'
import { decide, keyFits, mostEvaluated, type Match, type Mismatch, type Rule } from './firewall-rules.ts'
import { fingerprintSha256 } from './public-keys.ts'
import { readFilter } from './tag-use.ts'

/** The user on the device, and the device as `namespace.name` or by its uid. */
export interface Target {
  readonly username: string
  readonly data: string
}

export interface Reachable {
  readonly device: DeviceRow
  readonly namespace: NamespaceRow
}

export interface KeyName {
  /** MD5, under which keys are stored. Two keys can be made to share it. */
  readonly fingerprint: string
  readonly line: string
}

/** With a certificate: the plain key that it is for. */
export interface LoginKey extends KeyName {
  readonly sha256: string
  readonly type: string
  readonly bits: number | null
  readonly certificate?:
    | {
        readonly authority: KeyName
        /** The key id, by which the authority names the person. */
        readonly id: string
        judge(use: { principal: string; now: Date; address: string }): CertificateDecision
      }
    | undefined
}

export type KeyDecision = AcceptedKey | RefusedKey
export type CertificateDecision = { readonly allowed: true; readonly limits?: LoginLimits } | RefusedKey

export interface AcceptedKey {
  readonly allowed: true
  readonly limits?: LoginLimits | undefined
  /** The name of the registered key; with a certificate, of its authority. */
  readonly name: string
  /** The owner of the key, or the person that the certificate names. */
  readonly person: SessionPerson
}

export interface RefusedKey {
  readonly allowed: false
  readonly reason: 'unknown-key' | 'key-scope' | 'weak-key' | 'certificate' | 'old-agent'
  readonly because: string
  readonly rule?: string
  /** Undefined: a pattern cannot be run. */
  readonly differs?: Mismatch | undefined
}

export interface FirewallDecision {
  readonly allowed: boolean
  /** Null when none matched. */
  readonly rule: string | null
}

export interface LoginLimits {
  readonly forceCommand: string | undefined
  readonly permits: ReadonlySet<string>
}

export interface Logins {
  find(data: string): Promise<Reachable | undefined>
  isThere(device: Pick<DeviceRow, 'tenant_id' | 'uid'>): Promise<boolean>
  /** `onRule` gets the result of each rule that was run. */
  firewall(
    to: Reachable,
    username: string,
    source: string,
    onRule?: (rule: Rule, match: Match) => void,
  ): Promise<FirewallDecision>
  /** Whether the namespace is within its device limit, which may end with a subscription. */
  withinLimit(to: Reachable): Promise<boolean>
  key(to: Reachable, username: string, source: string, key: LoginKey): Promise<KeyDecision>
  /**
   * Whether the namespace has such a key for such a name. It ignores the device, so that the answer reveals
   * nothing about it; `key` checks the tags of a filter.
   */
  offered(target: Target, source: string, key: LoginKey): Promise<KeyDecision>
  registered(to: Reachable, fingerprint: string): Promise<string | undefined>
}

const longest_id = 128

/** A key id of only spaces names nobody. */
function certified(id: string): SessionPerson {
  const name = safeText(id.trim(), longest_id)
  return name === '' ? unknownPerson : { kind: 'certificate', id: name, name }
}

const lineOf = ({ data }: PublicKeyRow): string => Buffer.from(data, 'base64').toString('utf8')

const longest_username = 128
const longest_data = 256
const shortest_rsa = 2048
const firstToCheckLogins = [0, 6, 0] as const

const filtered = (device: DeviceRow) => ({ name: device.name, tags: JSON.parse(device.tags) as string[] })

const reaches = async ({ username: pattern, filter }: PublicKeyRow, username: string, device: DeviceRow) =>
  keyFits({ username: pattern, filter: readFilter(filter) }, { username, device: filtered(device) })

export interface PastLogin {
  readonly username: string
  readonly person: SessionPerson
  readonly via: SessionOrigin
  /** SHA-256 of the client's key; with a certificate, the registered key is another. */
  readonly shown: string | undefined
}

/** Whether a registered key would let the same person in again. Undefined: a pattern could not be run now. */
export async function stillLetsIn(
  row: PublicKeyRow,
  device: DeviceRow,
  login: PastLogin,
): Promise<boolean | undefined> {
  const { username, person, via, shown } = login
  const isCertificate = person.kind === 'certificate' || fingerprintSha256(lineOf(row)) !== shown
  if (isCertificate !== (row.certificate_authority === 1)) return false
  // At a plain SSH client, only the key identifies the person.
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

export interface LoginParts extends With<'stores' | 'clock'> {
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

  async function locate(data: string): Promise<{ tenant_id: string; name: string }> {
    if (data.includes('.')) {
      const dot = data.indexOf('.')
      const namespace = await stores.namespaces.findByName(data.slice(0, dot).toLowerCase())
      return { tenant_id: namespace?.tenant_id ?? '', name: data.slice(dot + 1).toLowerCase() }
    }
    const tenant_id = (await stores.callers.namespaceOfDevice(data.toLowerCase())) ?? ''
    return { tenant_id, name: (await stores.of(tenant_id).devices.find(data.toLowerCase()))?.name ?? '' }
  }

  /** `fits` says whether the patterns and the filter of the registered key match. */
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
    // As in sshd, a key either lets its holder in or signs certificates; never both.
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
    // A key ends with its owner's membership; this stops one that was added at that moment.
    const standing = await stores.callers.user(owner, tenant_id)
    if (!standing?.role) return refuse('unknown-key', keyRefusals['former-member'])
    return { allowed: true, name, person: { kind: 'user', id: owner, name: standing.username } }
  }

  return {
    find: (data) => (data.includes('.') ? byName(data) : byUid(data)),

    isThere: async ({ tenant_id, uid }) =>
      (await stores.of(tenant_id).devices.find(uid))?.status === 'accepted',

    async firewall({ device }, username, source, onRule) {
      // Read each time, so that a new rule counts from the next attempt on every node.
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

function checksLogins(version: string): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  // Agents built from the newest sources say `latest`, or something else that is no version.
  if (!numbers) return true
  const [major = 0, minor = 0, patch = 0] = numbers.slice(1).map(Number)
  const [a, b, c] = firstToCheckLogins
  return major !== a ? major > a : minor !== b ? minor > b : patch >= c
}
