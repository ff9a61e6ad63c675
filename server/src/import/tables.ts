// ShellHub's PostgreSQL, of its later versions, in the form of found.ts. Its UUIDs of people become 24 hex
// characters, as we and MongoDB have, always the same ones, so that a second import finds them again.
import { createHash } from 'node:crypto'
import { reader, type Fields, type Reader } from './fields.ts'
import type {
  FoundApiKey,
  FoundDevice,
  FoundFirewallRule,
  FoundNamespace,
  FoundPublicKey,
  FoundUser,
  Source,
} from './source.ts'

export interface ForeignTables extends AsyncDisposable {
  users(): AsyncIterable<Fields>
  namespaces(): AsyncIterable<Fields>
  devices(): AsyncIterable<Fields>
  publicKeys(): AsyncIterable<Fields>
  firewallRules(): AsyncIterable<Fields>
  apiKeys(): AsyncIterable<Fields>
  filled(): Promise<string[]>
}

const moved = [
  'users',
  'namespaces',
  'namespace_settings',
  'memberships',
  'devices',
  'device_tags',
  'tags',
  'public_keys',
  'public_key_tags',
  'firewall_rules',
  'api_keys',
]

export function userIdOf(uuid: string): string {
  return uuid === '' ? '' : createHash('sha256').update(`shellhub user ${uuid}`).digest('hex').slice(0, 24)
}

const unknownRule = { action: '', active: false, priority: 0, source_ip: '', username: '', filter: undefined }
/** Where a rule of unknown form may name its namespace. */
const tenantOf = (rule: Reader): string => rule.text(rule.has('namespace_id') ? 'namespace_id' : 'tenant_id')

function userOf({ where, text, number, flag, moment }: Reader): FoundUser {
  return {
    where,
    id: userIdOf(text('id')),
    username: text('username'),
    email: text('email'),
    name: text('name'),
    recovery_email: text('security_email'),
    password: text('password_digest'),
    confirmed: text('status') === 'confirmed',
    email_marketing: flag('email_marketing'),
    max_namespaces: number('namespace_ownership_limit'),
    preferred_tenant: text('preferred_namespace_id'),
    mfa: undefined,
    created_at: moment('created_at'),
    last_login_at: moment('last_login'),
  }
}

function namespaceOf(namespace: Reader): FoundNamespace {
  const { where, text, flag, moment } = namespace
  return {
    where,
    tenant_id: text('id'),
    name: text('name'),
    owner: userIdOf(text('owner_id')),
    members: namespace.list('members').map((value) => {
      const member = reader(where, value as Fields)
      return {
        id: userIdOf(member.text('id')),
        role: member.text('role'),
        pending: false,
        added_at: member.moment('added_at'),
      }
    }),
    session_record: flag('its_record_sessions', flag('record_sessions', true)),
    connection_announcement: namespace.has('its_announcement')
      ? text('its_announcement')
      : text('connection_announcement'),
    created_at: moment('created_at'),
  }
}

function deviceOf(device: Reader): FoundDevice {
  const { where, text, number, moment } = device
  return {
    where,
    uid: text('id'),
    tenant_id: text('namespace_id'),
    name: text('name'),
    mac: text('mac'),
    public_key: text('public_key'),
    info: {
      id: text('identifier'),
      pretty_name: text('pretty_name'),
      version: text('version'),
      arch: text('arch'),
      platform: text('platform'),
    },
    status: device.has('removed_at') ? 'removed' : text('status'),
    tags: device.texts('tag_names'),
    remote_addr: text('remote_addr'),
    position: { latitude: number('latitude'), longitude: number('longitude') },
    custom_fields: device.inner('custom_fields').count,
    created_at: moment('created_at'),
    status_update_at: moment('status_updated_at'),
    last_seen: moment('last_seen'),
  }
}

function publicKeyOf(key: Reader): FoundPublicKey {
  return {
    where: key.where,
    tenant_id: key.text('namespace_id'),
    name: key.text('name'),
    username: key.text('username'),
    line: key.bytes('data').toString('utf8').trim(),
    filter: { hostname: key.text('filter_hostname'), tags: key.texts('tag_names') },
    created_at: key.moment('created_at'),
  }
}

/** The table is not in the free edition, and its form is not published: only what is beyond doubt is read. */
function firewallRuleOf(rule: Reader): FoundFirewallRule {
  const known = [
    'namespace_id',
    'action',
    'active',
    'priority',
    'source_ip',
    'username',
    'filter_hostname',
  ].every(rule.has)
  if (!known) {
    return { where: rule.where, tenant_id: tenantOf(rule), ...unknownRule }
  }
  const hostname = rule.text('filter_hostname')
  return {
    where: rule.where,
    tenant_id: rule.text('namespace_id'),
    action: rule.text('action'),
    active: rule.flag('active'),
    priority: rule.number('priority'),
    source_ip: rule.text('source_ip'),
    username: rule.text('username'),
    filter: hostname === '' ? undefined : { hostname, tags: [] },
  }
}

function apiKeyOf(key: Reader): FoundApiKey {
  return {
    where: key.where,
    hash: key.text('key_digest').trim(),
    tenant_id: key.text('namespace_id'),
    name: key.text('name'),
    role: key.text('role'),
    created_by: userIdOf(key.text('user_id')),
    expires_in: key.number('expires_in'),
    created_at: key.moment('created_at'),
    updated_at: key.moment('updated_at'),
  }
}

export function openTables(tables: ForeignTables): Source {
  async function* each<T>(
    name: string,
    rows: AsyncIterable<Fields>,
    key: string,
    read: (row: Reader) => T,
  ): AsyncGenerator<T> {
    for await (const row of rows) yield read(reader(`${name} ${String(row[key])}`, row))
  }

  return {
    title: 'the PostgreSQL database',

    users: () => each('users', tables.users(), 'id', userOf),

    namespaces: () => each('namespaces', tables.namespaces(), 'id', namespaceOf),

    devices: () => each('devices', tables.devices(), 'id', deviceOf),

    publicKeys: () => each('public_keys', tables.publicKeys(), 'fingerprint', publicKeyOf),

    firewallRules: () => each('firewall_rules', tables.firewallRules(), 'id', firewallRuleOf),

    apiKeys: () => each('api_keys', tables.apiKeys(), 'name', apiKeyOf),

    rest: async () => (await tables.filled()).filter((name) => !moved.includes(name)),

    [Symbol.asyncDispose]: () => tables[Symbol.asyncDispose](),
  }
}
