// Devices as people work with them: lists by tag and name, several at once, tags added and taken away in one
// go. What is done to several goes on when one is refused, says so for each, and ends with a code that is not
// 0.
import { client, type Client } from '@hawser/contract/client'
import { contract } from '@hawser/contract'
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import type { FilterElement } from '@hawser/contract/filters'
import type { Command, Option } from '../command.ts'
import { derive } from '../commands.ts'
import { Complaint, complaintOf, usageCode } from '../complaint.ts'
import type { Context } from '../context.ts'
import { filterOf, findDevice, property } from '../resolve.ts'
import { safeText } from '../safe-text.ts'
import { deviceWords, selectDevices, selectors } from '../select.ts'

const derivedList = derive({ id: 'devices.list', noun: 'devices', verb: 'list', op: contract.devices.list })

const list: Command = {
  ...derivedList,
  options: [
    { name: 'tag', value: 'tag', doc: 'with this tag; repeated: with any of them', many: true, named: 'tag' },
    { name: 'name', value: 'text', doc: 'with this in its name' },
    { name: 'online', doc: 'online ones; --no-online: those that are not' },
    ...(derivedList.options ?? []),
  ],
  async run(given, context) {
    const wanted: FilterElement[] = []
    const [tags, name, online] = [given.values('tag'), given.value('name'), given.flag('online')]
    if (name !== undefined) wanted.push(property('name', 'contains', name))
    if (online !== undefined) wanted.push(property('online', 'bool', online))
    const { filter } = filterOf(tags, wanted)
    if (filter !== undefined && given.value('filter') !== undefined) {
      throw new Complaint(
        '--filter is a whole filter: it cannot be combined with --tag, --name and --online.',
        usageCode,
      )
    }
    const values = (option: string) =>
      option === 'filter' && filter !== undefined ? [filter] : given.values(option)
    return derivedList.run({ ...given, values, value: (option) => values(option).at(-1) }, context)
  },
}

/** `done`: what it then is. */
function several(
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
      return forEach(context, await selectDevices(api, given.words, given, { all: status }), done, (device) =>
        act(api, device),
      )
    },
  }
}
type Act = (api: Client, device: Device) => Promise<unknown>

/** One after the other: the order is the one that was asked for, and the server is not flooded. */
async function forEach(
  context: Context,
  devices: readonly Device[],
  done: string,
  /** A sentence instead of `done`, where there is more to say. */
  act: (device: Device) => Promise<unknown>,
): Promise<number> {
  let worst = 0
  const rows: { name: string; uid: string; result: string }[] = []
  for (const device of devices) {
    try {
      const said = await act(device)
      rows.push({ name: device.name, uid: device.uid, result: typeof said === 'string' ? said : done })
    } catch (error) {
      const complaint = complaintOf(error, context.credential())
      if (!complaint) throw error
      worst = Math.max(worst, complaint.code)
      rows.push({ name: device.name, uid: device.uid, result: complaint.message })
    }
    const last = rows.at(-1)!
    if (context.output === 'table') context.say(`${safeText(last.name)}: ${last.result}`)
  }
  if (context.output === 'json') context.print(rows)
  return worst
}

const remove: Command = {
  words: ['devices', 'remove'],
  summary: 'Removes devices and their sessions. An agent that still runs enrols its device anew.',
  arguments: [deviceWords],
  options: [...selectors('all devices'), { name: 'yes', doc: 'more than one device is really meant' }],
  async run(given, context) {
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given)
    if (devices.length > 1 && !given.flag('yes')) {
      const names = devices.slice(0, 10).map(({ name }) => safeText(name))
      const more = devices.length > names.length ? ' …' : ''
      throw new Complaint(
        `That would remove ${devices.length} devices: ${names.join(', ')}${more}. If you mean it, add --yes.`,
        usageCode,
      )
    }
    return forEach(context, devices, 'removed', (device) => api.devices.remove(uidOf(device)))
  },
}

const accept: Command = {
  words: ['devices', 'accept'],
  summary: 'Lets people reach devices. Works from any state.',
  arguments: [deviceWords],
  options: selectors('all that are pending, but for those that would replace another device'),
  async run(given, context) {
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given, { all: 'pending' })
    const unnamed = given.flag('all') === true || given.values('tag').length > 0
    const byMac = new Map<string, Device[]>()
    for (const device of devices)
      byMac.set(device.identity.mac, [...(byMac.get(device.identity.mac) ?? []), device])
    byMac.delete('')
    return forEach(context, devices, 'accepted', async (device) => {
      const twins = byMac.get(device.identity.mac) ?? []
      if (twins.length > 1)
        throw new Complaint(
          sharing(
            device,
            twins.filter((twin) => twin !== device),
          ),
        )
      if (device.replaces && unnamed) throw new Complaint(replacing(device, device.replaces.name))
      const replaced = (await api.devices.accept(uidOf(device))).headers.get('x-replaced-device')
      return replaced === null
        ? undefined
        : `accepted; it replaced ${safeText(replaced)} and has its name, tags and sessions now`
    })
  },
}

/** Several agents on one machine: accepting them one after the other would leave only the last one. */
function sharing({ identity }: Device, twins: readonly Device[]): string {
  const [last = '', ...names] = twins.map(({ name }) => safeText(name)).toReversed()
  const others =
    names.length === 0
      ? `${last} says that it has`
      : `${names.toReversed().join(', ')} and ${last} say that they have`
  return (
    `left alone: ${others} the same MAC address (${safeText(identity.mac)}), and one would replace the other. ` +
    'Accept one of them by its name, and give each of the others an identity of its own (HAWSER_PREFERRED_IDENTITY).'
  )
}

function replacing(device: Device, replaced: string): string {
  return (
    `left alone: it would replace ${safeText(replaced)}, which has the same MAC address. ` +
    `If that is right, run \`hawser devices accept ${safeText(device.name)}\`.`
  )
}

const uidOf = ({ uid }: Device) => ({ params: { uid } })

const rename: Command = {
  words: ['devices', 'rename'],
  summary: 'Gives a device another name.',
  arguments: [
    { name: 'device', doc: 'its present name, or its uid or the beginning of it', named: 'device' },
    { name: 'name', doc: 'letters, digits, - and _, at most 64' },
  ],
  async run(given, context) {
    const [text = '', name = ''] = given.words
    const api = context.api()
    const device = await findDevice(api, text)
    await api.devices.update({ ...uidOf(device), body: { name } })
    context.say(`${safeText(device.name)} is now ${name}.`)
    return undefined
  },
}

const tagOptions: Option[] = [
  { name: 'add', value: 'tag', doc: 'a tag to put on; may be repeated', many: true, named: 'tag' },
  { name: 'remove', value: 'tag', doc: 'a tag to take off; may be repeated', many: true, named: 'tag' },
]

const tag: Command = {
  words: ['devices', 'tag'],
  summary: 'Puts tags on devices and takes them off; what is so already stays so.',
  arguments: [deviceWords],
  options: [...tagOptions, ...selectors('all devices')],
  async run(given, context) {
    const [add, remove] = [given.values('add'), given.values('remove')]
    if (add.length + remove.length === 0)
      throw new Complaint('Which tags? Give --add <tag> or --remove <tag>.', usageCode)
    const api = client(context.options())
    const devices = await selectDevices(api, given.words, given)
    return forEach(context, devices, 'tagged', (device) => retag(api, device, add, remove))
  },
}

async function retag(
  api: Client,
  device: Device,
  add: readonly string[],
  remove: readonly string[],
): Promise<void> {
  // Off first: a device has three tags at the most.
  for (const tag of remove.filter((one) => device.tags.includes(one)))
    await api.devices.removeTag({ params: { uid: device.uid, tag } })
  for (const tag of add.filter((one) => !device.tags.includes(one)))
    await api.devices.addTag({ ...uidOf(device), body: { tag } })
}

const set =
  (status: string): Act =>
  (api, { uid }) =>
    api.devices.setStatus({ params: { uid, status } })

export const deviceCommands: readonly Command[] = [
  list,
  accept,
  several(
    'reject',
    'Rejects devices; their live sessions end.',
    'rejected',
    'all that are pending',
    'pending',
    set('reject'),
  ),
  several(
    'pend',
    'Makes devices wait again; their live sessions end.',
    'pending',
    'all that are accepted',
    'accepted',
    set('pending'),
  ),
  remove,
  rename,
  tag,
]
