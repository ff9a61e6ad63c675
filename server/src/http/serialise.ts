// Answers as text, by the schema of the contract: only promised fields are written, so a hash or a secret in
// a row cannot leak. One serialiser per schema.
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

const joined_characters = 16 * 1024

/** A long answer piece by piece: text as it comes, an array item by item, small ones joined. */
export async function* pieces(
  schema: Schema | undefined,
  items: AsyncIterable<unknown>,
): AsyncGenerator<string> {
  const each = schema && serialiser((schema as unknown as { items: Schema }).items)
  let waiting = each ? '[' : ''
  let separator = ''
  for await (const item of items) {
    waiting += each ? separator + each(item) : (item as string)
    separator = ','
    if (waiting.length < joined_characters) continue
    yield waiting
    waiting = ''
  }
  if (each) waiting += ']'
  if (waiting !== '') yield waiting
}
