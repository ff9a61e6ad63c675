// Commands for agents: which build each device runs and how far behind it is, and updates of several devices
// at once.
import { client } from '@hawser/contract/client'
import { mostDevicesToUpdate } from '@hawser/contract/agents'
import type { Device } from '@hawser/contract/devices'
import type { Command } from '../command.ts'
import { deviceWords, selectDevices, selectors } from '../device-selection.ts'
import { everyPage } from '../resolve.ts'

const rowOf = ({ name, online, info, agent }: Device) => ({
  name,
  online,
  version: info.version,
  state: agent?.state ?? 'other',
  build: agent?.build ?? '',
  reason: agent?.reason ?? 'It is not an agent of Hawser.',
})

const list: Command = {
  words: ['agents', 'list'],
  summary: 'Shows the agent of every accepted device: its version, and whether it is up to date.',
  options: [{ name: 'behind', doc: 'those that are not up to date' }],
  async run(given, context) {
    const api = client(context.options())
    const query = { status: 'accepted', sort_by: 'name', order_by: 'asc' } as const
    const devices = await everyPage((pages) => api.devices.list({ query: { ...query, ...pages } }))
    const rows = devices.map(rowOf).filter(({ state }) => !given.flag('behind') || state !== 'current')
    context.print(rows, { columns: ['name', 'online', 'version', 'state', 'build', 'reason'] })
    return undefined
  },
}

const update: Command = {
  words: ['agents', 'update'],
  summary: 'Asks devices to install the agent that the server offers, when their sessions have ended.',
  arguments: [deviceWords],
  options: selectors('all accepted devices'),
  async run(given, context) {
    const api = client(context.options())
    const { release } = (await api.agents.get({})).body
    let asked = 0
    if (given.flag('all') === true) ({ asked } = (await api.agents.update({ body: { all: true } })).body)
    else {
      const uids = (await selectDevices(api, given.words, given)).map(({ uid }) => uid)
      for (let start = 0; start < uids.length; start += mostDevicesToUpdate) {
        const devices = uids.slice(start, start + mostDevicesToUpdate)
        asked += (await api.agents.update({ body: { devices } })).body.asked
      }
    }
    if (context.output === 'json') context.print({ asked, release })
    else
      context.say(
        asked === 0
          ? 'No device is behind and can update itself; `hawser agents list` says why.'
          : `${asked} ${asked === 1 ? 'device updates' : 'devices update'} to ${release?.version ?? 'the offered agent'}; \`hawser agents list\` shows how far they are.`,
      )
    return undefined
  },
}

export const agentCommands: readonly Command[] = [list, update]
