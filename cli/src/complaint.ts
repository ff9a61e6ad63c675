// What goes wrong, as a sentence that says what to do, and an exit code. The codes are a promise to scripts:
// they are listed in `hawser help exit-codes` and in the guide, from this table. Nothing else in the program
// decides about them.
import { ApiError, PathParameterError } from '@hawser/contract/client'
import type { FailureKind } from '@hawser/contract/failures'
import { safeText } from './safe-text.ts'

export const exitCodes = {
  0: 'it was done',
  1: 'it was not done: the server refused, or for `run`, a device failed',
  2: 'the command line is not right',
  3: 'nobody is signed in, or the password, the code or the API key is wrong',
  4: 'the role, the kind of account or an open payment does not allow it',
  5: 'there is no such device, session, namespace …, or the name fits several',
  6: 'the server cannot be reached, or it is not a Hawser server',
  130: 'it was interrupted (Ctrl-C)',
} as const

export const usageCode = 2
export const signInCode = 3
export const notFoundCode = 5
export const unreachableCode = 6

export class Complaint extends Error {
  readonly code: number

  constructor(sentence: string, code = 1, cause?: unknown) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'Complaint'
    this.code = code
  }
}

/** What a request proves its caller with. */
export type Credential = 'api-key' | 'token' | 'none'

/** Whatever was thrown, as a complaint; undefined for what is a bug of ours. */
export function complaintOf(error: unknown, credential: Credential = 'none'): Complaint | undefined {
  if (error instanceof Complaint) return error
  if (error instanceof ApiError) return refusal(error, credential)
  if (error instanceof PathParameterError) return new Complaint(error.message, usageCode)
  return undefined
}

function refusal(error: ApiError, credential: Credential): Complaint {
  const { kind, status } = error
  const said = safeText(error.message)
  const because = (advice: string, code: number): Complaint =>
    new Complaint(advice ? `${said}\n${advice}` : said, code, error)
  if (kind === 'unauthenticated') {
    if (credential === 'api-key')
      return new Complaint(
        'The server does not know the API key in HAWSER_API_KEY, or it has ended.',
        signInCode,
        error,
      )
    if (credential === 'token')
      return new Complaint('Your sign-in has ended. Run `hawser login`.', signInCode, error)
    return because('Run `hawser login`, or set HAWSER_API_KEY.', signInCode)
  }
  // The password or the code that was sent is wrong.
  if (status === 401) return because('', signInCode)
  if (status === 402)
    return because('See `hawser billing get-subscription`, or the page Billing of the console.', 4)
  if (status === 403) return because(forbiddenAdvice(kind), 4)
  if (status === 404)
    return because(
      'Is the name right, and is this the namespace? `hawser status` says where you are.',
      notFoundCode,
    )
  if (status === 429) return because(lockAdvice(error), 1)
  if (status === 400 && error.fields) {
    return because(
      `Look at ${error.fields.map((field) => `--${field.replaceAll('_', '-')}`).join(', ')}; --help says what they take.`,
      usageCode,
    )
  }
  if (status === 400) return because('', usageCode)
  if (status >= 500) return because('The server’s log says why.', 1)
  return because('', 1)
}

function forbiddenAdvice(kind: FailureKind): string {
  if (kind === 'noNamespace')
    return 'Choose one with `hawser namespaces switch`, or create one with `hawser namespaces create`.'
  if (kind === 'roleTooLow') return 'An administrator of the namespace can do it, or give you another role.'
  if (kind === 'apiKeyRefused') return 'Unset HAWSER_API_KEY and run `hawser login`.'
  return ''
}

function lockAdvice({ headers, retryAfter }: ApiError): string {
  const until = Number(headers.get('x-account-lockout') ?? 0)
  if (until > 0) return `The lock ends at ${new Date(until * 1000).toLocaleTimeString()}.`
  return retryAfter ? `Try again in ${retryAfter} seconds.` : ''
}

/** For an error of `fetch`, which says why in its cause. */
export function unreachable(server: string, error: unknown): Complaint {
  const { cause } = error as { cause?: { code?: string; message?: string } }
  const why = {
    ECONNREFUSED: 'nobody listens there',
    ENOTFOUND: 'there is no such host',
    ETIMEDOUT: 'no answer came',
  }[cause?.code ?? '']
  const detail = why ?? (cause?.message || cause?.code || 'the connection failed')
  const advice =
    'Does the server run, and is its address right? Set it with --server, HAWSER_SERVER or `hawser login`.'
  return new Complaint(`${server} cannot be reached: ${safeText(detail)}.\n${advice}`, unreachableCode, error)
}
