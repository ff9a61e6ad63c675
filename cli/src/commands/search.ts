// `hawser search` looks for lines in everything that recorded sessions showed, and prints each with the lines
// around it and the command that plays that moment. The lines come from devices, so that control characters
// in them never reach the terminal.
import { defined } from '@hawser/contract/defined'
import type { SearchHit } from '@hawser/contract/recordings'
import { wholeNumber, type Command } from '../command.ts'
import { CliError, notFoundCode } from '../errors.ts'
import { momentOf } from '../moment.ts'
import { safeText } from '../safe-text.ts'

const usualHits = 20
const mostHits = 1_000
const page = 100

export const search: Command = {
  words: ['search'],
  summary: 'Searches the output of recorded sessions.',
  arguments: [{ name: 'query', doc: 'words, "phrases" and prefixes*; a line has all of them', many: true }],
  options: [
    { name: 'commands', doc: 'only commands, not their output' },
    { name: 'device', value: 'device', doc: 'the name or the uid of a device', completes: 'device' },
    { name: 'tag', value: 'tag', doc: 'devices with this tag', completes: 'tag' },
    { name: 'username', value: 'name', doc: 'the user on the device' },
    {
      name: 'person',
      value: 'person',
      doc: 'who opened the session, or joined it and typed: a user name, or an id',
    },
    {
      name: 'from',
      value: 'moment',
      doc: 'shown then or later: 2026-11-17, 2026-11-17T08:00:00Z, or 7d, a week ago',
    },
    { name: 'to', value: 'moment', doc: 'shown then or earlier' },
    { name: 'limit', value: 'number', doc: `how many lines; default: ${usualHits}, at most ${mostHits}` },
    { name: 'context', doc: 'shows the lines around each; --no-context does not' },
  ],
  details: [
    'Newest first. Case and punctuation do not count; Chinese and Japanese need no spaces.',
    'Needs the role administrator, as playing a recording does.',
  ],
  async run(given, context) {
    const api = context.api()
    const wanted = wholeNumber(given, 'limit', usualHits, 1, mostHits)
    const query = {
      text: given.words.join(' '),
      ...defined({
        commands: given.flag('commands') || undefined,
        device: given.value('device'),
        tag: given.value('tag'),
        username: given.value('username'),
        person: given.value('person'),
        from: momentOf(given.value('from')),
        to: momentOf(given.value('to')),
      }),
    }
    const hits: SearchHit[] = []
    let [after, waiting, failed]: [string | null, number, number] = ['', 0, 0]
    while (after !== null && hits.length < wanted) {
      const rest = defined({ limit: Math.min(page, wanted - hits.length), after: after || undefined })
      const { body } = await api.recordings.find({ query: { ...query, ...rest } })
      hits.push(...body.hits)
      ;({ next: after, waiting, failed } = body)
    }
    if (context.output === 'json') context.print(hits)
    else for (const hit of hits) process.stdout.write(textOf(hit, given.flag('context') !== false))
    if (waiting > 0) context.say(`${recordings(waiting)} not indexed yet.`)
    if (failed > 0) context.say(`${recordings(failed)} not searched: indexing failed.`)
    if (hits.length === 0) throw new CliError('Nothing was found.', notFoundCode)
    if (after !== null) context.say(`There are more; --limit ${Math.min(mostHits, wanted * 5)} shows more.`)
  },
}

const recordings = (count: number): string =>
  count === 1 ? '1 recorded session is' : `${count} recorded sessions are`

function textOf(hit: SearchHit, withContext: boolean): string {
  const { device_name, username, person, typist, at, session_uid, channel } = hit
  const { command, before, after, text, time_ms } = hit
  const typed = typist === '' ? '' : `, ${typist} typed`
  const who = person.name === '' ? username : `${person.name} as ${username}`
  const kind = command ? `, a command (${sources[command.source]})` : ''
  const moment = Math.floor(time_ms / 1000)
  const terminal = channel > 0 ? ` --channel ${channel}` : ''
  const lines = [
    `${at.slice(0, 19).replace('T', ' ')}  ${who} on ${device_name || 'a removed device'}${typed}${kind}`,
    ...(withContext ? before.map((line) => `    ${line}`) : []),
    `  > ${text}`,
    ...(withContext ? after.map((line) => `    ${line}`) : []),
    `  hawser play ${session_uid.slice(0, 12)}${terminal} --skip ${moment}`,
  ]
  return `${lines.map(safeText).join('\n')}\n\n`
}

const sources: Readonly<Record<'marks' | 'prompt' | 'exec', string>> = {
  marks: 'marked by the shell',
  prompt: 'guessed by its prompt',
  exec: 'requested by the client',
}
