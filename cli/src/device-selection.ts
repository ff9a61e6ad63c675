// Selects the devices of a command: by name, by a pattern of names, by tag, or all. A tag selects devices
// that have at least one of the tags, as in firewall rules and public keys. A command without any selection
// is an error, and never means all.
import type { Client } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import type { Argument, ParsedArgs, Option } from './command.ts'
import { CliError, notFoundCode, usageCode } from './errors.ts'
import { byName, everyPage, filterOf, findDevice, isGlob, matchingDevices } from './resolve.ts'

export const deviceWords: Argument = {
  name: 'device',
  doc: "device names, patterns such as 'shop-*', uids or the start of them",
  optional: true,
  many: true,
  completes: 'device',
}

export const tagSelector: Option = {
  name: 'tag',
  value: 'tag',
  doc: 'devices with this tag; repeated: with any of them',
  many: true,
  completes: 'tag',
}

export const selectors = (everything: string): Option[] => [tagSelector, { name: 'all', doc: everything }]

/** Selects by tag, pattern or --all only devices of this status; a device that is named may have any. */
export interface StatusFilter {
  readonly tagged?: DeviceStatus
  readonly all?: DeviceStatus
}

export async function selectDevices(
  api: Client,
  names: readonly string[],
  given: ParsedArgs,
  only: StatusFilter = {},
): Promise<Device[]> {
  const tags = given.values('tag')
  const everything = given.flag('all') === true
  if (names.length === 0 && tags.length === 0 && !everything) {
    throw new CliError('No devices given: name them, or use --tag <tag> or --all.', usageCode)
  }
  const status = everything ? only.all : only.tagged
  const found = new Map<string, Device>()
  for (const name of names) {
    const devices = isGlob(name) ? await devicesLike(name) : [await findDevice(api, name)]
    for (const device of devices) found.set(device.uid, device)
  }
  if (tags.length > 0 || everything) {
    const query = {
      ...filterOf(everything ? [] : tags),
      ...defined({ status }),
      ...byName,
    } as const
    for (const device of await everyPage((pages) => api.devices.list({ query: { ...query, ...pages } })))
      found.set(device.uid, device)
  }
  if (found.size === 0) {
    const which = status ? `${status} device` : 'device'
    const tagged = everything ? '' : ` with the tag ${tags.join(' or ')}`
    throw new CliError(`There is no ${which}${tagged}; \`hawser devices list\` shows them all.`, notFoundCode)
  }
  return [...found.values()]

  /** A pattern without a match is an error, also among others: it may be a typing mistake. */
  async function devicesLike(glob: string): Promise<Device[]> {
    const devices = await matchingDevices(api, glob, { status: only.tagged })
    if (devices.length > 0) return devices
    const which = only.tagged ? `${only.tagged} device` : 'device'
    throw new CliError(
      `No ${which} has a name like ${glob}; \`hawser devices list\` shows them all.`,
      notFoundCode,
    )
  }
}
