// Constructors of schemas: plain JSON Schema with the types of TypeBox. Only the types are TypeBox's. At run
// time it is nearly four hundred modules, which every start of the command, the server and a test file would
// load for a dozen small functions. These functions return what TypeBox's functions of the same name return
// (type.test.ts).
import type * as TypeBox from 'typebox'
import type { TProperties, TSchema, TSchemaOptions } from 'typebox'

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

/** A non-enumerable property that marks optional fields for `Object`; it is no part of the schema. */
const optional = '~optional'
const isOptional = (schema: TSchema): boolean => optional in schema

function object(properties: TProperties, options: TSchemaOptions = {}): TSchema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]!))
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
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
