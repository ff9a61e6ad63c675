// The filter grammar of lists: the base64 of a JSON array becomes groups of checked conditions, which a store
// turns into a query without further checks.
//
//   [ {"type":"property","params":{"name":"name","operator":"contains","value":"crane"}},
//     {"type":"property","params":{"name":"online","operator":"eq","value":true}},
//     {"type":"operator","params":{"name":"and"}} ]
//
// Conditions up to an operator element form one group, joined by it; conditions left without one are joined
// by `or`; groups are joined by `and`.
import { Failure } from '@hawser/contract/failures'

/** `texts` is a list of texts such as tags. `moment` is ISO 8601 text in UTC, which sorts by time. */
export type PropertyType = 'text' | 'number' | 'boolean' | 'moment' | 'texts'
export type Properties = Readonly<Record<string, PropertyType>>

/**
 * On texts, `contains` (ignoring case) with a single value finds it in one of them, and with several requires
 * each to be one of them. `eq` and `ne`: the value is, or is not, one of them.
 */
export interface Condition {
  readonly property: string
  readonly operator: 'contains' | 'eq' | 'ne' | 'gt' | 'lt'
  readonly value: string | number | boolean | string[]
}

export interface Group {
  readonly join: 'and' | 'or'
  readonly conditions: Condition[]
}

const mostConditions = 32
const mostElements = 2 * mostConditions
const mostValues = 32
const longestValue = 1024

export function parseFilter(text: string | undefined, properties: Properties): Group[] {
  if (text === undefined || text === '') return []
  const elements = decode(text)
  if (elements.length > mostElements) refuse(`there may be at most ${mostElements} elements`)

  const groups: Group[] = []
  let open: Condition[] = []
  let count = 0
  for (const element of elements) {
    const { type, params } = shape(element)
    if (type === 'property') {
      count += 1
      if (count > mostConditions) refuse(`there may be at most ${mostConditions} conditions`)
      open.push(condition(params, properties))
    } else if (type === 'operator') {
      const join = params.name
      if (join !== 'and' && join !== 'or')
        refuse(`${quoted(join)} is not a way to join conditions; use "and" or "or"`)
      // Older clients send an operator with no condition before it, which must not hide every row.
      if (open.length > 0) groups.push({ join, conditions: open })
      open = []
    } else {
      refuse(`${quoted(type)} is not a type of element; use "property" or "operator"`)
    }
  }
  if (open.length > 0) groups.push({ join: 'or', conditions: open })
  return groups
}

function decode(text: string): unknown[] {
  // A `+` that was not percent-encoded arrives as a space. Both base64 alphabets, with and without padding,
  // are accepted.
  const digits = text
    .replaceAll(/[ -]/g, '+')
    .replaceAll('_', '/')
    .replace(/={1,2}$/, '')
  if (!/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) refuse('it is not base64')
  const bytes = Buffer.from(digits, 'base64')
  let value: unknown
  try {
    value = JSON.parse(decodeText(bytes))
  } catch (cause) {
    refuse('it is not base64 of JSON', cause)
  }
  if (!Array.isArray(value)) refuse('it is not a JSON array')
  return value
}

/** Falls back to Latin-1, which browsers' `btoa` encodes: `é` is then one byte, which is not UTF-8. */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return bytes.toString('latin1')
  }
}

function shape(element: unknown): { type: unknown; params: Readonly<Record<string, unknown>> } {
  if (!isRecord(element)) refuse('each element must be an object with "type" and "params"')
  if (!isRecord(element.params)) refuse('each element must have an object "params"')
  return { type: element.type, params: element.params }
}

interface Reader {
  readonly takes: string
  readonly read: (value: unknown) => Condition['value'] | undefined
}

const text: Reader = { takes: 'a text', read: readText }
const textOrTexts: Reader = {
  takes: `a text, or 1 to ${mostValues} texts`,
  read: (value) => readText(value) ?? readTexts(value),
}
const number: Reader = { takes: 'a number', read: readNumber }
const boolean: Reader = { takes: 'true or false', read: (value) => readBoolean(value, exactly) }
const looseBoolean: Reader = { takes: 'true or false', read: (value) => readBoolean(value, loosely) }
const moment: Reader = {
  takes: 'seconds since 1970 or a date such as 2026-01-31T12:00:00Z',
  read: readMoment,
}

const operators: ReadonlyMap<
  unknown,
  { readonly as: Condition['operator']; readonly on: Readonly<Partial<Record<PropertyType, Reader>>> }
> = new Map([
  ['contains', { as: 'contains', on: { text, texts: textOrTexts } }],
  ['eq', { as: 'eq', on: { text, texts: text, number, boolean, moment } }],
  ['ne', { as: 'ne', on: { text, texts: text, number, boolean, moment } }],
  ['bool', { as: 'eq', on: { boolean: looseBoolean } }],
  ['gt', { as: 'gt', on: { number, moment } }],
  ['lt', { as: 'lt', on: { number, moment } }],
])

function condition(params: Readonly<Record<string, unknown>>, properties: Properties): Condition {
  const { name, operator, value } = params
  if (typeof name !== 'string') refuse('each condition must name a property')
  // Only own properties count: `constructor` is none of a resource.
  const type = Object.hasOwn(properties, name) ? properties[name] : undefined
  if (!type) refuse(`there is no property ${quoted(name)} to filter by`)
  const known = operators.get(operator)
  if (!known) refuse(`${quoted(operator)} is not an operator; use ${[...operators.keys()].join(', ')}`)
  const reader = known.on[type]
  if (!reader) refuse(`${quoted(operator)} cannot be asked of ${quoted(name)}`)
  const read = reader.read(value)
  if (read === undefined) refuse(`${quoted(operator)} of ${quoted(name)} takes ${reader.takes}`)
  return { property: name, operator: known.as, value: read }
}

function readText(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (value.length > longestValue) refuse(`a value may have at most ${longestValue} characters`)
  // PostgreSQL cannot store NUL in text.
  if (value.includes('\0')) refuse('a value may not contain a NUL character')
  return value
}

function readTexts(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > mostValues) return undefined
  const texts = value.map(readText)
  return texts.every((text) => text !== undefined) ? texts : undefined
}

function readNumber(value: unknown): number | undefined {
  const number =
    typeof value === 'string' && /^[+-]?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value
  // JSON allows 1e999, which is read as infinity.
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

const exactly: Readonly<Record<string, boolean>> = { true: true, false: false }
const loosely: Readonly<Record<string, boolean>> = {
  true: true,
  t: true,
  1: true,
  false: false,
  f: false,
  0: false,
}

function readBoolean(value: unknown, words: Readonly<Record<string, boolean>>): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return undefined
  const word = words === loosely ? value.toLowerCase() : value
  return Object.hasOwn(words, word) ? words[word] : undefined
}

const dateForm = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i
// Outside of these years ISO text gets a sign and no longer sorts by time.
const earliest_ms = Date.parse('0000-01-01T00:00:00.000Z')
const latest_ms = Date.parse('9999-12-31T23:59:59.999Z')

function readMoment(value: unknown): string | undefined {
  const seconds = readNumber(value)
  const ms = seconds === undefined ? readDate(value) : Math.round(seconds * 1000)
  return ms >= earliest_ms && ms <= latest_ms ? new Date(ms).toISOString() : undefined
}

/** `Date.parse` accepts almost any text that ends in a number, and reads a missing zone as the server's own. */
function readDate(value: unknown): number {
  const parts = typeof value === 'string' ? dateForm.exec(value) : null
  if (!parts) return NaN
  const [, day, time = '00:00', zone = 'Z'] = parts
  return Date.parse(`${day}T${time}${zone.toUpperCase()}`)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 64 ? `${text.slice(0, 64)}…` : text
}

function refuse(sentence: string, cause?: unknown): never {
  throw new Failure('invalid', { message: `filter: ${sentence}`, cause })
}
