// Auth device, the hottest call: every agent repeats it all the time. The first call of a device inserts it
// as pending. After that, while nothing about the device changes, the answer comes from a cache. News of a
// change to the device or its namespace invalidates the cache.
//
// Anybody who knows a device's public key and MAC address can make this call in its place. So once the device
// has proved its key in a tunnel, a call changes nothing by itself: the token carries what was said, and a
// tunnel with that token that proves the key makes it count (tunnels.ts). The first caller after a change, or
// after the end of a tunnel, gets a token that nobody else gets; only such a token can become the device's
// own for other calls. Callers who say the same again share one, which is signed once.
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import type { Bus } from '../../bus/bus.ts'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { deviceUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { AgentUpdates, UpdateRequest } from './agent-updates.ts'
import { mayUse, type Joining } from './joining.ts'
import type { Presence } from './presence.ts'
import type { Rules } from '../callers/rules.ts'
import type { DeviceFacts, Tokens } from '../callers/tokens.ts'

export interface EnrolmentParts {
  stores: Stores
  tokens: Tokens
  presence: Presence
  bus: Bus
  clock: Clock
  /**
   * Limits calls for one device from one address. A thousand devices may share an address, and strangers at
   * other addresses may call for the device; neither uses up its budget.
   */
  callsPerDevice: Limiter
  /** Limits calls from one address for all devices together, far above what its devices need. */
  callsPerAddress: Limiter
  joining: Joining
  updates: Pick<AgentUpdates, 'reported' | 'answer'>
  /** The public key with which the server approves logins. */
  approvalKey: string
}

/** How many devices' calls one address may make. */
const devicesPerAddress = 100

export const callLimits = (
  limiter: (name: string, rate: { max: number; window_ms: number }) => Limiter,
  rate: { readonly max: number; readonly window_ms: number },
): Pick<EnrolmentParts, 'callsPerDevice' | 'callsPerAddress'> => ({
  callsPerDevice: limiter('device calls', rate),
  callsPerAddress: limiter('device calls of an address', { ...rate, max: rate.max * devicesPerAddress }),
})

interface Known {
  /** The token for callers who say the same again, when there was one. */
  shared?: string
  /** The claims of the tokens. */
  readonly said: DeviceFacts
  readonly isProved: boolean
  readonly name: string
  readonly tenant_id: string
  readonly status: DeviceStatus
  readonly facts: string
  /** What its agent was asked to install. */
  readonly request: UpdateRequest | undefined
}

/** Cached devices; an evicted one costs a look-up and a signature. */
const mostCached = 1_000_000
const uuid = new RegExp(patterns.uuid)

const noNamespace = () => new Failure('notFound', { message: 'There is no namespace with this tenant_id.' })

/** The name of a new device: its host name, else its MAC, in the characters that a name may have. */
export function nameFrom(hostname: string, mac: string): string {
  const name = (hostname || mac)
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(0, 64)
  return name || 'device'
}

const longestFact = 255

/** What a device says of itself, as it is kept: other facts stand beside it where people decide. */
export const factText = (text = ''): string => safeText(text, longestFact)

/** The facts of a device, as they are kept. */
export const infoColumns = (info: Partial<Device['info']>) => ({
  info_id: factText(info.id),
  info_pretty_name: factText(info.pretty_name),
  info_version: factText(info.version),
  info_arch: factText(info.arch),
  info_platform: factText(info.platform),
})

/** Whether the device has ever proved its key: by a signature, or by the host key of its SSH server. */
export const isKeyProved = ({ proved, proved_token }: Pick<DeviceRow, 'proved' | 'proved_token'>): boolean =>
  proved === 1 || proved_token !== null

/** The columns that are the same for every new device. */
export const freshDevice = (now: string) =>
  ({
    status: 'pending',
    status_update_at: now,
    created_at: now,
    position: '{"latitude":0,"longitude":0}',
    public_url: 0,
    public_url_address: '',
    tags: '[]',
    last_seen: now,
  }) as const

export function enrolment(parts: EnrolmentParts): Rules<'devices'>['auth'] {
  const { stores, tokens, presence, bus, clock } = parts
  const known = new BoundedMap<string, Known>(mostCached)
  const namespaceNames = new Map<string, string>()
  // Counts news: a row that was read before some news must not be cached after it, because the device may be
  // gone.
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

  return async function auth({ body }, caller) {
    const mac = body.identity?.mac ?? ''
    const hostname = body.hostname ?? ''
    if (!mac && !hostname)
      throw new Failure('invalid', { message: 'hostname or identity.mac: one of them is needed' })
    const token =
      body.enrolment_token === undefined
        ? undefined
        : await parts.joining.present(body.enrolment_token, caller.source)
    const tenant_id = token?.tenant_id ?? body.tenant_id
    if (tenant_id === undefined)
      throw new Failure('invalid', { message: 'tenant_id: the id of a namespace is needed' })
    if (body.tenant_id !== undefined && body.tenant_id !== tenant_id)
      throw new Failure('wrongToken', { message: 'The enrolment token is for another namespace.' })
    const uid = deviceUid({ mac: body.identity ? mac : undefined, public_key: body.public_key, tenant_id })
    const source = neighbourhood(caller.source)
    const wait = parts.callsPerDevice.take(`${uid} ${source}`) || parts.callsPerAddress.take(source)
    if (wait > 0) throw new Failure('tooMany', { retryAfter: wait })

    const { id = '', pretty_name = '', version = '', arch = '', platform = '' } = body.info
    const report = version.startsWith('hawser-') ? body.agent : undefined
    const told = report ? JSON.stringify(report) : ''
    const facts = `${id}\n${pretty_name}\n${version}\n${arch}\n${platform}\n${caller.source}\n${told}`
    let device = known.get(uid)
    let namespace = namespaceNames.get(tenant_id)
    let isSole = false
    if (token || device?.facts !== facts || namespace === undefined) {
      const before = news
      const found = uuid.test(tenant_id) ? await stores.namespaces.find(tenant_id) : undefined
      if (!found) throw noNamespace()
      namespace = found.name
      device = await record(tenant_id)
      isSole = true
      if (news === before) {
        namespaceNames.set(tenant_id, namespace)
        known.set(uid, device)
      }
    }
    if (!device.isProved) {
      presence.seen(uid)
      if (body.sessions?.length)
        await stores.of(tenant_id).sessions.touch(uid, body.sessions, iso(clock.now()))
    }
    const { name, status, said } = device
    const claims = { uid, tenant: tenant_id, said }
    return {
      uid,
      token: isSole
        ? await tokens.forDevice({ ...claims, sole: true })
        : (device.shared ??= await tokens.forDevice(claims)),
      name,
      namespace,
      status,
      ...(token ? { tenant_id } : {}),
      ...(report ? { agent: parts.updates.answer(report, arch, device.request) } : {}),
      ...(version.startsWith('hawser-') ? { approval_key: parts.approvalKey } : {}),
    }

    /** Updates the stored device, or inserts it. */
    async function record(tenant_id: string): Promise<Known> {
      const devices = stores.of(tenant_id).devices
      const now = iso(clock.now())
      const row = await devices.find(uid)
      const reported = {
        ...parts.updates.reported(report, row),
        ...infoColumns(body.info),
        remote_addr: caller.source,
      }
      let { name, status }: Pick<Known, 'name' | 'status'> = row ?? {
        name: nameFrom(hostname, mac),
        status: 'pending',
      }
      const isProved = row !== undefined && isKeyProved(row)
      // Only what differs: an update may be asked for at this moment.
      const changed =
        row && !isProved
          ? Object.entries(reported).filter(([key, value]) => row[key as keyof typeof row] !== value)
          : []
      if (changed.length > 0) await devices.save(uid, Object.fromEntries(changed))
      if (!row || (token && mayUse(row, token)))
        try {
          const fresh = {
            ...reported,
            ...freshDevice(now),
            uid,
            hostname,
            mac: factText(mac),
            container: platform === 'connector' ? nameFrom(hostname, mac) : null,
            public_key: body.public_key,
            online: 1,
            token_at: now,
          } as const
          ;({ name, status } = await parts.joining.join(tenant_id, fresh, {
            name,
            token,
            request_id: caller.request_id,
          }))
        } catch (error) {
          // The namespace may have been deleted a moment ago.
          if (!(error instanceof Failure) && !(await stores.namespaces.find(tenant_id))) throw noNamespace()
          throw error
        }
      return {
        said: { info: { id, pretty_name, version, arch, platform }, ...(report ? { agent: report } : {}) },
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
  }
}
