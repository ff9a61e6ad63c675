// How a device becomes accepted: by a person, a pairing code, a connector, an enrolment token or an accept
// rule, with the same limits, names and slots of deleted devices. Only a person may replace a device, knowing
// which one. Nobody is asked in `acceptUnasked` (tokens and rules, and an agent's container that is back) and in
// `acceptForConnector` of decisions.ts (containers of a connector that accepts them, or that are back). A new container
// of the same name has the status of the former one (`match` in container-devices.ts).
import { defined } from '@hawser/contract/defined'
import { longestNotes } from '@hawser/contract/device-notes'
import type { DeviceStatus } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { AuditActor, Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { MemberCaller } from '../callers/callers.ts'
import { longestName } from './device-facts.ts'
import { change } from './device-status.ts'
import { heldSlots } from './device-view.ts'
import type { Presence } from './presence.ts'
import type { Timeline } from './timeline.ts'

export interface AcceptingParts extends With<'stores' | 'bus' | 'clock'> {
  presence: Pick<Presence, 'forget'>
  timeline: Pick<Timeline, 'note'>
  billed: boolean
  /** Whether the device has a tunnel, on any node. Throws when that is unknown. */
  isConnected(uid: string): Promise<boolean>
  /** A container's device may be waiting for the name. */
  nameFreed(tenant_id: string): void
  onReplaced(replacement: Replacement): void
}

export interface Replacement {
  readonly tenant_id: string
  readonly uid: string
  readonly before: string
  readonly replaced: { readonly uid: string; readonly name: string }
  /** Empty: a connector. */
  readonly by: string
}

export type DecisionActor = MemberCaller | AuditActor

export interface MacOwner {
  readonly uid: string
  readonly connected: boolean
}

type Candidate = Pick<
  DeviceRow,
  'tenant_id' | 'uid' | 'name' | 'mac' | 'status' | 'decided' | 'container' | 'connector'
>

export interface Accepting {
  /** The device that this one would replace. Asks other nodes, so it never runs in a transaction. */
  twinOf(device: Pick<DeviceRow, 'tenant_id' | 'mac' | 'status'>): Promise<MacOwner | undefined>
  /** Runs in a transaction that holds the namespace; throws a Failure if the device cannot be accepted. */
  accept(
    inside: StoresInTransaction,
    record: Recorder,
    device: Candidate,
    decision: { by: DecisionActor; twin: MacOwner | undefined },
  ): Promise<Accepted>
  /** Accepts without a person; a device that cannot be accepted stays pending, and `why` explains it. */
  acceptUnasked(inside: StoresInTransaction, device: Candidate): Promise<JoinOutcome>
  announce(by: DecisionActor, device: { uid: string; status: DeviceStatus }, replacement?: Replacement): void
}

export interface Accepted {
  readonly name: string
  readonly replacement: Replacement | undefined
}

export interface JoinOutcome {
  readonly name: string
  readonly status: 'accepted' | 'pending'
  readonly why: string | undefined
}

export const nameOf = (caller: MemberCaller): string =>
  caller.kind === 'key' ? `API key ${caller.name}` : caller.username

export const replacedHeaders = (replacement: Replacement | undefined): Record<string, string> =>
  replacement ? { 'x-replaced-device': replacement.replaced.name } : {}

/** Moves what belongs to a replaced device to the new one, and removes the former. */
async function inherit(inside: StoresInTransaction, uid: string, from: DeviceRow): Promise<void> {
  const { devices, sessions, budgets, deviceNotes, services } = inside.of(from.tenant_id)
  await sessions.closeOfDevice(from.uid)
  await sessions.moveToDevice(from.uid, uid)
  await budgets.moveToDevice(from.uid, uid)
  await deviceNotes.moveToDevice(from.uid, uid, longestNotes)
  if (from.public_url === 1) {
    const own = await services.publicUrlOf(uid)
    if (own) await services.remove(own.id)
    await devices.save(uid, { public_url: 1, public_url_address: from.public_url_address })
  }
  await services.moveToDevice(from.uid, uid)
  await devices.remove(from.uid)
}

/** Returns the device that was replaced. */
async function settle(
  { clock, billed }: Pick<AcceptingParts, 'clock' | 'billed'>,
  inside: StoresInTransaction,
  device: Candidate,
  twin: MacOwner | undefined,
): Promise<DeviceRow | undefined> {
  const { tenant_id, uid, name, decided } = device
  const { devices: mine, removedDevices } = inside.of(tenant_id)
  const other = (row: DeviceRow | undefined) => (row && row.uid !== uid ? row : undefined)
  // Accepting counts the accepted devices, so others of the namespace wait for the end of this transaction.
  const namespace = await inside.namespaces.hold(tenant_id)
  const sameMac = device.mac ? other(await mine.findAcceptedByMac(device.mac)) : undefined
  const kept = namespace && namespace.max_devices > 0 ? await heldSlots(inside, tenant_id, clock) : []
  const outcome = change(device, 'accept', {
    // A device that was accepted since `twinOf` ran counts as connected.
    sameMac: sameMac && {
      ...sameMac,
      connected: twin?.uid !== sameMac.uid || twin.connected,
      isContainer: device.connector !== null || sameMac.connector !== null,
    },
    sameName: other(await mine.findAcceptedByName(name)),
    accepted: await mine.countWithStatus('accepted'),
    max_devices: namespace?.max_devices ?? -1,
    kept: kept.filter((other) => other !== uid).length,
    billed,
    isGone: device.container !== null && device.status === 'removed',
  })
  if (kept.includes(uid)) await removedDevices.remove(uid)
  const replaced = outcome.kind === 'replace' ? sameMac : undefined
  if (replaced) await inherit(inside, uid, replaced)
  const { named, tags } = replaced ?? {}
  await mine.save(uid, {
    status: 'accepted',
    status_update_at: iso(clock.now()),
    decided,
    name: replaced?.name ?? name,
    ...defined({ named, tags }),
  })
  return replaced
}

export function accepting(parts: AcceptingParts): Accepting {
  const { stores, presence, bus } = parts

  return {
    async twinOf({ tenant_id, mac, status }) {
      const holder =
        mac && status !== 'accepted' ? await stores.of(tenant_id).devices.findAcceptedByMac(mac) : undefined
      return holder && { uid: holder.uid, connected: await parts.isConnected(holder.uid) }
    },

    async accept(inside, record, device, { by, twin }) {
      const { tenant_id, uid } = device
      const decided = 'actor' in by ? device.decided : 1
      const replaced = await settle(parts, inside, { ...device, decided }, twin)
      const name = replaced?.name ?? device.name
      record({
        action: 'device.accepted',
        target: { kind: 'device', id: uid, name: device.name },
        before: { name: device.name, status: device.status },
        after: { name, status: 'accepted' },
      })
      if (!replaced) return { name, replacement: undefined }
      record({
        action: 'device.replaced',
        target: { kind: 'device', id: replaced.uid, name },
        detail: { by: uid },
      })
      return {
        name,
        replacement: {
          tenant_id,
          uid,
          before: device.name,
          replaced: { uid: replaced.uid, name },
          by: 'actor' in by ? '' : nameOf(by),
        },
      }
    },

    async acceptUnasked(inside, device) {
      const { tenant_id, uid } = device
      const mine = inside.of(tenant_id).devices
      const waits = (why: string): JoinOutcome => ({ name: device.name, status: 'pending', why })
      const twin = device.mac ? await mine.findAcceptedByMac(device.mac) : undefined
      if (twin) return waits(`It has the MAC address of ${twin.name} and would replace it.`)
      const isTaken = (await mine.findAcceptedByName(device.name)) !== undefined
      const name = isTaken ? `${device.name.slice(0, longestName - 7)}-${uid.slice(0, 6)}` : device.name
      try {
        await settle(parts, inside, { ...device, name }, undefined)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        return waits(error.message)
      }
      return { name, status: 'accepted', why: undefined }
    },

    announce(by, { uid, status }, replacement) {
      const { tenant_id } = by
      if (replacement) {
        presence.forget(replacement.replaced.uid)
        bus.tell('device.changed', { tenant_id, uid: replacement.replaced.uid, status: 'gone' })
        parts.onReplaced(replacement)
      }
      bus.tell('device.changed', { tenant_id, uid, status })
      parts.timeline.note(uid, { kind: 'status', status })
      if (!('actor' in by)) parts.nameFreed(tenant_id)
    },
  }
}
