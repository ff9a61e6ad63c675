// Shortens the detail of an audit entry without hiding what it says: names and short values stay, and the
// longest values become their length and SHA-256, so that nobody chooses what is left out by filling an
// entry.

type Fields = Record<string, unknown>

interface DetailForm {
  readonly json: (value: unknown) => string
  /** In hex. */
  readonly sha256: (text: string) => string
}

/** A field of an object, or an item of an array, that can be shortened. */
interface Place {
  readonly holder: Fields
  readonly name: string
  readonly original: unknown
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
const inside = (value: unknown, name: string): unknown => (isFields(value) ? value[name] : undefined)

/** Replaces a value by the digest of its text, for a string, or of its JSON. */
function digestOf(value: unknown, { json, sha256 }: DetailForm): Fields {
  const text = typeof value === 'string' ? value : json(value)
  return { length: text.length, sha256: sha256(text) }
}

/** Texts, and arrays that hold no objects, at any depth. */
function longValues(holder: Fields, original: unknown): Place[] {
  return Object.entries(holder).flatMap(([name, value]): Place[] => {
    const before = inside(original, name) ?? value
    const isList = Array.isArray(value) && !value.some(isFields)
    if (typeof value === 'string' || isList) return [{ holder, name, original: before }]
    return isFields(value) ? longValues(value, before) : []
  })
}

/** Objects and arrays that are fields of the parts of a record, such as of `before` and `after`. */
function wholeFields(record: Fields, original: unknown): Place[] {
  return Object.entries(record).flatMap(([part, value]) =>
    isFields(value)
      ? Object.entries(value)
          .filter(([, field]) => isFields(field))
          .map(([name, field]) => ({
            holder: value,
            name,
            original: inside(inside(original, part), name) ?? field,
          }))
      : [],
  )
}

/**
 * A copy of `record` whose JSON has at most `most` characters, marked as `truncated`. Digests are those of
 * `original`, of which `record` may be a shortened copy.
 */
export function shortened(
  record: Fields,
  most: number,
  form: DetailForm,
  original: unknown = record,
): Fields {
  const { json } = form
  const copy: Fields = { ...structuredClone(record), truncated: true }
  let size = json(copy).length
  for (const places of [longValues, wholeFields]) {
    const found = places(copy, original)
      .map((place) => ({ ...place, size: json(place.holder[place.name]).length }))
      .toSorted((one, other) => other.size - one.size)
    for (const place of found) {
      if (size <= most) return copy
      const digest = digestOf(place.original, form)
      const saved = place.size - json(digest).length
      if (saved <= 0) continue
      place.holder[place.name] = digest
      size -= saved
    }
  }
  return size <= most ? copy : { truncated: true, ...digestOf(original, form) }
}
