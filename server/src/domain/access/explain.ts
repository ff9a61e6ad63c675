// Explains to an administrator whether a login would be refused, and why, check by check. The rules are those
// of logins.ts; an explanation continues after a refusal, so that all reasons are seen.
import { isIP } from 'node:net'
import { rank, type Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { identityCertificates } from '@hawser/contract/identity-certificates'
import type { LoginExplanation, LoginStep, LoginClient } from '@hawser/contract/logins'
import { part, say, type Sentence } from '@hawser/contract/sentences'
import { terminals } from '@hawser/contract/terminals'
import { plainAddress } from '../../kit/address.ts'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'
import { keySteps, passwordSteps, type CredentialsParts } from './explain-credentials.ts'
import { aboutPolicy, aboutRule, step, type Login } from './explain-steps.ts'
import type { Logins, Reachable } from './logins.ts'

export interface ExplainParts extends CredentialsParts {
  logins: Pick<Logins, 'find' | 'firewall' | 'withinLimit' | 'key'>
  /** Whether the device has a tunnel, on any node. Throws a Failure when that is unknown. */
  isConnected(uid: string): Promise<boolean>
  offlineReason(device: DeviceRow): Promise<Sentence | undefined>
  waitingReason(device: DeviceRow): Promise<Sentence | undefined>
}

/** The lowest role that may use each client; the owner of a key may have any. */
const leastRole: Readonly<Record<LoginClient, Role>> = {
  ssh: 'observer',
  cli: identityCertificates.create.access.role,
  browser: terminals.open.access.role,
}
const mostSessions = 500
const mostSameName = 10

export function explain(parts: ExplainParts): Rules<'logins'>['explain'] {
  const { stores } = parts
  return async ({ body }, { tenant_id, source: own }) => {
    const { username, via = 'ssh' } = body
    if (body.source !== undefined && isIP(body.source) === 0)
      throw new Failure('invalid', { message: 'source: not an IP address' })
    const source = plainAddress(body.source ?? own)
    const namespace = await stores.namespaces.find(tenant_id)
    if (!namespace) throw new Failure('notFound')
    const steps: LoginStep[] = []
    const about =
      body.person === undefined ? undefined : await personSteps(stores, tenant_id, body.person, via)
    steps.push(...(about?.steps ?? []))
    // Without a name, any member is meant. A browser lets in nobody else; hawser ssh also connects without a name.
    const isNamed = via !== 'ssh' && about?.isMember !== false
    const login: Login = { username, source, isOwn: source === plainAddress(own), via, isNamed }
    const { to, step: found } = await findDevice(parts, namespace, body.device)
    steps.push(found)
    if (to)
      steps.push(
        await connection(parts, to),
        ...(await firewall(parts.logins, to, login)),
        await limit(parts.logins, to),
        ...(body.key === undefined
          ? await passwordSteps(parts, to, login)
          : await keySteps(parts, to, login, body.key)),
        await account(stores, to, login, body.key !== undefined),
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

async function findDevice(
  parts: ExplainParts,
  namespace: NamespaceRow,
  text: string,
): Promise<{ to: Reachable | undefined; step: LoginStep }> {
  const isUid = /^[0-9a-f]{64}$/i.test(text)
  const prefix = `${namespace.name}.`
  const lower = text.toLowerCase()
  const name = lower.startsWith(prefix) ? lower.slice(prefix.length) : lower
  const found = await parts.logins.find(isUid ? text : `${prefix}${name}`)
  if (found?.device.tenant_id === namespace.tenant_id) {
    const accepted = part('device-accepted', { device: found.device.name, namespace: namespace.name })
    return { to: found, step: step('device', 'passed', accepted) }
  }
  const mine = parts.stores.of(namespace.tenant_id).devices
  const other = isUid ? await mine.find(lower) : await findByName(parts.stores, namespace.tenant_id, name)
  if (!other) {
    const unknown = part('device-unknown', { namespace: namespace.name, device: safeText(name) })
    return { to: undefined, step: step('device', 'refused', unknown) }
  }
  const isGone = other.container !== null && other.status === 'removed'
  const refusal = isGone
    ? part('device-gone', { device: other.name })
    : part('device-not-accepted', { device: other.name, status: other.status })
  const waits = isGone ? undefined : await parts.waitingReason(other)
  // The refusal already states that somebody has to accept the device.
  const obstacles = waits?.parts.filter(({ name: reason }) => reason !== 'waits-person') ?? []
  return { to: { device: other, namespace }, step: step('device', 'refused', refusal, ...obstacles) }
}

/** A waiting device comes before one that is gone. */
async function findByName(stores: Stores, tenant_id: string, name: string): Promise<DeviceRow | undefined> {
  const { items } = await stores.of(tenant_id).devices.list({
    groups: [{ join: 'and', conditions: [{ property: 'name', operator: 'eq', value: name }] }],
    sort: 'name',
    order: 'asc',
    page: 1,
    per_page: mostSameName,
  })
  return items.find(({ status }) => status !== 'removed') ?? items[0]
}

/** A namespace must not learn whether a stranger has an account. */
async function personSteps(
  stores: Stores,
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

async function connection(parts: ExplainParts, { device }: Reachable): Promise<LoginStep> {
  const about = { device: device.name }
  if (await parts.isConnected(device.uid))
    return step('connection', 'passed', part('device-connected', about))
  const why = await parts.offlineReason(device)
  return step('connection', 'refused', part('device-offline', about), ...(why?.parts ?? []))
}

async function firewall(logins: ExplainParts['logins'], to: Reachable, login: Login): Promise<LoginStep[]> {
  const steps: LoginStep[] = []
  const { allowed, rule } = await logins.firewall(to, login.username, login.source, (one, match) =>
    steps.push(aboutRule(one, match, login, to.device)),
  )
  if (rule === null)
    steps.push(step('firewall', 'passed', steps.length === 0 ? part('no-rules') : part('no-rule-applies')))
  // The limit on slow rules refuses before the rule that would decide is reached.
  else if (!allowed && steps.every(({ verdict }) => verdict !== 'refused'))
    steps.push(step('firewall', 'refused', part('rules-too-slow')))
  return steps
}

async function limit(logins: ExplainParts['logins'], to: Reachable): Promise<LoginStep> {
  return (await logins.withinLimit(to))
    ? step('device-limit', 'passed', part('within-limit'))
    : step('device-limit', 'refused', part('over-limit'))
}

/** Only the device knows its accounts; earlier sessions show whether this one worked. */
async function account(
  stores: Stores,
  { device }: Reachable,
  { username }: Login,
  byKey: boolean,
): Promise<LoginStep> {
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
