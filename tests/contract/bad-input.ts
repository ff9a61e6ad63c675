// Input that does not fit, made from the contract's schemas: for every field whatever its schema refuses out
// of a box of odd values, and what lies just outside the limits it states. Each piece is wrong in one place
// only, so that the refusal must name that place.
import { Ajv } from 'ajv'
import type { Operation } from '@hawser/contract/operation'

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
}

export interface Bad {
  readonly what: string
  /** The whole body, or the value of the query field. */
  readonly value: unknown
  /** The field at the top of the body that is wrong, and the one that is meant within it. */
  readonly top: string
  readonly field: string
}

const ajv = new Ajv({ strict: false, formats: { 'date-time': true } })
const oddValues: readonly unknown[] = [
  42,
  -1,
  1.5,
  1e300,
  true,
  '',
  'non sense',
  null,
  [],
  ['non sense'],
  [42],
  {},
  { nonsense: 1 },
]

/** Texts that have broken databases and parsers before. */
export const oddTexts: readonly string[] = [
  '\u0000',
  'before\u0000after',
  '\ud800',
  '🦀',
  "' or 1=1 --",
  '%',
  '\\',
  'x'.repeat(50_000),
]

/** Bodies that are JSON and no object. */
export const noObjects: readonly string[] = ['[]', '[{}]', '42', '"text"', 'true', 'null']
/** Bodies that are no JSON. */
export const noJson: readonly string[] = ['{', '{"a":1,}', "{'a':1}", 'garbage', '{"a":1}{"b":2}', '\u0000']

export function isObjectSchema(schema: unknown): boolean {
  return (schema as Schema | undefined)?.type === 'object'
}

/** One field of the example's body is missing or wrong. */
export function badBodies(op: Operation, body: unknown): Bad[] {
  return replaced(op.body as unknown as Schema, body, wrongValues, true)
}

/** One field of the example's body is a text that is odd, whether or not it fits. */
export function oddBodies(op: Operation, body: unknown): Bad[] {
  const values = (schema: Schema): unknown[] => {
    if (schema.type === 'array') return schema.items ? values(schema.items).map((value) => [value]) : []
    return schema.anyOf ? schema.anyOf.flatMap(values) : schema.type === 'string' ? [...oddTexts] : []
  }
  return replaced(op.body as unknown as Schema, body, values, false)
}

/**
 * The example with one field after the other replaced by what is made from its schema, or left out where it
 * is needed.
 */
function replaced(
  schema: Schema,
  part: unknown,
  values: (schema: Schema) => unknown[],
  leaveOut: boolean,
): Bad[] {
  const example = (part ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(schema.properties ?? {}).flatMap(([field, inner]) => {
    const put = (value: unknown) => ({ ...example, [field]: value })
    const { [field]: present, ...without } = example
    const needed = leaveOut && schema.required?.includes(field) && inner.default === undefined
    return [
      ...values(inner).map((value) => ({
        what: `${field}: ${shown(value)}`,
        value: put(value),
        top: field,
        field,
      })),
      ...(needed ? [{ what: `no ${field}`, value: without, top: field, field }] : []),
      ...replaced(inner, present, values, leaveOut).map((deeper) => ({
        ...deeper,
        what: `${field}.${deeper.what}`,
        value: put(deeper.value),
        top: field,
      })),
    ]
  })
}

/** One field of a query is wrong, as text. */
export function badQueries(op: Operation): Bad[] {
  return Object.entries(op.query?.properties ?? {}).flatMap(([field, schema]) =>
    wrongTexts(schema as unknown as Schema).map((value) => ({
      what: `${field}=${shown(value)}`,
      value,
      top: field,
      field,
    })),
  )
}

function wrongTexts(schema: Schema): string[] {
  if (schema.type === 'integer') {
    const { minimum = 0, maximum = 0 } = schema
    return [
      String(minimum - 1),
      String(maximum + 1),
      '1.5',
      'abc',
      '',
      ' 1',
      '1e1',
      '0x1',
      '+1',
      '1,2',
      'NaN',
      'true',
      '1'.repeat(400),
    ]
  }
  if (schema.type === 'boolean') return ['1', '0', 'yes', 'TRUE', '', 'null']
  return wrongValues(schema).filter((value) => typeof value === 'string')
}

function wrongValues(schema: Schema): unknown[] {
  const fits = ajv.compile(schema)
  return [...oddValues, ...atLimits(schema)].filter((value) => !fits(value))
}

/** Values just outside what the schema says; where it says nothing, none. */
function atLimits(schema: Schema): unknown[] {
  const values: unknown[] = (schema.anyOf ?? []).flatMap(atLimits)
  if (schema.type === 'string') {
    if (schema.maxLength !== undefined) values.push('a'.repeat(schema.maxLength + 1))
    if (schema.minLength !== undefined && schema.minLength > 0) values.push('a'.repeat(schema.minLength - 1))
    if (schema.pattern !== undefined) values.push('a'.repeat(1000), 'a\n', 'ä', 'a b', '\u0000')
  }
  if (schema.minimum !== undefined) values.push(schema.minimum - 1)
  if (schema.maximum !== undefined) values.push(schema.maximum + 1)
  if (schema.enum)
    values.push('nonsense', String(schema.enum[0]).toUpperCase(), `${String(schema.enum[0])} `, [
      schema.enum[0],
    ])
  if (schema.type === 'array') {
    const item = (index: number) =>
      schema.items?.type === 'object' ? { uid: `item-${index}` } : `item-${index}`
    const list = (length: number) => Array.from({ length }, (_, index) => item(index))
    if (schema.maxItems !== undefined) values.push(list(schema.maxItems + 1))
    if (schema.minItems !== undefined && schema.minItems > 0) values.push(list(schema.minItems - 1))
    if (schema.uniqueItems) values.push([item(0), item(0)])
    values.push(...(schema.items ? wrongValues(schema.items).map((value) => [value]) : []))
  }
  return values
}

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length})` : text
}

const base64 = (text: string) => btoa(text)
const condition = (params: unknown) => base64(JSON.stringify([{ type: 'property', params }]))

/** Filters of a list that are none. */
export const badFilters: Readonly<Record<string, string>> = {
  'not base64': '%%%',
  'a lone letter': 'A',
  'not JSON': base64('nonsense'),
  'an object': base64('{}'),
  'a number': base64('42'),
  'an array of nothing in particular': base64('[1]'),
  'an unknown type': base64('[{"type":"nonsense","params":{}}]'),
  'no params': base64('[{"type":"property"}]'),
  'an unknown property': condition({ name: 'nonsense', operator: 'eq', value: 'x' }),
  'a property of all objects': condition({ name: '__proto__', operator: 'eq', value: 'x' }),
  'an unknown operator': condition({ name: 'name', operator: 'like', value: 'x' }),
  'a value of the wrong type': condition({ name: 'name', operator: 'contains', value: 5 }),
  'a join that is none': base64('[{"type":"operator","params":{"name":"xor"}}]'),
}
