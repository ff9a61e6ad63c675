// The document is read by programs that we do not know: these tests keep it whole (every operation, every
// reference, every parameter) and check by example that each rule of the contract is said in the way OpenAPI
// says it.
import Type from './type.ts'
import { describe, expect, test } from 'vitest'
import { anyone, device, deviceOr, member, user, userOfAnyRole, userOrKey } from './access.ts'
import { failureHeader, failures } from './failures.ts'
import { addresses, operations } from './index.ts'
import { accessSentence, fieldsOf, openapi, rulesOf, type Schema, typeOf } from './openapi.ts'
import { allFailures } from './operation.ts'

const document = openapi({ version: '1.2.3', servers: ['https://hawser.example.com'] })
const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)
const byId = new Map(entries.map(({ operation }) => [operation.operationId, operation]))

/** Every value in the document with the way to it. */
function* walk(value: unknown, way = '#'): Generator<[string, unknown]> {
  yield [way, value]
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value))
    yield* walk(inner, `${way}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`)
}

function the(id: string) {
  const found = byId.get(id)
  if (!found) throw new Error(`no operation ${id}`)
  return found
}

describe('the document is whole', () => {
  test('every operation appears, once at each of its addresses', () => {
    const expected = operations.flatMap(({ id, op }) =>
      addresses(op).map(({ method, path }, index) => [
        `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`,
        index === 0 ? id : `${id}-${index + 1}`,
      ]),
    )
    const found = entries.map(({ path, method, operation }) => [`${method} ${path}`, operation.operationId])
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected))
    expect(found).toHaveLength(expected.length)
  })

  test('operation ids are unique', () => {
    expect(byId.size).toBe(entries.length)
  })

  test('every reference leads somewhere', () => {
    const ways = new Set([...walk(document)].map(([way]) => way))
    const references = [...walk(document)].filter(([way]) => way.endsWith('/$ref')).map(([, value]) => value)
    expect(references.length).toBeGreaterThan(50)
    for (const reference of references) expect(ways).toContain(reference)
  })

  test('the parameters of each path are declared, required, and no others', () => {
    for (const { path, operation } of entries) {
      const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? []
      const named = [...path.matchAll(/{(\w+)}/g)].map(([, name]) => name ?? '')
      expect(inPath.map(({ name }) => name).toSorted()).toEqual(named.toSorted())
      expect(inPath.every(({ required }) => required)).toBe(true)
    }
  })

  test('nothing is undefined, and JSON keeps all of it', () => {
    expect([...walk(document)].filter(([, value]) => value === undefined)).toEqual([])
    expect(JSON.parse(JSON.stringify(document))).toEqual(document)
  })

  test('every tag is a noun that is described, every security scheme is defined', () => {
    const tags = document.tags.map(({ name }) => name)
    const schemes = Object.keys(document.components.securitySchemes)
    for (const { operation } of entries) {
      expect(tags).toContain(operation.tags[0])
      for (const scheme of operation.security.flatMap((option) => Object.keys(option)))
        expect(schemes).toContain(scheme)
    }
  })

  test('every failure is under its status, with its sentence', () => {
    for (const { id, op } of operations) {
      for (const kind of allFailures(op)) {
        const response = the(id).responses[failures[kind].status]
        expect(response?.['x-failures']).toContain(kind)
        expect(response?.headers?.[failureHeader]).toEqual({ $ref: '#/components/headers/Failure' })
        expect(document.components.headers['Failure']?.schema?.enum).toContain(kind)
        expect(response?.description).toContain(failures[kind].message)
      }
    }
  })
})

describe('by example', () => {
  test('a list is an array of a shared schema, counted in a header', () => {
    const answer = the('devices.list').responses[200]
    expect(answer?.content?.['application/json']?.schema).toEqual({
      type: 'array',
      items: { $ref: '#/components/schemas/Device' },
    })
    expect(answer?.headers).toHaveProperty('X-Total-Count')
    expect(document.components.schemas['Session']?.properties?.['device']).toEqual({
      $ref: '#/components/schemas/Device',
    })
  })

  test('a query field with a default is not required and keeps its rules; examples have its type', () => {
    expect(the('devices.list').parameters?.find(({ name }) => name === 'per_page')).toEqual({
      name: 'per_page',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 10 },
      example: 5,
    })
    expect(the('connectors.list').parameters?.find(({ name }) => name === 'enable')?.example).toBe(false)
    expect(the('billing.report').parameters?.[0]?.required).toBe(true)
    expect(
      the('namespaces.setSessionRecord').requestBody?.content['application/json']?.schema.required,
    ).toBeUndefined()
  })

  test('answers may be empty, text, or come with headers', () => {
    expect(the('devices.remove').responses[200]).toEqual({ description: 'Done; the body is empty.' })
    expect(the('system.install').responses[200]?.content).toEqual({
      'text/x-shellscript': { schema: { type: 'string' } },
    })
    expect(the('users.login').responses[200]?.headers?.['x-account-lockout']?.schema).toEqual({
      type: 'string',
      default: '0',
    })
  })

  test('the body of a failure is a message, an array of fields, or a message with a code', () => {
    const shape = (id: string, status: number) =>
      the(id).responses[status]?.content?.['application/json']?.schema
    expect(shape('devices.get', 404)).toEqual({ $ref: '#/components/schemas/Failure' })
    expect(shape('users.register', 409)).toEqual({ $ref: '#/components/schemas/FailureFields' })
    expect(shape('users.register', 403)).toEqual({ $ref: '#/components/schemas/Failure' })
    expect(shape('billing.portal', 424)).toEqual({ $ref: '#/components/schemas/FailureCode' })
  })

  test('another address says whose it is', () => {
    expect(the('devices.auth-2')).toMatchObject({ 'x-alias-of': 'devices.auth', tags: ['devices'] })
    expect(the('devices.auth-2').description).toMatch(
      /^Another address of the same operation, devices\.auth\./,
    )
  })

  test('credentials follow from the access', () => {
    expect(the('system.info').security).toEqual([])
    expect(the('devices.list').security).toEqual([{ jwt: [] }, { apiKey: [] }])
    expect(the('apiKeys.create').security).toEqual([{ jwt: [] }])
    expect(the('users.updateData').deprecated).toBe(true)
  })

  test('the example is a command to paste', () => {
    expect(the('tags.rename')['x-codeSamples'][0].source).toBe(
      [
        `curl -X PUT 'https://hawser.example.com/api/tags/pier' \\`,
        `  -H "Authorization: Bearer $TOKEN" \\`,
        `  -H 'Content-Type: application/json' \\`,
        `  -d '{"tag":"jetty"}'`,
      ].join('\n'),
    )
  })
})

test.each([
  [anyone, 'anyone'],
  [user, 'a signed-in user'],
  [userOfAnyRole, 'a signed-in user, also with a token that a role change has ended'],
  [userOrKey, 'a signed-in user; an API key too, for its own namespace'],
  [device, 'a device with its own token'],
  [member('operator'), 'a member with at least the role operator; an API key too'],
  [
    member('owner', { apiKey: false, of: 'path' }),
    'a member of the namespace in the path with the role owner; no API key',
  ],
  [deviceOr('operator'), 'the device itself, or a member with at least the role operator; an API key too'],
])('%o is said as "%s"', (access, sentence) => {
  expect(accessSentence(access)).toBe(sentence)
})

test('fields are rows with dotted names; references are named, not followed', () => {
  const schema = {
    type: 'object',
    required: ['device'],
    properties: {
      device: { $ref: '#/components/schemas/Device' },
      list: {
        type: 'array',
        items: { type: 'object', properties: { id: { type: 'string', description: 'Its id.' } } },
      },
      filter: {
        anyOf: [
          { type: 'null' },
          { type: 'object', properties: { tags: { type: 'array', items: { type: 'string' } } } },
        ],
      },
    },
  }
  expect(fieldsOf(schema).map(({ name, type, required }) => [name, type, required])).toEqual([
    ['device', 'Device', true],
    ['list', 'array of object', false],
    ['list[].id', 'string', false],
    ['filter', 'null or {tags}', false],
    ['filter.tags', 'array of string', false],
  ])
})

test('rules are said in words', () => {
  const rules = (schema: object) => rulesOf(schema as Schema).join('; ')
  expect(rules(Type.String({ minLength: 5, maxLength: 30 }))).toBe('5 to 30 characters')
  expect(rules(Type.Integer({ minimum: 1, default: 10 }))).toBe('at least 1; default `10`')
  expect(rules(Type.Enum(['asc', 'desc']))).toBe('one of `asc`, `desc`')
  expect(rules(Type.Array(Type.String({ pattern: '^a' }), { maxItems: 3 }))).toBe(
    'at most 3 items; each: matches `^a`',
  )
  expect(rules(Type.Union([Type.String({ maxLength: 9 }), Type.Literal('')]))).toBe(
    'at most 9 characters, or empty',
  )
  expect(typeOf({ enum: [1, 2] })).toBe('number')
})
