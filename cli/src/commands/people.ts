// Members and roles: who is in the namespace, what each role may do, leaving a namespace, and handing one over.
import { roles } from '@hawser/contract/access'
import { roleMatrix } from '@hawser/contract/role-matrix'
import type { Command } from '../command.ts'
import { CliError, noNamespace, usageCode } from '../errors.ts'
import { kebab } from '../generated-commands.ts'
import { prompt, promptSecret } from '../prompt.ts'
import { findMember, findNamespace } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

const rolesCommand: Command = {
  words: ['roles'],
  summary: 'Shows what each role may do in a namespace.',
  arguments: [{ name: 'thing', doc: 'only operations on these, such as devices', optional: true }],
  async run(given, context) {
    const [named] = given.words
    const rows = roleMatrix().filter(({ noun }) => named === undefined || kebab(noun) === named)
    if (rows.length === 0) throw new CliError(`Unknown kind of thing: ${safeText(named ?? '')}.`, usageCode)
    const mark = (yes: boolean): string => (yes ? 'yes' : '-')
    if (context.output === 'json') context.print(rows)
    else
      context.print(
        rows.map(({ thing, title, allowed, apiKey }) => ({
          thing,
          what: title,
          ...Object.fromEntries(roles.map((role) => [role, mark(allowed[role])])),
          api_keys: mark(apiKey),
        })),
        { columns: ['thing', 'what', ...roles, 'api_keys'] },
      )
  },
}

const listMembers: Command = {
  words: ['members', 'list'],
  summary: 'Lists the people in the namespace, with their roles.',
  async run(_, context) {
    const api = context.api()
    // An API key is for one namespace, which is the only one that it lists.
    const tenant =
      context.credential() === 'api-key'
        ? (await api.namespaces.list()).body[0]?.tenant_id
        : context.accounts.find(context.server())?.tenant
    if (!tenant) throw noNamespace()
    const { body } = await api.namespaces.get({ params: { tenant } })
    context.print(body.members, { columns: ['username', 'role', 'id'] })
  },
}

const leave: Command = {
  words: ['namespaces', 'leave'],
  summary: 'Ends your membership, with your sessions, API keys and public keys in the namespace.',
  arguments: [{ name: 'namespace', doc: 'its name or its id', completes: 'namespace' }],
  options: [{ name: 'yes', doc: 'skips the confirmation' }],
  async run(given, context) {
    const api = context.api()
    const { tenant_id, name } = await findNamespace(api, given.words[0]!)
    if (!given.flag('yes')) {
      const answer = await prompt(
        `Leave ${safeText(name)}? You can return only if a member invites you (yes or no)`,
        'add --yes',
      )
      if (!/^y(es)?$/i.test(answer)) throw new CliError('Nothing was changed.', usageCode)
    }
    const server = context.server()
    // A token of the namespace ends with the membership, so another one is requested first.
    const others = (await api.namespaces.list({ query: { per_page: 100 } })).body
    const next = others.find((one) => one.tenant_id !== tenant_id)
    const isHere = context.accounts.find(server)?.tenant === tenant_id
    const session =
      isHere && next && (await api.users.namespaceToken({ params: { tenant: next.tenant_id } })).body
    await api.namespaces.leave({ params: { tenant: tenant_id } })
    if (session)
      context.accounts.save(server, { token: session.token, username: session.user, tenant: session.tenant })
    const after = session ? ` You are now in ${safeText(next?.name ?? '')}.` : ''
    context.say(`You have left ${safeText(name)}.${after}`)
    if (isHere && !session) context.say('You have no other namespace. Run `hawser login` to continue.')
  },
}

const handOver: Command = {
  words: ['namespaces', 'hand-over'],
  summary: 'Makes another member the owner of the namespace; you become an administrator.',
  arguments: [
    { name: 'namespace', doc: 'its name or its id', completes: 'namespace' },
    { name: 'member', doc: 'the username or the id' },
  ],
  options: [
    { name: 'password', value: 'text', doc: 'your password; default: prompts for it' },
    { name: 'code', value: 'digits', doc: 'a second factor code, if you have one; default: prompts for it' },
  ],
  async run(given, context) {
    const api = context.api()
    const { tenant_id, name } = await findNamespace(api, given.words[0]!)
    const uid = await findMember(api, tenant_id, given.words[1]!)
    const { mfa } = (await api.users.refresh()).body
    const body = mfa
      ? { code: given.value('code') ?? (await prompt('Second factor code', 'use --code')) }
      : { password: given.value('password') ?? (await promptSecret('Password', 'give --password')) }
    await api.namespaces.handOver({ params: { tenant: tenant_id, uid }, body })
    // The token of the owner has ended with the role.
    const { body: now } = await api.users.refresh({ query: { keep_namespace: true } })
    context.accounts.save(context.server(), { token: now.token, username: now.user, tenant: now.tenant })
    context.say(`${safeText(given.words[1]!)} now owns ${safeText(name)}; you are an administrator.`)
  },
}

export const peopleCommands: readonly Command[] = [rolesCommand, listMembers, leave, handOver]
