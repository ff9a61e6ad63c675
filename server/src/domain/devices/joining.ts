// How new devices join: with an enrolment token, by an accept rule, by a member's word, or as pending. Containers of
// a connector join by container-devices.ts. One
// transaction counts the token, stores the device and accepts it, so that a token for one device lets in one,
// however many call at once. A device that a token or a rule cannot accept is pending.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import { neighbourhood } from '../../kit/address.ts'
import { iso } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { AcceptRuleRow } from '../../storage/accept-rules.ts'
import type { DeviceRow, DeviceStore } from '../../storage/devices.ts'
import type { EnrolmentTokenRow } from '../../storage/enrolment-tokens.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { AuditActor, Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { MemberCaller } from '../callers/callers.ts'
import { firstFitting } from './accept-rules.ts'
import type { Accepted, Accepting, JoinOutcome } from './accepting.ts'
import type { EnrolmentOrigin } from './device-facts.ts'
import { deviceActor, targetOf } from './device-rows.ts'
import { mayUse, patternName, presentedTokens, type TokenLookupParts } from './presented-tokens.ts'

export interface JoiningParts
  extends Omit<TokenLookupParts, 'stores'>, With<'stores' | 'audit' | 'bus' | 'clock'> {
  accepting: Accepting
  /** Limits new devices from one address: otherwise anyone who knows a namespace's id could fill it. */
  newPerSource: Limiter
  /** No device is created on a full disk. */
  isFull(): boolean
  onJoined(joined: EnrolledDevice): void
}

/** `why`: the reason why it is not accepted although it should be. */
export interface EnrolledDevice extends JoinOutcome {
  readonly tenant_id: string
  readonly uid: string
  readonly enrolled_with: EnrolmentOrigin
}

type Row = Omit<Parameters<DeviceStore['insert']>[0], 'name' | 'tags' | 'status' | 'enrolled_with'>

/** Without the columns that follow from how the device joins. */
export type NewRow = Row & { readonly hostname: string }

export type NamedRow = Row & Pick<DeviceRow, 'name' | 'tags' | 'enrolled_with'>

type Joined = Pick<DeviceRow, 'name' | 'status'>

export interface Joining {
  /** Refuses an unknown token. */
  present(token: string, source: string): Promise<EnrolmentTokenRow>
  /** Stores a new device, or lets a pending one use a token. */
  join(
    tenant_id: string,
    row: NewRow,
    wanted: { name: string; token?: EnrolmentTokenRow | undefined; request_id?: string | undefined },
  ): Promise<Joined>
  /**
   * A member takes in a device: one transaction, which begins with `claim`, stores it if it is new, and
   * accepts it.
   */
  admit(
    row: NamedRow,
    caller: MemberCaller,
    claim: (inside: StoresInTransaction, record: Recorder) => Promise<void>,
  ): Promise<Accepted>
  /** The container of an agent is back: its device is accepted, or waits. */
  comeBack(row: DeviceRow): Promise<Joined>
}

function entryOf(by: { token: EnrolmentTokenRow } | { rule: AcceptRuleRow }): {
  tags: string
  enrolled_with: EnrolmentOrigin
  pattern: string
  accepts: boolean
} {
  if ('rule' in by) {
    const id = String(by.rule.id)
    return {
      tags: by.rule.tags,
      enrolled_with: { kind: 'rule', id, name: `rule ${id}` },
      pattern: '',
      accepts: true,
    }
  }
  const { id, name, tags, name_pattern: pattern, accept } = by.token
  return { tags, enrolled_with: { kind: 'token', id, name }, pattern, accepts: accept === 1 }
}

function entrances({ stores, audit, clock, accepting }: JoiningParts) {
  /** Undefined: the token may no longer be used. */
  async function letIn(
    tenant_id: string,
    { hostname, ...row }: NewRow,
    { name: ownName, actor }: { name: string; actor: AuditActor },
    by: { token: EnrolmentTokenRow } | { rule: AcceptRuleRow },
  ): Promise<Joined | EnrolledDevice | undefined> {
    const { uid, mac } = row
    const { tags, enrolled_with, pattern, accepts } = entryOf(by)
    return audit.change(actor, async (inside, record) => {
      const { devices: mine, enrolmentTokens } = inside.of(tenant_id)
      // Accepting counts the accepted devices; the namespace is locked first, as everywhere.
      await inside.namespaces.hold(tenant_id)
      const there = await mine.find(uid)
      if (there && !('token' in by && mayUse(there, by.token))) return there
      const n = 'token' in by ? await enrolmentTokens.spend(by.token.id, iso(clock.now())) : 0
      if (n === undefined) return undefined
      const name = pattern === '' ? ownName : patternName(pattern, { n, hostname: hostname || ownName, mac })
      const named = pattern === '' ? 0 : 1
      const given = { name, named, tags, enrolled_with: JSON.stringify(enrolled_with) } as const
      if (there) await mine.save(uid, given)
      else await mine.insert({ ...row, ...given, status: 'pending' })
      const outcome: JoinOutcome = accepts
        ? await accepting.acceptUnasked(inside, (await mine.find(uid))!)
        : { name, status: 'pending', why: undefined }
      const { status, why } = outcome
      record({
        action: 'device.enrolled',
        target: targetOf({ uid, name: outcome.name }),
        after: { name: outcome.name, status, tags: JSON.parse(tags) as string[] },
        detail: { with: enrolled_with, ...defined({ why }) },
      })
      return { tenant_id, uid, enrolled_with, ...outcome }
    })
  }

  async function insertPending(device: NewRow, name: string, actor: AuditActor): Promise<Joined> {
    const { hostname: _, ...row } = device
    try {
      await audit.change(actor, async (inside, record) => {
        await inside.of(actor.tenant_id).devices.insert({ ...row, name, tags: '[]', status: 'pending' })
        record({
          action: 'device.enrolled',
          target: targetOf({ uid: row.uid, name }),
          after: { name, status: 'pending' },
        })
      })
    } catch (error) {
      // Another call of the same device inserted the same row first.
      if (!stores.isDuplicate(error)) throw error
    }
    return { name, status: 'pending' }
  }

  return { letIn, insertPending }
}

/** Repeats a transaction that met another one of the same device, or one that took its name. */
async function again<T>({ isDuplicate }: Pick<Stores, 'isDuplicate'>, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1)
    try {
      return await work()
    } catch (error) {
      if (!isDuplicate(error) || tries === 3) throw error
    }
}

export function joining(parts: JoiningParts): Joining {
  const { stores, audit, bus, clock, accepting } = parts
  const { letIn, insertPending } = entrances(parts)
  const { present, refuse } = presentedTokens(parts)

  function checkRoomFor(source: string): void {
    if (parts.isFull())
      throw new Failure('unavailable', { message: 'The disk of the server is full.', retryAfter: 60 })
    const wait = parts.newPerSource.take(neighbourhood(source))
    if (wait > 0) throw beyond(deviceLimits.joining, wait)
  }

  return {
    present,

    async join(tenant_id, row, { name, token, request_id = '' }) {
      const { uid, hostname, mac, remote_addr: source, info_platform: platform } = row
      checkRoomFor(source)
      const rules = token ? [] : await stores.of(tenant_id).acceptRules.all()
      const rule = firstFitting(rules, { hostname, mac, platform, source })
      const actor = deviceActor({ tenant_id, uid, name, source, request_id })
      const by = token ? { token } : rule && { rule }
      if (!by) return insertPending(row, name, actor)
      const device = await again(stores, () => letIn(tenant_id, row, { name, actor }, by))
      if (!device) return refuse(token!, source)
      if ('why' in device) {
        parts.onJoined(device)
        bus.tell('device.changed', { tenant_id, uid, status: device.status })
      }
      return device
    },

    async admit({ name, tags, enrolled_with, ...row }, caller, claim) {
      const { tenant_id } = caller
      const { uid, mac } = row
      const given = { name, tags, enrolled_with }
      const known = await stores.of(tenant_id).devices.find(uid)
      const twin = await accepting.twinOf({ tenant_id, mac, status: known?.status ?? 'pending' })
      const accepted = await again(stores, () =>
        audit.change(caller, async (inside, record) => {
          const mine = inside.of(tenant_id).devices
          await inside.namespaces.hold(tenant_id)
          await claim(inside, record)
          const there = await mine.find(uid)
          if (!there) await mine.insert({ ...row, ...given, status: 'pending' })
          else if (there.status !== 'accepted') await mine.save(uid, given)
          const device = (await mine.find(uid))!
          return accepting.accept(inside, record, device, { by: caller, twin })
        }),
      )
      accepting.announce(caller, { uid, status: 'accepted' }, accepted.replacement)
      return accepted
    },

    async comeBack({ tenant_id, uid, name, remote_addr: source }) {
      const device = await audit.change(
        deviceActor({ tenant_id, uid, name, source }),
        async (inside, record) => {
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id).devices
          const there = await mine.find(uid)
          if (there?.status !== 'removed') return there
          const waiting = { status: 'pending', status_update_at: iso(clock.now()), decided: 0 } as const
          await mine.save(uid, waiting)
          const { why, ...back } = await accepting.acceptUnasked(inside, { ...there, ...waiting })
          record({
            action: `device.${back.status}`,
            target: targetOf(there),
            before: { name: there.name, status: 'removed' },
            after: back,
            detail: defined({ why }),
          })
          return back
        },
      )
      if (!device) throw new Failure('notFound')
      bus.tell('device.changed', { tenant_id, uid, status: device.status })
      return device
    },
  }
}
