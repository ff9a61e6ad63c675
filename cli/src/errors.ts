// Errors of the command line: a sentence that says what to do, and an exit code. Scripts rely on the codes:
// `hawser help exit-codes` and the guide list them from this table, and no other file chooses them.
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

export class CliError extends Error {
  readonly code: number

  constructor(sentence: string, code = 1, cause?: unknown) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'Complaint'
    this.code = code
  }
}

/** What a request proves its caller with. */
export type Credential = 'api-key' | 'token' | 'none'

/** Anything thrown, as an error for the person; undefined if it is a bug in this program. */
export function toCliError(error: unknown, credential: Credential = 'none'): CliError | undefined {
  if (error instanceof CliError) return error
  if (error instanceof ApiError) return refusal(error, credential)
  if (error instanceof PathParameterError) return new CliError(error.message, usageCode)
  return undefined
}

function refusal(error: ApiError, credential: Credential): CliError {
  const { kind, status } = error
  const said = safeText(error.message)
  const because = (advice: string, code: number): CliError =>
    new CliError(advice ? `${said}\n${advice}` : said, code, error)
  if (kind === 'unauthenticated') {
    if (credential === 'api-key')
      return new CliError(
        'The server does not know the API key in HAWSER_API_KEY, or it has ended.',
        signInCode,
        error,
      )
    if (credential === 'token')
      return new CliError('Your sign-in has ended. Run `hawser login`.', signInCode, error)
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

const chooseNamespace =
  'Choose one with `hawser namespaces switch`, or create one with `hawser namespaces create`.'

/** The account is in no namespace, and the command needs one. */
export const noNamespace = (): CliError => new CliError(`You are in no namespace.\n${chooseNamespace}`, 4)

function forbiddenAdvice(kind: FailureKind): string {
  if (kind === 'noNamespace') return chooseNamespace
  if (kind === 'roleTooLow') return 'An administrator of the namespace can do it, or give you another role.'
  if (kind === 'apiKeyRefused') return 'Unset HAWSER_API_KEY and run `hawser login`.'
  return ''
}

function lockAdvice({ headers, retryAfter }: ApiError): string {
  const until = Number(headers.get('x-account-lockout') ?? 0)
  if (until > 0) return `The lock ends at ${new Date(until * 1000).toLocaleTimeString()}.`
  return retryAfter ? `Try again in ${retryAfter} seconds.` : ''
}

/** OpenSSL's codes for a certificate whose authority is not among those that Node knows. */
const unknownAuthority = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** For an error of `fetch`, which says why in its cause. */
export function unreachable(server: string, error: unknown): CliError {
  const { cause } = error as { cause?: { code?: string; name?: string; message?: string } }
  if (unknownAuthority.has(cause?.code ?? ''))
    return new CliError(
      `${server} has a certificate of an authority that is not known here.\n` +
        'If the authority is yours, set NODE_EXTRA_CA_CERTS to the file with its certificate, and try again.',
      unreachableCode,
      error,
    )
  const isTls = server.startsWith('https:')
  const noTls = `it speaks HTTP there, not HTTPS: use ${server.replace(/^https/, 'http')}`
  const maybeTls = `it closed the connection; if it speaks HTTPS there, use ${server.replace(/^http/, 'https')}`
  const why = {
    ECONNREFUSED: 'nobody listens there',
    ENOTFOUND: 'there is no such host',
    ETIMEDOUT: 'no answer came',
    ...(isTls ? { ERR_SSL_WRONG_VERSION_NUMBER: noTls, ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls } : {}),
    ...(isTls ? {} : { UND_ERR_SOCKET: maybeTls, ECONNRESET: maybeTls, HPE_INVALID_CONSTANT: maybeTls }),
  }[cause?.code ?? '']
  const noHttp =
    cause?.name === 'HTTPParserError' ? 'it does not speak HTTP there; perhaps this is the port for ssh' : ''
  const detail = (why ?? noHttp) || cause?.message || cause?.code || 'the connection failed'
  const advice =
    'Does the server run, and is its address right? Set it with --server, HAWSER_SERVER or `hawser login`.'
  return new CliError(`${server} cannot be reached: ${safeText(detail)}.\n${advice}`, unreachableCode, error)
}
