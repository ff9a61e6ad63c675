// The steps of an explained login, in words: which rule, key or policy decided, and what did not fit.
import type { LoginStep, LoginClient } from '@hawser/contract/logins'
import { part, say, type SentencePart } from '@hawser/contract/sentences'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { Match, Mismatch, Rule } from './firewall-rules.ts'
import type { RefusedKey } from './logins.ts'
import { policyOf } from './policies.ts'
import { policyPart } from './session-policy.ts'
import { readFilter } from './tag-use.ts'

export interface Login {
  readonly username: string
  readonly source: string
  readonly isOwn: boolean
  readonly via: LoginClient
  /** The client proves which member is signed in, whatever the key or the password shows. */
  readonly isNamed: boolean
}

export const step = (
  check: LoginStep['check'],
  verdict: LoginStep['verdict'],
  ...parts: SentencePart[]
): LoginStep => ({ check, verdict, ...say(...parts) })

/** The policy refuses no login; it restricts the session. */
export const aboutPolicy = (namespace: NamespaceRow): LoginStep => ({
  ...step('policy', 'passed', policyPart(policyOf(namespace))),
  rule: { kind: 'policy', id: '', name: 'Policy', path: '/api/policy' },
})

export function aboutRule(rule: Rule, match: Match, login: Login, device: DeviceRow): LoginStep {
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

export function aboutKey(
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
