// What every answer and every refusal looks like, whichever operation gives it.
import { Ajv, type ValidateFunction } from 'ajv'
import { failureHeader, failures, type FailureKind } from '@hawser/contract/failures'
import { allFailures, type Operation } from '@hawser/contract/operation'
import { expect } from 'vitest'
import type { Got } from './stage.ts'

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const ajv = new Ajv({ strict: false, allErrors: true, formats: { 'date-time': moment } })
const made = new Map<object, ValidateFunction>()

/** The schema with everything forbidden that it does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return 'properties' in inner && inner.type === 'object' ? { ...inner, additionalProperties: false } : inner
}

function expectToFit(value: unknown, schema: object): void {
  const check = made.get(schema) ?? ajv.compile(closed(schema) as object)
  made.set(schema, check)
  check(value)
  expect(check.errors ?? [], 'the answer fits the schema').toEqual([])
}

/** The headers that nothing is sent without. */
export function expectHeaders({ headers }: Got): void {
  expect(headers.get('x-request-id')).toMatch(uuid)
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('server')).toBeNull()
  expect(headers.get('access-control-allow-origin')).toBeNull()
}

/** A 200 that keeps the operation's promise. */
export function expectAnswer(got: Got, op: Operation): void {
  expect(got.status, got.text).toBe(200)
  expectHeaders(got)
  expect(got.headers.get(failureHeader)).toBeNull()
  const type = got.headers.get('content-type') ?? ''
  expect(type).toContain(op.text ?? 'application/json')
  for (const name of (op.headers?.required as readonly string[] | undefined) ?? [])
    expect(got.headers.get(name), name).not.toBeNull()
  if (op.list) {
    expectToFit(got.body, { type: 'array', items: op.list })
    expect(got.headers.get('x-total-count')).toMatch(/^\d+$/)
    expect(Number(got.headers.get('x-total-count'))).toBeGreaterThanOrEqual((got.body as unknown[]).length)
  } else if (op.answer) {
    expectToFit(got.body, op.answer)
  } else if (op.text) {
    expect(got.text).not.toBe('')
  } else {
    expect(got.text).toBe('')
  }
}

/** The kind is in the catalogue with this status, and among those that the operation promises. */
function expectKind(got: Got, op: Operation | undefined, said: string): void {
  const kind = got.headers.get(failureHeader) as FailureKind
  expect(failures[kind]?.status, `${said} (${kind})`).toBe(got.status)
  if (op) expect(allFailures(op), said).toContain(kind)
}

/**
 * A refusal in the shape that the operation promises. `fields`: those that a body of field names must name.
 */
export function expectRefusal(
  got: Got,
  status: number,
  op?: Operation,
  fields?: readonly string[],
  what?: string,
): void {
  const said = `${what ?? ''} ${got.status} ${got.text}`
  expect(got.status, said).toBe(status)
  expectHeaders(got)
  expect(got.headers.get('content-type')).toContain('application/json')
  expectKind(got, op, said)
  if (op?.failureBody === 'fields' && fields) {
    expect(got.body, said).toEqual(fields)
    return
  }
  expect(Object.keys(got.body as object).toSorted(), said).toEqual(
    op?.failureBody === 'code' ? ['code', 'message'] : ['message'],
  )
  for (const value of Object.values(got.body as Record<string, unknown>)) {
    expect(typeof value).toBe('string')
    expect(value).not.toBe('')
  }
}
