// The events of a session apart from its terminal: transferred files, commands, forwarded connections, and
// refusals.
import Type, { type Static } from './type.ts'
import { Timestamp } from './fields.ts'

/** At most this many of a session are stored. */
export const sessionEvents_most = 2_000
export const sessionEventsPage_most = 500

export const sessionEventKinds = {
  exec: 'A command was run, such as that of scp or rsync.',
  subsystem: 'A subsystem was started, such as sftp.',
  upload: 'A file was written by SFTP.',
  download: 'A file was read by SFTP.',
  remove: 'A file was removed.',
  'make-folder': 'A folder was created.',
  'remove-folder': 'A folder was removed.',
  rename: 'A file or a folder got another path.',
  link: 'A link was created; `target` is what it points to.',
  change: 'The owner, the permissions, the times or the size of a file changed.',
  copy: 'The device copied a file within itself.',
  request: 'Something else was asked for by SFTP.',
  forward: 'A connection was forwarded from the client to an address that the device reaches.',
  listen: 'The device listens for connections that it forwards to the client.',
  'remote-forward': 'A connection was forwarded from the device to the client.',
  web: 'A request to a service: its method and its path without the query; `why` is the status of the answer.',
  unread: 'From here on the files of this SFTP connection could not be followed; `why` says why not.',
  more: 'More happened than is kept; `why` says how much.',
} as const
export type SessionEventKind = keyof typeof sessionEventKinds

export const sessionEventOutcomes = ['done', 'partial', 'open', 'refused'] as const
export type SessionEventOutcome = (typeof sessionEventOutcomes)[number]

export const SessionEvent = Type.Object({
  seq: Type.Integer({ description: 'Counted from 1 in each session.' }),
  at: Timestamp,
  kind: Type.Enum(Object.keys(sessionEventKinds) as SessionEventKind[]),
  subject: Type.String({
    description:
      'The path of the file, the command, host:port, or a request’s method and path. Secrets in it are masked.',
  }),
  target: Type.Optional(
    Type.String({
      description: 'The other path of a rename, a link or a copy; the address that a request came from.',
    }),
  ),
  outcome: Type.Enum([...sessionEventOutcomes], {
    description:
      'partial: not the whole file, or not in order, so there is no hash. open: in progress, or the server ' +
      'stopped before it ended. refused: a policy of the namespace forbids it.',
  }),
  received: Type.Integer({ description: 'Bytes that the device received.' }),
  sent: Type.Integer({ description: 'Bytes that the device sent.' }),
  sha256: Type.Optional(
    Type.String({ description: 'Of a file that was read or written from its start to its end, in hex.' }),
  ),
  why: Type.Optional(Type.String()),
})
export type SessionEvent = Static<typeof SessionEvent>
