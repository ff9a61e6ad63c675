// How audit entries are chained: each has the SHA-256 of the entry before it and of its own text, so that
// nobody can change, remove or insert one without changing all that follow. The server signs the newest hash.
// The server writes the chain with these functions, and `hawser audit verify` checks it with the same ones, far
// from the server.

export const firstHash = '0'.repeat(64)

export interface ChainedEntry {
  readonly tenant_id: string
  readonly seq: number
  readonly at: string
  readonly action: string
  readonly actor: { readonly kind: string; readonly id: string; readonly name: string }
  readonly source: string
  readonly request_id: string
  readonly target: { readonly kind: string; readonly id: string; readonly name: string }
  readonly detail: Readonly<Record<string, unknown>>
}

/** The columns of an entry, in the database and in exports. */
export const entryColumns = [
  'seq',
  'at',
  'action',
  'actor_kind',
  'actor_id',
  'actor_name',
  'source',
  'request_id',
  'target_kind',
  'target_id',
  'target_name',
  'detail',
  'hash',
] as const

/** JSON with sorted keys and without white space: the same value always has the same text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  // A loop, because every change waits for it.
  let fields = ''
  for (const name of Object.keys(value).toSorted()) {
    const field = (value as Record<string, unknown>)[name]
    if (field === undefined) continue
    fields += `${fields === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(field)}`
  }
  return `{${fields}}`
}

/**
 * The text whose SHA-256, in hex, is the hash of the entry: the hash before it and its canonical JSON,
 * written out here because every change waits for it. `detail`: the detail's canonical JSON, if known.
 */
export function hashedText(
  previous: string,
  entry: ChainedEntry,
  detail = canonicalJson(entry.detail),
): string {
  const text = (value: string | number): string => JSON.stringify(value)
  const named = ({ kind, id, name }: ChainedEntry['actor']): string =>
    `{"id":${text(id)},"kind":${text(kind)},"name":${text(name)}}`
  const { tenant_id, seq, at, action, actor, source, request_id, target } = entry
  return (
    `${previous}\n{"action":${text(action)},"actor":${named(actor)},"at":${text(at)},"detail":${detail},` +
    `"request_id":${text(request_id)},"seq":${text(seq)},"source":${text(source)},` +
    `"target":${named(target)},"tenant_id":${text(tenant_id)}}`
  )
}

/** Where the log of a namespace began and how far it had come at a moment. */
export function signedText(head: {
  readonly tenant_id: string
  readonly seq: number
  readonly hash: string
  readonly at: string
  readonly first_seq: number
  readonly first_hash: string
  readonly signed_at: string
}): string {
  const { tenant_id, seq, hash, at, first_seq, first_hash, signed_at } = head
  return `hawser audit head\n${canonicalJson({ tenant_id, seq, hash, at, first_seq, first_hash, signed_at })}`
}
