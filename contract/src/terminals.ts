// Terminals in a browser. An operation gives a ticket, which works once and for half a minute. With it the
// browser opens a WebSocket at `terminalPath`; the kind of ticket decides the protocol on it.
//
// A terminal (tickets of `open`): binary messages are bytes of the terminal, in both directions, at most
// `mostInput_bytes` to the server; text messages are JSON {kind: …}, as in sharing.ts.
//   to the server (`TerminalMessage`)
//   {kind: resize, width, height}  each 1 to 1000
//   {kind: shown, bytes}           how much output the terminal has drawn so far. A browser that sends 0 at the
//                                  start is never more than `mostUnshown_bytes` behind. A browser that sends
//                                  nothing gets all that its socket takes.
//   {kind: signature, signature}   base64 of the raw signature: RSASSA-PKCS1-v1_5 with SHA-512, Ed25519, or for
//                                  ECDSA mpint r and mpint s. RSA with SHA-1 is refused.
//   and the decisions of `OwnerMessage`
//   to the browser (`TerminalNews`)
//   {kind: sign, challenge}        base64 of the bytes to sign (RFC 4252 section 7; they name the algorithm)
//   {kind: session, uid}           the login was accepted
//   {kind: present, channel, …}    after {kind: hear}: who is in the session (`OwnPresence`)
//   {kind: end, message}           why the terminal ends; the last message
// With a ticket of `attach` it is the same: `session` names the session that continues, and the first output draws
// its screen. The browser ends the session when it closes the socket. If it closes with 1001 (a reload, a closed
// tab) or `Closing.left`, or is lost, the session is held for its person. The server closes with
// `Closing.moved` when the session continues elsewhere, and with `Closing.done` at its end. A page that comes
// back by itself says so (`after` of `attach`), and takes the session from nobody who came since.
// A terminal of old clients (tickets of `openOld`): to the server {kind: 1, data} is input, an array of bytes or
// base64, and {kind: 2, data: {cols, rows}} the size; to the browser plain text messages with what it shows, or with
// the sentence of an error.
//
// Files (tickets of `files`): text messages are JSON {"kind": …}, one request after the other. A failed
// transfer ends the connection; after another failure the next request may come.
//   {kind: list, path}                → {kind: folder, path, entries, more}; an empty path is the home
//   {kind: get, path}                 → {kind: file, size, changed_at}, binary messages, {kind: end}
//   {kind: put, path, size, replace}  → {kind: ready, from}; then binary messages from the browser, of what
//                                       follows `from`, and now and again {kind: taken, bytes}; after all of
//                                       them {kind: done}. At most `mostUntaken_bytes` may be in flight.
//                                       {kind: stop} instead of more bytes gives it up: {kind: stopped}.
//                                       With `expected` only the file that has this size and time is replaced.
//                                       With `upload`, a name of the browser's own, an upload that was cut off
//                                       goes on where it was when it is asked for again under that name.
//   {kind: make, path}                → {kind: done}; a folder
//   {kind: move, path, to}            → {kind: done}; nothing may be there
//   {kind: remove, path}              → {kind: done}; a folder with all that is in it
//                                     → {kind: error, message}
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, Fingerprint, SessionUid } from './fields.ts'
import { operation } from './operation.ts'
import { OwnerMessage, Resize, type End, type OwnPresence } from './sharing.ts'

export const terminalPath = '/ws/ssh'

export const TerminalMessage = Type.Union([
  OwnerMessage,
  Resize,
  Type.Object({ kind: Type.Literal('shown'), bytes: Type.Integer({ minimum: 0 }) }),
  Type.Object({ kind: Type.Literal('signature'), signature: Type.String() }),
])
export type TerminalMessage = Static<typeof TerminalMessage>

export type TerminalNews =
  | OwnPresence
  | { readonly kind: 'sign'; readonly challenge: string }
  | { readonly kind: 'session'; readonly uid: string }
  | End

/**
 * The codes with which a terminal is closed: `left` by a page that leaves its session to be continued, the others by
 * the server.
 */
export const Closing = { done: 1000, leaving: 1001, refused: 1008, left: 4000, moved: 4001 } as const
export const mostInput_bytes = 4096
/** The limit of a text message. */
export const mostMessage_bytes = 16_404
export const largestSize = 1000
export const mostUnshown_bytes = 512 * 1024

export const mostUntaken_bytes = 1024 * 1024
/** The part of a file in one message. */
export const piece_bytes = 64 * 1024

export interface FolderEntry {
  readonly name: string
  readonly is: 'file' | 'folder' | 'link' | 'other'
  readonly size: number
  readonly changed_at: number
}

const FilePath = Type.String({ minLength: 1, maxLength: 4096 })
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const FileRequest = Type.Union([
  Type.Object({ kind: Type.Literal('list'), path: Type.String({ maxLength: 4096 }) }),
  Type.Object({ kind: Type.Literal('get'), path: FilePath }),
  Type.Object({
    kind: Type.Literal('put'),
    path: FilePath,
    size: Count,
    replace: Type.Boolean(),
    expected: Type.Optional(Type.Object({ size: Count, changed_at: Count })),
    upload: Type.Optional(Type.String({ pattern: '^[\\w-]{8,64}$' })),
  }),
  Type.Object({ kind: Type.Enum(['make', 'remove']), path: FilePath }),
  Type.Object({ kind: Type.Literal('move'), path: FilePath, to: FilePath }),
])
export type FileRequest = Static<typeof FileRequest>

export type FileNews =
  | {
      readonly kind: 'folder'
      readonly path: string
      readonly entries: readonly FolderEntry[]
      readonly more: boolean
    }
  | { readonly kind: 'file'; readonly size: number; readonly changed_at: number }
  | { readonly kind: 'ready'; readonly from: number }
  | { readonly kind: 'end' | 'done' | 'stopped' }
  | { readonly kind: 'taken'; readonly bytes: number }
  | { readonly kind: 'error'; readonly message: string; readonly exists?: true }

export const Ticket = Type.Object({ token: Type.String({ description: 'Good once, for 30 seconds.' }) })
export type Ticket = Static<typeof Ticket>

const DeviceUser = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
  description: 'The user on the device.',
})
const DevicePassword = Type.String({ maxLength: 1024, description: 'Of that user.' })
const access = member('observer', { apiKey: false })

export const terminals = {
  open: operation({
    title: 'Open a terminal',
    summary:
      'A ticket for a terminal on a device, with the password of a user there or with a key that the namespace knows.',
    method: 'POST',
    path: '/ws/ssh/session',
    access,
    audit: { none: 'the ticket opens nothing by itself; the session has its own entry' },
    body: Type.Object({
      device: DeviceUid,
      username: DeviceUser,
      password: Type.Optional(DevicePassword),
      fingerprint: Type.Optional(Fingerprint),
      public_key: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 16_384,
          description: 'The line of the key, instead of its fingerprint.',
        }),
      ),
    }),
    answer: Ticket,
    failures: ['notFound', 'tooMany'],
    example: { body: { device: sample.device, username: 'root', password: 'rope-and-anchor' } },
  }),
  openOld: operation({
    title: 'Open a terminal (old clients)',
    summary:
      'The same for clients of the old protocol, with a password only: what they sign for a key could be used again by others.',
    method: 'POST',
    path: '/ws/ssh',
    access,
    audit: { none: 'the ticket opens nothing by itself; the session has its own entry' },
    body: Type.Object({
      device: DeviceUid,
      username: DeviceUser,
      password: Type.Optional(DevicePassword),
      fingerprint: Type.Optional(Type.String({ maxLength: 128 })),
      signature: Type.Optional(Type.String({ maxLength: 16_384 })),
    }),
    answer: Ticket,
    failures: ['notFound', 'tooMany'],
    deprecated: true,
    example: { body: { device: sample.device, username: 'root', password: 'rope-and-anchor' } },
  }),
  attach: operation({
    title: 'Continue a session',
    summary:
      'A ticket for the terminal of a session of the caller’s own that is held, or that another client of theirs has, which is then let go.',
    method: 'POST',
    path: '/ws/ssh/attach',
    access,
    audit: { none: 'the ticket continues nothing by itself; coming back has its own entry' },
    body: Type.Object({
      session: SessionUid,
      scrollback: Type.Optional(
        Type.Boolean({ description: 'Whether what scrolled by is shown again, too.' }),
      ),
      after: Type.Optional(
        Type.String({
          maxLength: 128,
          description:
            'For a page that comes back by itself: the ticket with which it had the session. If another client has come since, the session stays there, and the socket is closed with 4001.',
        }),
      ),
    }),
    answer: Ticket,
    failures: ['notFound', 'tooMany'],
    example: { body: { session: sample.session } },
  }),
  files: operation({
    title: 'Open the files of a terminal',
    summary: 'A ticket for the files on the device, for a caller with a terminal open in a browser.',
    method: 'POST',
    path: '/ws/ssh/files',
    access,
    audit: { none: 'the ticket is for the files of a session that has its own entry' },
    body: Type.Object({ session: SessionUid }),
    answer: Ticket,
    failures: ['notFound', 'tooMany'],
    example: { body: { session: sample.session } },
  }),
}
