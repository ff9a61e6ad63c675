// The row of a device, as rules find and change it.
import { Failure } from '@hawser/contract/failures'
import type { DeviceRow } from '../../storage/devices.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { AuditActor } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'

export async function mustFindDevice(
  inside: Pick<StoresInTransaction, 'of'>,
  tenant_id: string,
  uid: string,
): Promise<DeviceRow> {
  const row = await inside.of(tenant_id).devices.find(uid)
  if (!row) throw new Failure('notFound')
  return row
}

export const targetOf = ({ uid, name }: Pick<DeviceRow, 'uid' | 'name'>) => ({
  kind: 'device',
  id: uid,
  name,
})

export const deviceActor = ({
  tenant_id,
  uid,
  name,
  source,
  request_id = '',
}: Pick<DeviceRow, 'tenant_id' | 'uid' | 'name'> & { source: string; request_id?: string }): AuditActor => ({
  actor: 'device',
  id: uid,
  name,
  source,
  request_id,
  tenant_id,
})

const taken = { message: 'An accepted device of the namespace has this name.' }
export const nameTaken = () => new Failure('conflict', taken)

/** Another change may take the same accepted name at that moment. */
export async function orNameTaken<T>(
  { stores, audit }: With<'stores' | 'audit'>,
  ...change: Parameters<typeof audit.change<T>>
): Promise<T> {
  return audit.change(...change).catch(orConflict(stores, taken))
}
