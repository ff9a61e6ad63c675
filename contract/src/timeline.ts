// The timeline of a device: when it was connected and why not, and what changed about it.
import Type, { type Static } from './type.ts'
import { Timestamp } from './fields.ts'
import { SentenceParts } from './sentences.ts'

/** At most this many of a device are stored. */
export const timelineEvents_most = 500
/** An event may state up to three things, such as a connection, its new address and its new version. */
export const timelineSentences_most = 3 * timelineEvents_most

export const timelineKinds = {
  connected: 'Its agent opened a tunnel.',
  disconnected: 'The tunnel ended; `reason` says how, as the server saw it.',
  loss: 'Its agent said, after it came back, how it had lost the tunnel before.',
  leaving: 'Its agent said goodbye before it closed the tunnel.',
  refused: 'A client with its token, but without its key, was refused a tunnel.',
  address: 'It came from another address than before.',
  'round-trip': 'How long a message to it and back takes.',
  clock: 'Its clock differs from the server’s.',
  reboot: 'The machine was started again.',
  version: 'It runs another version of its agent.',
  conflict: 'Two machines use its identity.',
  flapping: 'More happened than is kept one by one.',
  status: 'It was accepted, rejected or made pending.',
  renamed: 'It got another name.',
} as const
export type TimelineKind = keyof typeof timelineKinds

export const TimelineEvent = Type.Object({
  at: Timestamp,
  kind: Type.Enum(Object.keys(timelineKinds) as TimelineKind[]),
  sentence: Type.String(),
  parts: Type.Optional(SentenceParts),
  reason: Type.Optional(Type.String()),
  detail: Type.Optional(Type.String({ description: 'More about the reason.' })),
  before: Type.Optional(Type.String()),
  after: Type.Optional(Type.String()),
  seconds: Type.Optional(
    Type.Integer({
      description: 'How long a tunnel lasted, or by how much a clock is ahead; behind: below 0.',
    }),
  ),
  milliseconds: Type.Optional(Type.Integer({ description: 'Of a round trip.' })),
  times: Type.Optional(Type.Integer({ description: 'How many events were not kept one by one.' })),
})
export type TimelineEvent = Static<typeof TimelineEvent>
