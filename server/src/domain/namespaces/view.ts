// A namespace as the interface shows it, and its settings as columns.
import { neverPasses } from '@hawser/contract/environment'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import type { Namespace } from '@hawser/contract/namespaces'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import { readBilling } from '../billing/subscriptions.ts'

type Settings = Namespace['settings']

export const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)

export const settingsOf = (row: NamespaceRow): Settings => ({
  session_record: row.session_record === 1,
  connection_announcement: row.connection_announcement,
  continue_unrecorded: row.continue_unrecorded === 1,
  accept_env: JSON.parse(row.accept_env) as string[],
  agent_updates: row.agent_updates,
  reconnect_grace_s: row.reconnect_grace_s,
  audit_retention_days: row.audit_retention_days,
  require_person: row.require_person === 1,
  hold_sessions: row.hold_sessions,
  hold_unknown: row.hold_unknown === 1,
  join_without_consent: row.join_without_consent === 1,
  invite_outsiders: row.invite_outsiders === 1,
  mask_secrets: row.mask_secrets === 1,
  mask_after: JSON.parse(row.mask_after) as string[],
  search: row.search === 1,
  log_web_requests: row.log_web_requests === 1,
})

/** Refuses a variable that never reaches a device, by its name, so that nobody believes that it does. */
function acceptable(names: readonly string[]): string[] {
  const never = names.find(neverPasses)
  if (never !== undefined)
    throw new Failure('invalid', { message: `settings.accept_env: ${never} never reaches a device` })
  return [...new Set(names)]
}

const flags = [
  'session_record',
  'continue_unrecorded',
  'search',
  'mask_secrets',
  'hold_unknown',
  'join_without_consent',
  'invite_outsiders',
  'require_person',
  'log_web_requests',
] as const

export function columnsOf(settings: {
  readonly [K in keyof Settings]?: Settings[K] | undefined
}): Partial<NamespaceRow> {
  const { accept_env, mask_after } = settings
  return {
    ...Object.fromEntries(
      flags.flatMap((name) => (settings[name] === undefined ? [] : [[name, flag(settings[name])]])),
    ),
    ...defined({
      accept_env: accept_env && JSON.stringify(acceptable(accept_env)),
      agent_updates: settings.agent_updates,
      reconnect_grace_s: settings.reconnect_grace_s,
      audit_retention_days: settings.audit_retention_days,
      mask_after: mask_after && JSON.stringify([...new Set(mask_after)]),
      hold_sessions: settings.hold_sessions,
      connection_announcement: settings.connection_announcement,
    }),
  }
}

export interface NamespaceView {
  /** Takes two statements for a whole page, however many namespaces are on it. */
  presentAll(rows: readonly NamespaceRow[]): Promise<Namespace[]>
  present(row: NamespaceRow): Promise<Namespace>
}

export function namespaceView(stores: Stores, billed: boolean): NamespaceView {
  async function presentAll(rows: readonly NamespaceRow[]): Promise<Namespace[]> {
    const tenant_ids = rows.map(({ tenant_id }) => tenant_id)
    const [members, counts] = await Promise.all([
      stores.namespaces.membersOf(tenant_ids),
      stores.namespaces.deviceCounts(tenant_ids),
    ])
    return rows.map((row) => {
      const count = counts.get(row.tenant_id) ?? 0
      return {
        name: row.name,
        owner: row.owner,
        tenant_id: row.tenant_id,
        members: members.get(row.tenant_id) ?? [],
        settings: settingsOf(row),
        max_devices: row.max_devices,
        device_count: count,
        devices_count: count,
        created_at: row.created_at,
        billing: billed ? (readBilling(row) as Namespace['billing']) : null,
      }
    })
  }

  return { presentAll, present: async (row) => (await presentAll([row]))[0]! }
}
