// What goes wrong, as a sentence that says what to do, and an exit code. The codes are a promise to scripts:
// they are listed in `hawser help exit-codes` and in the guide, from this table. Nothing else in the program
// decides about them.
import { ApiError } from '@hawser/contract/client'
import { failures } from '@hawser/contract/failures'
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

export interface Asked {
  readonly server: string
  readonly by: 'key' | 'token' | 'nobody'
}

/** Whatever was thrown, as a complaint; undefined for what is a bug of ours. */
export function complaintOf(error: unknown, asked?: Asked): Complaint | undefined {
  if (error instanceof Complaint) return error
  if (error instanceof ApiError) return refusal(error, asked)
  if (asked && error instanceof TypeError && error.message === 'fetch failed')
    return unreachable(error, asked)
  // An argument that cannot be part of an address.
  if (error instanceof TypeError && / cannot be its /.test(error.message))
    return new Complaint(error.message, usageCode)
  return undefined
}

function refusal(error: ApiError, asked: Asked | undefined): Complaint {
  const { status } = error
  const said = safeText(error.message)
  const because = (advice: string, code: number): Complaint =>
    new Complaint(advice ? `${said}\n${advice}` : said, code, error)
  // Anything else than the catalogue's sentence is about what was sent: a password, a code.
  if (status === 401 && error.message !== failures.unauthenticated.message) return because('', signInCode)
  if (status === 401) {
    if (asked?.by === 'key')
      return new Complaint(
        'The server does not know the API key in HAWSER_API_KEY, or it has ended.',
        signInCode,
        error,
      )
    if (asked?.by === 'token')
      return new Complaint('Your sign-in has ended. Run `hawser login`.', signInCode, error)
    return because('Run `hawser login`, or set HAWSER_API_KEY.', signInCode)
  }
  if (status === 402)
    return because('See `hawser billing get-subscription`, or the page Billing of the console.', 4)
  if (status === 403) return because(forbiddenAdvice(error.message), 4)
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

function forbiddenAdvice(message: string): string {
  if (/names no namespace/.test(message))
    return 'Choose one with `hawser namespaces switch`, or make one with `hawser namespaces create`.'
  if (/role/.test(message)) return 'An administrator of the namespace can do it, or give you another role.'
  if (/API key cannot/.test(message)) return 'Unset HAWSER_API_KEY and run `hawser login`.'
  return ''
}

function lockAdvice({ headers }: ApiError): string {
  const until = Number(headers.get('x-account-lockout') ?? 0)
  if (until > 0) return `The lock ends at ${new Date(until * 1000).toLocaleTimeString()}.`
  const wait = Number(headers.get('retry-after') ?? 0)
  return wait > 0 ? `Try again in ${wait} seconds.` : ''
}

function unreachable(error: TypeError, { server }: Asked): Complaint {
  const cause = error.cause as { code?: string; message?: string; errors?: { message: string }[] } | undefined
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
