// Reads the fields of a document or row that another program wrote. A value may be plain (PostgreSQL, or
// JSON) or MongoDB's Extended JSON, relaxed or canonical, of any age:
//   {"$oid": "65f0…"}   {"$numberInt": "1"}  {"$numberLong": "1"}  {"$numberDouble": "1.5"}
//   {"$date": "2024-01-31T12:00:00Z"}  {"$date": {"$numberLong": "1706702400000"}}  {"$date": 1706702400000}
//   {"$binary": {"base64": "…", "subType": "00"}}  {"$binary": "…", "$type": "00"}
// An absent value, and null, read as empty; a value of another type is refused with its name and place.
import { Failure } from '@hawser/contract/failures'

export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Before this Go's zero time and other nonsense. */
const earliest_ms = Date.UTC(1971)
const latest_ms = Date.UTC(9999)

export function reader(where: string, fields: Fields) {
  const refuse = (name: string, wanted: string): never => {
    throw new Failure('invalid', { message: `${where}: "${name}" is not ${wanted}.` })
  }
  const own = (name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined)

  function text(name: string): string {
    const value = own(name)
    if (value === undefined || value === null) return ''
    if (typeof value === 'string') return value
    if (isFields(value) && typeof value['$oid'] === 'string') return value['$oid']
    return refuse(name, 'a text')
  }

  function number(name: string): number {
    const value = own(name)
    if (value === undefined || value === null) return 0
    const found = isFields(value)
      ? (value['$numberInt'] ?? value['$numberLong'] ?? value['$numberDouble'])
      : value
    const read = typeof found === 'string' && found.trim() !== '' ? Number(found) : found
    return typeof read === 'number' && Number.isFinite(read) ? read : refuse(name, 'a number')
  }

  return {
    where,
    text,
    number,
    count: Object.keys(fields).length,
    has: (name: string): boolean => own(name) !== undefined && own(name) !== null,

    flag(name: string, otherwise = false): boolean {
      const value = own(name) ?? otherwise
      return typeof value === 'boolean' ? value : refuse(name, 'true or false')
    },

    /** ISO 8601; undefined for one that was never set. */
    moment(name: string): string | undefined {
      let value = own(name)
      if (value === undefined || value === null) return undefined
      if (isFields(value) && '$date' in value) value = value['$date']
      if (isFields(value) && typeof value['$numberLong'] === 'string') value = Number(value['$numberLong'])
      const ms =
        value instanceof Date
          ? value.getTime()
          : typeof value === 'number'
            ? value
            : typeof value === 'string'
              ? Date.parse(value)
              : NaN
      if (Number.isNaN(ms)) return refuse(name, 'a date')
      return ms < earliest_ms || ms > latest_ms ? undefined : new Date(ms).toISOString()
    },

    bytes(name: string): Buffer {
      const value = own(name)
      if (value === undefined || value === null) return Buffer.alloc(0)
      if (Buffer.isBuffer(value)) return value
      const inner = isFields(value) ? value['$binary'] : value
      const base64 = isFields(inner) ? inner['base64'] : inner
      return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : refuse(name, 'binary')
    },

    /** Empty fields, if there is no such document. */
    inner(name: string) {
      const value = own(name)
      if (value !== undefined && value !== null && !isFields(value)) refuse(name, 'an object')
      return reader(where, isFields(value) ? value : {})
    },

    list(name: string): readonly unknown[] {
      const value = own(name) ?? []
      return Array.isArray(value) ? value : refuse(name, 'a list')
    },

    texts(name: string): string[] {
      return this.list(name).map((value) => {
        const read = isFields(value) ? value['$oid'] : value
        return typeof read === 'string' ? read : refuse(name, 'a list of texts')
      })
    },
  }
}

export type Reader = ReturnType<typeof reader>
