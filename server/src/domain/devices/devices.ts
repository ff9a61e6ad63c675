// Devices as members see and manage them. Enrolment by agents is in enrolment.ts, presence in presence.ts,
// the rules of status in device-status.ts, the form of the interface in device-view.ts.
import { createHash } from 'node:crypto'
import { longestNotes } from '@hawser/contract/device-notes'
import { statusChanges, type StatusChange } from '@hawser/contract/devices'
import { Failure, invariant } from '@hawser/contract/failures'
import type { Sentence } from '@hawser/contract/sentences'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { theServer, type Audit, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { MemberCaller } from '../callers/callers.ts'
import { noProvider } from '../billing/billing.ts'
import { isOver } from '../billing/device-limit.ts'
import type { AgentUpdates } from './agent-updates.ts'
import { change } from './device-status.ts'
import { deviceView, heldSlots, holdSlot, roomIn } from './device-view.ts'
import { parseFilter } from '../access/filters.ts'
import { isKeyProved } from './enrolment.ts'
import type { Presence } from './presence.ts'
import type { Timeline } from './timeline.ts'
import type { DeviceTrafficSums } from './traffic.ts'
import type { Rules } from '../callers/rules.ts'
import type { Signer } from '../access/signer.ts'

export interface DeviceParts {
  stores: Stores
  audit: Audit
  presence: Presence
  bus: Bus
  clock: Clock
  auth: Rules<'devices'>['auth']
  updates: Pick<AgentUpdates, 'shown' | 'offer'>
  traffic: Pick<DeviceTrafficSums, 'of'>
  timeline: Pick<Timeline, 'note' | 'of' | 'offlineReason'>
  signer: Signer
  /** The most tags that a device may have. */
  mostTags: number
  /** Whether namespaces may pay for more devices. */
  billed: boolean
  /** Whether the device has a tunnel, on any node. Throws when that cannot be found out. */
  isConnected(uid: string): Promise<boolean>
  /** A name may be free that the device of an agent's container waits for; connectors hear of the change. */
  nameFreed(tenant_id: string): void
  /** Why the device is not accepted, or not called like its container. */
  waitingReason(device: DeviceRow): Promise<Sentence | undefined>
  onReplaced(replacement: Replacement): void
}

/** One device has replaced another. */
export interface Replacement {
  readonly tenant_id: string
  readonly uid: string
  /** The name that the new device had before. */
  readonly before: string
  readonly replaced: { readonly uid: string; readonly name: string }
  /** The name of the caller who accepted it; empty: a connector did. */
  readonly by: string
}

const filterable = {
  uid: 'text',
  name: 'text',
  'identity.mac': 'text',
  'info.id': 'text',
  'info.pretty_name': 'text',
  'info.version': 'text',
  'info.arch': 'text',
  'info.platform': 'text',
  public_key: 'text',
  tenant_id: 'text',
  namespace: 'text',
  status: 'text',
  remote_addr: 'text',
  last_seen: 'moment',
  status_update_at: 'moment',
  status_updated_at: 'moment',
  created_at: 'moment',
  online: 'boolean',
  public_url: 'boolean',
  acceptable: 'boolean',
  'agent.outdated': 'boolean',
  'position.latitude': 'number',
  'position.longitude': 'number',
  tags: 'texts',
} as const

/**
 * Filtered lists that wait for others of the same caller, one after the other: all namespaces share what reads lists,
 * and a filter may look at each device.
 */
const mostFiltering = 50
const whoAsks = (caller: MemberCaller): string =>
  caller.kind === 'key' ? `${caller.tenant_id} ${caller.name}` : caller.id

const targetOf = ({ uid, name }: DeviceRow) => ({ kind: 'device', id: uid, name })

const columnOf = (sort: string) =>
  (sort === 'status_updated_at'
    ? 'status_update_at'
    : sort.replace('identity.', '').replace('info.', 'info_')) as Parameters<
    ReturnType<Stores['of']>['devices']['list']
  >[0]['sort']

const uidLength = 64
const nothingToChoose = () =>
  new Failure('conflict', {
    message: 'This namespace is within its device limit; there is nothing to choose.',
    code: 'within_limit',
  })

export interface DeviceRules extends Rules<'devices'> {
  /** Accepts a device without a caller, because the namespace has asked for such devices before. */
  acceptFor(tenant_id: string, uid: string): Promise<void>
}

export function devices(parts: DeviceParts): DeviceRules {
  const { stores, audit, presence, bus, clock, auth, updates, signer, billed, mostTags } = parts
  const view = deviceView({ stores, presence, updates, clock })
  const filtering = concurrencyByKey(mostFiltering)

  async function mustFind(
    inside: Pick<StoresInTransaction, 'of'>,
    tenant_id: string,
    uid: string,
  ): Promise<DeviceRow> {
    const row = await inside.of(tenant_id).devices.find(uid)
    if (!row) throw new Failure('notFound')
    return row
  }

  const nameTaken = () =>
    new Failure('conflict', { message: 'An accepted device of the namespace has this name.' })

  /**
   * Runs a transaction that may give a device an accepted name; another may have taken the name meanwhile.
   */
  async function orNameTaken<T>(
    by: MemberCaller | AuditActor,
    work: (inside: StoresInTransaction, record: Recorder) => Promise<T>,
  ): Promise<T> {
    try {
      return await audit.change(by, work)
    } catch (error) {
      if (stores.isDuplicate(error)) throw nameTaken()
      throw error
    }
  }

  /**
   * The accepted device that this one would replace, and whether it is connected. Asks other nodes, so it
   * never runs in a transaction.
   */
  async function wouldReplace(
    tenant_id: string,
    uid: string,
  ): Promise<{ uid: string; connected: boolean } | undefined> {
    const { mac, status } = await mustFind(stores, tenant_id, uid)
    const holder =
      mac && status !== 'accepted' ? await stores.of(tenant_id).devices.findAcceptedByMac(mac) : undefined
    return holder && { uid: holder.uid, connected: await parts.isConnected(holder.uid) }
  }

  /** Gives the name of the device that this one replaced, if any. */
  async function setStatus(
    uid: string,
    wanted: StatusChange,
    by: MemberCaller | AuditActor,
  ): Promise<string | undefined> {
    const { tenant_id } = by
    const now = iso(clock.now())
    const known = wanted === 'accept' ? await wouldReplace(tenant_id, uid) : undefined
    const replaced = await orNameTaken(by, async (inside, record) => {
      const { devices: mine, sessions, budgets, deviceNotes } = inside.of(tenant_id)
      // Accepting counts the accepted devices, so other requests that accept wait here until this one is
      // done.
      const namespace = wanted === 'accept' ? await inside.namespaces.hold(tenant_id) : undefined
      const device = await mustFind(inside, tenant_id, uid)
      const other = (row: DeviceRow | undefined) => (row && row.uid !== uid ? row : undefined)
      const sameMac = device.mac ? other(await mine.findAcceptedByMac(device.mac)) : undefined
      const kept = namespace && namespace.max_devices > 0 ? await heldSlots(inside, tenant_id, clock) : []
      const outcome = change(device, wanted, {
        // A device that was accepted since `wouldReplace` asked counts as connected.
        sameMac: sameMac && {
          ...sameMac,
          connected: known?.uid !== sameMac.uid || known.connected,
          isContainer: device.connector !== null || sameMac.connector !== null,
        },
        sameName: other(await mine.findAcceptedByName(device.name)),
        accepted: await mine.countWithStatus('accepted'),
        max_devices: namespace?.max_devices ?? -1,
        kept: kept.filter((other) => other !== uid).length,
        billed,
        isGone: device.container !== null && device.status === 'removed',
      })
      const decided = 'actor' in by ? device.decided : 1
      if (kept.includes(uid)) await inside.of(tenant_id).removedDevices.remove(uid)
      const status = statusChanges[wanted]
      record({
        action: `device.${status}`,
        target: targetOf(device),
        before: { name: device.name, status: device.status },
        after: { name: outcome.kind === 'change' ? device.name : sameMac?.name, status },
      })
      if (outcome.kind === 'change') {
        await mine.save(uid, { status: outcome.status, status_update_at: now, decided })
        if (outcome.endsSessions) await sessions.closeOfDevice(uid)
        return undefined
      }
      await sessions.closeOfDevice(outcome.replaces)
      await sessions.moveToDevice(outcome.replaces, uid)
      await budgets.moveToDevice(outcome.replaces, uid)
      await deviceNotes.moveToDevice(outcome.replaces, uid, longestNotes)
      await mine.remove(outcome.replaces)
      record({
        action: 'device.replaced',
        target: { kind: 'device', id: outcome.replaces, name: sameMac?.name ?? '' },
        detail: { by: uid },
      })
      await mine.save(uid, {
        status: 'accepted',
        status_update_at: now,
        decided,
        name: sameMac!.name,
        named: sameMac!.named,
        tags: sameMac!.tags,
      })
      return {
        tenant_id,
        uid,
        before: device.name,
        replaced: { uid: outcome.replaces, name: sameMac!.name },
        by: 'actor' in by ? '' : nameOf(by),
      }
    })
    if (replaced) {
      presence.forget(replaced.replaced.uid)
      bus.tell('device.changed', { tenant_id, uid: replaced.replaced.uid, status: 'gone' })
      parts.onReplaced(replaced)
    }
    bus.tell('device.changed', { tenant_id, uid, status: statusChanges[wanted] })
    parts.timeline.note(uid, { kind: 'status', status: statusChanges[wanted] })
    if (!('actor' in by)) parts.nameFreed(tenant_id)
    return replaced?.replaced.name
  }

  const nameOf = (caller: MemberCaller) =>
    caller.kind === 'key' ? `API key ${caller.name}` : caller.username
  const answered = (replaced: string | undefined) => ({
    answer: undefined,
    headers: replaced ? { 'x-replaced-device': replaced } : {},
  })

  async function update(
    uid: string,
    wanted: { name?: string; public_url?: boolean },
    caller: MemberCaller,
  ): Promise<void> {
    const { tenant_id } = caller
    const names = await orNameTaken(caller, async (inside, record) => {
      const device = await mustFind(inside, tenant_id, uid)
      const mine = inside.of(tenant_id).devices
      const name = wanted.name?.toLowerCase() ?? device.name
      if (name !== device.name && (await mine.findAcceptedByName(name))) throw nameTaken()
      const public_url = wanted.public_url ?? device.public_url === 1
      const address =
        public_url && !device.public_url_address
          ? createHash('md5').update(uid).digest('hex')
          : device.public_url_address
      const named = wanted.name === undefined ? device.named : name === device.container ? 0 : 1
      await mine.save(uid, { name, named, public_url: public_url ? 1 : 0, public_url_address: address })
      record({
        action: 'device.updated',
        target: targetOf(device),
        before: { name: device.name, public_url: device.public_url === 1 },
        after: { name, public_url },
      })
      return { before: device.name, after: name }
    })
    const isRenamed = names.before !== names.after
    if (isRenamed) parts.timeline.note(uid, { kind: 'renamed', ...names })
    bus.tell('device.changed', { tenant_id, uid, status: (await mustFind(stores, tenant_id, uid)).status })
    if (isRenamed) parts.nameFreed(tenant_id)
  }

  async function setTags(
    uid: string,
    caller: MemberCaller,
    next: (tags: string[]) => string[],
  ): Promise<void> {
    await audit.change(caller, async (inside, record) => {
      const device = await mustFind(inside, caller.tenant_id, uid)
      const before = JSON.parse(device.tags) as string[]
      const tags = next(before)
      await inside.of(caller.tenant_id).devices.save(uid, { tags: JSON.stringify(tags) })
      record({
        action: 'device.tags.updated',
        target: targetOf(device),
        before: { tags: before },
        after: { tags },
      })
    })
  }

  return {
    auth,
    authSsh: async ({ body }, caller) => ({
      signature: await signer.sign(caller, body.fingerprint, body.data),
    }),

    async offline({ params }, caller) {
      const device = await mustFind(stores, caller.tenant_id, params.uid)
      if (caller.kind === 'device' && caller.uid !== device.uid) throw new Failure('notFound')
      // Strangers can get tokens of a device. Where its key was proved, its tunnel says whether it is online.
      if (caller.kind === 'device' && !caller.proved && isKeyProved(device)) return
      await presence.offline(device.uid)
    },

    async list({ query }, caller) {
      const groups = parseFilter(query.filter, filterable)
      await presence.settle()
      const asksForRoom = groups.some(({ conditions }) =>
        conditions.some(({ property }) => property === 'acceptable'),
      )
      const namespace = asksForRoom ? await stores.namespaces.find(caller.tenant_id) : undefined
      const asked = {
        status: query.status,
        groups,
        room: namespace && (await roomIn(stores, namespace, clock)),
        offer: updates.offer(),
        sort: columnOf(query.sort_by),
        order: query.order_by,
        page: query.page,
        per_page: query.per_page,
      }
      const find = () => stores.of(caller.tenant_id).devices.list(asked)
      const found = groups.length === 0 ? find() : filtering.run(whoAsks(caller), find)
      if (!found) throw new Failure('tooMany', { retryAfter: 1 })
      const { items, total } = await found
      return { items: await view.many(caller.tenant_id, items), total }
    },

    async get({ params }, caller) {
      const row = await mustFind(stores, caller.tenant_id, params.uid)
      const [device] = await view.many(caller.tenant_id, [row])
      invariant(device, 'a row is shown as a device')
      const offline = device.online ? undefined : await parts.timeline.offlineReason(row)
      const waiting = await parts.waitingReason(row)
      return {
        ...device,
        ...(offline ? { offline_reason: offline.sentence, offline_parts: offline.parts } : {}),
        ...(waiting ? { waiting_reason: waiting.sentence, waiting_parts: waiting.parts } : {}),
      }
    },

    async timeline({ params, query }, { tenant_id }) {
      const { uid } = await mustFind(stores, tenant_id, params.uid)
      return { events: await parts.timeline.of(tenant_id, uid, query.limit) }
    },

    async traffic({ params, query }, { tenant_id }) {
      const { uid } = await mustFind(stores, tenant_id, params.uid)
      return { days: await parts.traffic.of(tenant_id, uid, query.days) }
    },

    async remove({ params: { uid } }, caller) {
      const { tenant_id } = caller
      await audit.change(caller, async (inside, record) => {
        const { devices: mine, sessions } = inside.of(tenant_id)
        // The namespace is locked first, as in setStatus, so that no other request counts meanwhile.
        const namespace = billed ? await inside.namespaces.hold(tenant_id) : undefined
        const device = await mustFind(inside, tenant_id, uid)
        await sessions.removeOfDevice(uid)
        await mine.remove(uid)
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

    update: ({ params, body }, caller) => update(params.uid, body, caller),
    rename: ({ params, body }, caller) => update(params.uid, body, caller),

    acceptFor: async (tenant_id, uid) =>
      void (await setStatus(uid, 'accept', { ...theServer, name: 'connector', tenant_id })),
    accept: async ({ params }, caller) => answered(await setStatus(params.uid, 'accept', caller)),
    async setStatus({ params }, caller) {
      if (!Object.hasOwn(statusChanges, params.status))
        throw new Failure('invalid', { message: 'status: one of accept, reject, pending, unused' })
      return answered(await setStatus(params.uid, params.status as StatusChange, caller))
    },

    addTag: ({ params, body }, caller) =>
      setTags(params.uid, caller, (tags) => {
        if (tags.includes(body.tag))
          throw new Failure('conflict', { message: 'The device has this tag already.' })
        if (tags.length >= mostTags)
          throw new Failure('tooManyTags', {
            message: `The device has ${tags.length} tags already, and ${mostTags} are the most.`,
          })
        return [...tags, body.tag]
      }),
    setTags({ params, body }, caller) {
      if (body.tags.length > mostTags)
        throw new Failure('invalid', { message: `tags: may have at most ${mostTags}` })
      return setTags(params.uid, caller, () => body.tags)
    },
    removeTag: ({ params }, caller) =>
      setTags(params.uid, caller, (tags) => {
        if (!tags.includes(params.tag)) throw new Failure('notFound')
        return tags.filter((tag) => tag !== params.tag)
      }),

    async mostUsed(_, { tenant_id }) {
      const rows = await stores.of(tenant_id).devices.mostUsed(3)
      return { items: await view.many(tenant_id, rows), total: rows.length }
    },

    async choose({ body }, caller) {
      const { tenant_id } = caller
      const choices = body.choices ?? body.devices?.map((device) => device.uid)
      if (!choices) throw new Failure('invalid', { message: 'choices: a list of device uids is needed' })
      // Without billing there is no limit to choose devices for; a caller would only lose devices.
      if (!billed) throw noProvider()
      const demoted = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).devices
        // The namespace is locked first, as in setStatus, so that no other request counts meanwhile.
        const namespace = await inside.namespaces.hold(tenant_id)
        for (const uid of choices)
          if ((await mine.find(uid))?.status !== 'accepted')
            throw new Failure('notFound', {
              message: `choices: no accepted device has the uid ${uid.slice(0, uidLength)}`,
            })
        const max_devices = namespace?.max_devices ?? -1
        if (!isOver({ accepted: await mine.countWithStatus('accepted'), max_devices }))
          throw nothingToChoose()
        const uids = await mine.keepAccepted(choices, iso(clock.now()))
        for (const uid of uids) {
          await inside.of(tenant_id).sessions.closeOfDevice(uid)
          record({
            action: 'device.pending',
            target: { kind: 'device', id: uid, name: '' },
            before: { status: 'accepted' },
            after: { status: 'pending' },
          })
        }
        return uids
      })
      for (const uid of demoted) bus.tell('device.changed', { tenant_id, uid, status: 'pending' })
    },
  }
}
