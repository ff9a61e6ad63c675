// Errors of the command line: a sentence that says what to do, and an exit code. Scripts rely on the codes:
// `hawser help exit-codes` and the guide list them from this table, and no other file chooses them.
import { ApiError, PathParameterError } from '@hawser/contract/client'
import type { FailureKind } from '@hawser/contract/failures'
import { safeText } from './safe-text.ts'

export const exitCodes = {
  0: 'success',
  1: 'failure: the server refused, or for `run`, a device failed',
  2: 'the command line is invalid',
  3: 'not signed in, or the password, code or API key is wrong',
  4: 'not allowed for this role or account, or a payment is due',
  5: 'no such device, session, namespace …, or the name is ambiguous',
  6: 'the server cannot be reached, or is not a Hawser server',
  130: 'interrupted (Ctrl-C)',
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

/** How a request proves its caller. */
export type Credential = 'api-key' | 'token' | 'none'

/** Undefined: a bug in this program. */
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
      return new CliError('The API key in HAWSER_API_KEY is unknown or has expired.', signInCode, error)
    if (credential === 'token')
      return new CliError('Your sign-in has expired. Run `hawser login`.', signInCode, error)
    return because('Run `hawser login`, or set HAWSER_API_KEY.', signInCode)
  }
  // The password or the code that was sent is wrong.
  if (status === 401) return because('', signInCode)
  if (status === 402)
    return because('See `hawser billing get-subscription`, or the Billing page of the console.', 4)
  if (status === 403) return because(forbiddenAdvice(kind), 4)
  if (status === 404)
    return because('Check the name and the namespace; `hawser status` shows the current one.', notFoundCode)
  if (status === 429) return because(lockAdvice(error), 1)
  if (status === 400 && error.fields) {
    return because(
      `Check ${error.fields.map((field) => `--${field.replaceAll('_', '-')}`).join(', ')}; --help describes them.`,
      usageCode,
    )
  }
  if (status === 400) return because('', usageCode)
  if (status >= 500) return because('See the server’s log.', 1)
  return because('', 1)
}

const chooseNamespace =
  'Choose one with `hawser namespaces switch`, or create one with `hawser namespaces create`.'

export const noNamespace = (): CliError => new CliError(`No namespace is selected.\n${chooseNamespace}`, 4)

function forbiddenAdvice(kind: FailureKind): string {
  if (kind === 'noNamespace') return chooseNamespace
  if (kind === 'roleTooLow') return 'An administrator of the namespace can do this, or change your role.'
  if (kind === 'apiKeyRefused') return 'Unset HAWSER_API_KEY and run `hawser login`.'
  return ''
}

function lockAdvice({ headers, retryAfter }: ApiError): string {
  const until = Number(headers.get('x-account-lockout') ?? 0)
  if (until > 0) return `The lock ends at ${new Date(until * 1000).toLocaleTimeString()}.`
  return retryAfter ? `Try again in ${retryAfter} seconds.` : ''
}

/** OpenSSL's codes for an authority that Node does not know. */
const unknownAuthority = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** An error of `fetch` has its reason in its cause. */
export function unreachable(server: string, error: unknown): CliError {
  const { cause } = error as { cause?: { code?: string; name?: string; message?: string } }
  if (unknownAuthority.has(cause?.code ?? ''))
    return new CliError(
      `${server} has a certificate from an unknown authority.\n` +
        'If the authority is yours, set NODE_EXTRA_CA_CERTS to the file with its certificate, and try again.',
      unreachableCode,
      error,
    )
  const isTls = server.startsWith('https:')
  const noTls = `it speaks HTTP on this port, not HTTPS: use ${server.replace(/^https/, 'http')}`
  const maybeTls = `it closed the connection; if it speaks HTTPS on this port, use ${server.replace(/^http/, 'https')}`
  const why = {
    ECONNREFUSED: 'the connection was refused',
    ENOTFOUND: 'the host does not exist',
    ETIMEDOUT: 'the server did not answer',
    ...(isTls ? { ERR_SSL_WRONG_VERSION_NUMBER: noTls, ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls } : {}),
    ...(isTls ? {} : { UND_ERR_SOCKET: maybeTls, ECONNRESET: maybeTls, HPE_INVALID_CONSTANT: maybeTls }),
  }[cause?.code ?? '']
  const noHttp =
    cause?.name === 'HTTPParserError' ? 'it does not speak HTTP on this port, which may be the SSH port' : ''
  const detail = (why ?? noHttp) || cause?.message || cause?.code || 'the connection failed'
  const advice =
    'Check that the server runs and the address is right; set it with --server, HAWSER_SERVER or `hawser login`.'
  return new CliError(`${server} cannot be reached: ${safeText(detail)}.\n${advice}`, unreachableCode, error)
}
