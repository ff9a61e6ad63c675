// Public keys of a namespace. A key is parsed before it is stored. Keys that cannot be parsed, DSA keys and
// short RSA keys are refused, and so are patterns that do not compile. A key may belong to a member,
// whose sessions it opens; it goes when the membership ends. An authority belongs to nobody: its
// certificates name the people.
import { createHash } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import type { PublicKey } from '@hawser/contract/public-keys'
import { iso } from '../../kit/clock.ts'
import type { MemberRow } from '../../storage/members.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { With } from '../audit/parts.ts'
import { parseFilter } from './filters.ts'
import { checkPattern } from './patterns.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import {
  adding,
  readFilter,
  requireTags,
  setting,
  without,
  type Retag,
  type StoredFilter,
} from './tag-use.ts'

/** Implemented by the ssh package. */
export interface KeyReader {
  parse(line: string): { type: string; blob: Buffer; bits: number | null }
  line(type: string, blob: Buffer): string
  fingerprint(blob: Buffer): string
}

const shortest_rsa = 2048
const filterable = {
  name: 'text',
  fingerprint: 'text',
  username: 'text',
  data: 'text',
  tenant_id: 'text',
  created_at: 'moment',
  owner: 'text',
  'filter.hostname': 'text',
} as const

/** As OpenSSH shows it. */
export function fingerprintSha256(line: string): string {
  const [, blob = ''] = line.split(' ')
  const digest = createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64')
  return `SHA256:${digest.replace(/=+$/, '')}`
}

const present = (row: PublicKeyRow, owner_name = ''): PublicKey => ({
  ...row,
  fingerprint_sha256: fingerprintSha256(Buffer.from(row.data, 'base64').toString()),
  filter: readFilter(row.filter),
  certificate_authority: row.certificate_authority === 1,
  owner: row.owner ?? '',
  owner_name,
})

const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)

const authorityOwned = (): Failure =>
  new Failure('invalid', {
    message: 'owner: a certificate authority has none, because its certificates name the people',
  })

/** Drops the comment. Throws a Failure that names the field. */
export function soundKey(
  keys: KeyReader,
  text: string,
  field: string,
): { line: string; fingerprint: string } {
  const refuse = (why: string) => new Failure('invalid', { message: `${field}: ${why}` })
  let key: ReturnType<KeyReader['parse']>
  try {
    key = keys.parse(text.trim())
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : 'not a public key')
  }
  if (key.type === 'ssh-dss') throw refuse('DSA keys are too weak')
  if (key.type === 'ssh-rsa' && (key.bits ?? 0) < shortest_rsa)
    throw refuse(`RSA keys need at least ${shortest_rsa} bits`)
  return { line: keys.line(key.type, key.blob), fingerprint: keys.fingerprint(key.blob) }
}

export function storableKey(keys: KeyReader, text: string): { data: string; fingerprint: string } {
  const { line, fingerprint } = soundKey(keys, text, 'data')
  return { data: Buffer.from(line).toString('base64'), fingerprint }
}

/** The key as the audit log shows it: by its fingerprints. */
function audited(row: PublicKeyRow) {
  const { name, username, filter, certificate_authority, fingerprint, fingerprint_sha256 } = present(row)
  const { owner } = row
  return { name, username, filter, certificate_authority, owner, fingerprint, fingerprint_sha256 }
}
const targetOf = ({ fingerprint, name }: PublicKeyRow) => ({ kind: 'public key', id: fingerprint, name })

export function publicKeys({
  stores,
  audit,
  clock,
  bus,
  keys,
}: With<'stores' | 'audit' | 'clock' | 'bus'> & { keys: KeyReader }): Rules<'publicKeys'> {
  const tell = ({ tenant_id }: MemberCaller, fingerprint: string): void =>
    bus.tell('publicKey.changed', { tenant_id, fingerprint })

  async function changeFilter(caller: MemberCaller, fingerprint: string, next: Retag): Promise<void> {
    await audit.change(caller, async (inside, record) => {
      const mine = inside.of(caller.tenant_id).publicKeys
      const row = await mine.find(fingerprint)
      if (!row) throw new Failure('notFound')
      const before = readFilter(row.filter)
      const filter = await next(inside, caller.tenant_id, before)
      await mine.save(fingerprint, { filter: JSON.stringify(filter) })
      record({
        action: 'public-key.updated',
        target: targetOf(row),
        before: { filter: before },
        after: { filter },
      })
    })
    tell(caller, fingerprint)
  }

  return {
    async list({ query }, { tenant_id }) {
      const filter = parseFilter(query.filter, filterable)
      const { items, total } = await stores.of(tenant_id).publicKeys.list(filter, query)
      const owners = await ownersOf(stores, tenant_id, items)
      return { items: items.map((row) => present(row, owners.get(row.owner))), total }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { data, fingerprint } = storableKey(keys, Buffer.from(body.data, 'base64').toString('utf8'))
      checkPattern('username', body.username)
      await checkFilter(stores, tenant_id, body.filter)
      const owner = body.owner ? await memberNamed(stores, tenant_id, body.owner) : undefined
      if (owner && body.certificate_authority) throw authorityOwned()
      const row: PublicKeyRow = {
        tenant_id,
        fingerprint,
        data,
        name: body.name,
        username: body.username,
        filter: JSON.stringify(body.filter),
        created_at: iso(clock.now()),
        certificate_authority: body.certificate_authority ? 1 : 0,
        owner: owner?.id ?? null,
      }
      await audit
        .change(caller, async (inside, record) => {
          await inside.of(tenant_id).publicKeys.insert(row)
          record({ action: 'public-key.created', target: targetOf(row), after: audited(row) })
        })
        .catch(orConflict(stores, { message: 'The namespace has this key already.' }))
      return present(row, owner?.username)
    },
    async update({ params, body }, caller) {
      const { tenant_id } = caller
      checkPattern('username', body.username)
      const shown = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).publicKeys
        if ('hostname' in body.filter) checkPattern('filter.hostname', body.filter.hostname)
        const before = await mine.find(params.fingerprint)
        if (!before) throw new Failure('notFound')
        await checkFilter(inside, tenant_id, body.filter)
        const after = await changed(inside, before, body)
        const { name, username, filter, certificate_authority, owner } = after
        await mine.save(params.fingerprint, { name, username, filter, certificate_authority, owner })
        record({
          action: 'public-key.updated',
          target: targetOf(before),
          before: audited(before),
          after: audited(after),
        })
        return present(after, (await ownersOf(inside, tenant_id, [after])).get(owner))
      })
      tell(caller, params.fingerprint)
      return shown
    },
    async remove({ params }, caller) {
      await audit.change(caller, async (inside, record) => {
        const mine = inside.of(caller.tenant_id).publicKeys
        const row = await mine.find(params.fingerprint)
        if (!row) throw new Failure('notFound')
        await mine.remove(params.fingerprint)
        record({ action: 'public-key.removed', target: targetOf(row), before: audited(row) })
      })
      tell(caller, params.fingerprint)
    },
    addTag: ({ params, body }, caller) => changeFilter(caller, params.fingerprint, adding(body.tag)),
    setTags: ({ params, body }, caller) => changeFilter(caller, params.fingerprint, setting(body.tags)),
    removeTag: ({ params }, caller) =>
      changeFilter(caller, params.fingerprint, (_inside, _tenant, filter) => without(filter, params.tag)),
  }
}

async function changed(
  inside: Pick<StoresInTransaction, 'namespaces'>,
  before: PublicKeyRow,
  body: Parameters<Rules<'publicKeys'>['update']>[0]['body'],
): Promise<PublicKeyRow> {
  const { name, username, certificate_authority: signs } = body
  const certificate_authority = signs === undefined ? before.certificate_authority : flag(signs)
  const owner =
    body.owner === undefined
      ? before.owner
      : body.owner === ''
        ? null
        : (await memberNamed(inside, before.tenant_id, body.owner)).id
  if (owner !== null && certificate_authority === 1) throw authorityOwned()
  return { ...before, name, username, filter: JSON.stringify(body.filter), certificate_authority, owner }
}

async function checkFilter(
  inside: Pick<StoresInTransaction, 'of'>,
  tenant_id: string,
  filter: StoredFilter,
): Promise<void> {
  if ('hostname' in filter) checkPattern('filter.hostname', filter.hostname)
  else await requireTags(inside, tenant_id, filter.tags)
}

/** By id or user name. Nobody outside the namespace is looked up. */
async function memberNamed(
  inside: Pick<StoresInTransaction, 'namespaces'>,
  tenant_id: string,
  named: string,
): Promise<MemberRow> {
  const members = await inside.namespaces.members(tenant_id)
  const member =
    members.find(({ id }) => id === named) ?? members.find(({ username }) => username === named.toLowerCase())
  if (!member) throw new Failure('invalid', { message: 'owner: no member has this id or user name' })
  return member
}

async function ownersOf(
  inside: Pick<StoresInTransaction, 'namespaces'>,
  tenant_id: string,
  rows: readonly Pick<PublicKeyRow, 'owner'>[],
): Promise<ReadonlyMap<string | null, string>> {
  if (rows.every(({ owner }) => owner === null)) return new Map()
  const members = await inside.namespaces.members(tenant_id)
  return new Map(members.map(({ id, username }) => [id, username]))
}
