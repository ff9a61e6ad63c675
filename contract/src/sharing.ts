// Sharing a live session: who is there besides its person, and the messages of the WebSocket (`livePath` of
// sessions.ts). Binary messages are bytes of the terminal, in both directions; text messages are JSON.
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
  invited_by: Type.Optional(Type.String({ description: 'For a guest: the user who made the invitation.' })),
})
export type Participant = Static<typeof Participant>

/** The size of a shared terminal: that of the smallest window of those who may type, or of the driver’s. */
export const sizeRules = ['smallest', 'driver'] as const
export type SizeRule = (typeof sizeRules)[number]

/** Sent to everybody at each change. */
export interface Presence {
  readonly kind: 'present'
  /** The reader’s own id. */
  readonly you: number
  readonly people: readonly Participant[]
  /**
   * The only one who may type; null: everybody with permission. The person of the session takes over by
   * typing.
   */
  readonly driver: number | null
  readonly size: SizeRule
}

/** The last message; a sentence for people. */
export interface End {
  readonly kind: 'end'
  readonly message: string
}

/** Text messages of the server. */
export type LiveMessage =
  | Presence
  /** First; the binary message after it draws the screen as it is. */
  | { readonly kind: 'screen' | 'resize'; readonly width: number; readonly height: number }
  /** A sentence for this reader alone. */
  | { readonly kind: 'note'; readonly message: string }
  | End

const side = Type.Integer({ minimum: 1, maximum: 65_535 })
/** The size of the window. */
export const Resize = Type.Object({ kind: Type.Literal('resize'), width: side, height: side })

/** Text messages of a participant. Binary messages are what they type. */
export const ParticipantMessage = Type.Union([
  /** Asks to type. The person of the session decides, unless no consent is needed. */
  Type.Object({ kind: Type.Literal('ask') }),
  /** Stops typing. */
  Type.Object({ kind: Type.Literal('watch') }),
  /** Makes the sender the driver. */
  Type.Object({ kind: Type.Literal('take') }),
  /** Makes `to` the driver; 0 is the person of the session. */
  Type.Object({ kind: Type.Literal('hand'), to: Type.Integer({ minimum: 0, maximum: 1_000_000 }) }),
  /** Ends the driver's turn: everybody with permission types. */
  Type.Object({ kind: Type.Literal('share') }),
  Resize,
  Type.Object({ kind: Type.Literal('size'), follow: Type.Enum([...sizeRules]) }),
])
export type ParticipantMessage = Static<typeof ParticipantMessage>

/**
 * Who is in a terminal of one's own session, where others are or were: for its person, in a browser
 * (terminals.ts). `asking` of the people are questions that wait for an answer.
 */
export interface OwnPresence extends Presence {
  /** The number of the terminal in the recording. */
  readonly channel: number
}

const channel = Type.Integer({ minimum: 0, maximum: 65_535 })
const who = Type.Integer({ minimum: 1, maximum: 1_000_000 })

/** Decisions of the person of a session, in a browser. */
export const OwnerMessage = Type.Union([
  /** Asks to be notified of everyone who is there. */
  Type.Object({ kind: Type.Literal('hear') }),
  /** Decides about somebody who asks to type. */
  Type.Object({ kind: Type.Enum(['allow', 'refuse']), channel, who }),
  /** Makes somebody who types read-only. */
  Type.Object({ kind: Type.Literal('dismiss'), channel, who }),
  Type.Object({ kind: Type.Enum(['take', 'share']), channel }),
  Type.Object({ kind: Type.Literal('hand'), channel, to: who }),
  Type.Object({ kind: Type.Literal('size'), channel, follow: Type.Enum([...sizeRules]) }),
])
export type OwnerMessage = Static<typeof OwnerMessage>

/** The limit of a participant's text message. */
export const longestMessage_bytes = 1_024
