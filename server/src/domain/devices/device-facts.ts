// The columns that a device reports about itself, cut and cleaned: people read them next to facts that the
// server checked.
import type { Device } from '@hawser/contract/devices'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'

export const longestName = 64

export const asName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(0, longestName) || 'device'

export const nameFrom = (hostname: string, mac: string): string => asName(hostname || mac)

export type EnrolmentOrigin = NonNullable<Device['enrolled_with']>

const longestFact = 255

/** A device-supplied value, sanitised for display. */
export const factText = (text = ''): string => safeText(text, longestFact)

export const infoColumns = (info: Partial<Device['info']>) => ({
  info_id: factText(info.id),
  info_pretty_name: factText(info.pretty_name),
  info_version: factText(info.version),
  info_arch: factText(info.arch),
  info_platform: factText(info.platform),
})

/** Whether the device has ever proved its key: by a signature, or by the host key of its SSH server. */
export const isKeyProved = ({ proved, proved_token }: Pick<DeviceRow, 'proved' | 'proved_token'>): boolean =>
  proved === 1 || proved_token !== null

/** The columns that are the same for every new device. */
export const freshDevice = (now: string) =>
  ({
    status: 'pending',
    status_update_at: now,
    created_at: now,
    position: '{"latitude":0,"longitude":0}',
    public_url: 0,
    public_url_address: '',
    tags: '[]',
    last_seen: now,
  }) as const
