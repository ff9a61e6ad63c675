// Recordings for players: the recorded terminals of a session, any part of one by its time, and searches in
// one and in all of the namespace. `sessions.cast` downloads, `sessions.removeRecording` deletes. The bytes
// of a terminal are untrusted: a player must filter control sequences.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { SessionUid, Timestamp } from './fields.ts'
import { operation } from './operation.ts'
import { SessionPerson } from './sessions.ts'

const Milliseconds = Type.Integer({ description: 'Milliseconds since the start of the recording.' })
const Position = Type.Integer({ description: 'Bytes of output before this place.' })

export const Interruption = Type.Object({
  from_ms: Milliseconds,
  until_ms: Milliseconds,
  why: Type.String({ description: '`client lost`: the session was held without its client.' }),
  via: Type.String({
    description: 'How its person reattached, as in `via` of a session; empty: nobody did.',
  }),
})
export type Interruption = Static<typeof Interruption>

export const RecordedTerminal = Type.Object({
  channel: Type.Integer({ description: 'From 0.' }),
  person: Type.String({
    description:
      'Who opened the session, as the signed recording says: a user name, `key:` and an API key, `certificate:` and a name; empty: unknown.',
  }),
  term: Type.String({ description: 'The terminal’s kind, as the client named it.' }),
  width: Type.Integer({ description: 'Of the terminal at the start, in characters.' }),
  height: Type.Integer(),
  started_at: Timestamp,
  duration_ms: Type.Integer(),
  output_bytes: Type.Integer(),
  ending: Type.String({
    description:
      '`going` while it is being recorded, then `closed`; `failed`: it could not be recorded to its end; `cut off`: by a crash.',
  }),
  program: Type.String({ description: '`shell`, `exec` or `subsystem`.' }),
  command: Type.String({ description: 'The command line of an `exec`; empty for others.' }),
  interruptions: Type.Array(Interruption, {
    description: 'Times without a client, in order: nobody saw what was shown then.',
  }),
})
export type RecordedTerminal = Static<typeof RecordedTerminal>

export const RecordingEvent = Type.Object({
  time_ms: Milliseconds,
  bytes: Type.Optional(Type.String({ description: 'Output, in base64.' })),
  width: Type.Optional(
    Type.Integer({ description: 'With `height`: the terminal has another size from here on.' }),
  ),
  height: Type.Optional(Type.Integer()),
  typist: Type.Optional(Type.String({ description: 'This person types from here on.' })),
})
export type RecordingEvent = Static<typeof RecordingEvent>

export const RecordingWindow = Type.Object({
  time_ms: Milliseconds,
  width: Type.Integer({ description: 'Of the terminal where the window begins.' }),
  height: Type.Integer(),
  screen: Type.String({
    description:
      'Base64 of bytes that draw the screen as it was there; empty for a window that continues another.',
  }),
  typist: Type.String({
    description: 'Who types where the window begins, in a session that several share; empty: unknown.',
  }),
  events: Type.Array(RecordingEvent, {
    description: 'What happened from there on, in order; as much as fits into one answer.',
  }),
  next: Type.Union([Type.Null(), Position], {
    description: 'Where the next window begins; null: there is no more.',
  }),
})
export type RecordingWindow = Static<typeof RecordingWindow>

export const RecordingMoment = Type.Object({
  time_ms: Milliseconds,
  width: Type.Integer({ description: 'Of the terminal at this moment, in characters.' }),
  height: Type.Integer(),
  output: Type.String({
    description:
      'Base64 of the end of the output up to this moment; in a terminal of this size it draws nearly what was shown.',
  }),
})
export type RecordingMoment = Static<typeof RecordingMoment>

export const Found = Type.Object({
  time_ms: Milliseconds,
  before: Type.String({ description: 'On the same line.' }),
  text: Type.String({ description: 'As it was shown.' }),
  after: Type.String(),
})
export type Found = Static<typeof Found>

export const SearchHit = Type.Object({
  session_uid: SessionUid,
  channel: Type.Integer({ description: 'Which of the session’s recorded terminals; from 0.' }),
  device_uid: Type.String(),
  device_name: Type.String(),
  username: Type.String({ description: 'The user on the device.' }),
  person: SessionPerson,
  typist: Type.String({
    description:
      'Who typed then, if it was somebody who joined the session; empty: the person who opened it.',
  }),
  started_at: Timestamp,
  at: Timestamp,
  time_ms: Type.Integer({
    description: 'The moment in the recording: milliseconds since its start. A player jumps there.',
  }),
  text: Type.String({ description: 'The whole line, as it was shown.' }),
  matches: Type.Array(Type.Array(Type.Integer(), { minItems: 2, maxItems: 2 }), {
    description: 'The parts of the line that match: the first character and the one behind the last.',
  }),
  command: Type.Union(
    [
      Type.Null(),
      Type.Object({
        text: Type.String({ description: 'Without the prompt.' }),
        source: Type.Enum(['marks', 'prompt', 'exec'], {
          description:
            '`marks`: the shell marked it (OSC 133); `prompt`: it stood behind what looks like a prompt; `exec`: the client asked for it.',
        }),
      }),
    ],
    { description: 'The command in this line, if it is one; null: it is output.' },
  ),
  before: Type.Array(Type.String(), { description: 'Up to two lines above.' }),
  after: Type.Array(Type.String(), { description: 'Up to two lines below.' }),
})
export type SearchHit = Static<typeof SearchHit>

const Moment = Type.String({
  minLength: 10,
  maxLength: 35,
  description:
    'Lines that were shown from, or up to, this moment: as `2026-11-17` or `2026-11-17T03:30:00Z`.',
})

const params = Type.Object({ uid: SessionUid })
const one = Type.Object({
  uid: SessionUid,
  channel: Type.String({ pattern: '^\\d{1,5}$', description: 'Which terminal; from 0.' }),
})
const aTerminal = { params: { uid: sample.session, channel: '0' } }
const largest = Number.MAX_SAFE_INTEGER

export const recordings = {
  usage: operation({
    title: 'Get recording usage',
    summary:
      'How much the recordings of the namespace take up, and how much they may. At its quota nothing more of a namespace is recorded; nothing is deleted.',
    method: 'GET',
    path: '/api/recordings/usage',
    access: member('administrator'),
    answer: Type.Object({
      used_bytes: Type.Integer({ description: 'Measured every ten minutes.' }),
      quota_bytes: Type.Integer({ description: '0: there is no quota.' }),
    }),
    failures: [],
    example: {},
  }),
  list: operation({
    title: 'Get recorded terminals',
    summary:
      'What was recorded of the session: one for each terminal, in the order in which they were opened.',
    method: 'GET',
    path: '/api/sessions/:uid/recording',
    access: member('administrator'),
    params,
    answer: Type.Array(RecordedTerminal),
    failures: ['recordingDamaged'],
    example: { params: { uid: sample.session } },
  }),
  window: operation({
    title: 'Get a part of a recording',
    summary: 'The screen at a moment and what happened from there on, or what follows such a part.',
    method: 'GET',
    path: '/api/sessions/:uid/recording/:channel',
    access: member('administrator'),
    audit: 'recording.played',
    params: one,
    query: Type.Object({
      at: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: largest,
          description: 'The moment, in milliseconds since the start.',
        }),
      ),
      from: Type.Optional(
        Type.Integer({ minimum: 0, maximum: largest, description: 'The `next` of another window, instead.' }),
      ),
    }),
    answer: RecordingWindow,
    failures: ['recordingDamaged', 'tooMany'],
    example: { ...aTerminal, query: { at: '0' } },
  }),
  filmstrip: operation({
    title: 'Get the filmstrip of a recording',
    summary: 'Some moments of a recorded terminal, spread over it, for small pictures.',
    method: 'GET',
    path: '/api/sessions/:uid/recording/:channel/filmstrip',
    access: member('administrator'),
    audit: 'recording.played',
    params: one,
    query: Type.Object({
      moments: Type.Optional(
        Type.Integer({ minimum: 2, maximum: 12, description: 'The maximum; 8 by default.' }),
      ),
    }),
    answer: Type.Array(RecordingMoment),
    failures: ['recordingDamaged', 'tooMany'],
    example: { ...aTerminal, query: { moments: '4' } },
  }),
  search: operation({
    title: 'Search a recording',
    summary:
      'Where a text was shown, whatever its case and its colours; a part of the recording with each call.',
    method: 'GET',
    path: '/api/sessions/:uid/recording/:channel/search',
    access: member('administrator'),
    audit: 'recording.played',
    params: one,
    query: Type.Object({
      text: Type.String({ minLength: 1, maxLength: 200 }),
      from: Type.Optional(
        Type.Integer({ minimum: 0, maximum: largest, description: 'The `next` of the call before.' }),
      ),
    }),
    answer: Type.Object({
      found: Type.Array(Found),
      next: Type.Union([Type.Null(), Position], {
        description: 'Where to go on; null: all of it was looked at.',
      }),
    }),
    failures: ['recordingDamaged', 'tooMany'],
    example: { ...aTerminal, query: { text: 'login' } },
  }),
  find: operation({
    title: 'Search recordings',
    summary:
      'Lines that recorded sessions showed, newest first: lines with all words, "phrases" and prefixes* of the query. Case and punctuation do not count.',
    method: 'GET',
    path: '/api/search',
    access: member('administrator'),
    audit: 'recording.searched',
    query: Type.Object({
      text: Type.String({ minLength: 1, maxLength: 300, description: 'The query.' }),
      commands: Type.Optional(Type.Boolean({ description: 'Only commands, not output.' })),
      device: Type.Optional(
        Type.String({ minLength: 1, maxLength: 256, description: 'The uid or the name of a device.' }),
      ),
      tag: Type.Optional(
        Type.String({ minLength: 1, maxLength: 255, description: 'Devices with this tag.' }),
      ),
      username: Type.Optional(
        Type.String({ minLength: 1, maxLength: 255, description: 'The user on the device.' }),
      ),
      person: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 256,
          description:
            'Who opened the session, or joined it and typed when the line was shown: a user name, or an id as in `person`.',
        }),
      ),
      from: Type.Optional(Moment),
      to: Type.Optional(Moment),
      after: Type.Optional(
        Type.String({ pattern: '^\\d{1,16}\\.\\d{1,6}$', description: 'The `next` of the call before.' }),
      ),
      limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
    }),
    answer: Type.Object({
      hits: Type.Array(SearchHit),
      next: Type.Union([Type.Null(), Type.String()], {
        description:
          'Where to go on; null: there is no more. A call does a bounded amount of work, so there may be more although there are few hits, or none.',
      }),
      waiting: Type.Integer({ description: 'Recorded sessions that are going on or wait to be indexed.' }),
      failed: Type.Integer({
        description:
          'Recorded sessions that are not searched: indexing them ended its thread again and again. Their recordings can be played.',
      }),
    }),
    failures: ['notFound', 'conflict', 'tooMany'],
    example: { query: { text: 'login', username: sample.owner.username } },
  }),
}
