// Terminals in a browser. An operation gives a ticket, which works once and for half a minute. With it the
// browser opens a WebSocket at `terminalPath`; the kind of ticket decides the protocol on it.
//
// A terminal (tickets of `open`): text messages are JSON, {"kind": number, "data": …}, binary messages are
// what it shows.
//   1 input      to the server, a string of at most 4096 characters
//   2 resize     to the server, {cols, rows}, each 1 to 1000
//   3 signature  to the browser: base64 of the bytes to sign (RFC 4252 section 7; they name the algorithm);
//                to the server: base64 of the raw signature: RSASSA-PKCS1-v1_5 with SHA-512, Ed25519, or for
//                ECDSA mpint r and mpint s. RSA with SHA-1 is refused.
//   4 error      to the browser, a sentence; the last message
//   5 session    to the browser: the login was accepted; the uid of the session
//   7 shown      to the server: how many bytes of output the terminal has drawn so far. A browser that sends 0
//                at the start is never more than `mostUnshown_bytes` behind. A browser that sends nothing gets
//                all that its socket takes. (A client of another server uses 6.)
// A terminal of old clients (tickets of `openOld`): to the server 1 (an array of bytes, or base64) and 2 as
// above; to the browser plain text messages with what it shows, or with the sentence of an error.
//
// Files (tickets of `files`): text messages are JSON {"kind": …}, one request after the other. After a failed
// list the next request may come; a failed transfer ends the connection.
//   {kind: list, path}                → {kind: folder, path, entries, more}; an empty path is the home
//   {kind: get, path}                 → {kind: file, size}, binary messages, {kind: end}
//   {kind: put, path, size, replace}  → {kind: ready}; then binary messages from the browser, and now and again
//                                       {kind: taken, bytes}; after all of them {kind: done}. At most
//                                       `mostUntaken_bytes` may be in flight.
//                                     → {kind: error, message}
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, Fingerprint, SessionUid } from './fields.ts'
import { operation } from './operation.ts'

export const terminalPath = '/ws/ssh'

export const Kind = { input: 1, resize: 2, signature: 3, error: 4, session: 5, shown: 7 } as const
export const mostInput_characters = 4096
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
  /** Seconds since 1970. */
  readonly changed_at: number
}

export type FileRequest =
  | { readonly kind: 'list'; readonly path: string }
  | { readonly kind: 'get'; readonly path: string }
  | { readonly kind: 'put'; readonly path: string; readonly size: number; readonly replace: boolean }

export type FileNews =
  | {
      readonly kind: 'folder'
      readonly path: string
      readonly entries: readonly FolderEntry[]
      readonly more: boolean
    }
  | { readonly kind: 'file'; readonly size: number }
  | { readonly kind: 'end' | 'ready' | 'done' }
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
  files: operation({
    title: 'Open the files of a terminal',
    summary: 'A ticket for the files on the device, beside a terminal that the caller has open in a browser.',
    method: 'POST',
    path: '/ws/ssh/files',
    access,
    body: Type.Object({ session: SessionUid }),
    answer: Ticket,
    failures: ['notFound', 'tooMany'],
    example: { body: { session: sample.session } },
  }),
}
