// `hawser devices pair` accepts the device that shows a code. It first describes the device, because a code that was
// sent to somebody may be from a machine of a stranger.
import { ApiError } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import type { Command } from '../command.ts'
import { CliError, notFoundCode, usageCode } from '../errors.ts'
import { prompt } from '../prompt.ts'
import { safeText } from '../safe-text.ts'

export const pair: Command = {
  words: ['devices', 'pair'],
  summary: 'Adds and accepts the device whose installer shows this code.',
  arguments: [{ name: 'code', doc: 'the code that the device shows, for example K7QX-2MPT' }],
  options: [
    { name: 'name', value: 'name', doc: 'the name of the device (its hostname)' },
    { name: 'tag', value: 'tag', doc: 'a tag for it; may be repeated', many: true, completes: 'tag' },
    { name: 'refuse', doc: 'refuses the device instead' },
    { name: 'yes', doc: 'skips the confirmation: the code is from a machine of mine' },
  ],
  details: ['Confirm only a code that you see on your own machine, never one that was sent to you.'],
  async run(given, context) {
    const [code = ''] = given.words
    const api = context.api()
    const { body: asks } = await api.pairings.get({ query: { code } }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
      throw new CliError(
        `${safeText(error.message)}\nRun the install command on the device again for a new code.`,
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
      context.say('The device was refused.')
      return
    }
    if (!given.flag('yes')) {
      context.say('Add it only if you see this code on your own machine.')
      const answer = await prompt('Add it? (yes or no)', 'add --yes if the code is from your own machine')
      if (!/^y(es)?$/i.test(answer))
        throw new CliError('Nothing was changed; the code is still valid.', usageCode)
    }
    const [name, tags] = [given.value('name'), given.values('tag')]
    const { body, headers } = await api.pairings.confirm({
      body: {
        code,
        ...defined({ name }),
        ...(tags.length > 0 && { tags: [...tags] }),
      },
    })
    const replaced = headers.get('x-replaced-device')
    if (replaced !== null)
      context.say(`It replaced ${safeText(replaced)} and now has its name, tags and sessions.`)
    if (context.output === 'json') context.print(body)
    else context.say(`${safeText(body.name)} is now in ${safeText(body.namespace)}, accepted.`)
  },
}
