// Members' decisions about devices: accept, reject, set back, remove, and which ones stay when a namespace is
// over its limit. Transitions are in device-status.ts, accepting is in accepting.ts.
import { statusChanges, type StatusChange } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import { theServer } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { noProvider } from '../billing/billing.ts'
import { isOver } from '../billing/device-limit.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { replacedHeaders, type Accepting, type DecisionActor, type Replacement } from './accepting.ts'
import { endsSessions } from './device-status.ts'
import { mustFindDevice, orNameTaken, targetOf } from './device-rows.ts'
import { holdSlot } from './device-view.ts'
import type { Presence } from './presence.ts'

export interface DecisionParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  accepting: Accepting
  presence: Pick<Presence, 'forget'>
  /** Whether namespaces may pay for more devices. */
  billed: boolean
  nameFreed(tenant_id: string): void
}

export interface DecisionRules extends Pick<Rules<'devices'>, 'accept' | 'setStatus' | 'remove' | 'choose'> {
  /** Accepts a device without a caller, because the namespace wants such devices accepted. */
  acceptForConnector(tenant_id: string, uid: string): Promise<void>
}

const uidLength = 64

const answered = (replacement?: Replacement) => ({ answer: undefined, headers: replacedHeaders(replacement) })

/** Sets back every other accepted device, and returns those. */
async function keepOnly(
  { audit, clock }: Pick<DecisionParts, 'audit' | 'clock'>,
  choices: readonly string[],
  caller: MemberCaller,
): Promise<readonly string[]> {
  const { tenant_id } = caller
  return audit.change(caller, async (inside, record) => {
    const { devices, sessions } = inside.of(tenant_id)
    // The namespace is locked first, as in `accept`, so that no other request changes the count.
    const namespace = await inside.namespaces.hold(tenant_id)
    for (const uid of choices)
      if ((await devices.find(uid))?.status !== 'accepted')
        throw new Failure('notFound', {
          message: `choices: no accepted device has the uid ${uid.slice(0, uidLength)}`,
        })
    const max_devices = namespace?.max_devices ?? -1
    if (!isOver({ accepted: await devices.countWithStatus('accepted'), max_devices }))
      throw new Failure('conflict', {
        message: 'This namespace is within its device limit; there is nothing to choose.',
        code: 'within_limit',
      })
    const uids = await devices.keepAccepted(choices, iso(clock.now()))
    for (const uid of uids) {
      await sessions.closeOfDevice(uid)
      record({
        action: 'device.pending',
        target: { kind: 'device', id: uid, name: '' },
        before: { status: 'accepted' },
        after: { status: 'pending' },
      })
    }
    return uids
  })
}

export function decisions(parts: DecisionParts): DecisionRules {
  const { stores, audit, accepting, presence, bus, clock, billed } = parts

  async function accept(uid: string, by: DecisionActor): Promise<Replacement | undefined> {
    const { tenant_id } = by
    const twin = await accepting.twinOf(await mustFindDevice(stores, tenant_id, uid))
    const { replacement } = await orNameTaken(parts, by, async (inside, record) => {
      await inside.namespaces.hold(tenant_id)
      const device = await mustFindDevice(inside, tenant_id, uid)
      return accepting.accept(inside, record, device, { by, twin })
    })
    accepting.announce(by, { uid, status: 'accepted' }, replacement)
    return replacement
  }

  async function setStatus(
    uid: string,
    wanted: Exclude<StatusChange, 'accept'>,
    caller: MemberCaller,
  ): Promise<void> {
    const { tenant_id } = caller
    const status = statusChanges[wanted]
    await audit.change(caller, async (inside, record) => {
      const { devices, sessions } = inside.of(tenant_id)
      const device = await mustFindDevice(inside, tenant_id, uid)
      record({
        action: `device.${status}`,
        target: targetOf(device),
        before: { status: device.status },
        after: { status },
      })
      await devices.save(uid, { status, status_update_at: iso(clock.now()), decided: 1 })
      if (endsSessions(device, wanted)) await sessions.closeOfDevice(uid)
    })
    accepting.announce(caller, { uid, status })
  }

  return {
    acceptForConnector: async (tenant_id, uid) =>
      void (await accept(uid, { ...theServer, name: 'connector', tenant_id })),
    accept: async ({ params }, caller) => answered(await accept(params.uid, caller)),
    async setStatus({ params: { uid, status } }, caller) {
      if (status === 'accept') return answered(await accept(uid, caller))
      if (!Object.hasOwn(statusChanges, status))
        throw new Failure('invalid', { message: 'status: one of accept, reject, pending, unused' })
      await setStatus(uid, status as Exclude<StatusChange, 'accept'>, caller)
      return answered()
    },

    async remove({ params: { uid } }, caller) {
      const { tenant_id } = caller
      await audit.change(caller, async (inside, record) => {
        const { devices, sessions } = inside.of(tenant_id)
        // Locked first, as in `accept`.
        const namespace = billed ? await inside.namespaces.hold(tenant_id) : undefined
        const device = await mustFindDevice(inside, tenant_id, uid)
        await sessions.removeOfDevice(uid)
        await devices.remove(uid)
        record({
          action: 'device.removed',
          target: targetOf(device),
          before: { name: device.name, status: device.status, tags: JSON.parse(device.tags) as string[] },
        })
        if (namespace && device.status === 'accepted') await holdSlot(inside, namespace, uid, clock)
      })
      presence.forget(uid)
      bus.tell('device.changed', { tenant_id, uid, status: 'gone' })
      parts.nameFreed(tenant_id)
    },

    async choose({ body }, caller) {
      const choices = body.choices ?? body.devices?.map((device) => device.uid)
      if (!choices) throw new Failure('invalid', { message: 'choices: a list of device uids is needed' })
      // Without billing there is no limit to choose devices for; a caller would only lose devices.
      if (!billed) throw noProvider()
      for (const uid of await keepOnly(parts, choices, caller))
        bus.tell('device.changed', { tenant_id: caller.tenant_id, uid, status: 'pending' })
    },
  }
}
