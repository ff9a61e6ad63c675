// Signing in and out, and the status of the sign-in. The password is prompted for without echo, or read from
// stdin for scripts. It is never an option, because everyone on the machine can read command lines. Signing
// out removes the saved token; the server expires it after 72 hours, or at once when the password changes.
import { ApiError, client, type Client } from '@hawser/contract/client'
import type { UserSession } from '@hawser/contract/users'
import { prompt, promptSecret, readInput } from '../prompt.ts'
import type { Command } from '../command.ts'
import { CliError, signInCode } from '../errors.ts'
import { serverAddress, type Context } from '../context.ts'

export const login: Command = {
  words: ['login'],
  summary: 'Signs you in to a server and saves the token, readable by you only.',
  arguments: [{ name: 'server', doc: 'such as https://hawser.example.com', optional: true }],
  options: [
    { name: 'username', short: 'u', value: 'name', doc: 'your username or e-mail; default: prompts for it' },
    { name: 'password-stdin', doc: 'reads the password from stdin, for scripts' },
    { name: 'code', value: 'digits', doc: 'the second factor code; default: prompts for it if needed' },
    { name: 'recovery-code', value: 'code', doc: 'a recovery code instead; each works once' },
  ],
  async run(given, context) {
    const url = serverAddress(given.words[0] ?? (await knownServer(context)))
    if (url.startsWith('http:') && !/^http:\/\/(localhost|127\.|\[::1\])/.test(url)) {
      context.say(`Warning: ${url} is not encrypted; anyone on the network path can read your password.`)
    }
    const username = given.value('username') ?? (await prompt('Username or e-mail', 'use --username'))
    const password = given.flag('password-stdin')
      ? (await readInput(4096)).replace(/\r?\n$/, '')
      : await promptSecret('Password', 'use --password-stdin and pass the password on stdin')
    const session = await signIn(
      client(context.anonymous(url)),
      { username, password },
      given.value('code'),
      given.value('recovery-code'),
    )
    context.accounts.save(url, { token: session.token, username: session.user, tenant: session.tenant })
    const where = session.tenant
      ? ''
      : ' You have no namespace yet; create one with `hawser namespaces create --name …`.'
    context.say(`Signed in to ${url} as ${session.user}.${where}`)
  },
}

async function knownServer(context: Context): Promise<string> {
  try {
    return context.server()
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return prompt('Server', 'for example: hawser login https://hawser.example.com')
  }
}

async function signIn(
  api: Client,
  who: { username: string; password: string },
  code?: string,
  recovery?: string,
): Promise<UserSession> {
  try {
    return (await api.users.login({ body: who })).body
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const token = error.headers.get('x-mfa-token')
    if (!token) throw error
    if (recovery !== undefined)
      return (await api.mfa.recover({ body: { identifier: who.username, recovery_code: recovery } })).body
    const digits = code ?? (await prompt('Second factor code', 'use --code'))
    return (await api.mfa.authenticate({ body: { token, code: digits } })).body
  }
}

export const logout: Command = {
  words: ['logout'],
  summary: 'Signs you out of the server and removes the saved token.',
  async run(_, context) {
    const url = context.server()
    const token = context.accounts.find(url)?.token
    // An ended sign-in, or a server that is away, must not prevent signing out here.
    if (token)
      await client({ ...context.anonymous(url), token })
        .signIns.end({ params: { id: 'current' } })
        .catch(() => undefined)
    context.say(context.accounts.remove(url) ? `Signed out of ${url}.` : `You were not signed in to ${url}.`)
  },
}

export const status: Command = {
  words: ['status'],
  summary: 'Shows who you are, the server, the namespace, and the state of its devices.',
  async run(_, context) {
    const server = context.server()
    const options = context.options(true)
    const api = client(options)
    const { body: info } = await api.system.info()
    const credential = context.credential()
    const about = { server, version: info.version, ssh: info.endpoints.ssh }
    if (credential === 'none') {
      context.print({ ...about, signed_in: false })
      context.say('You are not signed in. Run `hawser login`.')
      return signInCode
    }
    // Refresh the token: it lives longer, and a change of role ends the old one.
    const who =
      credential === 'api-key'
        ? undefined
        : (await api.users.refresh({ query: { keep_namespace: true } })).body
    if (who) context.accounts.save(server, { token: who.token, username: who.user, tenant: who.tenant })
    const mine = (await client(context.options()).namespaces.list({ query: { per_page: 100 } })).body
    const here = who ? mine.find(({ tenant_id }) => tenant_id === who.tenant) : mine[0]
    const stats = here ? (await context.api().system.stats()).body : undefined
    context.print({
      ...about,
      signed_in: true,
      as: who?.user ?? 'an API key',
      namespace: here?.name ?? '',
      ...(who ? { role: who.role, mfa: who.mfa } : {}),
      ...stats,
    })
    return 0
  },
}
