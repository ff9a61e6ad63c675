// `hawser sessions invite` makes a link with which one person watches a live session, or asks to type in it.
// `hawser join` (join.ts) and the console take such a link.
import {
  invitationPage,
  longestInvitation_min,
  usualInvitation_min,
} from '@hawser/contract/session-invitations'
import type { Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { findSession } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

export const invite: Command = {
  words: ['sessions', 'invite'],
  summary: 'Makes a link with which one person watches a live session, or asks to type in it.',
  arguments: [{ name: 'session', doc: 'its uid or the beginning of it, or `last`', completes: 'session' }],
  options: [
    { name: 'join', doc: 'they may ask to type, too' },
    {
      name: 'for',
      value: 'time',
      doc: `how long it is good, such as 30m or 2h; default ${usualInvitation_min}m`,
    },
    {
      name: 'to',
      value: 'who',
      doc: 'the user name or e-mail address of whoever may use it; default: who comes first',
    },
  ],
  async run(given, context) {
    const api = context.api()
    const { uid } = await findSession(api, given.words[0]!)
    const to = given.value('to')
    const mode = given.flag('join') === true ? 'join' : 'watch'
    const valid_minutes = minutesOf(given.value('for') ?? `${usualInvitation_min}m`)
    const body = { mode, valid_minutes, ...(to === undefined ? {} : { to }) } as const
    const { body: made } = await api.sessions.invite({ params: { uid }, body })
    const link = `${context.options().url.replace(/\/$/, '')}${invitationPage}#${made.token}`
    if (context.output === 'json') {
      context.print({ ...made, link })
      return undefined
    }
    const whom = to === undefined ? 'whoever opens it first' : safeText(to)
    context.say(
      `For ${whom}, to ${mode === 'join' ? 'watch and to ask to type' : 'watch'}, until ${made.expires_at}.`,
    )
    process.stdout.write(`${link}\n`)
    return undefined
  },
}

function minutesOf(text: string): number {
  const [, count, unit = ''] = /^(\d{1,4})([mh])$/.exec(text) ?? []
  const minutes = Number(count) * (unit === 'h' ? 60 : 1)
  if (!(minutes >= 1 && minutes <= longestInvitation_min))
    throw new CliError(`--for is 1m to ${longestInvitation_min / 60}h, such as 30m or 2h.`, usageCode)
  return minutes
}
