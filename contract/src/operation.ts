// The kernel of the contract. An operation is one plain object: what it is called, where it lives, who may
// call it, what goes in and out, how it can fail, and an example that works. Everything else is a reading of
// these objects: routes, input checks, the typed client, OpenAPI, the access matrix and the contract tests.
import type { Static, TArray, TObject, TSchema } from './type.ts'
import type { Access } from './access.ts'
import type { FailureKind } from './failures.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * How a failure's body looks: `{message}`, a bare array of field names where there are any, or `{message,
 * code}`.
 */
export type FailureBody = 'message' | 'fields' | 'code'

export interface Operation {
  /** The name that the interface document uses, or a new one for what real clients need besides. */
  readonly title: string
  readonly summary: string
  readonly method: Method
  /** Parameters as `:name`. */
  readonly path: string
  /** Other addresses of the very same operation; they share its limits and its access. */
  readonly aliases?: readonly { readonly method?: Method; readonly path: string }[]
  readonly access: Access
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** The most bytes that the body may have, where `bodyLimit` would be too few. */
  readonly largestBody?: number
  /**
   * The header with the signature of the body; the rule is given both as they came, and nobody reads the body
   * before.
   */
  readonly signed?: string
  /** The body of a 200; absent: an empty body. */
  readonly answer?: TSchema
  /** One item of a paged list: the body is an array, X-Total-Count the number before paging. */
  readonly list?: TSchema
  /** The content type of an answer that is text, not JSON. */
  readonly text?: string
  /** The answer, an array or text, is given and sent piece by piece, however long it is. */
  readonly streamed?: true
  /**
   * Headers of the answer, lower case, beside its body. One with a default is on every answer, refusals
   * included.
   */
  readonly headers?: TObject
  /** What may go wrong beyond what every operation shares (see `allFailures`). */
  readonly failures: readonly FailureKind[]
  readonly failureBody?: FailureBody
  /** The failure for input that does not fit; `invalid` unless stated. */
  readonly badInput?: 'invalid' | 'invalidFields' | 'unprocessable'
  readonly deprecated?: boolean
  /** Values that fit together and work in the world of the contract tests. */
  readonly example: {
    readonly params?: Readonly<Record<string, string>>
    readonly query?: Readonly<Record<string, string>>
    readonly body?: unknown
  }
}

export function operation<const T extends Operation>(shape: T): T {
  return shape
}

type StaticOr<T, Otherwise> = T extends TSchema ? Static<T> : Otherwise
type Part<O, K extends keyof Operation> = O extends { readonly [P in K]: infer V } ? V : undefined

/** A body that only its signature can vouch for. */
export interface SignedBody {
  readonly payload: string
  /** Empty: there was none. */
  readonly signature: string
}

/** What an operation's rule is given. */
export interface Input<O extends Operation> {
  readonly params: StaticOr<Part<O, 'params'>, Record<string, never>>
  readonly query: StaticOr<Part<O, 'query'>, Record<string, never>>
  readonly body: O extends { readonly signed: string } ? SignedBody : StaticOr<Part<O, 'body'>, undefined>
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly total: number
}

type Body<O extends Operation> = O extends { readonly streamed: true }
  ? AsyncIterable<O extends { readonly answer: TArray<infer Item> } ? Static<Item> : string>
  : Whole<O>

type Whole<O extends Operation> = O extends { readonly list: infer L extends TSchema }
  ? Page<Static<L>>
  : O extends { readonly answer: infer A extends TSchema }
    ? Static<A>
    : O extends { readonly text: string }
      ? string
      : void

/** What an operation's rule gives back: the body alone, or with the headers where the operation has some. */
export type Output<O extends Operation> = O extends { readonly headers: infer H extends TObject }
  ? { readonly answer: Body<O>; readonly headers: Static<H> }
  : Body<O>

/** The most bytes that a body may have: few from strangers, more from those who are known. */
export function bodyLimit({ largestBody, access }: Pick<Operation, 'largestBody' | 'access'>): number {
  return largestBody ?? (access.who === 'anyone' ? 8 : 64) * 1024
}

/** The failures an operation can end in, the ones that all of its kind share included. */
export function allFailures(op: Operation): FailureKind[] {
  const kinds = new Set<FailureKind>(op.failures)
  if (op.body ?? op.query) kinds.add(op.badInput ?? 'invalid')
  if (op.body) kinds.add('wrongContentType').add('bodyTooLarge')
  if (op.params) kinds.add('notFound')
  if (op.access.who === 'anyone') kinds.add('tooMany')
  else kinds.add('unauthenticated')
  if (op.access.who === 'device') kinds.add('forbidden')
  if (op.access.who === 'member' || op.access.who === 'device-or-member') {
    kinds.add('roleTooLow').add('noNamespace')
    if (op.access.who === 'member') kinds.add('deviceRefused')
    if (!op.access.apiKey) kinds.add('apiKeyRefused')
  }
  if (op.access.who === 'user') kinds.add('apiKeyRefused').add('deviceRefused')
  if (op.access.who === 'user-or-key') kinds.add('deviceRefused')
  kinds.add('internal').add('unavailable')
  return [...kinds]
}
