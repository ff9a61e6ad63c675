// ShellHub's MongoDB as a folder of `<collection>.json` files, from 0.16 to the last version with MongoDB,
// and what older ones had left behind in it. Tags are names in the documents of 0.16 and ids of the
// collection `tags` later; both are read. Go's driver leaves out a false `session_record` and spells untagged
// fields in lower case (`prettyname`).
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { documents } from './documents.ts'
import { isFields, reader, type Reader } from './fields.ts'
import type {
  FoundApiKey,
  FoundDevice,
  FoundFilter,
  FoundFirewallRule,
  FoundMember,
  FoundNamespace,
  FoundPublicKey,
  FoundUser,
  Source,
} from './source.ts'

const moved = ['users', 'namespaces', 'devices', 'tags', 'public_keys', 'firewall_rules', 'api_keys']
const needed = ['users', 'namespaces']

function check(folder: string): void {
  const refuse = (message: string): never => {
    throw new Failure('invalid', { message })
  }
  if (!existsSync(folder) || !statSync(folder).isDirectory()) refuse(`${folder} is not a folder.`)
  const missing = needed.filter((name) => !existsSync(path.join(folder, `${name}.json`)))
  if (missing.length === 0) return
  const names = missing.map((name) => `${name}.json`).join(' and ')
  const files = readdirSync(folder)
  if (files.some((file) => file.endsWith('.bson')))
    refuse(
      `${folder} has BSON files and no ${names}: turn each into JSON with \`bsondump --outFile=users.json users.bson\`.`,
    )
  refuse(`${folder} has no ${names}: export each collection with mongoexport as <collection>.json.`)
}

/** The names of tags, by their ids. */
type TagNames = ReadonlyMap<string, string>

function tagsOf(document: Reader, names: TagNames): string[] {
  const given = [...(document.has('tags') ? document.texts('tags') : []), ...document.texts('tag_ids')]
  return [...new Set(given.map((tag) => names.get(tag) ?? tag))]
}

function filterOf(document: Reader, tags: TagNames): FoundFilter {
  const filter = document.inner('filter')
  return { hostname: filter.text('hostname') || document.text('hostname'), tags: tagsOf(filter, tags) }
}

function userOf(user: Reader): FoundUser {
  const { where, text, number, flag, moment } = user
  const mfa = user.inner('mfa')
  const preferences = user.inner('preferences')
  const factor = mfa.flag('enabled')
    ? { secret: mfa.text('secret'), codes: mfa.texts('recovery_codes') }
    : flag('status_mfa')
      ? { secret: text('secret'), codes: user.texts('codes') }
      : undefined
  return {
    where,
    id: text('_id'),
    username: text('username'),
    email: text('email'),
    name: text('name'),
    recovery_email: text('recovery_email'),
    password: text('password'),
    confirmed: user.has('status') ? text('status') === 'confirmed' : flag('confirmed'),
    email_marketing: flag('email_marketing'),
    max_namespaces: number('max_namespaces'),
    preferred_tenant: preferences.text('preferred_namespace'),
    mfa: factor,
    created_at: moment('created_at'),
    last_login_at: moment('last_login'),
  }
}

function namespaceOf(namespace: Reader): FoundNamespace {
  const { where, text, moment } = namespace
  const settings = namespace.inner('settings')
  return {
    where,
    tenant_id: text('tenant_id'),
    name: text('name'),
    owner: text('owner'),
    members: namespace.list('members').map((value) => memberOf(where, value)),
    session_record: namespace.has('settings') ? settings.flag('session_record') : true,
    connection_announcement: settings.text('connection_announcement'),
    created_at: moment('created_at'),
  }
}

function deviceOf(device: Reader, tags: TagNames): FoundDevice {
  const { where, text, moment } = device
  const info = device.inner('info')
  const position = device.inner('position')
  return {
    where,
    uid: text('uid'),
    tenant_id: text('tenant_id'),
    name: text('name'),
    mac: device.has('identity') ? device.inner('identity').text('mac') : undefined,
    public_key: text('public_key'),
    info: {
      id: info.text('id'),
      pretty_name: info.text('pretty_name') || info.text('prettyname'),
      version: info.text('version'),
      arch: info.text('arch'),
      platform: info.text('platform'),
    },
    status: device.has('removed_at') ? 'removed' : text('status'),
    tags: tagsOf(device, tags),
    remote_addr: text('remote_addr'),
    position: { latitude: position.number('latitude'), longitude: position.number('longitude') },
    custom_fields: device.inner('custom_fields').count,
    created_at: moment('created_at'),
    status_update_at: moment('status_updated_at'),
    last_seen: moment('last_seen'),
  }
}

function publicKeyOf(key: Reader, tags: TagNames): FoundPublicKey {
  return {
    where: key.where,
    tenant_id: key.text('tenant_id'),
    name: key.text('name'),
    username: key.text('username'),
    line: key.bytes('data').toString('utf8').trim(),
    filter: filterOf(key, tags),
    created_at: key.moment('created_at'),
  }
}

function firewallRuleOf(rule: Reader, tags: TagNames): FoundFirewallRule {
  return {
    where: rule.where,
    tenant_id: rule.text('tenant_id'),
    action: rule.text('action'),
    active: rule.flag('active'),
    priority: rule.number('priority'),
    source_ip: rule.text('source_ip'),
    username: rule.text('username'),
    filter: filterOf(rule, tags),
  }
}

function apiKeyOf(key: Reader): FoundApiKey {
  return {
    where: key.where,
    hash: key.text('_id'),
    tenant_id: key.text('tenant_id'),
    name: key.text('name'),
    role: key.text('role'),
    created_by: key.text('created_by'),
    expires_in: key.number('expires_in'),
    created_at: key.moment('created_at'),
    updated_at: key.moment('updated_at'),
  }
}

export async function openDump(folder: string): Promise<Source> {
  check(folder)
  const fileOf = (name: string): string => path.join(folder, `${name}.json`)
  async function* all<T>(name: string, read: (document: Reader) => T): AsyncGenerator<T> {
    if (!existsSync(fileOf(name))) return
    for await (const { where, fields } of documents(fileOf(name))) yield read(reader(where, fields))
  }

  const tagNames = new Map<string, string>()
  for await (const [id, name] of all('tags', ({ text }) => [text('_id'), text('name')] as const))
    tagNames.set(id, name)

  return {
    title: `the MongoDB dump in ${folder}`,

    users: () => all('users', userOf),

    namespaces: () => all('namespaces', namespaceOf),

    devices: () => all('devices', (row) => deviceOf(row, tagNames)),

    publicKeys: () => all('public_keys', (row) => publicKeyOf(row, tagNames)),

    firewallRules: () => all('firewall_rules', (row) => firewallRuleOf(row, tagNames)),

    apiKeys: () => all('api_keys', apiKeyOf),

    async rest() {
      const names = readdirSync(folder).flatMap((file) => /^(\w+)\.json$/.exec(file)?.[1] ?? [])
      return names.filter((name) => !moved.includes(name) && statSync(fileOf(name)).size > 0).toSorted()
    },

    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** Before there were roles a member was an id alone. */
function memberOf(where: string, value: unknown): FoundMember {
  const { text, moment } = reader(where, isFields(value) && !('$oid' in value) ? value : { id: value })
  return {
    id: text('id'),
    role: text('role').toLowerCase() || 'observer',
    pending: text('status') === 'pending',
    added_at: moment('added_at'),
  }
}
