// The typed client: the contract as an object of functions, `api.devices.get({ params: { uid } })`. It needs
// only `fetch`, so it runs in browsers, in Node and in tests. It checks nothing: the server does, and the
// types say the rest. A refusal is thrown as an `ApiError`; what `fetch` itself throws (no network, an
// aborted signal) passes through untouched.
import type { Static, TObject, TSchema } from './type.ts'
import { contract, type Contract } from './index.ts'
import type { Operation } from './operation.ts'

export interface ClientOptions {
  /** Where the server is, with or without a slash at its end; empty in a browser: the page's own server. */
  readonly url: string
  /** The JWT of a user or a device. */
  readonly token?: string | undefined
  readonly apiKey?: string | undefined
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly fetch?: typeof fetch | undefined
}

/**
 * Query fields that the server fills in. Types do not carry defaults, so they are named here; a test
 * compares.
 */
export const defaulted = ['page', 'per_page', 'sort_by', 'order_by'] as const

type OptionalKey<T> = {
  [K in keyof T]-?: K extends (typeof defaulted)[number] ? K : undefined extends T[K] ? K : never
}[keyof T]
type QueryOf<T> = { readonly [K in OptionalKey<T>]?: T[K] | undefined } & {
  readonly [K in Exclude<keyof T, OptionalKey<T>>]: T[K]
}

type Params<O> = O extends { readonly params: infer P extends TObject }
  ? { readonly params: Static<P> }
  : unknown
type Query<O> = O extends { readonly query: infer Q extends TObject } ? Asked<QueryOf<Static<Q>>> : unknown
type Asked<Q> = Partial<Q> extends Q ? { readonly query?: Q } : { readonly query: Q }
type Body<O> = O extends { readonly body: infer B extends TSchema } ? { readonly body: Static<B> } : unknown

/** What a call takes: the parts that the operation has, and a signal to give up. */
export type Given<O extends Operation> = Params<O> &
  Query<O> &
  Body<O> & { readonly signal?: AbortSignal | undefined }

/** The body of a 200. */
export type Answer<O extends Operation> = O extends { readonly list: infer L extends TSchema }
  ? Static<L>[]
  : O extends { readonly answer: infer A extends TSchema }
    ? Static<A>
    : O extends { readonly text: string }
      ? string
      : undefined

export interface Result<B> {
  readonly status: number
  readonly headers: Headers
  readonly body: B
}
/** `total`: how many there are before paging. */
export type ResultOf<O extends Operation> = Result<Answer<O>> &
  (O extends { readonly list: unknown } ? { readonly total: number } : unknown)

/** Without anything required, the whole argument may be left out. */
export type Call<O extends Operation> =
  Partial<Given<O>> extends Given<O>
    ? (given?: Given<O>) => Promise<ResultOf<O>>
    : (given: Given<O>) => Promise<ResultOf<O>>

export type Client = {
  readonly [Noun in keyof Contract]: {
    readonly [Verb in keyof Contract[Noun]]: Contract[Noun][Verb] extends infer O extends Operation
      ? Call<O>
      : never
  }
}

/** The input of any operation, unchecked: tests send what must be refused. */
export interface RawInput {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * A server's refusal. `fields` are the offending ones where the body is a bare array, `code` the reason in
 * billing answers.
 */
export class ApiError extends Error {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly fields: readonly string[] | undefined
  readonly code: string | undefined

  constructor({ status, headers, body }: Result<unknown>) {
    const fields = Array.isArray(body) ? body.map(String) : undefined
    super(
      fields
        ? `${status === 409 ? 'In use already' : 'Not valid'}: ${fields.join(', ')}`
        : (text(body, 'message') ?? `HTTP ${status}`),
    )
    this.name = 'ApiError'
    this.status = status
    this.headers = headers
    this.body = body
    this.fields = fields
    this.code = text(body, 'code')
  }
}

function text(body: unknown, key: 'message' | 'code'): string | undefined {
  if (typeof body !== 'object' || body === null || !(key in body)) return undefined
  const value = (body as Record<string, unknown>)[key]
  return typeof value === 'string' ? value : undefined
}

/** One call of one operation: whatever the server answers is returned, refusals too. */
export async function call(op: Operation, input: RawInput, options: ClientOptions): Promise<Result<unknown>> {
  const headers = new Headers(options.headers)
  if (options.token) headers.set('authorization', `Bearer ${options.token}`)
  if (options.apiKey) headers.set('x-api-key', options.apiKey)
  const init: RequestInit = { method: op.method, headers }
  if (input.body !== undefined) {
    headers.set('content-type', 'application/json')
    init.body = JSON.stringify(input.body)
  }
  if (input.signal) init.signal = input.signal
  const response = await (options.fetch ?? fetch)(address(op, input, options.url), init)
  return { status: response.status, headers: response.headers, body: await read(response) }
}

function address(op: Operation, input: RawInput, url: string): string {
  const path = op.path.replace(/:(\w+)/g, (_, name: string) => segment(op, name, input.params?.[name]))
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input.query ?? {}))
    if (value !== undefined) query.set(name, String(value))
  return url.replace(/\/+$/, '') + path + (query.size > 0 ? `?${query.toString()}` : '')
}

function segment(op: Operation, name: string, value: string | undefined): string {
  // An address drops `.` and `..` even when they are percent-encoded, and an empty part would name another
  // operation.
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new TypeError(`${op.method} ${op.path}: ${JSON.stringify(value)} cannot be its ${name}`)
  }
  return encodeURIComponent(value)
}

async function read(response: Response): Promise<unknown> {
  const body = await response.text()
  if (body === '') return undefined
  if (!/[/+]json\b/.test(response.headers.get('content-type') ?? '')) return body
  try {
    return JSON.parse(body) as unknown
  } catch {
    // Something between us and the server cut or replaced the body; the status still says what happened.
    return body
  }
}

export function client(options: ClientOptions): Client {
  const calls = Object.entries(contract).map(([noun, verbs]) => [
    noun,
    Object.fromEntries(
      Object.entries(verbs as Record<string, Operation>).map(([verb, op]) => [verb, caller(op, options)]),
    ),
  ])
  return Object.fromEntries(calls) as Client
}

function caller(op: Operation, options: ClientOptions) {
  return async (given: RawInput = {}): Promise<Result<unknown> & { total?: number }> => {
    const result = await call(op, given, options)
    if (result.status < 200 || result.status > 299) throw new ApiError(result)
    return op.list ? { ...result, total: Number(result.headers.get('x-total-count')) } : result
  }
}
