// Shortcuts for what takes several steps in the API: switching the namespace, adding a public key from its
// file, closing a session without naming its device.
import path from 'node:path'
import type { Command, ParsedArgs } from '../command.ts'
import type { Context } from '../context.ts'
import { fileText } from '../generated-commands.ts'
import { CliError, usageCode } from '../errors.ts'
import { findNamespace, findSession } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

const switchNamespace: Command = {
  words: ['namespaces', 'switch'],
  summary: 'Switches to another namespace.',
  arguments: [{ name: 'namespace', doc: 'its name or its id', completes: 'namespace' }],
  async run(given, context) {
    if (context.env['HAWSER_API_KEY'])
      throw new CliError('An API key is for one namespace: unset HAWSER_API_KEY to switch.', usageCode)
    const api = context.api()
    const { tenant_id } = await findNamespace(api, given.words[0]!)
    const { body } = await api.users.namespaceToken({ params: { tenant: tenant_id } })
    context.accounts.save(context.server(), { token: body.token, username: body.user, tenant: body.tenant })
    context.say(`You are in ${safeText(given.words[0]!)} now, as ${body.role}.`)
  },
}

const addKey: Command = {
  words: ['public-keys', 'add'],
  summary: 'Registers a public key from its file, for every user on every device unless you narrow it.',
  arguments: [{ name: 'file', doc: 'such as ~/.ssh/id_ed25519.pub', completes: 'file' }],
  options: [
    {
      name: 'name',
      value: 'text',
      doc: 'its name; default: the comment in the file, or the name of the file',
    },
    { name: 'user', value: 'pattern', doc: 'users on devices, as a regular expression; default: .*' },
    { name: 'device', value: 'pattern', doc: 'names of devices, as a regular expression; default: .*' },
    {
      name: 'tag',
      value: 'tag',
      doc: 'devices with this tag instead; may be repeated',
      many: true,
      completes: 'tag',
    },
    { name: 'certificate-authority', doc: 'signs user certificates, and grants no login itself' },
    { name: 'owner', value: 'member', doc: 'whose key it is: the username or the id; default: you' },
    { name: 'shared', doc: 'has no owner: for a machine, or for several people' },
  ],
  async run(given, context) {
    const [file = ''] = given.words
    const line = fileText(file).trim()
    if (/PRIVATE KEY/.test(line))
      throw new CliError(
        `${file} is a private key, which is for you alone. Did you mean ${file}.pub?`,
        usageCode,
      )
    const [, data, comment] = /^(\S+ [A-Za-z0-9+/=]+)(?: (.*))?$/.exec(line) ?? []
    if (!data)
      throw new CliError(
        `${file} is not a public key of OpenSSH: such a file has one line, like ssh-ed25519 AAAA… name.`,
        usageCode,
      )
    const tags = given.values('tag')
    if (tags.length > 0 && given.value('device') !== undefined)
      throw new CliError('--device or --tag, not both.', usageCode)
    const owner = ownerOf(given, context)
    const { body } = await context.api().publicKeys.create({
      body: {
        data: Buffer.from(line).toString('base64'),
        name: given.value('name') ?? (comment || path.basename(file, '.pub')),
        username: given.value('user') ?? '.*',
        filter: tags.length > 0 ? { tags: [...tags] } : { hostname: given.value('device') ?? '.*' },
        certificate_authority: given.flag('certificate-authority') === true,
        owner,
      },
    })
    context.print(body)
    if (owner !== '' && given.value('owner') === undefined)
      context.say(
        'It is yours: its sessions name you, and it goes when you leave the namespace (see --shared).',
      )
  },
}

/** The person that adds the key, unless they name another. API keys and authorities have no owner. */
function ownerOf(given: ParsedArgs, context: Context): string {
  const named = given.value('owner')
  const nobodys = given.flag('shared') === true || given.flag('certificate-authority') === true
  if (named !== undefined && nobodys)
    throw new CliError('--owner or --shared or --certificate-authority, not both.', usageCode)
  if (named !== undefined || nobodys) return named ?? ''
  context.options()
  return context.credential() === 'token' ? (context.accounts.find(context.server())?.username ?? '') : ''
}

const closeSession: Command = {
  words: ['sessions', 'close'],
  summary: 'Ends a live session.',
  arguments: [{ name: 'session', doc: 'its uid or the start of it, or `last`', completes: 'session' }],
  async run(given, context) {
    const api = context.api()
    const session = await findSession(api, given.words[0]!)
    await api.sessions.close({ params: { uid: session.uid }, body: { device: session.device_uid } })
    context.say(`The session of ${safeText(session.username)} on ${safeText(session.device.name)} is closed.`)
  },
}

export const shortcutCommands: readonly Command[] = [switchNamespace, addKey, closeSession]
