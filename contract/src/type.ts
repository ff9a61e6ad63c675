// Constructors of schemas: plain JSON Schema with TypeBox's types, returning what its functions of the same
// name return (type.test.ts). TypeBox itself is nearly four hundred modules, too much to load at every start
// for a dozen small functions.
import type * as TypeBox from 'typebox'
import type { TProperties, TSchema, TSchemaOptions } from 'typebox'
import { defined } from './defined.ts'

export type { Static, TArray, TObject, TSchema } from 'typebox'

type Constructors = Pick<
  typeof TypeBox.Type,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Omit'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
>

/** Marks optional fields for `Object`; non-enumerable, so no part of the schema. */
const optional = '~optional'
const isOptional = (schema: TSchema): boolean => optional in schema

function object(properties: TProperties, options: TSchemaOptions = {}): TSchema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]!))
  return {
    type: 'object',
    ...defined({ required: required.length > 0 ? required : undefined }),
    properties,
    ...options,
  }
}

const constructors = {
  Array: (items: TSchema, options?: TSchemaOptions) => ({ type: 'array', items, ...options }),
  Boolean: (options?: TSchemaOptions) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly unknown[], options?: TSchemaOptions) => ({ enum: values, ...options }),
  Integer: (options?: TSchemaOptions) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: TSchemaOptions) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: (options?: TSchemaOptions) => ({ type: 'null', ...options }),
  Number: (options?: TSchemaOptions) => ({ type: 'number', ...options }),
  Object: object,
  Omit: ({ properties }: { properties: TProperties }, names: readonly string[], options?: TSchemaOptions) =>
    object(Object.fromEntries(Object.entries(properties).filter(([name]) => !names.includes(name))), options),
  Optional: (schema: TSchema) => Object.defineProperty({ ...schema }, optional, { value: true }),
  Record: (_: TSchema, values: TSchema, options?: TSchemaOptions) => ({
    type: 'object',
    patternProperties: { '^.*$': values },
    ...options,
  }),
  String: (options?: TSchemaOptions) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly TSchema[], options?: TSchemaOptions) => ({ anyOf, ...options }),
  Unknown: (options?: TSchemaOptions) => ({ ...options }),
}

const Type = constructors as unknown as Constructors
export default Type
