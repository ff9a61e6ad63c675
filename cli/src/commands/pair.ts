// `hawser devices pair`: takes in the device that shows a code. It first prints what asks, because whoever
// confirms a code that somebody sent them takes in a machine of a stranger.
import { ApiError } from '@hawser/contract/client'
import type { Command } from '../command.ts'
import { CliError, notFoundCode, usageCode } from '../errors.ts'
import { prompt } from '../prompt.ts'
import { safeText } from '../safe-text.ts'

export const pair: Command = {
  words: ['devices', 'pair'],
  summary: 'Takes in the device whose installer shows this code, accepted at once.',
  arguments: [{ name: 'code', doc: 'the code that the device shows, for example K7QX-2MPT' }],
  options: [
    { name: 'name', value: 'name', doc: 'the name of the device, instead of its host name' },
    { name: 'tag', value: 'tag', doc: 'a tag for it; may be repeated', many: true, completes: 'tag' },
    { name: 'refuse', doc: 'refuses the device instead' },
    { name: 'yes', doc: 'does not ask: the code is from a machine of mine' },
  ],
  details: ['Confirm only a code that you see on a machine of your own, never one that somebody sent you.'],
  async run(given, context) {
    const [code = ''] = given.words
    const api = context.api()
    const { body: asks } = await api.pairings.get({ query: { code } }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
      throw new CliError(
        `${safeText(error.message)}\nRun the install line on the device again: it shows a new code.`,
        notFoundCode,
        error,
      )
    })
    const facts = [
      ['host name', asks.hostname],
      ['system', `${asks.info.pretty_name} (${asks.info.arch})`],
      ['MAC address', asks.mac],
      ['asks from', asks.remote_addr],
      ['key', asks.fingerprint],
      ['since', asks.created_at],
    ] as const
    for (const [name, value] of facts) context.say(`${name.padEnd(12)} ${safeText(value)}`)
    if (given.flag('refuse')) {
      await api.pairings.refuse({ body: { code } })
      context.say('The device is refused.')
      return undefined
    }
    if (!given.flag('yes')) {
      context.say('Take it in only if you see this code on a machine of your own.')
      const answer = await prompt(
        'Take it in? (yes or no)',
        'add --yes if the code is from a machine of yours',
      )
      if (!/^y(es)?$/i.test(answer)) throw new CliError('Nothing was done; the code stays good.', usageCode)
    }
    const [name, tags] = [given.value('name'), given.values('tag')]
    const { body, headers } = await api.pairings.confirm({
      body: {
        code,
        ...(name === undefined ? {} : { name }),
        ...(tags.length > 0 ? { tags: [...tags] } : {}),
      },
    })
    const replaced = headers.get('x-replaced-device')
    if (replaced !== null)
      context.say(`It replaced ${safeText(replaced)} and has its name, tags and sessions now.`)
    if (context.output === 'json') context.print(body)
    else context.say(`${safeText(body.name)} is in ${safeText(body.namespace)} now, accepted.`)
    return undefined
  },
}
