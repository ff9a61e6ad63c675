// Orders a certificate from an ACME server (RFC 8555): account, order, http-01 challenge, certificate. The
// library speaks the protocol; errors here say what a person can do. Requests use Node's own fetch, so that
// NODE_EXTRA_CA_CERTS counts for private ACME servers.
import {
  AccountDoesNotExistError,
  AcmeClient,
  AcmeError,
  CryptoKeyUtils,
  type AcmeAccount,
  type AcmeOrder,
} from '@fishballpkg/acme'
import { generateCSR } from '@fishballpkg/acme/generateCSR'

export interface AcmeOrderOptions {
  readonly directory: string
  readonly email: string
  readonly name: string
  /** PEM; undefined for a new account. */
  readonly accountKey: string | undefined
  /** Stores the key of a new account. */
  onAccount(key: string): Promise<void>
  /** Makes every node answer at /.well-known/acme-challenge/<token>. */
  publish(token: string, answer: string): Promise<void>
}

/** The message is one sentence, or two, for the operator. */
export class OrderFailed extends Error {
  override readonly name = 'OrderFailed'
  /** The ACME server asked for fewer orders. */
  readonly rateLimited: boolean

  constructor(message: string, cause: unknown, rateLimited = false) {
    super(message, { cause })
    this.rateLimited = rateLimited
  }
}

/** A problem document of the ACME server (RFC 7807). */
interface Problem {
  readonly type?: string
  readonly detail?: string
}

const poll = { interval: 1_000, timeout: 60_000 }

/** Throws OrderFailed. */
export async function orderCertificate(options: AcmeOrderOptions): Promise<{ chain: string; key: string }> {
  try {
    const account = await accountOf(options)
    const order = await account.createOrder({ domains: [options.name] })
    await authorise(order, options)
    const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
      'verify',
    ])
    const csr = await generateCSR({ domains: [options.name], keyPair: keys })
    const { finalize } = await order.fetch()
    await send(account, finalize, { csr: Buffer.from(csr).toString('base64url') })
    await order.pollStatus({ ...poll, pollUntil: 'valid' })
    const { privateKey } = await CryptoKeyUtils.exportKeyPairToPem(keys)
    return { chain: await order.getCertificate(), key: `${privateKey}\n` }
  } catch (error) {
    throw failure(error, options)
  }
}

async function accountOf({
  directory,
  email,
  accountKey,
  onAccount,
}: AcmeOrderOptions): Promise<AcmeAccount> {
  const client = await AcmeClient.init(directory)
  if (accountKey !== undefined) {
    const keyPair: unknown = await CryptoKeyUtils.importKeyPairFromPemPrivateKey(accountKey)
    // Typed by its use: where the types of a browser are known too, there are two of the name.
    const login: unknown = { keyPair }
    try {
      return await client.login(login as Parameters<typeof client.login>[0])
    } catch (error) {
      // The server has forgotten or closed the account.
      if (!(error instanceof AccountDoesNotExistError)) throw error
    }
  }
  const account = await client.createAccount({ emails: [email] })
  await onAccount((await CryptoKeyUtils.exportKeyPairToPem(account.keyPair)).privateKey)
  return account
}

/** Answers the challenge for the name, unless an earlier order has proved it. */
async function authorise(order: AcmeOrder, { name, publish }: AcmeOrderOptions): Promise<void> {
  if ((await order.fetch()).status === 'ready') return
  for (const authorization of order.authorizations) {
    if ((await authorization.fetch()).status === 'valid') continue
    const challenge = authorization.findChallenge('http-01')
    if (!challenge)
      throw new OrderFailed(`The ACME server offers no http-01 challenge for ${name}.`, undefined)
    await publish(challenge.token, (await challenge.getHttpResource()).content)
    await send(order.account, challenge.url, {})
    try {
      await order.pollStatus({ ...poll, pollUntil: 'ready' })
    } catch (cause) {
      const { challenges } = await authorization.fetch()
      const problem = challenges.map((each) => (each as { error?: Problem }).error).find(Boolean)
      throw new OrderFailed(
        `The ACME server could not verify ${name} (${problem?.detail ?? (cause as Error).message}). ` +
          `Port 80 of ${name} must lead to HAWSER_HTTP of this server, from the Internet.`,
        cause,
      )
    }
  }
}

/** A signed request whose refusal throws. */
async function send(account: AcmeAccount, url: string, payload: Record<string, string>): Promise<void> {
  const response = await account.jwsFetch(url, { payload })
  const body = (await response.json()) as Problem
  if (!response.ok) throw new AcmeError(body as ConstructorParameters<typeof AcmeError>[0])
}

function failure(error: unknown, { directory, name }: AcmeOrderOptions): OrderFailed {
  if (error instanceof OrderFailed) return error
  if (error instanceof AcmeError) {
    const { type = '', detail = '' } = error.cause as Problem
    const rateLimited = type.endsWith(':rateLimited')
    const advice = rateLimited
      ? 'It asks for fewer orders; nothing has to be done.'
      : 'See HAWSER_URL and HAWSER_ACME_EMAIL.'
    return new OrderFailed(
      `The ACME server refused the order for ${name}: ${detail} ${advice}`,
      error,
      rateLimited,
    )
  }
  const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
  // Node's fetch only says that it failed; the cause says why.
  const why = [message, cause?.code ?? cause?.message].filter(Boolean).join(', ')
  return new OrderFailed(`The ACME server ${directory} did not answer as expected (${why}).`, error)
}
