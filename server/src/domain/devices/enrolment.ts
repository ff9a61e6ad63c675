// Auth device, the hottest call: agents repeat it all the time. The first call inserts a device as pending;
// while nothing changes, later answers come from a cache, which news of the device or its namespace
// invalidates.
// Anybody who knows a device's public key and MAC address can make this call. So once the key was proved in a
// tunnel, a call changes nothing by itself: its token carries what was said, which counts when a tunnel with
// that token proves the key (tunnels.ts). The first caller after a change, or after the end of a tunnel, gets
// a token of its own, the only kind that can become the device's; callers who repeat the same facts share
// one, which is signed once.
import type { Contract } from '@hawser/contract'
import type { AgentReport } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import type { DeviceStatus } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import type { Input } from '@hawser/contract/operation'
import type { Bus } from '../../bus/bus.ts'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { iso } from '../../kit/clock.ts'
import { deviceUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { EnrolmentTokenRow } from '../../storage/enrolment-tokens.ts'
import type { With } from '../audit/parts.ts'
import type { AgentColumns, AgentStates, UpdateRequest } from './agent-states.ts'
import { factText, freshDevice, infoColumns, isKeyProved, nameFrom } from './device-facts.ts'
import type { Joining } from './joining.ts'
import type { Presence } from './presence.ts'
import { mayUse } from './presented-tokens.ts'
import type { AnonymousCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import type { DeviceFacts, Tokens } from '../callers/tokens.ts'

export interface EnrolmentParts extends With<'stores' | 'bus' | 'clock'> {
  tokens: Tokens
  presence: Presence
  /**
   * For one device from one address: a thousand devices may share an address, and strangers elsewhere may
   * call for the device.
   */
  callsPerDevice: Limiter
  /** From one address for all devices together, far above what its devices need. */
  callsPerAddress: Limiter
  joining: Joining
  updates: Pick<AgentStates, 'reported' | 'answer'>
  /** The public key with which the server approves logins. */
  approvalKey: string
}

export const callLimits = (
  limiter: (name: string, rate: { max: number; window_ms: number }) => Limiter,
  rate: { readonly max: number; readonly window_ms: number },
): Pick<EnrolmentParts, 'callsPerDevice' | 'callsPerAddress'> => ({
  callsPerDevice: limiter('device calls', rate),
  callsPerAddress: limiter('device calls of an address', {
    ...rate,
    max: rate.max * deviceLimits.callsOfAddress.times,
  }),
})

interface Known {
  /** The token for callers who repeat the same facts, if there is one. */
  shared?: string
  readonly said: DeviceFacts
  readonly isProved: boolean
  readonly name: string
  readonly tenant_id: string
  readonly status: DeviceStatus
  readonly facts: string
  readonly request: UpdateRequest | undefined
}

/** An evicted device costs a look-up and a signature. */
const mostCached = 1_000_000
const uuid = new RegExp(patterns.uuid)

const noNamespace = () => new Failure('notFound', { message: 'There is no namespace with this tenant_id.' })

interface DeviceCall {
  readonly body: Input<Contract['devices']['auth']>['body']
  readonly caller: AnonymousCaller
  readonly token: EnrolmentTokenRow | undefined
  readonly tenant_id: string
  readonly uid: string
  readonly report: AgentReport | undefined
  /** All facts of the call in one text, to compare with an earlier call. */
  readonly facts: string
}

interface Cache {
  /** Undefined also when the facts of the call are new. */
  find(call: DeviceCall): Found | undefined
  /** Caches the result of a look-up unless there was news in between: the device may be gone by then. */
  fill(call: DeviceCall, look: () => Promise<Found>): Promise<Found>
}

interface Found {
  readonly device: Known
  readonly namespace: string
}

function cacheUntilNews(bus: Bus): Cache {
  const known = new BoundedMap<string, Known>(mostCached)
  const namespaceNames = new Map<string, string>()
  let news = 0
  bus.hear('device.changed', ({ uid }) => {
    news++
    known.delete(uid)
  })
  // The agent may start again, and then gets a token of its own.
  bus.hear('device.offline', ({ uid }) => known.delete(uid))
  bus.hear('namespace.changed', ({ tenant_id }) => {
    news++
    namespaceNames.delete(tenant_id)
    for (const [uid, device] of known) if (device.tenant_id === tenant_id) known.delete(uid)
  })
  bus.missed(() => {
    news++
    known.clear()
    namespaceNames.clear()
  })
  return {
    find({ uid, tenant_id, facts }) {
      const device = known.get(uid)
      const namespace = namespaceNames.get(tenant_id)
      return device?.facts === facts && namespace !== undefined ? { device, namespace } : undefined
    },
    async fill({ tenant_id, uid }, look) {
      const before = news
      const found = await look()
      if (news === before) {
        namespaceNames.set(tenant_id, found.namespace)
        known.set(uid, found.device)
      }
      return found
    },
  }
}

function looking(parts: EnrolmentParts): (call: DeviceCall) => Promise<Found> {
  const { stores, clock } = parts

  async function lookUp(call: DeviceCall): Promise<Found> {
    const { tenant_id } = call
    const found = uuid.test(tenant_id) ? await stores.namespaces.find(tenant_id) : undefined
    if (!found) throw noNamespace()
    return { device: await store(call), namespace: found.name }
  }

  async function store(call: DeviceCall): Promise<Known> {
    const { body, caller, token, tenant_id, uid, report, facts } = call
    const devices = stores.of(tenant_id).devices
    const row = await devices.find(uid)
    const reported = {
      ...parts.updates.reported(report, row),
      ...infoColumns(body.info),
      remote_addr: caller.source,
    }
    const isProved = row !== undefined && isKeyProved(row)
    // Only what differs: an update may be requested at this moment.
    const changed =
      row && !isProved
        ? Object.entries(reported).filter(([key, value]) => row[key as keyof typeof row] !== value)
        : []
    if (changed.length > 0) await devices.save(uid, Object.fromEntries(changed))
    const { name, status } = !row || (token && mayUse(row, token)) ? await join(call, reported, row) : row
    const { id = '', pretty_name = '', version = '', arch = '', platform = '' } = body.info
    return {
      said: { info: { id, pretty_name, version, arch, platform }, ...defined({ agent: report }) },
      isProved,
      name,
      tenant_id,
      status,
      facts,
      request:
        row?.status === 'accepted' && reported.update_asked_at !== null
          ? { build: reported.update_build, asked_at: reported.update_asked_at }
          : undefined,
    }
  }

  async function join(
    { body, caller, token, tenant_id, uid }: DeviceCall,
    reported: AgentColumns & ReturnType<typeof infoColumns> & Pick<DeviceRow, 'remote_addr'>,
    row: DeviceRow | undefined,
  ): Promise<Pick<DeviceRow, 'name' | 'status'>> {
    const { hostname = '', identity, public_key, info } = body
    const mac = identity?.mac ?? ''
    const now = iso(clock.now())
    const ownName = nameFrom(hostname, mac)
    const fresh = {
      ...reported,
      ...freshDevice(now),
      uid,
      hostname,
      mac: factText(mac),
      container: info.platform === 'connector' ? ownName : null,
      public_key,
      online: 1,
      token_at: now,
    } as const
    try {
      const { request_id } = caller
      return await parts.joining.join(tenant_id, fresh, { name: row?.name ?? ownName, token, request_id })
    } catch (error) {
      // The namespace may have been deleted a moment ago.
      if (!(error instanceof Failure) && !(await stores.namespaces.find(tenant_id))) throw noNamespace()
      throw error
    }
  }

  return lookUp
}

export function enrolment(parts: EnrolmentParts): Rules<'devices'>['auth'] {
  const { stores, tokens, presence, clock } = parts
  const cache = cacheUntilNews(parts.bus)
  const lookUp = looking(parts)

  async function read(body: DeviceCall['body'], caller: AnonymousCaller): Promise<DeviceCall> {
    const { identity, hostname = '', public_key, enrolment_token, info } = body
    const mac = identity?.mac ?? ''
    if (!mac && !hostname)
      throw new Failure('invalid', { message: 'hostname or identity.mac: one of them is needed' })
    const token =
      enrolment_token === undefined ? undefined : await parts.joining.present(enrolment_token, caller.source)
    const tenant_id = token?.tenant_id ?? body.tenant_id
    if (tenant_id === undefined)
      throw new Failure('invalid', { message: 'tenant_id: the id of a namespace is needed' })
    if (body.tenant_id !== undefined && body.tenant_id !== tenant_id)
      throw new Failure('wrongToken', { message: 'The enrolment token is for another namespace.' })
    const uid = deviceUid({ mac: identity ? mac : undefined, public_key, tenant_id })
    const { id = '', pretty_name = '', version = '', arch = '', platform = '' } = info
    const report = version.startsWith('hawser-') ? body.agent : undefined
    const reported = report ? JSON.stringify(report) : ''
    const facts = [id, pretty_name, version, arch, platform, caller.source, reported].join('\n')
    return { body, caller, token, tenant_id, uid, report, facts }
  }

  function checkLimits({ uid, caller }: DeviceCall): void {
    const source = neighbourhood(caller.source)
    const wait = parts.callsPerDevice.take(`${uid} ${source}`) || parts.callsPerAddress.take(source)
    if (wait > 0) throw beyond(deviceLimits.calls, wait)
  }

  return async function auth({ body }, caller) {
    const call = await read(body, caller)
    checkLimits(call)
    const { tenant_id, uid, token, report } = call
    const cached = token ? undefined : cache.find(call)
    const { device, namespace } = cached ?? (await cache.fill(call, () => lookUp(call)))
    if (!device.isProved) {
      presence.seen(uid)
      if (body.sessions?.length)
        await stores.of(tenant_id).sessions.touch(uid, body.sessions, iso(clock.now()))
    }
    const { name, status, said } = device
    const claims = { uid, tenant: tenant_id, said }
    const { arch = '', version = '' } = body.info
    return {
      uid,
      token: cached
        ? (device.shared ??= await tokens.forDevice(claims))
        : await tokens.forDevice({ ...claims, sole: true }),
      name,
      namespace,
      status,
      ...defined({
        tenant_id: token && tenant_id,
        agent: report && parts.updates.answer(report, arch, device.request),
        approval_key: version.startsWith('hawser-') ? parts.approvalKey : undefined,
      }),
    }
  }
}
