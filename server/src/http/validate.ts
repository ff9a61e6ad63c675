// Checks input against the contract's schemas with ajv, nothing coerced in bodies: a number is not a string. Query
// values are always text on the wire, so numbers and booleans are read from them first, strictly: `1e1`, ` 1` and `0x1`
// are not integers.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Operation } from '@hawser/contract/operation'

// A default is filled in where a field is absent; unknown fields are left alone and never read.
const options = { strict: false, useDefaults: true, formats: { 'date-time': true }, $data: false } as const
const ajv = new Ajv(options)
const thorough = new Ajv({ ...options, allErrors: true })

export type Check = ValidateFunction

export function checker(schema: NonNullable<Operation['body']>, everyField = false): Check {
  return (everyField ? thorough : ajv).compile(schema)
}

/** Reads the integers and booleans of a query in place. What is not one stays text, and the check refuses it. */
export function queryReader(schema: NonNullable<Operation['query']>): (query: Record<string, unknown>) => void {
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
    return field || (error.keyword === 'required' ? (error.params as { missingProperty: string }).missingProperty : '')
  })
  return [...new Set(names.filter(Boolean))]
}

/** One sentence about the first error, naming the field. */
export function sentenceOf(errors: readonly ErrorObject[]): string {
  const [error] = errors
  if (!error) return 'The request is not valid.'
  const field = error.instancePath.slice(1).replaceAll('/', '.')
  if (error.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string }
    return `${field ? `${field}.` : ''}${missingProperty}: is needed`
  }
  if (error.keyword === 'enum') return `${field}: must be one of ${(error.params as { allowedValues: unknown[] }).allowedValues.join(', ')}`
  return `${field || 'body'}: ${error.message ?? 'is not valid'}`
}
