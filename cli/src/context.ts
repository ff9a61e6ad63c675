// What a command works with: the server it speaks to and as whom, and where its output goes. The environment
// is read here and in account.ts only: HAWSER_SERVER and HAWSER_API_KEY for scripts, the kept account for
// people. An API key wins over it.
import { client, type Client, type ClientOptions } from '@hawser/contract/client'
import { accounts, type Accounts } from './account.ts'
import {
  Complaint,
  signInCode,
  unreachable,
  unreachableCode,
  usageCode,
  type Credential,
} from './complaint.ts'
import { print, type Shape } from './print.ts'

export interface Context {
  readonly env: NodeJS.ProcessEnv
  readonly accounts: Accounts
  readonly output: 'table' | 'json'
  /** Complains when no server is known. */
  server(): string
  /** As whoever is signed in; complains when nobody is, unless that will do. */
  options(anybody?: boolean): ClientOptions
  /** As nobody: nothing that proves who we are is sent. */
  nobody(server?: string): ClientOptions
  api(): Client
  /** What the last options carry to prove who is calling. */
  credential(): Credential
  /** An answer, as a table or as JSON. */
  print(value: unknown, shape?: Shape): void
  /** A sentence for the person: beside the output, so that what is piped stays clean. */
  say(sentence: string): void
}

export interface Chosen {
  readonly server: string | undefined
  readonly output: string | undefined
}

export function openContext(env: NodeJS.ProcessEnv, chosen: Chosen): Context {
  const kept = accounts(env)
  const output = chosen.output === 'json' ? 'json' : 'table'
  let credential: Credential = 'none'

  const server = (): string => {
    const named = chosen.server ?? (env['HAWSER_SERVER'] || kept.current())
    if (!named)
      throw new Complaint(
        'No server is known. Run `hawser login`, or set HAWSER_SERVER or --server.',
        usageCode,
      )
    return serverAddress(named)
  }
  const options = (anybody = false): ClientOptions => {
    const url = server()
    const apiKey = env['HAWSER_API_KEY'] || undefined
    const token = apiKey ? undefined : kept.find(url)?.token
    credential = apiKey ? 'api-key' : token ? 'token' : 'none'
    if (!anybody && !apiKey && !token)
      throw new Complaint(
        `You are not signed in to ${url}. Run \`hawser login\`, or set HAWSER_API_KEY.`,
        signInCode,
      )
    return { url, apiKey, token, fetch: fetchFrom(url) }
  }
  const nobody = (url = server()): ClientOptions => {
    credential = 'none'
    return { url, fetch: fetchFrom(url) }
  }
  return {
    env,
    nobody,
    accounts: kept,
    output,
    server,
    options,
    api: () => client(options()),
    credential: () => credential,
    print: (value, shape) => print(value, output, shape),
    say: (sentence) => void process.stderr.write(`${sentence}\n`),
  }
}

/** An address as the account file spells it, so that one server has one spelling. */
export function serverAddress(text: string): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new Complaint(
      `${text} is not the address of a server: it looks like https://hawser.example.com.`,
      usageCode,
    )
  }
  return url.href.replace(/\/+$/, '')
}

/**
 * `fetch` for one server. It follows no redirect, because that would carry a token or a password to another
 * server. It turns a server that cannot be reached, or that is no Hawser server, into an error that says so.
 */
function fetchFrom(server: string): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' }).catch((error: unknown) => {
      throw init?.signal?.aborted ? error : unreachable(server, error)
    })
    if (response.status >= 300 && response.status <= 399) {
      const where = response.headers.get('location') ?? 'another address'
      throw new Complaint(
        `${server} sends us to ${where}. Give that address as the server if you trust it.`,
        unreachableCode,
      )
    }
    if (/text\/html/.test(response.headers.get('content-type') ?? '')) {
      throw new Complaint(
        `${server} answers with a web page: it is not a Hawser server, or a proxy before it is in trouble.`,
        unreachableCode,
      )
    }
    return response
  }
}
