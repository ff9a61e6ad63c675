// Checks input against the contract's schemas with ajv, without coercion in bodies. Query values are always
// text on the wire, so numbers and booleans are read from them first, strictly: `1e1`, ` 1` and `0x1` are not
// integers. Rules get only what the contract names, at every depth.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Operation } from '@hawser/contract/operation'

// A default is filled in where a field is absent; unknown fields are no error, and `known` drops them.
const options = {
  strict: false,
  useDefaults: true,
  formats: { 'date-time': true },
  $data: false,
  // Errors carry the schema of their field, which states its rule.
  verbose: true,
} as const
/** PostgreSQL cannot store NUL in text; it is refused for both databases. */
const nul = {
  keyword: 'nul',
  type: 'string',
  schemaType: 'boolean',
  validate: (_: boolean, text: string) => !text.includes('\0'),
  error: { message: 'may not contain a NUL character' },
} as const
const ajv = new Ajv(options).addKeyword(nul)
const thorough = new Ajv({ ...options, allErrors: true }).addKeyword(nul)

/** After a misfit, `errors` has the reasons. */
export interface Check {
  (data: unknown): boolean
  errors?: ErrorObject[] | null
}

/** Compiled on first use, which saves a tenth of the start. */
export function checker(schema: NonNullable<Operation['body']>, everyField = false): Check {
  let compiled: ValidateFunction | undefined
  const check: Check = (data) => {
    compiled ??= (everyField ? thorough : ajv).compile(withoutNul(schema) as object)
    const fits = compiled(data)
    check.errors = compiled.errors ?? null
    return fits
  }
  return check
}

type Schema = NonNullable<Operation['body']>
interface Described {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}

/**
 * Copies, of a value that fits the schema, what the schema names, or everything where the schema allows
 * anything.
 */
export function known(schema: Schema): (value: unknown) => unknown {
  const { properties, patternProperties, items, anyOf } = schema as Described
  if (anyOf) {
    const forms = anyOf.map((form) => ({ fits: checker(form), copy: known(form) }))
    return (value) => forms.find(({ fits }) => fits(value))?.copy(value)
  }
  if (items) {
    const copy = known(items)
    return (list) => (list as unknown[]).map(copy)
  }
  if (properties) {
    const fields = Object.entries(properties).map(([name, inner]) => [name, known(inner)] as const)
    return (value) => {
      const given = value as Readonly<Record<string, unknown>>
      return Object.fromEntries(
        fields.flatMap(([name, copy]) => (Object.hasOwn(given, name) ? [[name, copy(given[name])]] : [])),
      )
    }
  }
  const [free] = Object.values(patternProperties ?? {})
  if (!free) return (value) => value
  const copy = known(free)
  return (value) =>
    Object.fromEntries(Object.entries(value as object).map(([name, inner]) => [name, copy(inner)]))
}

/** The same schema, for texts without NUL. */
function withoutNul(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutNul)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withoutNul(value)]))
  return inner.type === 'string' ? { ...inner, nul: false } : inner
}

/**
 * Reads the integers and booleans of a query in place. What is not one stays text, and the check refuses it.
 */
export function queryReader(
  schema: NonNullable<Operation['query']>,
): (query: Record<string, unknown>) => void {
  const typed = Object.entries(schema.properties).flatMap(([name, property]) => {
    const { type } = property as { type?: string }
    return type === 'integer' || type === 'boolean' ? [{ name, type }] : []
  })
  return (query) => {
    for (const { name, type } of typed) {
      const text = query[name]
      if (typeof text !== 'string') continue
      if (type === 'integer' && /^-?\d{1,15}$/.test(text)) query[name] = Number(text)
      if (type === 'boolean' && (text === 'true' || text === 'false')) query[name] = text === 'true'
    }
  }
}

/** The top-level fields that errors are about. */
export function fieldsOf(errors: readonly ErrorObject[]): string[] {
  const names = errors.map((error) => {
    const [, field] = error.instancePath.split('/')
    return (
      field ||
      (error.keyword === 'required' ? (error.params as { missingProperty: string }).missingProperty : '')
    )
  })
  return [...new Set(names.filter(Boolean))]
}

/** ajv's own words are for authors of schemas. A field with a pattern states its rule in its description. */
const wording: Record<string, (params: Record<string, unknown>, rule?: string) => string> = {
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).join(', ')}`,
  minLength: ({ limit }) => (limit === 1 ? 'may not be empty' : `needs at least ${String(limit)} characters`),
  maxLength: ({ limit }) => `may have at most ${String(limit)} characters`,
  minItems: ({ limit }) => `needs at least ${String(limit)}`,
  maxItems: ({ limit }) => `may have at most ${String(limit)}`,
  uniqueItems: () => 'may not repeat itself',
  minimum: ({ limit }) => `must be ${String(limit)} or more`,
  maximum: ({ limit }) => `must be ${String(limit)} or less`,
  type: ({ type }) => `must be of the type ${String(type)}`,
  pattern: (_, rule) =>
    rule
      ? `must be ${rule.charAt(0).toLowerCase()}${rule.slice(1).replace(/\.$/, '')}`
      : 'has characters or a length that it may not have',
  anyOf: () => 'has none of the forms that it may have',
}

const ruleOf = ({ parentSchema }: ErrorObject): string | undefined =>
  (parentSchema as { description?: string } | undefined)?.description

/** Names the field; the last error sums up where a choice was given. */
export function sentenceOf(errors: readonly ErrorObject[]): string {
  const error = errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0]
  if (!error) return 'The request is not valid.'
  const field = error.instancePath.slice(1).replaceAll('/', '.')
  const params = error.params as Record<string, unknown>
  if (error.keyword === 'required')
    return `${field ? `${field}.` : ''}${String(params.missingProperty)}: is needed`
  return `${field || 'body'}: ${wording[error.keyword]?.(params, ruleOf(error)) ?? error.message ?? 'is not valid'}`
}
