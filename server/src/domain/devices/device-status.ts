// The transitions of a device's status. Pure: the caller reads and writes. Accepting works from any state;
// leaving `accepted` ends the device's live sessions.
import type { DeviceStatus, StatusChange } from '@hawser/contract/devices'
import { statusChanges } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { hasRoom } from '../billing/device-limit.ts'

export interface StatusContext {
  /**
   * Another accepted device with the same MAC: the same machine after a reinstallation, or one that claims to
   * be it.
   */
  readonly sameMac:
    | {
        readonly uid: string
        readonly name: string
        readonly connected: boolean
        /** One of both is a connector's container, with the container's id instead of a MAC. */
        readonly isContainer?: boolean
      }
    | undefined
  readonly sameName: { readonly uid: string } | undefined
  readonly accepted: number
  /** Below one: no limit. */
  readonly max_devices: number
  /** Slots that other, deleted devices still hold. */
  readonly kept?: number
  readonly billed?: boolean
  readonly isGone?: boolean
}

export type Outcome =
  | { readonly kind: 'change'; readonly status: DeviceStatus; readonly endsSessions: boolean }
  /** The device replaces an older one and gets its name, tags and history. */
  | { readonly kind: 'replace'; readonly status: 'accepted'; readonly replaces: string }

export const endsSessions = (device: { status: DeviceStatus }, wanted: StatusChange): boolean =>
  device.status === 'accepted' && wanted !== 'accept'

export function change(
  device: { uid: string; status: DeviceStatus },
  wanted: StatusChange,
  around: StatusContext,
): Outcome {
  const status = statusChanges[wanted]
  if (wanted !== 'accept' || device.status === 'accepted') {
    return { kind: 'change', status, endsSessions: endsSessions(device, wanted) }
  }
  const { sameMac, sameName } = around
  if (around.isGone)
    throw new Failure('conflict', {
      message:
        'The container of this device was removed. Start a container with the same name to get the device back.',
    })
  if (sameName && sameName.uid !== sameMac?.uid)
    throw new Failure('conflict', {
      message: 'Another accepted device of the namespace has this name; rename one of them.',
    })
  if (sameMac?.connected && sameMac.isContainer)
    throw new Failure('conflict', {
      message:
        `${sameMac.name} is the same container: two connectors offer it, or a connector and an agent do. ` +
        `Switch one of them off, or reject this device.`,
    })
  if (sameMac?.connected)
    throw new Failure('conflict', {
      message:
        `${sameMac.name} has the same MAC address and is connected; accepting this device would replace it. ` +
        `Stop or delete ${sameMac.name} first, or give the agent of this device an identity of its own.`,
    })
  if (sameMac) return { kind: 'replace', status: 'accepted', replaces: sameMac.uid }
  if (!hasRoom(around)) {
    if (!around.billed) throw new Failure('deviceLimit')
    const keeping =
      around.accepted < around.max_devices ? ' Devices that were deleted keep their place for 30 days.' : ''
    throw new Failure('paymentRequired', {
      message: `Without a subscription a namespace has ${around.max_devices} devices.${keeping}`,
      code: 'device_limit',
    })
  }
  return { kind: 'change', status: 'accepted', endsSessions: false }
}
