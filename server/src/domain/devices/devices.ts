// Devices as members read them; changes are in device-changes.ts and decisions.ts, enrolment by agents in
// enrolment.ts, presence in presence.ts, the form of the interface in device-view.ts.
import { defined } from '@hawser/contract/defined'
import { Failure, invariant } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import type { Sentence } from '@hawser/contract/sentences'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { AgentStates } from './agent-states.ts'
import { decisions, type DecisionParts, type DecisionRules } from './decisions.ts'
import { deviceChanges, type DeviceChangeParts } from './device-changes.ts'
import { isKeyProved } from './device-facts.ts'
import { mustFindDevice } from './device-rows.ts'
import { deviceView, roomIn } from './device-view.ts'
import { parseFilter } from '../access/filters.ts'
import type { Presence } from './presence.ts'
import type { Timeline } from './timeline.ts'
import type { DeviceTrafficSums } from './traffic.ts'
import type { Rules } from '../callers/rules.ts'
import type { Signer } from '../access/signer.ts'

export interface DeviceParts extends DeviceChangeParts, DecisionParts {
  presence: Presence
  auth: Rules<'devices'>['auth']
  updates: Pick<AgentStates, 'shown' | 'offer'>
  traffic: Pick<DeviceTrafficSums, 'of'>
  timeline: Pick<Timeline, 'note' | 'of' | 'offlineReason'>
  signer: Signer
  /** Why the device is not accepted, or not named like its container. */
  waitingReason(device: DeviceRow): Promise<Sentence | undefined>
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
 * A caller's filtered lists run one after the other: a filter may examine each device, and all namespaces
 * share what reads lists.
 */
const whoAsks = (caller: MemberCaller): string =>
  caller.kind === 'key' ? `${caller.tenant_id} ${caller.name}` : caller.id

const columnOf = (sort: string) =>
  (sort === 'status_updated_at'
    ? 'status_update_at'
    : sort.replace('identity.', '').replace('info.', 'info_')) as Parameters<
    ReturnType<Stores['of']>['devices']['list']
  >[0]['sort']

export function devices(parts: DeviceParts): Rules<'devices'> & Pick<DecisionRules, 'acceptForConnector'> {
  const { stores, presence, clock, updates } = parts
  const view = deviceView({ stores, presence, updates, clock })
  const filtering = concurrencyByKey(deviceLimits.lists.max)

  return {
    ...deviceChanges(parts),
    ...decisions(parts),
    auth: parts.auth,
    authSsh: async ({ body }, caller) => ({
      signature: await parts.signer.sign(caller, body.fingerprint, body.data),
    }),

    async offline({ params }, caller) {
      const device = await mustFindDevice(stores, caller.tenant_id, params.uid)
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
      if (!found) throw beyond(deviceLimits.lists, 1)
      const { items, total } = await found
      return { items: await view.many(caller.tenant_id, items), total }
    },

    async get({ params }, caller) {
      const row = await mustFindDevice(stores, caller.tenant_id, params.uid)
      const [device] = await view.many(caller.tenant_id, [row])
      invariant(device, 'a row is shown as a device')
      const offline = device.online ? undefined : await parts.timeline.offlineReason(row)
      const waiting = await parts.waitingReason(row)
      return {
        ...device,
        ...defined({ offline_reason: offline?.sentence, offline_parts: offline?.parts }),
        ...defined({ waiting_reason: waiting?.sentence, waiting_parts: waiting?.parts }),
      }
    },

    async timeline({ params, query }, { tenant_id }) {
      const { uid } = await mustFindDevice(stores, tenant_id, params.uid)
      return { events: await parts.timeline.of(tenant_id, uid, query.limit) }
    },

    async traffic({ params, query }, { tenant_id }) {
      const { uid } = await mustFindDevice(stores, tenant_id, params.uid)
      return { days: await parts.traffic.of(tenant_id, uid, query.days) }
    },

    async mostUsed(_, { tenant_id }) {
      const rows = await stores.of(tenant_id).devices.mostUsed(3)
      return { items: await view.many(tenant_id, rows), total: rows.length }
    },
  }
}
