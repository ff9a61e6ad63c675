// sessions events: the files, commands and forwarded connections of a session, a line for each, oldest first.
import { contract } from '@hawser/contract'
import type { SessionEvent } from '@hawser/contract/session-events'
import type { Command } from '../command.ts'
import { commandFor } from '../generated-commands.ts'
import { aligned } from '../print.ts'
import { findSession } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

const generated = commandFor({
  id: 'sessions.events',
  noun: 'sessions',
  verb: 'events',
  op: contract.sessions.events,
})

const page = 500

export const sessionEvents: Command = {
  ...generated,
  async run(given, context) {
    if (context.output === 'json' || given.value('after') !== undefined || given.value('limit') !== undefined)
      return generated.run(given, context)
    const api = context.api()
    const { uid } = await findSession(api, given.words[0] ?? '')
    const events: SessionEvent[] = []
    for (let after: number | null = 0; after !== null;) {
      const { body } = await api.sessions.events({ params: { uid }, query: { after, limit: page } })
      events.push(...body.events)
      after = body.next
    }
    process.stdout.write(aligned(events.map(lineOf)))
    if (events.length === 0) context.say('Nothing but its terminal, if it has one.')
  },
}

function lineOf({ at, kind, subject, target, outcome, received, sent, sha256, why }: SessionEvent): string[] {
  const name = target === undefined ? subject : `${subject} -> ${target}`
  const bytes = received + sent > 0 ? String(received + sent) : ''
  const more = [sha256, why].filter((text) => text !== undefined).join(' ')
  return [`${at.slice(0, 10)} ${at.slice(11, 19)}`, kind, safeText(name), outcome, bytes, safeText(more)]
}
