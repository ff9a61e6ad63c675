// devices timeline: what happened to a device, a line for each event, newest first.
import { contract } from '@hawser/contract'
import type { Command } from '../command.ts'
import { commandFor } from '../generated-commands.ts'
import { findDevice } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

const generated = commandFor({
  id: 'devices.timeline',
  noun: 'devices',
  verb: 'timeline',
  op: contract.devices.timeline,
})

export const timeline: Command = {
  ...generated,
  async run(given, context) {
    if (context.output === 'json') return generated.run(given, context)
    const api = context.api()
    const { uid } = await findDevice(api, given.words[0] ?? '')
    const [{ body: device }, { body }] = await Promise.all([
      api.devices.get({ params: { uid } }),
      api.devices.timeline({
        params: { uid },
        query: given.value('limit') === undefined ? {} : { limit: Number(given.value('limit')) },
      }),
    ])
    for (const { at, sentence } of body.events)
      process.stdout.write(`${at.slice(0, 10)} ${at.slice(11, 19)}  ${safeText(sentence)}\n`)
    if (body.events.length === 0) context.say('Nothing is known of it yet.')
    if (device.online) context.say(`${safeText(device.name)} is online.`)
    else context.say(safeText(`${device.name} is offline. ${device.offline_reason ?? ''}`.trim()))
  },
}
