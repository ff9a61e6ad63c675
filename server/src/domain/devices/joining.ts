// How new devices join: with an enrolment token, by an accept rule, or as pending. One transaction counts the
// token, stores the device and accepts it, so that a token of one device lets in one, however many call at
// once on however many nodes. Accepting goes by the same rules as a person's accepting, with one difference:
// nobody looks at the device, so it never replaces another one. What cannot be accepted waits as pending.
import type { Device } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { iso, type Clock } from '../../kit/clock.ts'
import { neighbourhood } from '../../kit/address.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { Bus } from '../../bus/bus.ts'
import type { AcceptRuleRow } from '../../storage/accept-rules.ts'
import type { DeviceRow, DeviceStore } from '../../storage/devices.ts'
import type { EnrolmentTokenRow } from '../../storage/enrolment-tokens.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { Audit, AuditActor } from '../audit/audit.ts'
import { firstFitting } from './accept-rules.ts'
import { change } from './device-status.ts'
import { heldSlots } from './device-view.ts'

export interface JoiningParts {
  stores: Stores
  audit: Audit
  bus: Bus
  clock: Clock
  /** Whether namespaces may pay for more devices. */
  billed: boolean
  /** Limits new devices from one address: otherwise anyone who knows a namespace's id could fill it. */
  newPerSource: Limiter
  /** Limits wrong enrolment tokens from one address. */
  wrongTokens: Limiter
  /** Whether the disk is full; then no device is created. */
  isFull(): boolean
  onJoined(joined: EnrolledDevice): void
  /** Somebody presented a token that the server has, and that may not be used any more. */
  onRefused(refused: { tenant_id: string; token: string; why: string; source: string }): void
}

/** What let a device in beside a person, as a device remembers it. */
export type EnrolmentOrigin = NonNullable<Device['enrolled_with']>

/** A device that joined with a token or by a rule. */
export interface EnrolledDevice {
  readonly tenant_id: string
  readonly uid: string
  readonly name: string
  readonly enrolled_with: EnrolmentOrigin
  readonly status: 'accepted' | 'pending'
  /** Why it is not accepted although it should be. */
  readonly why: string | undefined
}

/** What a new device is made of, beside its name. */
export type NewRow = Omit<
  Parameters<DeviceStore['insert']>[0],
  'name' | 'tags' | 'status' | 'enrolled_with'
> & {
  readonly hostname: string
}

export interface Joining {
  /** The token that a device presents. Refuses one that the server does not have. */
  present(token: string, source: string): Promise<EnrolmentTokenRow>
  /** Stores a new device, or lets one that is pending use a token. Gives its name and status. */
  join(
    tenant_id: string,
    row: NewRow,
    wanted: { name: string; token?: EnrolmentTokenRow | undefined; request_id?: string | undefined },
  ): Promise<Pick<DeviceRow, 'name' | 'status'>>
  /** The container of an agent is there again after it was gone: it is accepted, or waits. */
  comeBack(row: DeviceRow): Promise<Pick<DeviceRow, 'name' | 'status'>>
}

/** A device that has used the token before is not counted again, whatever has become of it since. */
const hasUsed = ({ enrolled_with }: DeviceRow, { id }: EnrolmentTokenRow): boolean =>
  enrolled_with !== null && (JSON.parse(enrolled_with) as EnrolmentOrigin).id === id

/** Whether the token would change anything: a person's decision about a device counts more than a token. */
export const mayUse = (row: DeviceRow, token: EnrolmentTokenRow): boolean =>
  row.status === 'pending' && !hasUsed(row, token)

const longestName = 64

/** The name that a token gives to its nth device, in the characters that a name may have. */
export function patternName(
  pattern: string,
  device: { readonly n: number; readonly hostname: string; readonly mac: string },
): string {
  const digits = device.mac.replaceAll(/[^0-9a-fA-F]/g, '')
  const name = pattern
    .replaceAll(/\{(\w+)\}/g, (_, word: string) => {
      if (/^n+$/.test(word)) return String(device.n).padStart(word.length, '0')
      if (word === 'hostname') return device.hostname
      return word === 'mac4' ? digits.slice(-4) : device.mac
    })
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(0, longestName)
  return name || 'device'
}

export function joining(parts: JoiningParts): Joining {
  const { stores, audit, bus, clock } = parts

  const notValid = () => new Failure('wrongToken', { message: 'The enrolment token is not valid.' })

  /** Says why the token could not be used. Whoever presents it has it, and may know. */
  async function refuse({ hash }: EnrolmentTokenRow, source: string): Promise<never> {
    const token = await stores.presentedTokens.find(hash)
    if (!token) throw notValid()
    const isExpired = token.expires_at !== null && token.expires_at <= iso(clock.now())
    const why = isExpired ? 'has expired' : 'has been used for as many devices as it may be'
    parts.onRefused({ tenant_id: token.tenant_id, token: token.name, why, source })
    throw new Failure('wrongToken', { message: `The enrolment token ${why}.` })
  }

  /** Accepts the device inside of the transaction. If that cannot be, it stays pending, and `why` says so. */
  async function accept(
    inside: StoresInTransaction,
    device: Pick<EnrolledDevice, 'tenant_id' | 'uid' | 'name'>,
    mac: string,
  ): Promise<Pick<EnrolledDevice, 'name' | 'status' | 'why'>> {
    const { tenant_id, uid } = device
    const { devices: mine, removedDevices } = inside.of(tenant_id)
    const waits = (why: string) => ({ name: device.name, status: 'pending', why }) as const
    const twin = mac ? await mine.findAcceptedByMac(mac) : undefined
    if (twin) return waits(`It has the MAC address of ${twin.name} and would replace it.`)
    const isTaken = (await mine.findAcceptedByName(device.name)) !== undefined
    const name = isTaken ? `${device.name.slice(0, longestName - 7)}-${uid.slice(0, 6)}` : device.name
    const namespace = await inside.namespaces.find(tenant_id)
    const kept = namespace && namespace.max_devices > 0 ? await heldSlots(inside, tenant_id, clock) : []
    try {
      change({ uid, status: 'pending' }, 'accept', {
        sameMac: undefined,
        sameName: await mine.findAcceptedByName(name),
        accepted: await mine.countWithStatus('accepted'),
        max_devices: namespace?.max_devices ?? -1,
        kept: kept.filter((other) => other !== uid).length,
        billed: parts.billed,
      })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      return waits(error.message)
    }
    if (kept.includes(uid)) await removedDevices.remove(uid)
    await mine.save(uid, { name, status: 'accepted', status_update_at: iso(clock.now()) })
    return { name, status: 'accepted', why: undefined }
  }

  /** One attempt to let a device in. Undefined: the token may not be used any more. */
  async function letIn(
    tenant_id: string,
    { hostname, ...row }: NewRow,
    { name: ownName, actor }: { name: string; actor: AuditActor },
    by: { token: EnrolmentTokenRow } | { rule: AcceptRuleRow },
  ): Promise<Pick<DeviceRow, 'name' | 'status' | 'tags'> | EnrolledDevice | undefined> {
    const { uid, mac } = row
    return audit.change(actor, async (inside, record) => {
      const { devices: mine, enrolmentTokens } = inside.of(tenant_id)
      // Accepting counts the accepted devices; the namespace is locked first, as everywhere.
      await inside.namespaces.hold(tenant_id)
      const there = await mine.find(uid)
      if (there && !('token' in by && mayUse(there, by.token))) return there
      let name = ownName
      if ('token' in by) {
        const n = await enrolmentTokens.spend(by.token.id, iso(clock.now()))
        if (n === undefined) return undefined
        const pattern = by.token.name_pattern
        if (pattern !== '') name = patternName(pattern, { n, hostname: hostname || ownName, mac })
      }
      const { tags } = 'token' in by ? by.token : by.rule
      const enrolled_with: EnrolmentOrigin =
        'token' in by
          ? { kind: 'token', id: by.token.id, name: by.token.name }
          : { kind: 'rule', id: String(by.rule.id), name: `rule ${by.rule.id}` }
      const isNamed = 'token' in by && by.token.name_pattern !== ''
      const given = {
        name,
        named: isNamed ? 1 : 0,
        tags,
        enrolled_with: JSON.stringify(enrolled_with),
      } as const
      if (there) await mine.save(uid, given)
      else await mine.insert({ ...row, ...given, status: 'pending' })
      const joined = { tenant_id, uid, name, enrolled_with, status: 'pending', why: undefined } as const
      const accepts = !('token' in by) || by.token.accept === 1
      const enrolled = accepts ? { ...joined, ...(await accept(inside, joined, mac)) } : joined
      record({
        action: 'device.enrolled',
        target: { kind: 'device', id: uid, name: enrolled.name },
        after: { name: enrolled.name, status: enrolled.status, tags: JSON.parse(tags) as string[] },
        detail: { with: enrolled_with, ...(enrolled.why === undefined ? {} : { why: enrolled.why }) },
      })
      return enrolled
    })
  }

  /** Stores a device that nothing lets in: it waits for a person. */
  async function insertPending(tenant_id: string, device: NewRow, name: string, actor: AuditActor) {
    const { hostname: _, ...row } = device
    try {
      await audit.change(actor, async (inside, record) => {
        await inside.of(tenant_id).devices.insert({ ...row, name, tags: '[]', status: 'pending' })
        record({
          action: 'device.enrolled',
          target: { kind: 'device', id: row.uid, name },
          after: { name, status: 'pending' },
        })
      })
    } catch (error) {
      // Another call of the same device was quicker and inserted the same row.
      if (!stores.isDuplicate(error)) throw error
    }
    return { name, status: 'pending' as const }
  }

  return {
    async present(text, source) {
      const token = await stores.presentedTokens.find(hashOf(text))
      if (token) return token
      // Wrong tokens count against the address that sends them. The right one is never locked out by them:
      // nobody guesses its 160 random bits.
      const wait = parts.wrongTokens.take(neighbourhood(source))
      if (wait === 0) throw notValid()
      throw new Failure('tooMany', {
        message: 'Too many wrong enrolment tokens from one address; wait a little.',
        retryAfter: wait,
      })
    },

    async comeBack({ tenant_id, uid, mac, remote_addr: source, ...row }) {
      const actor: AuditActor = {
        actor: 'device',
        id: uid,
        name: row.name,
        source,
        request_id: '',
        tenant_id,
      }
      const device = await audit.change(actor, async (inside, record) => {
        await inside.namespaces.hold(tenant_id)
        const mine = inside.of(tenant_id).devices
        const there = await mine.find(uid)
        if (there?.status !== 'removed') return there
        const { name } = there
        await mine.save(uid, { status: 'pending', status_update_at: iso(clock.now()), decided: 0 })
        const { why, ...back } = await accept(inside, { tenant_id, uid, name }, mac)
        record({
          action: `device.${back.status}`,
          target: { kind: 'device', id: uid, name },
          before: { name, status: 'removed' },
          after: back,
          ...(why === undefined ? {} : { detail: { why } }),
        })
        return back
      })
      if (!device) throw new Failure('notFound')
      bus.tell('device.changed', { tenant_id, uid, status: device.status })
      return device
    },

    async join(tenant_id, row, { name, token, request_id = '' }) {
      if (parts.isFull())
        throw new Failure('unavailable', { message: 'The disk of the server is full.', retryAfter: 60 })
      const wait = parts.newPerSource.take(neighbourhood(row.remote_addr))
      if (wait > 0)
        throw new Failure('tooMany', {
          message: 'Too many new devices from one address; wait a little.',
          retryAfter: wait,
        })
      const { hostname, mac, remote_addr: source, info_platform: platform } = row
      const rules = token ? [] : await stores.of(tenant_id).acceptRules.all()
      const rule = firstFitting(rules, { hostname, mac, platform, source })
      const actor: AuditActor = { actor: 'device', id: row.uid, name, source, request_id, tenant_id }
      if (!token && !rule) return insertPending(tenant_id, row, name, actor)
      for (let tries = 1; ; tries += 1)
        try {
          const device = await letIn(
            tenant_id,
            row,
            { name, actor },
            token ? { token } : { rule: rule as AcceptRuleRow },
          )
          if (!device) return await refuse(token as EnrolmentTokenRow, source)
          if ('why' in device) {
            parts.onJoined(device)
            bus.tell('device.changed', { tenant_id, uid: row.uid, status: device.status })
          }
          return device
        } catch (error) {
          // The same device called twice, or somebody gave its name to another one: look again.
          if (!stores.isDuplicate(error) || tries === 3) throw error
        }
    },
  }
}
