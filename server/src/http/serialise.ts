// Answers as text, by the schema of the contract: only promised fields are written, so a hash or a secret in a row
// cannot leak. One serialiser per schema, however many operations answer with it.
import build from 'fast-json-stringify'
import type { Operation } from '@hawser/contract/operation'

type Schema = NonNullable<Operation['answer']>
export type Serialise = (value: unknown) => string

const made = new Map<Schema, Serialise>()

export function serialiser(schema: Schema): Serialise {
  const known = made.get(schema)
  if (known) return known
  // Compiled when first used, like the checks of input.
  let compiled: Serialise | undefined
  const serialise: Serialise = (value) => (compiled ??= build(schema as Parameters<typeof build>[0]))(value)
  made.set(schema, serialise)
  return serialise
}

export function listSerialiser(item: Schema): Serialise {
  const serialise = serialiser(item)
  return (items) => `[${(items as readonly unknown[]).map((value) => serialise(value)).join(',')}]`
}
