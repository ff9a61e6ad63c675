// The context of a command: its server, its credential and its output. Only this file and accounts.ts read
// the environment: scripts set HAWSER_SERVER and HAWSER_API_KEY, people use the saved account. An API key
// takes precedence over the account.
import os from 'node:os'
import { version } from '@hawser/contract/version'
import { client, type Client, type ClientOptions } from '@hawser/contract/client'
import { accounts, type Accounts } from './accounts.ts'
import { CliError, signInCode, unreachable, unreachableCode, usageCode, type Credential } from './errors.ts'
import { print, type Shape } from './print.ts'

export interface Context {
  readonly env: NodeJS.ProcessEnv
  readonly accounts: Accounts
  readonly output: 'table' | 'json'
  /** Throws if no server is known. */
  server(): string
  /** As the signed-in user; throws if nobody is signed in, unless `anonymousToo`. */
  options(anonymousToo?: boolean): ClientOptions
  /** Without a credential. */
  anonymous(server?: string): ClientOptions
  api(): Client
  /** The kind of credential that the latest options had. */
  credential(): Credential
  /** As a table or as JSON. */
  print(value: unknown, shape?: Shape): void
  /** On stderr, so that piped output stays clean. */
  say(sentence: string): void
}

export interface GlobalChoices {
  readonly server: string | undefined
  readonly output: string | undefined
}

/** The user agent names the machine in the list of sign-ins. */
const headers = { 'user-agent': `hawser/${version} (${os.hostname()})` }

export function openContext(env: NodeJS.ProcessEnv, chosen: GlobalChoices): Context {
  const saved = accounts(env)
  const output = chosen.output === 'json' ? 'json' : 'table'
  let credential: Credential = 'none'

  const server = (): string => {
    const named = chosen.server ?? (env['HAWSER_SERVER'] || saved.current())
    if (!named)
      throw new CliError(
        'No server is known. Run `hawser login`, or set HAWSER_SERVER or --server.',
        usageCode,
      )
    return serverAddress(named)
  }
  const options = (anonymousToo = false): ClientOptions => {
    const url = server()
    const apiKey = env['HAWSER_API_KEY'] || undefined
    const token = apiKey ? undefined : saved.find(url)?.token
    credential = apiKey ? 'api-key' : token ? 'token' : 'none'
    if (!anonymousToo && !apiKey && !token)
      throw new CliError(
        `You are not signed in to ${url}. Run \`hawser login\`, or set HAWSER_API_KEY.`,
        signInCode,
      )
    return { url, apiKey, token, headers, fetch: fetchFrom(url) }
  }
  const anonymous = (url = server()): ClientOptions => {
    credential = 'none'
    return { url, headers, fetch: fetchFrom(url) }
  }
  return {
    env,
    anonymous,
    accounts: saved,
    output,
    server,
    options,
    api: () => client(options()),
    credential: () => credential,
    print: (value, shape) => print(value, output, shape),
    say: (sentence) => void process.stderr.write(`${sentence}\n`),
  }
}

/** So that the accounts file has one entry per server. */
export function serverAddress(text: string): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new CliError(
      `${text} is not the address of a server: it looks like https://hawser.example.com.`,
      usageCode,
    )
  }
  return url.href.replace(/\/+$/, '')
}

/**
 * Follows no redirect, because that would carry a token or a password to another server. A server that is
 * unreachable, or not Hawser, gives an error that says so.
 */
function fetchFrom(server: string): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' }).catch((error: unknown) => {
      throw init?.signal?.aborted ? error : unreachable(server, error)
    })
    if (response.status >= 300 && response.status <= 399) {
      const where = response.headers.get('location') ?? 'another address'
      throw new CliError(
        `${server} sends us to ${where}. Give that address as the server if you trust it.`,
        unreachableCode,
      )
    }
    if (/text\/html/.test(response.headers.get('content-type') ?? '')) {
      throw new CliError(
        `${server} answers with a web page: it is not a Hawser server, or a proxy before it is in trouble.`,
        unreachableCode,
      )
    }
    return response
  }
}
