// Services as members make and change them. A target on the device itself is an operator's; another host of
// the device's network needs an administrator, because devices sit in networks that their owners trust.
import { isIP } from 'node:net'
import { randomBytes } from 'node:crypto'
import { rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { serviceLimits } from '@hawser/contract/limits'
import { linkPath, type Service } from '@hawser/contract/services'
import { plainAddress } from '../../kit/address.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { newUid, newUuid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { ServiceRow } from '../../storage/services.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { momentOf } from '../access/moments.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import type { ServiceAddresses } from './addresses.ts'
import { audited, serviceView, targetOf } from './service-view.ts'

export interface ServiceParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  addresses: ServiceAddresses
}

/** The settings that callers may give; those of the contract, with the people as ids. */
export type ServiceSettings = Partial<
  Pick<
    Service,
    'name' | 'host' | 'port' | 'scheme' | 'check' | 'tls_name' | 'audience' | 'role' | 'host_header'
  > &
    Pick<Service, 'identify' | 'username' | 'expires_at'>
> & { readonly people?: readonly string[] | undefined }

export type ServiceRules = Pick<
  Rules<'services'>,
  'list' | 'get' | 'create' | 'update' | 'remove' | 'newLink'
> &
  ServiceChanges

/** For other forms of the same: each is one change in a transaction, with its entry. */
export interface ServiceChanges {
  add(
    device_uid: string,
    settings: ServiceSettings & Pick<Service, 'name' | 'port'>,
    caller: MemberCaller,
  ): Promise<ServiceRow>
  drop(find: (mine: OwnServices) => Promise<ServiceRow | undefined>, caller: MemberCaller): Promise<void>
}

type OwnServices = ReturnType<StoresInTransaction['of']>['services']

export const newAddress = (): string => randomBytes(16).toString('hex')

const isLoopback = (host: string): boolean =>
  /^localhost$/i.test(host) ||
  plainAddress(host) === '::1' ||
  (isIP(plainAddress(host)) === 4 && plainAddress(host).startsWith('127.'))

/** Addresses that never lead to a machine of somebody's network: this host, link-local, multicast. */
function isForbiddenAddress(host: string): boolean {
  const plain = plainAddress(host)
  // Resolvers read a last label of digits as a part of an address.
  if (isIP(plain) === 0) return /(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/i.test(plain)
  if (isIP(plain) === 4) {
    const [first = 0, second] = plain.split('.').map(Number)
    return first === 0 || first >= 224 || (first === 169 && second === 254)
  }
  return isIP(plain) === 6 && /^(::$|fe[89ab]|ff)/.test(plain)
}

export const blankService = (
  about: Pick<ServiceRow, 'tenant_id' | 'device_uid' | 'name' | 'port' | 'created_by'>,
  clock: Clock,
): ServiceRow => ({
  id: newUuid(),
  address: newAddress(),
  host: '127.0.0.1',
  scheme: 'http',
  certificate: 'verify',
  tls_name: '',
  pinned: '',
  audience: 'members',
  role: 'operator',
  people: '[]',
  link_hash: '',
  host_header: 'own',
  identify: 0,
  username: '',
  expires_at: null,
  public_url: 0,
  created_at: iso(clock.now()),
  ...about,
})

function requireMayChange({ host }: ServiceRow, role: MemberCaller['role']): void {
  if (!isLoopback(host) && rank(role) < rank('administrator'))
    throw new Failure('roleTooLow', {
      message: 'Only administrators can create or change services of other hosts than the device itself.',
    })
}

/** The row with the settings. Throws what is wrong with them. */
function apply(
  row: ServiceRow,
  wanted: ServiceSettings,
  { role, now }: { role: MemberCaller['role']; now: number },
): ServiceRow {
  const { check, people, identify, expires_at, ...plain } = wanted
  const ends_at = momentOf('expires_at', expires_at ?? undefined, 'end')
  const next: ServiceRow = {
    ...row,
    ...plain,
    certificate: check ?? row.certificate,
    people: people ? JSON.stringify(people) : row.people,
    identify: identify === undefined ? row.identify : identify ? 1 : 0,
    expires_at: expires_at === undefined ? row.expires_at : ends_at === undefined ? null : iso(ends_at),
  }
  if (plainAddress(next.host).includes(':') && isIP(next.host) === 0)
    throw new Failure('invalid', { message: 'host: it is not an address' })
  if (!URL.canParse(`http://${next.host_header}`))
    throw new Failure('invalid', { message: 'host_header: it is not a valid host' })
  const isElsewhere = next.host !== row.host || next.port !== row.port || next.scheme !== row.scheme
  if (isForbiddenAddress(next.host))
    throw new Failure('invalid', {
      message: 'host: link-local, multicast and unspecified addresses are not allowed',
    })
  requireMayChange(next, role)
  if (next.audience === 'people' && next.people === '[]')
    throw new Failure('invalid', { message: 'people: name at least one member' })
  if (ends_at !== undefined && ends_at <= now)
    throw new Failure('invalid', { message: 'expires_at: it is in the past' })
  // What was pinned was for another program.
  if (isElsewhere || next.certificate !== row.certificate) next.pinned = ''
  if (next.audience !== 'link') next.link_hash = ''
  return next
}

/** The ids of members by their user names. */
async function membersNamed(
  inside: Pick<StoresInTransaction, 'namespaces'>,
  tenant_id: string,
  names: readonly string[],
): Promise<string[]> {
  const members = new Map(
    (await inside.namespaces.members(tenant_id)).map(({ id, username }) => [username, id]),
  )
  return names.map((name) => {
    const id = members.get(name.toLowerCase())
    if (id === undefined)
      throw new Failure('invalid', { message: `people: ${name} is not a member of the namespace` })
    return id
  })
}

export function services(parts: ServiceParts): ServiceRules {
  const { stores, audit, bus, clock, addresses } = parts
  const view = serviceView(stores, addresses)

  async function mustFind(inside: Pick<StoresInTransaction, 'of'>, tenant_id: string, id: string) {
    const row = await inside.of(tenant_id).services.find(id)
    if (!row) throw new Failure('notFound')
    return row
  }

  /** Runs the change of a service, and tells the nodes that have it open. */
  async function change<T extends Pick<ServiceRow, 'id'>>(
    caller: MemberCaller,
    work: (inside: StoresInTransaction, record: Recorder) => Promise<T>,
  ): Promise<T> {
    const { tenant_id } = caller
    const changed = await audit.change(caller, work)
    bus.tell('service.changed', { tenant_id, id: changed.id })
    return changed
  }

  async function add(
    device_uid: string,
    settings: Parameters<ServiceChanges['add']>[1],
    caller: MemberCaller,
  ): Promise<ServiceRow> {
    const { tenant_id } = caller
    return change(caller, async (inside, record) => {
      const mine = inside.of(tenant_id)
      // Makers of services wait for each other here, so that their number holds.
      await inside.namespaces.hold(tenant_id)
      if (!(await mine.devices.find(device_uid))) throw new Failure('notFound')
      if ((await mine.services.count()) >= serviceLimits.ofNamespace.max) throw new Failure('serviceLimit')
      const people = await membersNamed(inside, tenant_id, settings.people ?? [])
      const created_by = caller.kind === 'key' ? caller.name : caller.username
      const blank = blankService({ tenant_id, device_uid, created_by, name: '', port: 0 }, clock)
      const row = apply(blank, { ...settings, people }, { role: caller.role, now: clock.now() })
      await mine.services.insert(row)
      record({ action: 'service.created', target: targetOf(row), after: audited(row) })
      return row
    })
  }

  async function drop(find: Parameters<ServiceChanges['drop']>[0], caller: MemberCaller): Promise<void> {
    const { tenant_id } = caller
    await change(caller, async (inside, record) => {
      const mine = inside.of(tenant_id)
      const row = await find(mine.services)
      if (!row || !(await mine.services.remove(row.id))) throw new Failure('notFound')
      if (row.public_url === 1) await mine.devices.save(row.device_uid, { public_url: 0 })
      record({ action: 'service.removed', target: targetOf(row), before: audited(row) })
      return row
    })
  }

  return {
    add,
    drop,
    async list({ query }, { tenant_id }) {
      const { device_uid, ...slice } = query
      const { items, total } = await stores.of(tenant_id).services.list(slice, { device_uid })
      return { items: await view.many(tenant_id, items), total }
    },
    get: async ({ params }, { tenant_id }) => view.one(await mustFind(stores, tenant_id, params.id)),
    async create({ body }, caller) {
      const { device_uid, ...settings } = body
      return view.one(await add(device_uid, settings, caller))
    },
    async update({ params, body }, caller) {
      const { tenant_id, role } = caller
      const { people: names, forget_pin, ...settings } = body
      const changed = await change(caller, async (inside, record) => {
        const row = await mustFind(inside, tenant_id, params.id)
        if (row.public_url === 1)
          throw new Failure('conflict', {
            message:
              'This service is the public URL of its device: it can be switched off there, or deleted.',
          })
        const people = names && (await membersNamed(inside, tenant_id, names))
        const next = apply(row, { ...settings, people }, { role, now: clock.now() })
        if (forget_pin) next.pinned = ''
        const { id, tenant_id: _, ...columns } = next
        await inside.of(tenant_id).services.save(id, columns)
        record({
          action: 'service.updated',
          target: targetOf(next),
          before: audited(row),
          after: audited(next),
        })
        return next
      })
      return view.one(changed)
    },
    remove: ({ params }, caller) => drop((mine) => mine.find(params.id), caller),
    async newLink({ params }, caller) {
      const secret = newUid()
      const row = await change(caller, async (inside, record) => {
        const found = await mustFind(inside, caller.tenant_id, params.id)
        requireMayChange(found, caller.role)
        if (found.audience !== 'link')
          throw new Failure('conflict', {
            message: 'Only a service that is opened by a link has one; change who may open it.',
          })
        await inside.of(caller.tenant_id).services.save(found.id, { link_hash: hashOf(secret) })
        record({ action: 'service.linked', target: targetOf(found) })
        return found
      })
      return { link: `${addresses.urlOf(row.address)}${linkPath}?key=${secret}` }
    },
  }
}
