// The requests of the typed client, and its use of the answers, seen from a small HTTP server that notes each
// request and answers as the test asks. That the server keeps the contract is shown elsewhere.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest'
import {
  ApiError,
  call,
  client,
  type Client,
  type ClientOptions,
  defaulted,
  PathParameterError,
} from './client.ts'
import type { Device } from './devices.ts'
import { sample } from './examples.ts'
import { failureHeader, type FailureKind } from './failures.ts'
import { contract, operations } from './index.ts'

interface Seen {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

let seen: Seen
let reply: { status: number; headers: Record<string, string>; body: string }

const server = createServer((request, response) => {
  void text(request).then((body) => {
    seen = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body }
    response.writeHead(reply.status, reply.headers).end(reply.body)
  })
})

beforeAll(() => new Promise<void>((done) => server.listen(0, '127.0.0.1', done)))
afterAll(() => new Promise<void>((done) => void server.close(() => done())))
beforeEach(() => answerWith(200))

function answerWith(status: number, body?: unknown, headers: Record<string, string> = {}) {
  reply = {
    status,
    headers: body === undefined ? headers : { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: body === undefined ? '' : JSON.stringify(body),
  }
}

function options(): ClientOptions {
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

function api(more: Partial<ClientOptions> = {}): Client {
  return client({ ...options(), ...more })
}

async function refusal(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ApiError)
  return error as ApiError
}

describe('what is sent', () => {
  test('parameters of the path are percent-encoded', async () => {
    await api().devices.removeTag({ params: { uid: sample.device, tag: 'a?b#c d%é' } })
    expect(seen.method).toBe('DELETE')
    expect(seen.url).toBe(`/api/devices/${sample.device}/tags/a%3Fb%23c%20d%25%C3%A9`)
  })

  test('a parameter that would lead to another address is refused before anything is sent', async () => {
    for (const tenant of ['', '.', '..'])
      await expect(api().users.token({ params: { tenant } })).rejects.toThrow(PathParameterError)
  })

  test('the query has what was given and nothing else', async () => {
    answerWith(200, [], { 'x-total-count': '0' })
    await api().devices.list({
      query: { status: 'accepted', per_page: 5, filter: 'a+b/c=', sort_by: undefined },
    })
    expect(seen.url).toBe('/api/devices?status=accepted&per_page=5&filter=a%2Bb%2Fc%3D')
    await api().devices.list()
    expect(seen.url).toBe('/api/devices')
  })

  test('the body is JSON, also with DELETE', async () => {
    await api().firewall.removeTag({ params: { id: '1' }, body: { tag: 'pier' } })
    expect(seen.headers['content-type']).toBe('application/json')
    expect(seen.body).toBe('{"tag":"pier"}')
  })

  test('without a body there is no content type', async () => {
    await api().devices.accept({ params: { uid: sample.device } })
    expect(seen.method).toBe('PATCH')
    expect(seen.headers['content-type']).toBeUndefined()
    expect(seen.body).toBe('')
  })

  test('credentials and extra headers go with every call', async () => {
    await api({ token: 'a.b.c', headers: { 'X-Request-Id': 'r1' } }).system.healthcheck()
    expect(seen.headers).toMatchObject({ authorization: 'Bearer a.b.c', 'x-request-id': 'r1' })
    await api({ apiKey: sample.apiKey }).system.healthcheck()
    expect(seen.headers).toMatchObject({ 'x-api-key': sample.apiKey })
    expect(seen.headers.authorization).toBeUndefined()
  })
})

describe('what comes back', () => {
  test('an empty answer has no body', async () => {
    const result = await api().devices.accept({ params: { uid: sample.device } })
    expect(result).toMatchObject({ status: 200, body: undefined })
    expectTypeOf(result.body).toEqualTypeOf<undefined>()
  })

  test('a list has its items and how many there are in all', async () => {
    answerWith(200, ['pier', 'quay'], { 'x-total-count': '17' })
    const result = await api().tags.list()
    expect(result.body).toEqual(['pier', 'quay'])
    expect(result.total).toBe(17)
    expectTypeOf<Awaited<ReturnType<Client['devices']['list']>>['body']>().toEqualTypeOf<Device[]>()
  })

  test('an answer that is false is false', async () => {
    answerWith(200, false)
    expect((await api().namespaces.getSessionRecord()).body).toBe(false)
  })

  test('headers are there to read', async () => {
    answerWith(200, {}, { 'x-account-lockout': '0' })
    const { headers } = await api().users.login({ body: { username: 'vera', password: 'x' } })
    expect(headers.get('X-Account-Lockout')).toBe('0')
  })

  test('text stays text', async () => {
    reply = { status: 200, headers: { 'content-type': 'text/x-shellscript' }, body: '#!/bin/sh\n' }
    const { body } = await api().system.install({ query: { tenant_id: sample.tenant } })
    expectTypeOf(body).toEqualTypeOf<string>()
    expect(body).toBe('#!/bin/sh\n')
  })
})

describe('refusals', () => {
  const getDevice = () => refusal(api().devices.get({ params: { uid: sample.device } }))

  test('the header names the kind of the failure', async () => {
    answerWith(403, { message: 'Your role …' }, { [failureHeader]: 'roleTooLow' })
    const error = await getDevice()
    expect(error).toMatchObject({ kind: 'roleTooLow', status: 403, sentence: 'Your role …' })
    expectTypeOf(error.kind).toEqualTypeOf<FailureKind>()
  })

  test.each([
    [400, 'invalid'],
    [401, 'unauthenticated'],
    [402, 'paymentRequired'],
    [403, 'forbidden'],
    [404, 'notFound'],
    [409, 'conflict'],
    [418, 'invalid'],
    [429, 'tooMany'],
    [500, 'internal'],
    [502, 'unavailable'],
    [503, 'unavailable'],
    [507, 'internal'],
  ] as const)('without a kind that is known, %i is taken for %s', async (status, kind) => {
    for (const headers of [{}, { [failureHeader]: 'notYetInvented' }, { [failureHeader]: 'toString' }]) {
      answerWith(status, { message: 'No.' }, headers)
      expect((await getDevice()).kind).toBe(kind)
    }
  })

  test('the seconds to wait are a number', async () => {
    answerWith(429, { message: 'Too many.' }, { 'retry-after': '30', [failureHeader]: 'locked' })
    expect(await getDevice()).toMatchObject({ kind: 'locked', retryAfter: 30 })
    answerWith(503, { message: 'Later.' }, { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' })
    expect((await getDevice()).retryAfter).toBeUndefined()
  })

  test('a message becomes the error’s message', async () => {
    answerWith(404, { message: 'There is no such thing here.' }, { 'x-request-id': 'r2' })
    const error = await refusal(api().devices.get({ params: { uid: sample.device } }))
    expect(error).toMatchObject({ name: 'ApiError', status: 404, message: 'There is no such thing here.' })
    expect([error.fields, error.code]).toEqual([undefined, undefined])
    expect(error.headers.get('x-request-id')).toBe('r2')
  })

  test('a bare array names the fields', async () => {
    answerWith(409, ['username', 'email'])
    const error = await refusal(api().users.update({ body: { username: 'adam' } }))
    expect(error).toMatchObject({ status: 409, fields: ['username', 'email'], body: ['username', 'email'] })
    expect(error.message).toBe('In use already: username, email')
  })

  test('a code is kept', async () => {
    answerWith(424, { message: 'No provider.', code: 'provider_not_configured' })
    const error = await refusal(api().billing.getCustomer())
    expect(error).toMatchObject({ status: 424, message: 'No provider.', code: 'provider_not_configured' })
  })

  test('a body that is not JSON is kept as text', async () => {
    reply = { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' }
    expect(await refusal(api().system.stats())).toMatchObject({
      status: 502,
      message: 'HTTP 502',
      sentence: undefined,
      body: '<h1>Bad Gateway</h1>',
    })
    reply = { status: 502, headers: { 'content-type': 'application/json' }, body: '{"cut' }
    expect(await refusal(api().system.stats())).toMatchObject({ status: 502, body: '{"cut' })
  })

  test('the low-level call returns a refusal instead of throwing it', async () => {
    answerWith(400, { message: 'The request is not valid.' })
    const result = await call(
      contract.devices.update,
      { params: { uid: sample.device }, body: { name: 7 } },
      options(),
    )
    expect(result).toMatchObject({ status: 400, body: { message: 'The request is not valid.' } })
    expect(seen.body).toBe('{"name":7}')
  })

  test('what fetch throws passes through', async () => {
    const broken = new TypeError('no network')
    const fetch = () => Promise.reject(broken)
    await expect(api({ fetch }).system.stats()).rejects.toBe(broken)
    await expect(api().system.stats({ signal: AbortSignal.abort(broken) })).rejects.toBe(broken)
  })
})

test('the query fields that may be left out for their default are exactly those that have one', () => {
  const withDefault = new Set<string>()
  const without = new Set<string>()
  for (const { op } of operations) {
    for (const [name, field] of Object.entries(op.query?.properties ?? {}))
      ('default' in field ? withDefault : without).add(name)
  }
  expect([...withDefault].toSorted()).toEqual(defaulted.toSorted())
  expect(defaulted.filter((name) => without.has(name))).toEqual([])
})

test('every operation is a function of the client', () => {
  const all = api() as unknown as Record<string, Record<string, unknown>>
  expect(operations.filter(({ noun, verb }) => typeof all[noun]?.[verb] !== 'function')).toEqual([])
})

/** Never run: the type checker alone proves these. */
export function whatTheTypesRefuse(typed: Client) {
  // @ts-expect-error: a device is needed
  void typed.devices.get()
  // @ts-expect-error: and by its uid
  void typed.devices.get({ params: { id: '1' } })
  // @ts-expect-error: the operation has no body
  void typed.devices.get({ params: { uid: '1' }, body: {} })
  // @ts-expect-error: not a status
  void typed.devices.list({ query: { status: 'lost' } })
  // @ts-expect-error: a query without a default is needed
  void typed.billing.report()
  // @ts-expect-error: a field of the body is missing
  void typed.users.login({ body: { username: 'vera' } })
}
