// Commands for devices that do more than one operation each: lists by tag and name, changes of several
// devices at once, tags added and removed together. A command for several devices continues when the server
// refuses one. It prints a result for each device and exits with a code other than 0.
import { client, type Client } from '@hawser/contract/client'
import { contract } from '@hawser/contract'
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import type { FilterElement } from '@hawser/contract/filters'
import type { Command, Option } from '../command.ts'
import { commandFor } from '../generated-commands.ts'
import { CliError, toCliError, usageCode } from '../errors.ts'
import type { Context } from '../context.ts'
import { columnsOf } from '../print.ts'
import { filterOf, findDevice, isGlob, matchingDevices, property } from '../resolve.ts'
import { safeText } from '../safe-text.ts'
import { deviceWords, selectDevices, selectors, tagSelector } from '../device-selection.ts'

const { list: op } = contract.devices
const generatedList = commandFor({ id: 'devices.list', noun: 'devices', verb: 'list', op })

const list: Command = {
  ...generatedList,
  options: [
    tagSelector,
    { name: 'name', value: 'text', doc: "with this in its name, or a pattern of the name such as 'shop-*'" },
    { name: 'online', doc: 'only online devices; --no-online: only offline ones' },
    ...(generatedList.options ?? []),
  ],
  async run(given, context) {
    const wanted: FilterElement[] = []
    const [tags, name, online] = [given.values('tag'), given.value('name'), given.flag('online')]
    const glob = name !== undefined && isGlob(name)
    if (name !== undefined && !glob) wanted.push(property('name', 'contains', name))
    if (online !== undefined) wanted.push(property('online', 'bool', online))
    const { filter } = glob ? { filter: '' } : filterOf(tags, wanted)
    if (filter !== undefined && given.value('filter') !== undefined) {
      throw new CliError(
        '--filter is a whole filter: it cannot be combined with --tag, --name and --online.',
        usageCode,
      )
    }
    if (glob) {
      const status = given.value('status') as DeviceStatus | undefined
      const found = await matchingDevices(context.api(), name, { status, tags, conditions: wanted })
      context.print(found, { columns: columnsOf['devices'] })
      return undefined
    }
    // The server's own order is by last_seen, which changes all the time.
    const sorted: Record<string, string> = given.value('sort-by')
      ? {}
      : { 'sort-by': 'name', 'order-by': 'asc' }
    const values = (option: string) =>
      option === 'filter' && filter !== undefined
        ? [filter]
        : sorted[option] !== undefined && given.values(option).length === 0
          ? [sorted[option]]
          : given.values(option)
    return generatedList.run({ ...given, values, value: (option) => values(option).at(-1) }, context)
  },
}

/** Applies one operation to several devices. `done`: the word printed for each success. */
function bulkCommand(
  verb: string,
  summary: string,
  done: string,
  everything: string,
  status: DeviceStatus,
  act: Act,
): Command {
  return {
    words: ['devices', verb],
    summary,
    arguments: [deviceWords],
    options: selectors(everything),
    async run(given, context) {
      const api = client(context.options())
      const devices = await selectDevices(api, given.words, given, { all: status })
      return applyToEach(context, devices, done, (device) => act(api, device))
    },
  }
}
type Act = (api: Client, device: Device) => Promise<unknown>

/** One device after the other, in the given order, so that the server is not flooded. */
async function applyToEach(
  context: Context,
  devices: readonly Device[],
  done: string,
  /** May return a sentence to print instead of `done`. */
  act: (device: Device) => Promise<unknown>,
): Promise<number> {
  let worst = 0
  const rows: { name: string; uid: string; result: string }[] = []
  for (const device of devices) {
    try {
      const said = await act(device)
      rows.push({ name: device.name, uid: device.uid, result: typeof said === 'string' ? said : done })
    } catch (error) {
      const failure = toCliError(error, context.credential())
      if (!failure) throw error
      worst = Math.max(worst, failure.code)
      rows.push({ name: device.name, uid: device.uid, result: failure.message })
    }
    const last = rows.at(-1)!
    if (context.output === 'table') context.say(`${safeText(last.name)}: ${last.result}`)
  }
  if (context.output === 'json') context.print(rows)
  return worst
}

const remove: Command = {
  words: ['devices', 'remove'],
  summary: 'Removes devices and their sessions. A running agent enrols its device again.',
  arguments: [deviceWords],
  options: [...selectors('all devices'), { name: 'yes', doc: 'confirms removing more than one device' }],
  async run(given, context) {
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given)
    if (devices.length > 1 && !given.flag('yes')) {
      const names = devices.slice(0, 10).map(({ name }) => safeText(name))
      const more = devices.length > names.length ? ' …' : ''
      throw new CliError(
        `That would remove ${devices.length} devices: ${names.join(', ')}${more}. If you mean it, add --yes.`,
        usageCode,
      )
    }
    return applyToEach(context, devices, 'removed', (device) => api.devices.remove(uidOf(device)))
  },
}

const accept: Command = {
  words: ['devices', 'accept'],
  summary: 'Accepts devices, so that people can connect. Works from any state.',
  arguments: [deviceWords],
  options: selectors('all pending devices, except those that would replace another'),
  async run(given, context) {
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given, { all: 'pending' })
    const unnamed = given.flag('all') === true || given.values('tag').length > 0
    const byMac = new Map<string, Device[]>()
    for (const device of devices)
      byMac.set(device.identity.mac, [...(byMac.get(device.identity.mac) ?? []), device])
    byMac.delete('')
    return applyToEach(context, devices, 'accepted', async (device) => {
      const twins = byMac.get(device.identity.mac) ?? []
      if (twins.length > 1) throw new CliError(sharing(device, twins))
      if (device.replaces && unnamed) throw new CliError(replacing(device, device.replaces.name))
      const replaced = (await api.devices.accept(uidOf(device))).headers.get('x-replaced-device')
      return replaced === null
        ? undefined
        : `accepted; it replaced ${safeText(replaced)} and now has its name, tags and sessions`
    })
  },
}

/** Several agents on one machine would each replace the one before it. */
function sharing(device: Device, twins: readonly Device[]): string {
  const others = twins.filter((twin) => twin !== device).map(({ name }) => safeText(name))
  return (
    `not accepted: ${others.join(' and ')} ${others.length === 1 ? 'reports' : 'report'} the same MAC address ` +
    `(${safeText(device.identity.mac)}), and one would replace the other. Accept one of them by its name, and give ` +
    'each of the others an identity of its own (HAWSER_PREFERRED_IDENTITY).'
  )
}

function replacing(device: Device, replaced: string): string {
  return (
    `not accepted: it would replace ${safeText(replaced)}, which has the same MAC address. ` +
    `If that is right, run \`hawser devices accept ${safeText(device.name)}\`.`
  )
}

const uidOf = ({ uid }: Device) => ({ params: { uid } })

const rename: Command = {
  words: ['devices', 'rename'],
  summary: 'Gives a device another name.',
  arguments: [
    { name: 'device', doc: 'its current name, or its uid or the start of it', completes: 'device' },
    { name: 'name', doc: 'letters, digits, - and _, at most 64' },
  ],
  async run(given, context) {
    const [text = '', name = ''] = given.words
    const api = context.api()
    const device = await findDevice(api, text)
    await api.devices.update({ ...uidOf(device), body: { name } })
    context.say(`${safeText(device.name)} is now ${name}.`)
  },
}

const tagOptions: Option[] = [
  { name: 'add', value: 'tag', doc: 'a tag to add; may be repeated', many: true, completes: 'tag' },
  { name: 'remove', value: 'tag', doc: 'a tag to remove; may be repeated', many: true, completes: 'tag' },
]

const tag: Command = {
  words: ['devices', 'tag'],
  summary: 'Adds tags to devices and removes them.',
  arguments: [deviceWords],
  options: [...tagOptions, ...selectors('all devices')],
  async run(given, context) {
    const [add, remove] = [given.values('add'), given.values('remove')]
    if (add.length + remove.length === 0)
      throw new CliError('No tags given: use --add <tag> or --remove <tag>.', usageCode)
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given)
    return applyToEach(context, devices, 'tagged', (device) => retag(api, device, add, remove))
  },
}

/** Sets all tags with one call, so that a tag that the server refuses leaves the device as it was. */
async function retag(
  api: Client,
  device: Device,
  add: readonly string[],
  remove: readonly string[],
): Promise<void> {
  const tags = [...new Set([...device.tags.filter((tag) => !remove.includes(tag)), ...add])]
  const [last] = device.tags
  if (tags.length === 0) {
    // The interface cannot empty the list, only remove a tag.
    if (last === undefined) return
    if (device.tags.length > 1) await api.devices.setTags({ ...uidOf(device), body: { tags: [last] } })
    await api.devices.removeTag({ params: { uid: device.uid, tag: last } })
  } else await api.devices.setTags({ ...uidOf(device), body: { tags } })
}

const set =
  (status: string): Act =>
  (api, { uid }) =>
    api.devices.setStatus({ params: { uid, status } })

export const deviceCommands: readonly Command[] = [
  list,
  accept,
  bulkCommand(
    'reject',
    'Rejects devices; their live sessions end.',
    'rejected',
    'all that are pending',
    'pending',
    set('reject'),
  ),
  bulkCommand(
    'pend',
    'Makes devices pending again; their live sessions end.',
    'pending',
    'all that are accepted',
    'accepted',
    set('pending'),
  ),
  remove,
  rename,
  tag,
]
