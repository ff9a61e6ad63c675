// Explains a login: the steps that decide about its key or its password.
import { setImmediate } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import type { LoginStep, LoginClient } from '@hawser/contract/logins'
import { part, type SentencePart } from '@hawser/contract/sentences'
import { safeText } from '../../kit/log.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { Stores } from '../../storage/stores.ts'
import { aboutKey, step, type Login } from './explain-steps.ts'
import type { LoginKey, Logins, Reachable } from './logins.ts'
import { fingerprintSha256, type KeyReader } from './public-keys.ts'

export interface CredentialsParts {
  stores: Stores
  logins: Pick<Logins, 'key'>
  keys: Pick<KeyReader, 'parse'>
  /** How many seconds passwords from this address are still refused. */
  mustWait(source: string): number
}

/** The newest entries of the audit log that are searched for refusals of an address. */
const mostEntries = 5_000
const keysPerTurn = 500

export async function keySteps(
  parts: CredentialsParts,
  to: Reachable,
  login: Login,
  text: string,
): Promise<LoginStep[]> {
  const row = await findKey(parts.stores, to.device.tenant_id, text)
  const decision = await parts.logins.key(
    to,
    login.username,
    login.source,
    loginKey(parts.keys, row, text, login.via),
  )
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

export async function passwordSteps(
  parts: CredentialsParts,
  to: Reachable,
  login: Login,
): Promise<LoginStep[]> {
  if (to.device.connector !== null)
    return [step('key', 'refused', part('password-not-taken', { device: to.device.name }))]
  const tried = await attempts(parts, to.namespace.tenant_id, login)
  return [tried, ...required(to, login, part('password-names-nobody'))]
}

/** Throws a Failure if several keys have the name. */
async function findKey(stores: Stores, tenant_id: string, text: string): Promise<PublicKeyRow | undefined> {
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

/**
 * The key as a client would present it. A certificate authority is taken to have signed a certificate without
 * limits, except in a browser, which has plain keys only.
 */
function loginKey(
  keys: CredentialsParts['keys'],
  row: PublicKeyRow | undefined,
  text: string,
  via: LoginClient,
): LoginKey {
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
  return { ...name, sha256: fingerprintSha256(line), ...kindOf(keys, line) }
}

function kindOf(keys: CredentialsParts['keys'], line: string): { type: string; bits: number | null } {
  try {
    const { type, bits } = keys.parse(line)
    return { type, bits }
  } catch {
    return { type: '', bits: null }
  }
}

function required({ namespace }: Reachable, { isNamed }: Login, nobody: SentencePart): LoginStep[] {
  if (namespace.require_person !== 1) return []
  return [isNamed ? step('person', 'passed', part('person-named')) : step('person', 'refused', nobody)]
}

/**
 * The limit counts on the whole server. An administrator must not learn what an address did elsewhere, unless
 * it is their own or this namespace has refused it.
 */
async function attempts(
  { stores, mustWait }: CredentialsParts,
  tenant_id: string,
  { source, isOwn }: Login,
): Promise<LoginStep> {
  const asked = { action: 'login.refused', source, oldest: 1, limit: 1, window: mostEntries }
  if (!isOwn && (await stores.of(tenant_id).audit.list(asked)).rows.length === 0)
    return step('attempts', 'unknown', part('attempts-untold', { source }))
  const seconds = mustWait(source)
  return seconds > 0
    ? step('attempts', 'refused', part('attempts-too-many', { source, seconds }))
    : step('attempts', 'passed', part('attempts-few', { source }))
}

const lineOf = ({ data }: PublicKeyRow): string => Buffer.from(data, 'base64').toString('utf8')
