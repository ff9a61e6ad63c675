// Sharing a live session: who is there beside its person, and the messages of the WebSocket by which others
// watch and type (`livePath` of sessions.ts). Binary messages are bytes of the terminal, in both directions;
// text messages are JSON.
import Type, { type Static } from './type.ts'

/**
 * `watching`: sees the terminal. `asking`: waits for the person of the session to agree. `typing`: may type,
 * unless somebody else is the driver.
 */
export const participantStates = ['watching', 'asking', 'typing'] as const
export type ParticipantState = (typeof participantStates)[number]

export const Participant = Type.Object({
  id: Type.Integer({ description: 'Within the terminal; 0 is the person of the session.' }),
  name: Type.String({ description: 'The user name, or the name of an API key.' }),
  state: Type.Enum([...participantStates]),
  invited_by: Type.Optional(Type.String({ description: 'Whoever is there by an invitation: of this user.' })),
})
export type Participant = Static<typeof Participant>

/** The size of a shared terminal: that of the smallest window of those who may type, or of the driver’s. */
export const sizeRules = ['smallest', 'driver'] as const
export type SizeRule = (typeof sizeRules)[number]

/** Who is there, sent to everybody at each change. */
export interface Presence {
  readonly kind: 'present'
  /** The reader’s own id. */
  readonly you: number
  readonly people: readonly Participant[]
  /** Who alone may type; null: everybody who may. The person of the session takes over by typing. */
  readonly driver: number | null
  readonly size: SizeRule
}

/** What the server says, as text. */
export type LiveMessage =
  | Presence
  /** First; the binary message after it draws the screen as it is. */
  | { readonly kind: 'screen' | 'resize'; readonly width: number; readonly height: number }
  /** A sentence for this reader alone. */
  | { readonly kind: 'note'; readonly message: string }
  /** The last one. */
  | { readonly kind: 'end'; readonly message: string }

const side = Type.Integer({ minimum: 1, maximum: 65_535 })

/** What a participant says, as text. Binary messages are what they type. */
export const ParticipantMessage = Type.Union([
  /** May I type? The person of the session is asked, unless they need not be. */
  Type.Object({ kind: Type.Literal('ask') }),
  /** Back to watching. */
  Type.Object({ kind: Type.Literal('watch') }),
  /** From now on only I type. */
  Type.Object({ kind: Type.Literal('take') }),
  /** From now on only `to` types; 0 is the person of the session. */
  Type.Object({ kind: Type.Literal('hand'), to: Type.Integer({ minimum: 0, maximum: 1_000_000 }) }),
  /** From now on everybody types who may. */
  Type.Object({ kind: Type.Literal('share') }),
  /** How large my window is. */
  Type.Object({ kind: Type.Literal('resize'), width: side, height: side }),
  Type.Object({ kind: Type.Literal('size'), follow: Type.Enum([...sizeRules]) }),
])
export type ParticipantMessage = Static<typeof ParticipantMessage>

/**
 * Who is in a terminal of one's own session, where others are or were: for its person, in a browser
 * (terminals.ts). `asking` of the people are questions that wait for an answer.
 */
export interface OwnPresence extends Omit<Presence, 'kind'> {
  /** The number of the terminal in the recording. */
  readonly channel: number
}

const channel = Type.Integer({ minimum: 0, maximum: 65_535 })
const who = Type.Integer({ minimum: 1, maximum: 1_000_000 })

/** What the person of a session decides, in a browser. */
export const OwnerMessage = Type.Union([
  /** Tell me from now on who is there. */
  Type.Object({ kind: Type.Literal('hear') }),
  /** Whoever asks may type, or may not. */
  Type.Object({ kind: Type.Enum(['allow', 'refuse']), channel, who }),
  /** Whoever types goes back to watching. */
  Type.Object({ kind: Type.Literal('dismiss'), channel, who }),
  Type.Object({ kind: Type.Enum(['take', 'share']), channel }),
  Type.Object({ kind: Type.Literal('hand'), channel, to: who }),
  Type.Object({ kind: Type.Literal('size'), channel, follow: Type.Enum([...sizeRules]) }),
])
export type OwnerMessage = Static<typeof OwnerMessage>

/** The most bytes of a text message of a participant. */
export const longestMessage_bytes = 1_024
