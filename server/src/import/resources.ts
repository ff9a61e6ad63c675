// Devices, public keys, firewall rules and API keys of another installation. A device keeps its uid, which
// its agent's next call derives from the same identity, key and namespace, so it is recognised at once, with
// name and status. An API key has the same hash in both. Patterns have to pass our own check.
import { Role } from '@hawser/contract/access'
import { deviceStatuses } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { patterns, type StoredFilter } from '@hawser/contract/fields'
import type { FoundApiKey, FoundDevice, FoundFilter, FoundFirewallRule, FoundPublicKey } from './source.ts'
import { iso } from '../kit/clock.ts'
import { deviceUid } from '../kit/ids.ts'
import { factText, freshDevice, infoColumns, nameFrom } from '../domain/devices/device-facts.ts'
import { shown, type Kind } from './report.ts'
import type { ImportRun } from './run.ts'
import { requireRoom } from '../domain/access/firewall-rules.ts'
import { checkPattern } from '../domain/access/patterns.ts'
import { storableKey } from '../domain/access/public-keys.ts'
import { readFilter } from '../domain/access/tag-use.ts'

const fits = (pattern: string, text: string): boolean => new RegExp(pattern, 'u').test(text)

export async function importResources(run: ImportRun): Promise<void> {
  const { source } = run
  for await (const device of source.devices()) await inPlace(run, 'devices', device, importDevice)
  for await (const key of source.publicKeys()) await inPlace(run, 'public keys', key, importPublicKey)
  for await (const rule of source.firewallRules())
    await inPlace(run, 'firewall rules', rule, importFirewallRule)
  for await (const key of source.apiKeys()) await inPlace(run, 'API keys', key, importApiKey)
}

type Result = 'moved' | 'there' | 'left'

/**
 * Runs the work for what belongs to an existing namespace. A refusal is a problem, and its subject is left
 * out.
 */
async function inPlace<T extends { readonly where: string; readonly tenant_id: string }>(
  run: ImportRun,
  kind: Kind,
  found: T,
  work: (run: ImportRun, found: T) => Promise<Result>,
): Promise<void> {
  const { progress, report } = run
  const tenant_id = found.tenant_id.toLowerCase()
  if (progress.wanted && !progress.wanted.tenants.has(tenant_id)) return
  if (!progress.namespaces.has(tenant_id)) {
    if (!progress.left.has(tenant_id))
      report.note(`Of ${kind}: those in namespaces that are gone stay behind`)
    return report.count(kind, 'left')
  }
  try {
    report.count(kind, await work(run, { ...found, tenant_id }))
  } catch (error) {
    if (!(error instanceof Failure) || (error.kind !== 'invalid' && error.kind !== 'firewallLimit'))
      throw error
    report.problem(`${found.where}: ${error.message}`)
    report.count(kind, 'left')
  }
}

const refuse = (message: string): never => {
  throw new Failure('invalid', { message })
}

async function importDevice({ inside, report, parts }: ImportRun, device: FoundDevice): Promise<Result> {
  const { uid, tenant_id } = device
  if (device.status === 'removed') {
    report.note('Devices that were removed stay behind', device.name)
    return 'left'
  }
  if (!fits(patterns.hex64, uid)) refuse(`${shown(uid)} is no uid of a device.`)
  const place = await inside.callers.namespaceOfDevice(uid)
  if (place === tenant_id) return 'there'
  if (place !== undefined) refuse(`the device ${shown(device.name)} is in another namespace here.`)
  const status =
    deviceStatuses.find((known) => known === device.status) ??
    refuse(`${shown(device.status)} is no status of a device.`)
  const mac = device.mac ?? ''
  const name = nameFrom(device.name, mac)
  if (name !== device.name.toLowerCase())
    report.note('Devices whose names have letters that names cannot have are renamed', device.name)
  const devices = inside.of(tenant_id).devices
  if (status === 'accepted' && (await devices.findAcceptedByName(name)))
    refuse(`another accepted device of the namespace has the name ${shown(name)}; rename one of the two.`)
  const uids = [device.mac, undefined].map((identity) =>
    deviceUid({ mac: identity, public_key: device.public_key, tenant_id }),
  )
  if (!uids.includes(uid))
    report.note('Devices whose uid is not the one of their key: they will ask to be accepted once more', name)
  if (device.custom_fields > 0) report.note('Custom fields of devices stay behind', name)
  const tags = [...new Set(device.tags)]
  for (const tag of tags.filter((given) => !fits(patterns.tag, given)))
    report.problem(`${device.where}: ${shown(tag)} cannot be a tag; the device would lose it.`)
  const fresh = freshDevice(device.created_at ?? iso(parts.clock.now()))
  await devices.insert({
    ...fresh,
    uid,
    name,
    mac: factText(mac),
    public_key: device.public_key,
    ...infoColumns(device.info),
    status,
    status_update_at: device.status_update_at ?? fresh.created_at,
    remote_addr: device.remote_addr,
    position: JSON.stringify(device.position),
    tags: JSON.stringify(tags.filter((tag) => fits(patterns.tag, tag))),
    last_seen: device.last_seen ?? fresh.created_at,
    online: 0,
  })
  return 'moved'
}

function storedFilter(filter: FoundFilter): StoredFilter {
  if (filter.hostname !== '') {
    checkPattern('filter.hostname', filter.hostname)
    return { hostname: filter.hostname }
  }
  // Neither: all devices, there as here.
  if (filter.tags.length === 0) return { hostname: '.*' }
  for (const tag of filter.tags) if (!fits(patterns.tag, tag)) refuse(`${shown(tag)} cannot be a tag.`)
  return { tags: [...new Set(filter.tags)] }
}

function pattern(field: string, source: string): string {
  if (source !== '') checkPattern(field, source)
  return source || '.*'
}

async function importPublicKey({ inside, parts }: ImportRun, key: FoundPublicKey): Promise<Result> {
  const { data, fingerprint } = storableKey(parts.keys, key.line)
  const mine = inside.of(key.tenant_id).publicKeys
  if (await mine.find(fingerprint)) return 'there'
  await mine.insert({
    fingerprint,
    data,
    name: key.name || fingerprint,
    username: pattern('username', key.username),
    filter: JSON.stringify(storedFilter(key.filter)),
    created_at: key.created_at ?? iso(parts.clock.now()),
  })
  return 'moved'
}

async function importFirewallRule({ inside }: ImportRun, rule: FoundFirewallRule): Promise<Result> {
  const action = (['allow', 'deny'] as const).find((known) => known === rule.action)
  if (!action || !rule.filter) return refuse('the form of the firewall rule is unknown; create it again.')
  const filter = storedFilter(rule.filter)
  const wanted = {
    action,
    active: rule.active ? (1 as const) : (0 as const),
    filter: JSON.stringify(filter),
    priority: Math.trunc(rule.priority),
    source_ip: pattern('source_ip', rule.source_ip),
    username: pattern('username', rule.username),
  }
  const mine = inside.of(rule.tenant_id).firewall
  // Rules have no common id, so equal content means the same rule.
  const others = await mine.all()
  const same = others.some((row) =>
    (Object.keys(wanted) as (keyof typeof wanted)[]).every((field) => row[field] === wanted[field]),
  )
  if (same) return 'there'
  requireRoom(
    others.map((row) => ({ ...row, filter: readFilter(row.filter) })),
    { ...wanted, filter },
  )
  await mine.insert(wanted)
  return 'moved'
}

async function importApiKey({ inside, parts, progress }: ImportRun, key: FoundApiKey): Promise<Result> {
  const { hash, tenant_id, name } = key
  if (!fits(patterns.hex64, hash)) refuse(`the API key ${shown(name)} has an unknown form.`)
  const place = await inside.callers.namespaceOfKey(hash)
  if (place === tenant_id) return 'there'
  if (place !== undefined) refuse(`the API key ${shown(name)} is in another namespace here.`)
  const role =
    Role.enum.find((known) => known === key.role) ??
    refuse(`${shown(key.role)} is no role that an API key can have.`)
  const created_by = progress.people.get(key.created_by)
  if (created_by === undefined || !(await inside.namespaces.member(tenant_id, created_by)))
    return refuse(
      `the creator of the API key ${shown(name)} is no longer a member, so it could not be used here; create a new one.`,
    )
  const mine = inside.of(tenant_id).apiKeys
  if (await mine.find(name))
    refuse(`another API key of the namespace has the name ${shown(name)}; rename one of the two.`)
  const created_at = key.created_at ?? iso(parts.clock.now())
  await mine.insert({
    hash,
    name,
    role,
    created_by,
    expires_in: key.expires_in > 0 ? Math.floor(key.expires_in) : -1,
    created_at,
    updated_at: key.updated_at ?? created_at,
  })
  return 'moved'
}
