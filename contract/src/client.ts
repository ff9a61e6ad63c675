// The typed client: the contract as an object of functions, `api.devices.get({ params: { uid } })`. It needs
// only `fetch`, so it runs in browsers, in Node and in tests, and leaves validation to the server. A refusal
// is thrown as an `ApiError` with the kind of its failure; errors of `fetch` itself (no network, an aborted
// signal) pass through.
import type { Static, TObject, TSchema } from './type.ts'
import { failureHeader, failureKindOf, type FailureKind } from './failures.ts'
import { contract, type Contract } from './index.ts'
import type { Operation } from './operation.ts'

export interface ClientOptions {
  /** With or without a trailing slash. Empty in a browser: the server of the page. */
  readonly url: string
  /** The JWT of a user or a device. */
  readonly token?: string | undefined
  readonly apiKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly fetch?: typeof fetch | undefined
}

/**
 * Query fields with a default on the server. Types do not carry defaults; a test compares this list with the
 * schemas.
 */
export const defaulted = ['page', 'per_page', 'sort_by', 'order_by', 'days', 'limit'] as const

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

/** The inputs that the operation has, and a signal to abort it. */
export type CallInput<O extends Operation> = Params<O> &
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
/** `total` is the number of items on all pages together. */
export type ResultOf<O extends Operation> = Result<Answer<O>> &
  (O extends { readonly list: unknown } ? { readonly total: number } : unknown)

/** The argument is optional where none of its inputs is required. */
export type Call<O extends Operation> =
  Partial<CallInput<O>> extends CallInput<O>
    ? (given?: CallInput<O>) => Promise<ResultOf<O>>
    : (given: CallInput<O>) => Promise<ResultOf<O>>

export type Client = {
  readonly [Noun in keyof Contract]: {
    readonly [Verb in keyof Contract[Noun]]: Contract[Noun][Verb] extends infer O extends Operation
      ? Call<O>
      : never
  }
}

/** Unchecked, for tests that send input which the server must refuse. */
export interface RawInput {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** Programs look at `kind`; `message` is for people and may change. */
export class ApiError extends Error {
  /** Follows from the status when the response names none. */
  readonly kind: FailureKind
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  /** The sentence of the server; undefined where the body has none, as in the response of a proxy. */
  readonly sentence: string | undefined
  /** The names of the offending fields, where the body is a bare array of them. */
  readonly fields: readonly string[] | undefined
  /** The reason in responses of billing operations. */
  readonly code: string | undefined
  /** Seconds to wait before another try. */
  readonly retryAfter: number | undefined

  constructor({ status, headers, body }: Result<unknown>) {
    const fields = Array.isArray(body) ? body.map(String) : undefined
    const sentence = text(body, 'message')
    super(
      fields
        ? `${status === 409 ? 'In use already' : 'Not valid'}: ${fields.join(', ')}`
        : (sentence ?? `HTTP ${status}`),
    )
    this.name = 'ApiError'
    this.kind = failureKindOf(status, headers.get(failureHeader))
    this.status = status
    this.headers = headers
    this.body = body
    this.sentence = sentence
    this.fields = fields
    this.code = text(body, 'code')
    const seconds = headers.get('retry-after') ?? ''
    this.retryAfter = /^\d+$/.test(seconds) ? Number(seconds) : undefined
  }
}

/** A value that cannot stand in its place in the path; nothing was sent. */
export class PathParameterError extends TypeError {
  override readonly name: string = 'PathParameterError'
}

function text(body: unknown, key: 'message' | 'code'): string | undefined {
  if (typeof body !== 'object' || body === null || !(key in body)) return undefined
  const value = (body as Record<string, unknown>)[key]
  return typeof value === 'string' ? value : undefined
}

/** Returns whatever the server answers, refusals included. */
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
  return readResult(response)
}

/** For callers that make the request themselves. */
export async function readResult(response: Response): Promise<Result<unknown>> {
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
  // URLs drop the segments `.` and `..` even when percent-encoded, and an empty one would name another
  // operation.
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new PathParameterError(`${op.method} ${op.path}: ${JSON.stringify(value)} cannot be its ${name}`)
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
    // A proxy cut or replaced the body; the status still counts.
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
