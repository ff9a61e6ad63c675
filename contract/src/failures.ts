// The closed catalogue of failures: every error that a caller can meet has a kind, a status and a sentence
// that is safe to show. Code throws `new Failure('notFound', …)`; only the HTTP edge turns it into a
// response, the kind in a header. The cause goes to the log, never to the caller. The reference and the
// OpenAPI document are generated from this table.

/** The first kind of each status is its general one: a client assumes it for a refusal that names no kind. */
const catalogue = {
  invalid: { status: 400, message: 'The request is not valid.' },
  invalidFields: { status: 400, message: 'These fields are not valid.' },
  unauthenticated: { status: 401, message: 'missing or malformed jwt or API token' },
  wrongCredentials: { status: 401, message: 'The username or the password is wrong.' },
  mfaRequired: { status: 401, message: 'A code of the second factor is needed: see X-MFA-Token.' },
  wrongCode: { status: 401, message: 'The code is wrong, used or expired.' },
  wrongToken: { status: 401, message: 'The token is wrong, used or expired.' },
  passwordRequired: {
    status: 401,
    message: 'Several accounts claim this address; the password of the account is needed, too.',
  },
  paymentRequired: { status: 402, message: 'A subscription, or the payment of an open invoice, is needed.' },
  forbidden: { status: 403, message: 'You may not do this.' },
  roleTooLow: { status: 403, message: 'Your role in this namespace does not allow this.' },
  apiKeyRefused: { status: 403, message: 'An API key cannot be used here; sign in as a user.' },
  deviceRefused: { status: 403, message: 'A device may not call this operation.' },
  noNamespace: { status: 403, message: 'Your token names no namespace; ask for one that does.' },
  unconfirmed: { status: 403, message: 'The account is not confirmed yet; see your e-mail.' },
  registrationClosed: { status: 403, message: 'This server does not take registrations.' },
  namespaceLimit: { status: 403, message: 'You may not own more namespaces.' },
  deviceLimit: { status: 403, message: 'The namespace has reached its device limit.' },
  connectorLimit: { status: 403, message: 'The namespace has as many connectors as it may have.' },
  firewallLimit: { status: 403, message: 'The namespace has as many firewall rules as it may have.' },
  enrolmentKeyLimit: { status: 403, message: 'The namespace has as many enrolment keys as it may have.' },
  enrolmentTokenLimit: { status: 403, message: 'The namespace has as many enrolment tokens as it may have.' },
  acceptRuleLimit: { status: 403, message: 'The namespace has as many accept rules as it may have.' },
  budgetLimit: { status: 403, message: 'The namespace has as many data budgets as it may have.' },
  serviceLimit: {
    status: 403,
    message: 'The namespace has reached its limit of services; delete one first.',
  },
  streamLimit: { status: 403, message: 'The namespace has as many audit streams as it may have.' },
  invitationLimit: { status: 403, message: 'The namespace has as many invitations as it may have.' },
  tooManyTags: { status: 403, message: 'There are three tags already, which is the most.' },
  notFound: { status: 404, message: 'There is no such thing here.' },
  unknownRoute: { status: 404, message: 'There is no such address on this server.' },
  wrongMethod: { status: 405, message: 'This address does not take that method.' },
  requestTimeout: { status: 408, message: 'Request Timeout' },
  conflict: { status: 409, message: 'That is in use already.' },
  takenFields: { status: 409, message: 'These fields are in use already.' },
  bodyTooLarge: { status: 413, message: 'The body is larger than this operation takes.' },
  wrongContentType: { status: 415, message: 'The body must be application/json.' },
  unprocessable: { status: 422, message: 'The body cannot be processed.' },
  providerFailed: { status: 424, message: 'The payment provider refused or cannot be reached.' },
  recordingDamaged: {
    status: 424,
    message: 'The recording is damaged and cannot be read; the server’s log says where.',
  },
  engineFailed: { status: 424, message: 'The container engine refused or cannot be reached.' },
  streamFailed: { status: 424, message: 'The receiver refused or cannot be reached.' },
  tooMany: { status: 429, message: 'Too many calls; wait a little.' },
  locked: { status: 429, message: 'Too many wrong attempts; wait until the lock ends.' },
  headersTooLarge: { status: 431, message: 'Request Header Fields Too Large' },
  internal: { status: 500, message: 'Internal Server Error' },
  unavailable: { status: 503, message: 'The server is stopping or not ready; try again.' },
} as const

export type FailureKind = keyof typeof catalogue

export const failures: Readonly<Record<FailureKind, { readonly status: number; readonly message: string }>> =
  catalogue

/** Carries the kind of a failure, exactly as the catalogue spells it. */
export const failureHeader = 'x-hawser-failure'

const isKind = (text: string): text is FailureKind => Object.hasOwn(catalogue, text)

/**
 * Older servers, proxies and newer servers send no kind or one that this catalogue does not have; then the
 * status decides.
 */
export function failureKindOf(status: number, header: string | null | undefined): FailureKind {
  if (header && isKind(header)) return header
  const general = Object.keys(catalogue).find((kind) => isKind(kind) && catalogue[kind].status === status)
  if (general && isKind(general)) return general
  // A proxy cannot reach the server.
  if (status === 502 || status === 504) return 'unavailable'
  return status >= 400 && status < 500 ? 'invalid' : 'internal'
}

interface Detail {
  /** Replaces the catalogue's sentence. The caller sees it, so it names nothing the caller may not know. */
  message?: string
  /** The names of the offending fields: the whole body of a 400 or 409 on user operations. */
  fields?: readonly string[]
  /** Machine-readable reason in billing answers. */
  code?: string
  /** Such as X-Account-Lockout. */
  headers?: Readonly<Record<string, string>>
  /** Seconds, sent as Retry-After. */
  retryAfter?: number
  cause?: unknown
}

export class Failure extends Error {
  readonly kind: FailureKind
  readonly status: number
  readonly fields: readonly string[] | undefined
  readonly code: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(kind: FailureKind, detail: Detail = {}) {
    super(
      detail.message ?? catalogue[kind].message,
      detail.cause === undefined ? undefined : { cause: detail.cause },
    )
    this.name = 'Failure'
    this.kind = kind
    this.status = catalogue[kind].status
    this.fields = detail.fields
    this.code = detail.code
    this.headers =
      detail.retryAfter === undefined
        ? (detail.headers ?? {})
        : { ...detail.headers, 'retry-after': String(Math.max(1, Math.ceil(detail.retryAfter))) }
  }
}

/** A broken invariant is a bug in this program and answers 500. */
export function invariant(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${sentence}`)
}
