// Public keys of a namespace. A key is parsed before it is stored. Keys that cannot be parsed, DSA keys and
// short RSA keys are refused, and so are patterns that do not compile.
import { createHash } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import type { PublicKey } from '@hawser/contract/public-keys'
import { iso, type Clock } from '../../kit/clock.ts'
import type { PublicKeyRow } from '../../storage/public-keys.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { parseFilter } from './filters.ts'
import { checkPattern } from './patterns.ts'
import type { Rules } from '../callers/rules.ts'
import { filterTags, readFilter, requireTags, type StoredFilter } from './tag-use.ts'

/** Reads a public-key line; the ssh package implements it. */
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
  'filter.hostname': 'text',
} as const

/** The fingerprint of a public-key line, as OpenSSH shows it. */
export function fingerprintSha256(line: string): string {
  const [, blob = ''] = line.split(' ')
  const digest = createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64')
  return `SHA256:${digest.replace(/=+$/, '')}`
}

const present = (row: PublicKeyRow): PublicKey => ({
  ...row,
  fingerprint_sha256: fingerprintSha256(Buffer.from(row.data, 'base64').toString()),
  filter: readFilter(row.filter),
  certificate_authority: row.certificate_authority === 1,
})

/** A key that is strong enough, without its comment. Throws a Failure that names the field. */
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

/** The same, in the form of a row. */
export function storableKey(keys: KeyReader, text: string): { data: string; fingerprint: string } {
  const { line, fingerprint } = soundKey(keys, text, 'data')
  return { data: Buffer.from(line).toString('base64'), fingerprint }
}

export function publicKeys({
  stores,
  clock,
  keys,
}: {
  stores: Stores
  clock: Clock
  keys: KeyReader
}): Rules<'publicKeys'> {
  async function checkFilter(
    inside: Pick<StoresInTransaction, 'of'>,
    tenant_id: string,
    filter: StoredFilter,
  ): Promise<void> {
    if ('hostname' in filter) checkPattern('filter.hostname', filter.hostname)
    else await requireTags(inside, tenant_id, filter.tags)
  }

  function changeFilter(
    tenant_id: string,
    fingerprint: string,
    next: (inside: StoresInTransaction, filter: StoredFilter) => Promise<StoredFilter> | StoredFilter,
  ): Promise<void> {
    return stores.transaction(async (inside) => {
      const mine = inside.of(tenant_id).publicKeys
      const row = await mine.find(fingerprint)
      if (!row) throw new Failure('notFound')
      await mine.save(fingerprint, { filter: JSON.stringify(await next(inside, readFilter(row.filter))) })
    })
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores
        .of(tenant_id)
        .publicKeys.list(parseFilter(query.filter, filterable), query)
      return { items: items.map(present), total }
    },
    async create({ body }, { tenant_id }) {
      const { data, fingerprint } = storableKey(keys, Buffer.from(body.data, 'base64').toString('utf8'))
      checkPattern('username', body.username)
      await checkFilter(stores, tenant_id, body.filter)
      const row: PublicKeyRow = {
        tenant_id,
        fingerprint,
        data,
        name: body.name,
        username: body.username,
        filter: JSON.stringify(body.filter),
        created_at: iso(clock.now()),
        certificate_authority: body.certificate_authority ? 1 : 0,
      }
      try {
        await stores.of(tenant_id).publicKeys.insert(row)
      } catch (error) {
        if (stores.isDuplicate(error))
          throw new Failure('conflict', { message: 'The namespace has this key already.' })
        throw error
      }
      return present(row)
    },
    async update({ params, body }, { tenant_id }) {
      checkPattern('username', body.username)
      return stores.transaction(async (inside) => {
        const mine = inside.of(tenant_id).publicKeys
        if ('hostname' in body.filter) checkPattern('filter.hostname', body.filter.hostname)
        if (!(await mine.find(params.fingerprint))) throw new Failure('notFound')
        await checkFilter(inside, tenant_id, body.filter)
        const { name, username, certificate_authority } = body
        await mine.save(params.fingerprint, {
          name,
          username,
          filter: JSON.stringify(body.filter),
          ...(certificate_authority === undefined
            ? {}
            : { certificate_authority: certificate_authority ? 1 : 0 }),
        })
        return present((await mine.find(params.fingerprint))!)
      })
    },
    async remove({ params }, { tenant_id }) {
      if (!(await stores.of(tenant_id).publicKeys.remove(params.fingerprint))) throw new Failure('notFound')
    },
    addTag: ({ params, body }, { tenant_id }) =>
      changeFilter(tenant_id, params.fingerprint, (inside, filter) =>
        filterTags.add(inside, tenant_id, filter, body.tag),
      ),
    setTags: ({ params, body }, { tenant_id }) =>
      changeFilter(tenant_id, params.fingerprint, (inside, filter) =>
        filterTags.set(inside, tenant_id, filter, body.tags),
      ),
    removeTag: ({ params }, { tenant_id }) =>
      changeFilter(tenant_id, params.fingerprint, (_, filter) => filterTags.remove(filter, params.tag)),
  }
}
