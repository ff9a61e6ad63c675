// Recordings for players: the recorded terminals of a session, any part of one by its time, and a search for
// text. `sessions.cast` downloads a whole recording, `sessions.removeRecording` deletes it. The bytes of a
// terminal are untrusted: a player must filter control sequences.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { SessionUid, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

const Milliseconds = Type.Integer({ description: 'Milliseconds since the start of the recording.' })
const Position = Type.Integer({ description: 'Bytes of output before this place.' })

export const RecordedTerminal = Type.Object({
  channel: Type.Integer({ description: 'From 0.' }),
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
})
export type RecordedTerminal = Static<typeof RecordedTerminal>

export const RecordingEvent = Type.Object({
  time_ms: Milliseconds,
  bytes: Type.Optional(Type.String({ description: 'Output, in base64.' })),
  width: Type.Optional(
    Type.Integer({ description: 'With `height`: the terminal has another size from here on.' }),
  ),
  height: Type.Optional(Type.Integer()),
})
export type RecordingEvent = Static<typeof RecordingEvent>

export const RecordingWindow = Type.Object({
  time_ms: Milliseconds,
  width: Type.Integer({ description: 'Of the terminal where the window begins.' }),
  height: Type.Integer(),
  screen: Type.String({
    description:
      'Base64 of bytes that draw the screen as it was there; empty for what goes on from another window.',
  }),
  events: Type.Array(RecordingEvent, {
    description: 'What happened from there on, in order; as much as fits into one answer.',
  }),
  next: Type.Union([Type.Null(), Position], {
    description: 'Where the next window begins; null: there is no more.',
  }),
})
export type RecordingWindow = Static<typeof RecordingWindow>

export const Found = Type.Object({
  time_ms: Milliseconds,
  before: Type.String({ description: 'On the same line.' }),
  text: Type.String({ description: 'As it was shown.' }),
  after: Type.String(),
})
export type Found = Static<typeof Found>

const params = Type.Object({ uid: SessionUid })
const one = Type.Object({
  uid: SessionUid,
  channel: Type.String({ pattern: '^\\d{1,5}$', description: 'Which terminal; from 0.' }),
})
const aTerminal = { params: { uid: sample.session, channel: '0' } }
const largest = Number.MAX_SAFE_INTEGER

export const recordings = {
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
    failures: ['recordingDamaged'],
    example: { ...aTerminal, query: { at: '0' } },
  }),
  search: operation({
    title: 'Search a recording',
    summary:
      'Where a text was shown, whatever its case and its colours; a part of the recording with each call.',
    method: 'GET',
    path: '/api/sessions/:uid/recording/:channel/search',
    access: member('administrator'),
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
    failures: ['recordingDamaged'],
    example: { ...aTerminal, query: { text: 'login' } },
  }),
}
