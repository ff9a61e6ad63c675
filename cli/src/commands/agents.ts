// Commands for agents: which build each device runs and how far behind it is, and updates of several devices
// at once.
import { client } from '@hawser/contract/client'
import { mostDevicesToUpdate } from '@hawser/contract/agents'
import type { Device } from '@hawser/contract/devices'
import type { Command } from '../command.ts'
import { deviceWords, selectDevices, selectors } from '../device-selection.ts'
import { byName, everyPage } from '../resolve.ts'

const rowOf = ({ name, online, info, agent }: Device) => ({
  name,
  online,
  version: info.version,
  state: agent?.state ?? 'other',
  build: agent?.build ?? '',
  reason: agent?.reason ?? 'This is not a Hawser agent.',
})

const list: Command = {
  words: ['agents', 'list'],
  summary: 'Shows the agent of every accepted device: its version, and whether it is up to date.',
  options: [{ name: 'behind', doc: 'only those that are not up to date' }],
  async run(given, context) {
    const api = client(context.options())
    const query = { status: 'accepted', ...byName } as const
    const devices = await everyPage((pages) => api.devices.list({ query: { ...query, ...pages } }))
    const rows = devices.map(rowOf).filter(({ state }) => !given.flag('behind') || state !== 'current')
    context.print(rows, { columns: ['name', 'online', 'version', 'state', 'build', 'reason'] })
  },
}

const update: Command = {
  words: ['agents', 'update'],
  summary: 'Requests that devices install the offered agent, once their sessions have ended.',
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
          ? 'No outdated device can update itself; `hawser agents list` shows why.'
          : `${asked} ${asked === 1 ? 'device updates' : 'devices update'} to ${release?.version ?? 'the offered agent'}; \`hawser agents list\` shows the progress.`,
      )
  },
}

export const agentCommands: readonly Command[] = [list, update]
