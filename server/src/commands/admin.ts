// The administrator's commands: functions from arguments to lines of text, on the rooms of the running server
// (control.ts), or else on rooms opened for the command. The contract's patterns check arguments, so that a
// command accepts nothing that the interface would refuse.
import { readFileSync } from 'node:fs'
import { Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { passwordLength, patterns } from '@hawser/contract/fields'
import { publicKeyLine } from '@hawser/ssh'
import { environment, printConfig } from '../config.ts'
import { theAdministrator } from '../domain/audit/audit.ts'
import { hashPassword } from '../domain/people/credentials.ts'
import { findOther, setPassword } from '../domain/people/identity.ts'
import { readShellHubKey } from '../domain/callers/shellhub-tokens.ts'
import { storedHostKeys } from '../gateway/login/host-keys.ts'
import { iso } from '../kit/clock.ts'
import { safeText } from '../kit/log.ts'
import { newUuid } from '../kit/ids.ts'
import type { Rooms } from '../compose/rooms.ts'

interface Command {
  readonly words: string
  /** Leaves nothing in the audit log. */
  readonly reads?: true
  readonly arguments?: readonly string[]
  readonly optional?: readonly string[]
  readonly doc: string
  run(rooms: Rooms, ...given: string[]): Promise<string[]>
}

const must = (fits: boolean, sentence: string): void => {
  if (!fits) throw new Failure('invalid', { message: sentence })
}
const matches = (pattern: string, text: string): boolean => new RegExp(pattern, 'u').test(text)

function checkUser(username: string, email: string): void {
  must(matches(patterns.username, username), 'The username needs 3 to 30 letters, digits or - _ . @')
  must(matches(patterns.email, email) && email.length <= 254, 'The e-mail address is not valid.')
  must(
    !username.includes('@') || username.toLowerCase() === email.toLowerCase(),
    'A username with an @ must be the e-mail address of the user.',
  )
}
function checkPassword(password: string): void {
  const { minLength, maxLength } = passwordLength
  must(
    password.length >= minLength && password.length <= maxLength,
    `The password needs ${minLength} to ${maxLength} characters.`,
  )
}

async function mustFindUser({ stores }: Rooms, username: string) {
  const user = await stores.users.findByIdentifier(username.toLowerCase())
  if (!user) throw new Failure('notFound', { message: `There is no user ${username}.` })
  const other = await stores.users.findByUsername(username.toLowerCase())
  if (other && other.id !== user.id)
    throw new Failure('conflict', {
      message: `${username} names two users: it is the username of one and the e-mail address of another. Use the username ${user.username}, or the e-mail address ${other.email}.`,
    })
  return user
}
/** Finds a user who is to get rights: an e-mail address counts only if confirmed, and is never a user name. */
async function mustFindMember({ stores }: Rooms, username: string) {
  const user = await findOther(stores, username)
  if (!user) throw new Failure('notFound', { message: `There is no user ${username}.` })
  return user
}
async function mustFindNamespace({ stores }: Rooms, name: string) {
  const namespace = await stores.namespaces.findByName(name.toLowerCase())
  if (!namespace) throw new Failure('notFound', { message: `There is no namespace ${name}.` })
  return namespace
}

const atOnce = 100
/** For rows that `remove` removes: reads and removes them in batches, up to the one that is not full. */
async function inBatches<Row>(
  read: (most: number) => Promise<readonly Row[]>,
  remove: (row: Row) => Promise<void>,
): Promise<void> {
  let rows: readonly Row[]
  do {
    rows = await read(atOnce)
    for (const row of rows) await remove(row)
  } while (rows.length === atOnce)
}

export const commands: readonly Command[] = [
  {
    words: 'update-key print',
    reads: true,
    doc: 'Prints the public key that signs agents, for `hawser-agent install --update-key`.',
    run: async ({ releases }) => [releases.updateKey()],
  },
  {
    words: 'update-key rotate',
    doc: 'Makes a new key that signs agents; agents follow, because the former key endorses it.',
    run: async ({ releases }) => ['Update key changed successfully', await releases.rotate()],
  },
  {
    words: 'user create',
    arguments: ['username', 'password', 'email'],
    doc: 'Creates a confirmed user.',
    async run({ users }, username, password, email) {
      checkUser(username, email)
      checkPassword(password)
      const user = await users.create({ name: username, username, password, email }, true)
      return ['User created successfully', `Username: ${user.username}`, `Email: ${user.email}`]
    },
  },
  {
    words: 'user password',
    arguments: ['username', 'password'],
    doc: 'Sets a user’s password and ends all of the user’s tokens.',
    async run(rooms, username, password) {
      checkPassword(password)
      const user = await mustFindUser(rooms, username)
      const hash = await hashPassword(password)
      await rooms.audit.change(theAdministrator, async (inside, record) => {
        if ((await inside.users.lock(user.id))?.epoch !== user.epoch)
          throw new Failure('conflict', {
            message: `The credentials of ${username} changed at the same moment; check the result and try again.`,
          })
        await setPassword(inside, record, user, { password: hash, now: iso(rooms.clock.now()) })
      })
      rooms.bus.tell('user.changed', { user_id: user.id })
      return ['User password changed successfully', `Username: ${user.username}`]
    },
  },
  {
    words: 'user delete',
    arguments: ['username'],
    doc: 'Deletes a user, with the namespaces that the user owns.',
    async run(rooms, username) {
      const user = await mustFindUser(rooms, username)
      const { namespaces } = rooms.stores
      await inBatches(
        (most) => namespaces.ownedBy(user.id, most),
        ({ tenant_id }) => rooms.namespaces.removeNamespace(tenant_id),
      )
      await inBatches(
        (most) => namespaces.memberships(user.id, most),
        ({ tenant_id }) => rooms.namespaces.leave(tenant_id, user.id),
      )
      await rooms.audit.change(theAdministrator, async (inside, record) => {
        await inside.users.remove(user.id)
        record({ action: 'user.removed', target: { kind: 'user', id: user.id, name: user.username } })
      })
      rooms.bus.tell('user.changed', { user_id: user.id })
      return ['User deleted successfully', `Username: ${user.username}`]
    },
  },
  {
    words: 'user list',
    reads: true,
    doc: 'Lists the users.',
    async run({ stores }) {
      return (await stores.users.list()).map(
        (user) => `${user.username}\t${user.email}\t${user.confirmed ? 'confirmed' : 'unconfirmed'}`,
      )
    },
  },
  {
    words: 'namespace create',
    arguments: ['name', 'owner'],
    optional: ['tenant'],
    doc: 'Creates a namespace.',
    async run(rooms, name, owner, tenant) {
      must(matches(patterns.namespaceName, name), 'The name needs letters, digits and hyphens, at most 63.')
      must(tenant === undefined || matches(patterns.uuid, tenant), 'The tenant must be a UUID in lower case.')
      const user = await mustFindMember(rooms, owner)
      if (tenant !== undefined && (await rooms.stores.namespaces.find(tenant)))
        throw new Failure('conflict', { message: `There is a namespace with the tenant ${tenant} already.` })
      const namespace = await rooms.namespaces.create(user.id, name, tenant)
      return [
        'Namespace created successfully',
        `Namespace: ${namespace.name}`,
        `Tenant: ${namespace.tenant_id}`,
        `Owner: ${user.id}`,
      ]
    },
  },
  {
    words: 'namespace delete',
    arguments: ['name'],
    doc: 'Deletes a namespace with everything in it.',
    async run(rooms, name) {
      const namespace = await mustFindNamespace(rooms, name)
      await rooms.namespaces.removeNamespace(namespace.tenant_id)
      return ['Namespace deleted successfully', `Namespace: ${namespace.name}`]
    },
  },
  {
    words: 'namespace list',
    reads: true,
    doc: 'Lists the namespaces: name, tenant, owner.',
    async run({ stores }) {
      return (await stores.namespaces.all()).map((row) => `${row.name}\t${row.tenant_id}\t${row.username}`)
    },
  },
  {
    words: 'namespace member add',
    arguments: ['username', 'namespace', 'role'],
    doc: 'Makes a user a member of a namespace.',
    async run(rooms, username, name, role) {
      const allowed = Role.enum.filter((value) => value !== 'owner')
      const wanted = allowed.find((value) => value === role)
      if (!wanted) throw new Failure('invalid', { message: `The role is one of ${allowed.join(', ')}.` })
      const namespace = await mustFindNamespace(rooms, name)
      const user = await mustFindMember(rooms, username)
      await rooms.namespaces.join(namespace.tenant_id, user.id, wanted)
      return [
        'Member added successfully',
        `Namespace: ${namespace.name}`,
        `Tenant: ${namespace.tenant_id}`,
        `Member: ${user.username}`,
        `Role: ${wanted}`,
      ]
    },
  },
  {
    words: 'namespace member remove',
    arguments: ['username', 'namespace'],
    doc: 'Ends a membership.',
    async run(rooms, username, name) {
      const namespace = await mustFindNamespace(rooms, name)
      const user = await mustFindUser(rooms, username)
      const member = await rooms.stores.namespaces.member(namespace.tenant_id, user.id)
      if (!member)
        throw new Failure('notFound', { message: `${user.username} is not a member of ${namespace.name}.` })
      if (member.role === 'owner') throw new Failure('forbidden', { message: 'The owner cannot be removed.' })
      await rooms.namespaces.leave(namespace.tenant_id, user.id)
      return [
        'Member removed successfully',
        `Namespace: ${namespace.name}`,
        `Tenant: ${namespace.tenant_id}`,
        `Member: ${user.username}`,
      ]
    },
  },
  {
    words: 'shellhub key add',
    arguments: ['public-key-file'],
    optional: ['namespace'],
    doc: 'Accepts device tokens that a ShellHub signed with this key: in all imported namespaces, or in this one.',
    async run(rooms, text, name) {
      const { stores, clock } = rooms
      const key = readShellHubKey(text)
      const namespaces =
        name === undefined ? await stores.namespaces.imported() : [await mustFindNamespace(rooms, name)]
      must(
        namespaces.length > 0,
        'No namespace here is known to come from a ShellHub: name the one that the key is for.',
      )
      for (const { tenant_id } of namespaces)
        await stores.shellHubKeys.add({ ...key, tenant_id, added_at: iso(clock.now()) })
      return ['Key added successfully', ...namespaces.map((namespace) => `Namespace: ${namespace.name}`)]
    },
  },
  {
    words: 'shellhub key list',
    reads: true,
    doc: 'Lists the keys of a ShellHub by namespace: its name, fingerprint, since when.',
    async run({ stores }) {
      const names = new Map((await stores.namespaces.all()).map(({ tenant_id, name }) => [tenant_id, name]))
      const rows = await stores.shellHubKeys.list()
      return rows
        .map((row) => `${names.get(row.tenant_id) ?? row.tenant_id}\t${row.fingerprint}\t${row.added_at}`)
        .toSorted()
    },
  },
  {
    words: 'shellhub key remove',
    arguments: ['namespace'],
    doc: 'Stops accepting device tokens of a ShellHub in this namespace.',
    async run(rooms, name) {
      const { tenant_id } = await mustFindNamespace(rooms, name)
      if (!(await rooms.stores.shellHubKeys.remove(tenant_id)))
        throw new Failure('notFound', { message: `There is no key of a ShellHub for ${name}.` })
      return ['Key removed successfully', `Namespace: ${name}`]
    },
  },
  {
    words: 'host key list',
    reads: true,
    doc: 'Prints the public host keys of the SSH gateway, for known_hosts.',
    run: async ({ stores, vault }) =>
      (await storedHostKeys(stores.hostKeys, vault)).map(({ type, blob }) => publicKeyLine(type, blob)),
  },
  {
    words: 'config print',
    reads: true,
    doc: 'Prints the settings of the running server, without secrets; without one, those of this environment.',
    run: () => Promise.resolve(printConfig(environment())),
  },
  {
    words: 'recording key',
    reads: true,
    doc: 'Prints the public key that signs recordings, for `hawser recording verify`.',
    run: ({ recordingKey }) => Promise.resolve([recordingKey]),
  },
  {
    words: 'audit key',
    reads: true,
    doc: 'Prints the public key that signs the heads of audit logs, for `hawser audit verify`.',
    run: ({ auditLog }) => Promise.resolve([auditLog.public_key]),
  },
  {
    words: 'audit',
    reads: true,
    optional: ['namespace', 'entries'],
    doc: 'Shows the newest entries of the server’s own audit log, or of a namespace’s; `-` is the server.',
    async run(rooms, name = '-', count = '100') {
      must(/^[1-9]\d{0,2}$/.test(count), 'The number of entries is 1 to 999.')
      const tenant_id = name === '-' ? '' : (await mustFindNamespace(rooms, name)).tenant_id
      const entries = await rooms.auditLog.entries(tenant_id, { limit: Number(count) })
      return entries.map(({ seq, at, action, actor, source, target, detail }) =>
        [
          seq,
          at,
          action,
          actor.name || actor.kind,
          source || '-',
          target.name || target.id,
          JSON.stringify(detail),
        ]
          .map((field) => safeText(String(field)))
          .join('\t'),
      )
    },
  },
  {
    words: 'search reindex',
    optional: ['namespace'],
    doc: 'Indexes all recordings again for the search, or those of this namespace; the server does so in the background.',
    async run(rooms, name) {
      const namespace = name === undefined ? undefined : await mustFindNamespace(rooms, name)
      await rooms.search.reindex(namespace?.tenant_id)
      return ['Recordings will be indexed again', ...(namespace ? [`Namespace: ${namespace.name}`] : [])]
    },
  },
  {
    words: 'announcement create',
    arguments: ['title', 'markdown-file'],
    doc: 'Publishes an announcement.',
    async run({ stores, clock }, title, content) {
      must(title.length >= 1 && title.length <= 90, 'The title needs 1 to 90 characters.')
      const uuid = newUuid()
      await stores.announcements.insert({ uuid, title, content, date: iso(clock.now()) })
      return ['Announcement created successfully', `UUID: ${uuid}`, `Title: ${title}`]
    },
  },
  {
    words: 'announcement list',
    reads: true,
    doc: 'Lists the announcements.',
    async run({ stores }) {
      const { items } = await stores.announcements.list({ page: 1, per_page: 1000 }, 'desc')
      return items.map((item) => `${item.uuid}\t${item.date}\t${item.title}`)
    },
  },
  {
    words: 'announcement delete',
    arguments: ['uuid'],
    doc: 'Removes an announcement.',
    async run({ stores }, uuid) {
      if (!(await stores.announcements.remove(uuid)))
        throw new Failure('notFound', { message: `There is no announcement ${uuid}.` })
      return ['Announcement deleted successfully']
    },
  },
]

export interface Parsed {
  readonly words: string
  readonly given: string[]
}

/** Also reads files, because the server may run as another user. */
export function parseCommand(args: readonly string[]): Parsed {
  const command = commands.find(({ words }) => args.slice(0, words.split(' ').length).join(' ') === words)
  if (!command) throw new Failure('invalid', { message: `There is no such command.\n\n${usage()}` })
  const given = args.slice(command.words.split(' ').length)
  const { arguments: needed = [], optional = [] } = command
  if (given.length < needed.length || given.length > needed.length + optional.length)
    throw new Failure('invalid', { message: `Usage: hawser admin ${lineOf(command)}` })
  const file = needed.findIndex((name) => name.endsWith('-file'))
  return {
    words: command.words,
    given: given.map((value, index) => (index === file ? textOf(value) : value)),
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new Failure('invalid', { message: `The file ${file} cannot be read.`, cause })
  }
}

export async function runCommand(rooms: Rooms, { words, given }: Parsed): Promise<string[]> {
  const command = commands.find((candidate) => candidate.words === words)
  if (!command) throw new Failure('invalid', { message: 'There is no such command.' })
  // Before it runs, so that no command is without its entry. Arguments may be secrets, so they are not in it.
  if (!command.reads)
    await rooms.audit.event(theAdministrator, {
      action: 'admin.command',
      target: { kind: 'command', id: words, name: words },
    })
  return command.run(rooms, ...given)
}

const lineOf = ({ words, arguments: needed = [], optional = [] }: Command): string =>
  [words, ...needed.map((name) => `<${name}>`), ...optional.map((name) => `[${name}]`)].join(' ')

export function usage(): string {
  const rows = [
    ...commands.map((command) => [lineOf(command), command.doc] as const),
    ['migrate', 'Brings the database schema up to date, or creates a new installation.'] as const,
    ['backup <folder>', 'Copies database, master key and recordings there, while the server runs.'] as const,
    ['restore <folder>', 'Puts a backup into an empty data folder.'] as const,
  ]
  const width = Math.max(...rows.map(([line]) => line.length))
  return [
    'Usage: hawser admin <command>',
    '',
    ...rows.map(([line, doc]) => `  ${line.padEnd(width)}  ${doc}`),
  ].join('\n')
}
