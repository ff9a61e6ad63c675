// The kernel of the contract. An operation is one plain object: name, address, access, input, output,
// failures, and an example that works. Everything else is derived from these objects: routes, validation, the
// typed client, OpenAPI, the access matrix, the commands and the contract tests.
import type { Static, TArray, TObject, TSchema } from './type.ts'
import type { Access } from './access.ts'
import type { AuditDeclaration } from './audit-actions.ts'
import type { FailureKind } from './failures.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * The body of a failure: `{message}`, a bare array of field names where there are any, or `{message, code}`.
 */
export type FailureBody = 'message' | 'fields' | 'code'

export interface Operation {
  /** The name in the interface document, or a new one for an operation beyond it. */
  readonly title: string
  readonly summary: string
  readonly method: Method
  /** Parameters as `:name`. */
  readonly path: string
  /** Other addresses of the same operation, with the same limits and access. */
  readonly aliases?: readonly { readonly method?: Method; readonly path: string }[]
  readonly access: Access
  /** Required of whatever changes something or reads a recording. */
  readonly audit?: AuditDeclaration
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** In bytes, where the default of `bodyLimit` is too small. */
  readonly largestBody?: number
  /** The header with the signature of the body. The rule gets both unparsed. */
  readonly signed?: string
  /** The body of a 200; without it the body is empty. */
  readonly answer?: TSchema
  /** One item of a paged list: the body is an array, X-Total-Count the number before paging. */
  readonly list?: TSchema
  /** The content type of an answer that is text, not JSON. */
  readonly text?: string
  readonly streamed?: true
  /** In lower case. A header with a default is on every answer, refusals included. */
  readonly headers?: TObject
  /** Beyond those that all operations of its kind share (see `allFailures`). */
  readonly failures: readonly FailureKind[]
  readonly failureBody?: FailureBody
  /** Default: `invalid`. */
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

export interface SignedBody {
  readonly payload: string
  /** Empty if the request had none. */
  readonly signature: string
}

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

/** The body, or body and headers where the operation has headers. */
export type Output<O extends Operation> = O extends { readonly headers: infer H extends TObject }
  ? { readonly answer: Body<O>; readonly headers: Static<H> }
  : Body<O>

/** Small for anonymous callers, larger for known ones. */
export function bodyLimit({ largestBody, access }: Pick<Operation, 'largestBody' | 'access'>): number {
  return largestBody ?? (access.who === 'anyone' ? 8 : 64) * 1024
}

/** Including those that all operations of its kind share. */
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
