// The interface's `public_url` of a device: one public service of port 80, at the device's own address, which
// stays the same however often it is switched on.
import { createHash } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import { serviceLimits } from '@hawser/contract/limits'
import type { Clock } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { Recorder } from '../audit/audit.ts'
import { audited, targetOf } from './service-view.ts'
import { blankService } from './services.ts'

export const publicAddress = ({
  uid,
  public_url_address,
}: Pick<DeviceRow, 'uid' | 'public_url_address'>): string =>
  public_url_address || createHash('md5').update(uid).digest('hex')

/** Returns the id of the service that was made or removed; undefined: nothing changed. */
export async function switchPublicUrl(
  inside: StoresInTransaction,
  record: Recorder,
  device: DeviceRow,
  isOn: boolean,
  { clock, created_by }: { readonly clock: Clock; readonly created_by: string },
): Promise<string | undefined> {
  const { tenant_id, uid: device_uid } = device
  const mine = inside.of(tenant_id).services
  const before = await mine.publicUrlOf(device_uid)
  if (isOn === (before !== undefined)) return undefined
  if (before) {
    await mine.remove(before.id)
    record({ action: 'service.removed', target: targetOf(before), before: audited(before) })
    return before.id
  }
  await inside.namespaces.hold(tenant_id)
  if ((await mine.count()) >= serviceLimits.ofNamespace.max) throw new Failure('serviceLimit')
  const row = {
    ...blankService({ tenant_id, device_uid, name: device.name, port: 80, created_by }, clock),
    address: publicAddress(device),
    certificate: 'none',
    audience: 'public',
    role: 'observer',
    public_url: 1,
  } as const
  await mine.insert(row)
  record({ action: 'service.created', target: targetOf(row), after: audited(row) })
  return row.id
}
