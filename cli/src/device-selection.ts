// Selects the devices of a command: by name, by a pattern of names, by tag, or all. A tag selects devices
// that have at least one of the tags, as in firewall rules and public keys. A command without any selection
// is an error, and never means all.
import type { Client } from '@hawser/contract/client'
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import type { Argument, ParsedArgs, Option } from './command.ts'
import { CliError, notFoundCode, usageCode } from './errors.ts'
import { everyPage, filterOf, findDevice, isGlob, matchingDevices } from './resolve.ts'

export const deviceWords: Argument = {
  name: 'device',
  doc: "names of devices, patterns such as 'shop-*', uids or beginnings of them",
  optional: true,
  many: true,
  completes: 'device',
}

export const selectors = (everything: string): Option[] => [
  {
    name: 'tag',
    value: 'tag',
    doc: 'devices with this tag; repeated: with any of them',
    many: true,
    completes: 'tag',
  },
  { name: 'all', doc: everything },
]

/**
 * Only devices of this status are selected by tag or pattern, or by --all; a device given by its own name may
 * have any.
 */
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
    throw new CliError('Which devices? Name them, or give --tag <tag> or --all.', usageCode)
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
      ...(status ? { status } : {}),
      sort_by: 'name',
      order_by: 'asc',
    } as const
    for (const device of await everyPage((pages) => api.devices.list({ query: { ...query, ...pages } })))
      found.set(device.uid, device)
  }
  if (found.size === 0) {
    const which = status ? `${status} device` : 'device'
    const tagged = everything ? '' : ` with the tag ${tags.join(' or ')}`
    throw new CliError(
      `There is no ${which}${tagged} here; \`hawser devices list\` shows what there is.`,
      notFoundCode,
    )
  }
  return [...found.values()]

  /** A pattern without a match is an error, even beside others: it may be a slip of the pen. */
  async function devicesLike(glob: string): Promise<Device[]> {
    const devices = await matchingDevices(api, glob, { status: only.tagged })
    if (devices.length > 0) return devices
    const which = only.tagged ? `${only.tagged} device` : 'device'
    throw new CliError(
      `No ${which} has a name like ${glob}; \`hawser devices list\` shows what there is.`,
      notFoundCode,
    )
  }
}
