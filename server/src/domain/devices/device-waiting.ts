// Why a device waits, as a sentence for its page: who has to accept it and what prevents that, or whose name
// it wants. device-status.ts and containers.ts decide.
import { part, say, type Sentence, type SentencePart } from '@hawser/contract/sentences'
import type { DeviceRow } from '../../storage/devices.ts'
import type { With } from '../audit/parts.ts'
import { roomIn } from './device-view.ts'

export function deviceWaiting({ stores, clock }: With<'stores' | 'clock'>) {
  /** The obstacles to accepting the device now. */
  async function obstacles(row: DeviceRow): Promise<SentencePart[]> {
    const { tenant_id, uid, name, mac } = row
    const mine = stores.of(tenant_id).devices
    const sameMac = mac ? await mine.findAcceptedByMac(mac) : undefined
    const sameName = await mine.findAcceptedByName(name)
    const namespace = await stores.namespaces.find(tenant_id)
    const room = namespace ? await roomIn(stores, namespace, clock) : 'all'
    const isContainer = row.connector !== null || (sameMac && sameMac.connector !== null)
    return [
      ...(sameName && sameName.uid !== sameMac?.uid ? [part('waits-name', { device: name })] : []),
      ...(sameMac ? [part(isContainer ? 'waits-twin' : 'waits-mac', { device: sameMac.name })] : []),
      ...(!sameMac && room !== 'all' && !room.includes(uid) ? [part('waits-room')] : []),
    ]
  }

  async function acceptor(row: DeviceRow, blocked: boolean): Promise<SentencePart> {
    const connector =
      row.connector === null ? undefined : await stores.of(row.tenant_id).connectors.find(row.connector)
    if (connector?.accept !== 1) return part('waits-person')
    if (row.decided === 1) return part('waits-set-back')
    return part(blocked ? 'waits-connector' : 'waits-person')
  }

  return async (row: DeviceRow): Promise<Sentence | undefined> => {
    const { name, container, named } = row
    if (row.status === 'removed') return container === null ? undefined : say(part('waits-gone'))
    if (row.status === 'accepted')
      return container && named === 0 && container !== name
        ? say(part('keeps-name', { container, device: name }))
        : undefined
    if (row.status !== 'pending') return undefined
    const inTheWay = await obstacles(row)
    // That a new device waits for a person goes without saying, except where connectors accept.
    if (container === null) return inTheWay.length === 0 ? undefined : say(...inTheWay)
    return say(await acceptor(row, inTheWay.length > 0), ...inTheWay)
  }
}
