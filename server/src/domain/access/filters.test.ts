// The filter grammar, by tables of examples, and by whatever else may arrive: it must end in checked groups
// or in a failure that names what is wrong, never in another error.
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { parseFilter, type Properties } from './filters.ts'
import { times } from '../../../../tests/harness/tier.ts'

// Thousands of examples may take a while on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const properties: Properties = {
  name: 'text',
  'info.id': 'text',
  tags: 'texts',
  online: 'boolean',
  age: 'number',
  last_seen: 'moment',
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
const property = (name: unknown, operator: unknown, value: unknown) => ({
  type: 'property',
  params: { name, operator, value },
})
const join = (name: unknown) => ({ type: 'operator', params: { name } })
const parse = (...elements: unknown[]) => parseFilter(encode(elements), properties)
/** The one condition that a filter of one element gives. */
const one = (name: unknown, operator: unknown, value: unknown) =>
  parse(property(name, operator, value))[0]!.conditions[0]!

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof Failure && error.kind === 'invalid') return error.message
    throw error
  }
  throw new Error('it was not refused')
}

describe('groups', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((value) => property('name', 'eq', value))
  const shown = (...elements: unknown[]) =>
    parse(...elements).map((group) => [group.join, ...group.conditions.map(({ value }) => value)])

  test('no filter, an empty filter and an empty array ask for everything', () => {
    expect(parseFilter(undefined, properties)).toEqual([])
    expect(parseFilter('', properties)).toEqual([])
    expect(parse()).toEqual([])
  })

  test('conditions without an operator are joined by or', () => {
    expect(shown(a, b)).toEqual([['or', 'a', 'b']])
  })

  test('an operator closes the group before it, and what follows is a group of its own', () => {
    expect(shown(a, b, join('and'))).toEqual([['and', 'a', 'b']])
    expect(shown(a, b, join('and'), c, d)).toEqual([
      ['and', 'a', 'b'],
      ['or', 'c', 'd'],
    ])
    expect(shown(a, join('or'), b, c, join('and'))).toEqual([
      ['or', 'a'],
      ['and', 'b', 'c'],
    ])
  })

  test('an operator with nothing before it adds no group', () => {
    expect(shown(join('and'))).toEqual([])
    expect(shown(join('and'), a, join('or'), join('or'))).toEqual([['or', 'a']])
  })
})

describe('encoding', () => {
  // `~~~???` gives both `+` and `/` in base64.
  const elements = [property('name', 'contains', '~~~???>>>')]
  const wanted = [
    { join: 'or', conditions: [{ property: 'name', operator: 'contains', value: '~~~???>>>' }] },
  ]
  const standard = encode(elements)

  test('standard and url-safe base64, padded or not, and spaces that were plus signs', () => {
    expect(standard).toMatch(/\+.*\/|\/.*\+/)
    const forms = [
      standard,
      standard.replaceAll('+', '-').replaceAll('/', '_'),
      standard.replaceAll('+', ' '),
    ]
    for (const form of forms) {
      expect(parseFilter(form, properties)).toEqual(wanted)
      expect(parseFilter(form.replaceAll('=', ''), properties)).toEqual(wanted)
    }
  })

  test('text beyond ASCII, also as a browser’s bare btoa sends it', () => {
    expect(one('name', 'eq', 'grúa 🏗')).toMatchObject({ value: 'grúa 🏗' })
    const latin1 = Buffer.from(JSON.stringify([property('name', 'eq', 'grúa')]), 'latin1').toString('base64')
    expect(parseFilter(latin1, properties)[0]!.conditions[0]!.value).toBe('grúa')
  })

  test.each([
    ['a character outside the alphabet', '$$$$', 'filter: it is not base64'],
    ['a length that base64 cannot have', 'AAAAA', 'filter: it is not base64'],
    ['padding in the middle', 'AA==AA==', 'filter: it is not base64'],
    ['bytes that are not JSON', Buffer.from('[{').toString('base64'), 'filter: it is not base64 of JSON'],
    ['a JSON object', encode({}), 'filter: it is not a JSON array'],
    ['null', encode(null), 'filter: it is not a JSON array'],
  ])('%s is refused', (_, text, message) => {
    expect(refusal(() => parseFilter(text, properties))).toBe(message)
  })
})

describe('values', () => {
  test.each([
    ['name', 'contains', 'Crane', 'Crane'],
    ['name', 'eq', '', ''],
    ['info.id', 'ne', 'debian', 'debian'],
    ['tags', 'contains', 'pier', 'pier'],
    ['tags', 'contains', ['pier', 'north'], ['pier', 'north']],
    ['tags', 'eq', 'pier', 'pier'],
    ['tags', 'ne', 'pier', 'pier'],
    ['online', 'eq', true, true],
    ['online', 'eq', 'false', false],
    ['online', 'ne', 'true', true],
    ['age', 'eq', 3, 3],
    ['age', 'ne', '-3.5', -3.5],
    ['age', 'gt', '12', 12],
    ['age', 'lt', 1e9, 1e9],
    ['last_seen', 'gt', 1_700_000_000, '2023-11-14T22:13:20.000Z'],
    ['last_seen', 'lt', '1700000000', '2023-11-14T22:13:20.000Z'],
    ['last_seen', 'gt', 1_700_000_000.25, '2023-11-14T22:13:20.250Z'],
    ['last_seen', 'gt', '2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['last_seen', 'gt', '2024-02-29T12:30', '2024-02-29T12:30:00.000Z'],
    ['last_seen', 'lt', '2024-02-29 12:30:15+02:00', '2024-02-29T10:30:15.000Z'],
    ['last_seen', 'lt', '2024-02-29t12:30:15.123456789z', '2024-02-29T12:30:15.123Z'],
    ['last_seen', 'eq', '2024-02-29T12:30:15.5Z', '2024-02-29T12:30:15.500Z'],
  ])('%s %s %j is read as %j', (name, operator, value, read) => {
    expect(one(name, operator, value)).toEqual({ property: name, operator, value: read })
  })

  test('bool is eq with a boolean, in any of its spellings', () => {
    for (const yes of [true, 'true', 'TRUE', 'True', 't', 'T', '1']) {
      expect(one('online', 'bool', yes)).toEqual({ property: 'online', operator: 'eq', value: true })
    }
    for (const no of [false, 'false', 'FALSE', 'f', '0']) {
      expect(one('online', 'bool', no)).toEqual({ property: 'online', operator: 'eq', value: false })
    }
  })

  test.each([
    ['name', 'contains', ['crane'], 'filter: "contains" of "name" takes a text'],
    ['name', 'contains', 5, 'filter: "contains" of "name" takes a text'],
    ['name', 'eq', true, 'filter: "eq" of "name" takes a text'],
    ['name', 'eq', undefined, 'filter: "eq" of "name" takes a text'],
    ['name', 'gt', 'a', 'filter: "gt" cannot be asked of "name"'],
    ['name', 'bool', true, 'filter: "bool" cannot be asked of "name"'],
    ['tags', 'contains', [], 'filter: "contains" of "tags" takes a text, or 1 to 32 texts'],
    ['tags', 'contains', ['pier', 5], 'filter: "contains" of "tags" takes a text, or 1 to 32 texts'],
    ['tags', 'eq', ['pier'], 'filter: "eq" of "tags" takes a text'],
    ['online', 'eq', 'TRUE', 'filter: "eq" of "online" takes true or false'],
    ['online', 'eq', 1, 'filter: "eq" of "online" takes true or false'],
    ['online', 'bool', 'yes', 'filter: "bool" of "online" takes true or false'],
    ['online', 'bool', 'constructor', 'filter: "bool" of "online" takes true or false'],
    ['online', 'contains', 'true', 'filter: "contains" cannot be asked of "online"'],
    ['age', 'gt', '', 'filter: "gt" of "age" takes a number'],
    ['age', 'gt', '0x10', 'filter: "gt" of "age" takes a number'],
    ['age', 'gt', 'Infinity', 'filter: "gt" of "age" takes a number'],
    [
      'last_seen',
      'gt',
      'yesterday 1',
      'filter: "gt" of "last_seen" takes seconds since 1970 or a date such as 2026-01-31T12:00:00Z',
    ],
    [
      'last_seen',
      'gt',
      '2024-13-01',
      'filter: "gt" of "last_seen" takes seconds since 1970 or a date such as 2026-01-31T12:00:00Z',
    ],
    [
      'last_seen',
      'lt',
      1e15,
      'filter: "lt" of "last_seen" takes seconds since 1970 or a date such as 2026-01-31T12:00:00Z',
    ],
    ['last_seen', 'contains', '2024', 'filter: "contains" cannot be asked of "last_seen"'],
    ['name', 'like', 'x', 'filter: "like" is not an operator; use contains, eq, ne, bool, gt, lt'],
    ['name', null, 'x', 'filter: null is not an operator; use contains, eq, ne, bool, gt, lt'],
    ['password', 'eq', 'x', 'filter: there is no property "password" to filter by'],
    ['constructor', 'eq', 'x', 'filter: there is no property "constructor" to filter by'],
    [undefined, 'eq', 'x', 'filter: each condition must name a property'],
    ['name', 'eq', 'x'.repeat(1025), 'filter: a value may have at most 1024 characters'],
    ['tags', 'contains', ['x'.repeat(1025)], 'filter: a value may have at most 1024 characters'],
    ['name', 'eq', 'a\0b', 'filter: a value may not contain a NUL character'],
  ])('%s %s %j is refused', (name, operator, value, message) => {
    expect(refusal(() => one(name, operator, value))).toBe(message)
  })

  test('a number that JSON can spell and a computer cannot hold is refused', () => {
    const text = Buffer.from(
      '[{"type":"property","params":{"name":"age","operator":"gt","value":1e999}}]',
    ).toString('base64')
    expect(refusal(() => parseFilter(text, properties))).toContain('takes a number')
  })
})

describe('shape and limits', () => {
  test.each([
    ['an element that is no object', 'x', 'filter: each element must be an object with "type" and "params"'],
    ['an element without params', { type: 'property' }, 'filter: each element must have an object "params"'],
    [
      'an unknown type',
      { type: 'group', params: {} },
      'filter: "group" is not a type of element; use "property" or "operator"',
    ],
    [
      'an unknown way to join',
      join('xor'),
      'filter: "xor" is not a way to join conditions; use "and" or "or"',
    ],
  ])('%s is refused', (_, element, message) => {
    expect(refusal(() => parse(element))).toBe(message)
  })

  test('32 conditions are taken, 33 are not', () => {
    const conditions = Array.from({ length: 33 }, () => property('name', 'eq', 'x'))
    expect(parse(...conditions.slice(1))[0]!.conditions).toHaveLength(32)
    expect(refusal(() => parse(...conditions))).toBe('filter: there may be at most 32 conditions')
    expect(refusal(() => parse(...Array.from({ length: 65 }, () => join('and'))))).toBe(
      'filter: there may be at most 64 elements',
    )
  })

  test('a long name is clipped in the sentence that refuses it', () => {
    expect(refusal(() => one('x'.repeat(5000), 'eq', 'x')).length).toBeLessThan(150)
  })
})

describe('whatever arrives, the answer is groups or a named failure', () => {
  const onlyFailures = (text: string) => {
    try {
      for (const { conditions } of parseFilter(text, properties)) {
        for (const { property: name } of conditions) expect(Object.keys(properties)).toContain(name)
      }
    } catch (error) {
      if (!(error instanceof Failure && error.kind === 'invalid' && error.message.startsWith('filter: ')))
        throw error
    }
  }

  test('any text', () =>
    fc.assert(fc.property(fc.string({ unit: 'binary' }), onlyFailures), { numRuns: times(200, 2_000) }))
  test('any bytes', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) =>
        onlyFailures(Buffer.from(bytes).toString('base64')),
      ),
    ))
  test('any JSON', () =>
    fc.assert(
      fc.property(fc.json(), (json) => onlyFailures(Buffer.from(json).toString('base64'))),
      { numRuns: times(100, 1_000) },
    ))
  test('elements of nearly the right shape', () => {
    const near = fc.record(
      {
        type: fc.oneof(fc.constantFrom('property', 'operator'), fc.jsonValue()),
        params: fc.record(
          {
            name: fc.oneof(
              fc.constantFrom(...Object.keys(properties), 'and', 'or', '__proto__', 'toString'),
              fc.jsonValue(),
            ),
            operator: fc.oneof(fc.constantFrom('contains', 'eq', 'ne', 'bool', 'gt', 'lt'), fc.jsonValue()),
            value: fc.oneof(
              fc.jsonValue(),
              fc.string({ unit: 'binary' }),
              fc.date({ noInvalidDate: true }).map(String),
              fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
            ),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(near, { maxLength: 70 }), (elements) => onlyFailures(encode(elements))),
      { numRuns: times(200, 3_000) },
    )
  })
})
