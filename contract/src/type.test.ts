// Our constructors of schemas against TypeBox's own: the same calls give the same schemas.
import TypeBox from 'typebox'
import { expect, test } from 'vitest'
import Type from './type.ts'

const calls: readonly ((type: typeof Type) => unknown)[] = [
  (type) => type.String(),
  (type) => type.String({ maxLength: 3, description: 'short' }),
  (type) => type.Integer({ minimum: 1, default: 1 }),
  (type) => type.Number(),
  (type) => type.Boolean({ default: false }),
  (type) => type.Null(),
  (type) => type.Unknown(),
  (type) => type.Unknown({ description: 'anything' }),
  (type) => type.Literal(''),
  (type) => type.Literal(3),
  (type) => type.Literal(true),
  (type) => type.Enum(['asc', 'desc'], { default: 'desc' }),
  (type) => type.Enum([-1, 30]),
  (type) => type.Array(type.String(), { maxItems: 3 }),
  (type) => type.Union([type.Null(), type.String()], { description: 'perhaps' }),
  (type) => type.Record(type.String(), type.Unknown()),
  (type) => type.Object({}),
  (type) => type.Object({ only: type.Optional(type.Null()) }),
  (type) =>
    type.Object(
      { a: type.String(), b: type.Optional(type.String({ maxLength: 3 })) },
      { additionalProperties: false },
    ),
  (type) =>
    type.Omit(
      type.Object(
        { a: type.String(), b: type.Optional(type.Null()), c: type.Null() },
        { description: 'all' },
      ),
      ['a'],
    ),
  (type) => type.Omit(type.Object({ a: type.String(), b: type.Optional(type.Null()) }), ['a']),
]

test.each(calls.map((call) => ({ call, text: call.toString().replace('(type) => ', '') })))(
  '$text',
  ({ call }) => {
    // As text, so that the order counts and the marks of TypeBox do not.
    expect(JSON.stringify(call(Type), undefined, 1)).toBe(
      JSON.stringify(call(TypeBox as typeof Type), undefined, 1),
    )
  },
)

test('what is optional stays so in an object made of another’s properties', () => {
  const whole = Type.Object({ a: Type.Optional(Type.String()), b: Type.String() })
  expect(Type.Object({ ...whole.properties, c: Type.Null() }).required).toEqual(['b', 'c'])
})
