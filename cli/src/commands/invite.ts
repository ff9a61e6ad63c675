// `hawser sessions invite` makes a link with which one person watches a live session, or asks to type in it.
// `hawser join` (join.ts) and the console take such a link.
import { defined } from '@hawser/contract/defined'
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
  summary: 'Creates a link that lets one person watch a live session, or ask to type in it.',
  arguments: [{ name: 'session', doc: 'its uid or the start of it, or `last`', completes: 'session' }],
  options: [
    { name: 'join', doc: 'also allows asking to type' },
    { name: 'for', value: 'time', doc: `how long it is valid: 30m or 2h; default: ${usualInvitation_min}m` },
    { name: 'to', value: 'who', doc: 'the username or e-mail address; default: the first to open it' },
  ],
  async run(given, context) {
    const api = context.api()
    const { uid } = await findSession(api, given.words[0]!)
    const to = given.value('to')
    const mode: 'join' | 'watch' = given.flag('join') === true ? 'join' : 'watch'
    const valid_minutes = minutesOf(given.value('for') ?? `${usualInvitation_min}m`)
    const { body: made } = await api.sessions.invite({
      params: { uid },
      body: defined({ mode, valid_minutes, to }),
    })
    const link = `${context.options().url.replace(/\/$/, '')}${invitationPage}#${made.token}`
    if (context.output === 'json') {
      context.print({ ...made, link })
      return
    }
    const recipient = to === undefined ? 'the first person to open it' : safeText(to)
    context.say(
      `For ${recipient}, to ${mode === 'join' ? 'watch and ask to type' : 'watch'}, until ${made.expires_at}.`,
    )
    process.stdout.write(`${link}\n`)
  },
}

function minutesOf(text: string): number {
  const [, count, unit = ''] = /^(\d{1,4})([mh])$/.exec(text) ?? []
  const minutes = Number(count) * (unit === 'h' ? 60 : 1)
  if (!(minutes >= 1 && minutes <= longestInvitation_min))
    throw new CliError(`--for must be 1m to ${longestInvitation_min / 60}h, such as 30m or 2h.`, usageCode)
  return minutes
}
