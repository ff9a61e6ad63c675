// Why a login would be refused, or that nothing here refuses it: the questions of a login, asked for an
// administrator, with the answer to each. The rules are those of logins.ts, and nothing is decided here, so what
// this says is what a login meets. Unlike a login it goes on after a refusal, so that all reasons are seen.
import { setImmediate } from 'node:timers/promises'
import { isIP } from 'node:net'
import { rank, type Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { identityCertificates } from '@hawser/contract/identity-certificates'
import type { LoginExplanation, LoginStep, LoginClient } from '@hawser/contract/logins'
import { part, say, type Sentence, type SentencePart } from '@hawser/contract/sentences'
import { terminals } from '@hawser/contract/terminals'
import { plainAddress } from '../../kit/address.ts'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'
import type { Match, Mismatch, Rule } from './firewall-rules.ts'
import { policyOf } from './policies.ts'
import { policyPart } from './session-policy.ts'
import type { LoginKey, Logins, Reachable, RefusedKey } from './logins.ts'
import { fingerprintSha256, type KeyReader } from './public-keys.ts'
import { readFilter } from './tag-use.ts'

export interface ExplainParts {
  stores: Stores
  logins: Pick<Logins, 'find' | 'firewall' | 'withinLimit' | 'key'>
  keys: Pick<KeyReader, 'parse'>
  /** Whether the device has a tunnel, on any node. Throws a Failure when that cannot be found out. */
  isConnected(uid: string): Promise<boolean>
  /** Why the device is offline, as far as known. */
  offlineReason(device: DeviceRow): Promise<Sentence | undefined>
  /** What a device that is not accepted waits for. */
  waitingReason(device: DeviceRow): Promise<Sentence | undefined>
  /** For how many seconds passwords from this address are refused, because too many were wrong. */
  mustWait(source: string): number
}

/** The login that is asked about. */
interface Login {
  readonly username: string
  readonly source: string
  /** It is the address of whoever asks. */
  readonly isOwn: boolean
  readonly via: LoginClient
  /** The server learns which member is signed in, whatever the key or the password says. */
  readonly isNamed: boolean
}

/** The lowest role that each way is open to. The owner of a key has any. */
const leastRole: Readonly<Record<LoginClient, Role>> = {
  ssh: 'observer',
  cli: identityCertificates.create.access.role,
  browser: terminals.open.access.role,
}
/** The newest entries of the audit log in which refusals of an address are looked for. */
const mostEntries = 5_000
/** The newest sessions of the namespace in which an account on the device is looked for. */
const mostSessions = 500
/** Devices with one name that are looked at. */
const mostSameName = 10
/** Keys whose fingerprints are computed before other work gets its turn. */
const keysPerTurn = 500

export function explain(parts: ExplainParts): Rules<'logins'>['explain'] {
  const { stores, logins } = parts

  /** A device that is not accepted, by its name. One that waits is meant rather than one that is gone. */
  async function findByName(tenant_id: string, name: string): Promise<DeviceRow | undefined> {
    const { items } = await stores.of(tenant_id).devices.list({
      groups: [{ join: 'and', conditions: [{ property: 'name', operator: 'eq', value: name }] }],
      sort: 'name',
      order: 'asc',
      page: 1,
      per_page: mostSameName,
    })
    return items.find(({ status }) => status !== 'removed') ?? items[0]
  }

  /** The device that a login would reach; or, if it reaches none, the one that is probably meant. */
  async function findDevice(
    namespace: NamespaceRow,
    text: string,
  ): Promise<{ to: Reachable | undefined; step: LoginStep }> {
    const isUid = /^[0-9a-f]{64}$/i.test(text)
    const prefix = `${namespace.name}.`
    const lower = text.toLowerCase()
    const name = lower.startsWith(prefix) ? lower.slice(prefix.length) : lower
    const found = await logins.find(isUid ? text : `${prefix}${name}`)
    if (found?.device.tenant_id === namespace.tenant_id) {
      const accepted = part('device-accepted', { device: found.device.name, namespace: namespace.name })
      return { to: found, step: step('device', 'passed', accepted) }
    }
    const mine = stores.of(namespace.tenant_id).devices
    const other = isUid ? await mine.find(lower) : await findByName(namespace.tenant_id, name)
    if (!other) {
      const unknown = part('device-unknown', { namespace: namespace.name, device: safeText(name) })
      return { to: undefined, step: step('device', 'refused', unknown) }
    }
    const isGone = other.container !== null && other.status === 'removed'
    const refusal = isGone
      ? part('device-gone', { device: other.name })
      : part('device-not-accepted', { device: other.name, status: other.status })
    const waits = isGone ? undefined : await parts.waitingReason(other)
    // The refusal says already that somebody has to accept it.
    const obstacles = waits?.parts.filter(({ name: reason }) => reason !== 'waits-person') ?? []
    return { to: { device: other, namespace }, step: step('device', 'refused', refusal, ...obstacles) }
  }

  /** What is known of the person. Whether they have an account at all is nothing for a namespace. */
  async function person(
    tenant_id: string,
    name: string,
    via: LoginClient,
  ): Promise<{ isMember: boolean; steps: LoginStep[] }> {
    const wanted = name.toLowerCase()
    const member = (await stores.namespaces.members(tenant_id)).find(({ username }) => username === wanted)
    const who = { person: safeText(wanted) }
    const signIn = via === 'ssh' ? [] : [step('sign-in', 'unknown', part('sign-in-untold', who))]
    if (!member) {
      const stranger =
        via === 'browser'
          ? step('membership', 'refused', part('not-member-browser', who))
          : step('membership', 'ignored', part('not-member-ssh', who))
      return { isMember: false, steps: [...signIn, stranger] }
    }
    const { role } = member
    const roleStep =
      rank(role) >= rank(leastRole[via])
        ? step('role', 'passed', part('role-may', { role }))
        : step('role', 'refused', part('role-may-not', { role }))
    const passed = step('membership', 'passed', part('member', { ...who, role }))
    return { isMember: true, steps: [...signIn, passed, roleStep] }
  }

  async function connection({ device }: Reachable): Promise<LoginStep> {
    const about = { device: device.name }
    if (await parts.isConnected(device.uid))
      return step('connection', 'passed', part('device-connected', about))
    const why = await parts.offlineReason(device)
    return step('connection', 'refused', part('device-offline', about), ...(why?.parts ?? []))
  }

  async function firewall(to: Reachable, login: Login): Promise<LoginStep[]> {
    const steps: LoginStep[] = []
    const { allowed, rule } = await logins.firewall(to, login.username, login.source, (one, match) =>
      steps.push(aboutRule(one, match, login, to.device)),
    )
    if (rule === null)
      steps.push(step('firewall', 'passed', steps.length === 0 ? part('no-rules') : part('no-rule-applies')))
    // The bound on rules refuses without the one that would decide.
    else if (!allowed && steps.every(({ verdict }) => verdict !== 'refused'))
      steps.push(step('firewall', 'refused', part('rules-too-slow')))
    return steps
  }

  async function limit(to: Reachable): Promise<LoginStep> {
    return (await logins.withinLimit(to))
      ? step('device-limit', 'passed', part('within-limit'))
      : step('device-limit', 'refused', part('over-limit'))
  }

  /** The registered key that a name or a fingerprint means. Throws a Failure if it could be several. */
  async function findKey(tenant_id: string, text: string): Promise<PublicKeyRow | undefined> {
    const mine = stores.of(tenant_id).publicKeys
    const byMd5 = await mine.find(text.replace(/^MD5:/, ''))
    if (byMd5) return byMd5
    if (text.startsWith('SHA256:')) {
      for (const [index, row] of (await mine.all()).entries()) {
        if (fingerprintSha256(lineOf(row)) === text) return row
        if (index % keysPerTurn === keysPerTurn - 1) await setImmediate()
      }
      return undefined
    }
    const { items } = await mine.list(
      [{ join: 'and', conditions: [{ property: 'name', operator: 'eq', value: text }] }],
      { page: 1, per_page: 2 },
    )
    if (items.length > 1)
      throw new Failure('conflict', {
        message: 'Several keys have this name; name the one you mean by its fingerprint.',
      })
    return items[0]
  }

  async function key(to: Reachable, login: Login, text: string): Promise<LoginStep[]> {
    const row = await findKey(to.device.tenant_id, text)
    const decision = await logins.key(to, login.username, login.source, loginKey(row, text, login.via))
    const rule: Pick<LoginStep, 'rule'> = row
      ? {
          rule: {
            kind: 'public-key',
            id: row.fingerprint,
            name: row.name,
            path: `/api/sshkeys/public-keys/${row.fingerprint}`,
          },
        }
      : {}
    if (!decision.allowed)
      return [{ ...step('key', 'refused', aboutKey(decision, row, login, to.device)), ...rule }]
    const name = safeText(row?.name ?? text)
    const use = { key: name, username: login.username, device: to.device.name }
    if (row?.certificate_authority === 1)
      return [{ ...step('key', 'unknown', part('key-signs', use)), ...rule }]
    const passed = { ...step('key', 'passed', part('key-good', use)), ...rule }
    if (decision.person.kind !== 'unknown') return [passed]
    return [passed, ...required(to, login, part('key-without-owner', { key: name }))]
  }

  /**
   * As a client would show it. One that signs certificates is taken to have signed one without limits, except in
   * a browser, which has plain keys only.
   */
  function loginKey(row: PublicKeyRow | undefined, text: string, via: LoginClient): LoginKey {
    if (!row) return { fingerprint: text, line: '', sha256: text, type: '', bits: null }
    const line = lineOf(row)
    const name = { fingerprint: row.fingerprint, line }
    if (row.certificate_authority === 1 && via !== 'browser')
      return {
        fingerprint: '',
        line: '',
        sha256: '',
        type: '',
        bits: null,
        certificate: { authority: name, id: '', judge: () => ({ allowed: true }) },
      }
    return { ...name, sha256: fingerprintSha256(line), ...kindOf(line) }
  }

  function kindOf(line: string): { type: string; bits: number | null } {
    try {
      const { type, bits } = parts.keys.parse(line)
      return { type, bits }
    } catch {
      return { type: '', bits: null }
    }
  }

  async function password(to: Reachable, login: Login): Promise<LoginStep[]> {
    if (to.device.connector !== null)
      return [step('key', 'refused', part('password-not-taken', { device: to.device.name }))]
    const tried = await attempts(to.namespace.tenant_id, login)
    return [tried, ...required(to, login, part('password-names-nobody'))]
  }

  /** About a login whose key or password names nobody. */
  function required({ namespace }: Reachable, { isNamed }: Login, nobody: SentencePart): LoginStep[] {
    if (namespace.require_person !== 1) return []
    return [isNamed ? step('person', 'passed', part('person-named')) : step('person', 'refused', nobody)]
  }

  /**
   * The limit is one for the whole server: about an address that was never refused here, an administrator of a
   * namespace does not learn what it did elsewhere. One's own address is told in any case.
   */
  async function attempts(tenant_id: string, { source, isOwn }: Login): Promise<LoginStep> {
    const asked = { action: 'login.refused', source, oldest: 1, limit: 1, window: mostEntries }
    if (!isOwn && (await stores.of(tenant_id).audit.list(asked)).rows.length === 0)
      return step('attempts', 'unknown', part('attempts-untold', { source }))
    const seconds = parts.mustWait(source)
    return seconds > 0
      ? step('attempts', 'refused', part('attempts-too-many', { source, seconds }))
      : step('attempts', 'passed', part('attempts-few', { source }))
  }

  /** What only the device knows, and what it has shown so far. */
  async function account({ device }: Reachable, { username }: Login, byKey: boolean): Promise<LoginStep> {
    const { items } = await stores.of(device.tenant_id).sessions.list({ page: 1, per_page: mostSessions })
    const last = items.find((row) => row.device_uid === device.uid && row.username === username)
    const decides =
      device.connector !== null
        ? part('account-container', { username })
        : !byKey
          ? part('account-password')
          : device.enrolment_key !== null
            ? part('account-agentless', { username })
            : part('account-key', { username })
    const before =
      last === undefined
        ? part('account-never', { username })
        : part('account-before', { username, began_at: last.started_at })
    return step('account', 'unknown', decides, before)
  }

  return async ({ body }, { tenant_id, source: own }) => {
    const { username, via = 'ssh' } = body
    if (body.source !== undefined && isIP(body.source) === 0)
      throw new Failure('invalid', { message: 'source: not an IP address' })
    const source = plainAddress(body.source ?? own)
    const namespace = await stores.namespaces.find(tenant_id)
    if (!namespace) throw new Failure('notFound')
    const steps: LoginStep[] = []
    const about = body.person === undefined ? undefined : await person(tenant_id, body.person, via)
    steps.push(...(about?.steps ?? []))
    // Without a name it is about any member. The browser lets in nobody else; hawser ssh goes on without a name.
    const isNamed = via !== 'ssh' && about?.isMember !== false
    const login: Login = { username, source, isOwn: source === plainAddress(own), via, isNamed }
    const { to, step } = await findDevice(namespace, body.device)
    steps.push(step)
    if (to)
      steps.push(
        await connection(to),
        ...(await firewall(to, login)),
        await limit(to),
        ...(body.key === undefined ? await password(to, login) : await key(to, login, body.key)),
        await account(to, login, body.key !== undefined),
        aboutPolicy(namespace),
      )
    return conclude(steps, login.source)
  }
}

function conclude(steps: readonly LoginStep[], source: string): LoginExplanation {
  const first = steps.find(({ verdict }) => verdict === 'refused')
  const { sentence, parts = [] } = first ?? say(part('nothing-refuses'))
  return { verdict: first ? 'refused' : 'allowed', sentence, parts, source, steps: [...steps] }
}

const step = (
  check: LoginStep['check'],
  verdict: LoginStep['verdict'],
  ...parts: SentencePart[]
): LoginStep => ({ check, verdict, ...say(...parts) })

/** It refuses no login, and says what the session may not do. */
const aboutPolicy = (namespace: NamespaceRow): LoginStep => ({
  ...step('policy', 'passed', policyPart(policyOf(namespace))),
  rule: { kind: 'policy', id: '', name: 'Policy', path: '/api/policy' },
})

const lineOf = ({ data }: PublicKeyRow): string => Buffer.from(data, 'base64').toString('utf8')

function aboutRule(rule: Rule, match: Match, login: Login, device: DeviceRow): LoginStep {
  const { id, action, priority } = rule
  const about = { rule: id, action, priority }
  const found = (verdict: LoginStep['verdict'], what: SentencePart): LoginStep => ({
    ...step('firewall', verdict, what),
    rule: {
      kind: 'firewall-rule',
      id,
      name: `Rule ${id} (${action}, priority ${priority})`,
      path: `/api/firewall/rules/${id}`,
    },
  })
  if (match.applies === false) {
    const differs = mismatch(match.differs, rule, login, device)
    return found('ignored', { ...part('rule-ignored', about), list: [differs] })
  }
  if (match.applies === undefined)
    return action === 'deny'
      ? found('refused', part('rule-too-slow-denies', about))
      : found('ignored', part('rule-too-slow-allows', about))
  return action === 'deny'
    ? found('refused', part('rule-denies', about))
    : found('passed', part('rule-allows', about))
}

function aboutKey(
  { reason, because, differs }: RefusedKey,
  row: PublicKeyRow | undefined,
  login: Login,
  device: DeviceRow,
): SentencePart {
  if (reason === 'old-agent')
    return part('key-old-agent', { device: device.name, version: safeText(device.info_version) })
  if (!row) return part('key-refused', { because })
  const name = { key: safeText(row.name) }
  if (reason !== 'key-scope') return part('key-refused-named', { ...name, because })
  if (differs === undefined) return part('key-too-slow', name)
  const key = { ...row, filter: readFilter(row.filter) }
  return { ...part('key-not-for', name), list: [mismatch(differs, key, login, device)] }
}

/** Which part of a rule or a key the login does not fit. */
function mismatch(
  differs: Mismatch,
  rule: Pick<Rule, 'username' | 'filter'> & Partial<Pick<Rule, 'source_ip'>>,
  { username, source }: Login,
  device: DeviceRow,
): SentencePart {
  const { filter } = rule
  if (differs === 'source_ip')
    return part('other-source', { source, pattern: safeText(rule.source_ip ?? '') })
  if (differs === 'username')
    return part('other-user', { username: safeText(username), pattern: safeText(rule.username) })
  if (differs === 'hostname' && 'hostname' in filter)
    return part('other-device', { device: device.name, pattern: safeText(filter.hostname) })
  const tags = 'tags' in filter ? filter.tags.map((tag) => safeText(tag)).join(', ') : ''
  return tags === '' ? part('no-tags') : part('other-tags', { tags })
}
