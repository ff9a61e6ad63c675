// Sessions: SSH connections through the server to a device, from authentication to the last byte.
import Type, { type Static } from './type.ts'
import { deviceOr, member } from './access.ts'
import { Device } from './devices.ts'
import { sample } from './examples.ts'
import {
  DeviceUid,
  FingerprintSha256,
  NotAfter,
  NotBefore,
  paging,
  Position,
  SessionUid,
  TenantId,
  Timestamp,
} from './fields.ts'
import { operation } from './operation.ts'
import { SessionEvent, sessionEvents_most, sessionEventsPage_most } from './session-events.ts'
import { sessionInvitations } from './session-invitations.ts'
import { Participant } from './sharing.ts'
import { Ticket } from './terminals.ts'

export const personKinds = ['user', 'api-key', 'certificate', 'unknown'] as const
export type PersonKind = (typeof personKinds)[number]
/** `cli`: `hawser ssh` of somebody who is signed in. */
export const sessionOrigins = ['ssh', 'browser', 'cli'] as const
export type SessionOrigin = (typeof sessionOrigins)[number]
/** Services are opened by a sign-in or a link, or are `public`. */
export const sessionMethods = ['password', 'publickey', 'certificate', 'sign-in', 'link', 'public'] as const
export type SessionMethod = (typeof sessionMethods)[number]

export const SessionPerson = Type.Object({
  kind: Type.Enum([...personKinds], {
    description:
      'A user of this server, an API key, the person named by a certificate of a registered authority, or an unknown person.',
  }),
  id: Type.String({
    description: 'The id of the user, the name of the API key, or the key id of the certificate.',
  }),
  name: Type.String({ description: 'As it was when the session began; empty: unknown.' }),
  created_by: Type.Optional(Type.String({ description: 'The user name of the API key’s creator.' })),
})
export type SessionPerson = Static<typeof SessionPerson>

export const unknownPerson: SessionPerson = { kind: 'unknown', id: '', name: '' }

export const SessionKey = Type.Object({
  fingerprint: FingerprintSha256,
  name: Type.String({ description: 'Of the registered key; with a certificate, of its authority.' }),
})
export type SessionKey = Static<typeof SessionKey>

/** A session of the type `web`: one person, or all who need not say who they are, at one service. */
export const WebTraffic = Type.Object({
  service: Type.String({ description: 'The id of the service.' }),
  name: Type.String({ description: 'The name of the service when the session began.' }),
  target: Type.String({ description: 'host:port on the device.' }),
  requests: Type.Integer(),
  refused: Type.Integer({ description: 'Requests that were not passed on.' }),
  received: Type.Integer({ description: 'Bytes of bodies that the device received.' }),
  sent: Type.Integer({ description: 'Bytes of bodies that the device sent.' }),
})
export type WebTraffic = Static<typeof WebTraffic>

export const longestClient = 255

export const Session = Type.Object({
  uid: SessionUid,
  device_uid: DeviceUid,
  device: Device,
  tenant_id: TenantId,
  username: Type.String(),
  ip_address: Type.String(),
  started_at: Timestamp,
  last_seen: Timestamp,
  active: Type.Boolean(),
  authenticated: Type.Boolean(),
  recorded: Type.Boolean(),
  secrets_masked: Type.Integer({ description: 'How many secrets were masked in the recording.' }),
  unrecorded: Type.Boolean({
    description:
      'It could not be recorded, or not to its end, and continued, as the namespace’s settings or a data budget allow.',
  }),
  type: Type.String({
    description:
      '`none` until a program starts, then shell, exec or subsystem; `web` at a service, which has no account: `username` is empty.',
  }),
  term: Type.String({ description: 'The terminal’s kind, as the client names it.' }),
  position: Position,
  person: SessionPerson,
  via: Type.String({
    description: '`ssh`, `browser` or `cli` (the `hawser` command); empty for sessions before it was noted.',
  }),
  method: Type.String({
    description:
      '`password`, `publickey` or `certificate`; at a service `sign-in`, `link` or `public`. Empty for sessions before it was noted.',
  }),
  key: Type.Optional(SessionKey),
  client: Type.String({ description: 'How the SSH client, or the browser, identifies itself.' }),
  held: Type.Boolean({ description: 'Held: the client is lost, and its person can reattach.' }),
  held_until: Type.Optional(Timestamp),
  resumes: Type.Optional(
    Type.String({ description: 'The session that its terminal continues; it has none of its own.' }),
  ),
  web: Type.Optional(WebTraffic),
  participants: Type.Optional(Type.Array(Participant, { description: 'The guests and viewers in it now.' })),
})
export type Session = Static<typeof Session>

export const Frame = Type.Object({
  uid: SessionUid,
  message: Type.String({ description: 'Terminal output.' }),
  tenant_id: TenantId,
  time: Timestamp,
  width: Type.Integer(),
  height: Type.Integer(),
})
export type Frame = Static<typeof Frame>

/**
 * The WebSocket for watching a live session, and for typing in it; sharing.ts has the messages. Watching
 * needs the role for playing the recording. Operators come with `join` in the query, and see the session once
 * its person allows them to type. Browsers, which cannot set headers, send a `ticket` in the query instead.
 */
export const livePath = '/api/sessions/:uid/live'

const params = Type.Object({ uid: SessionUid })
const aSession = { params: { uid: sample.session } }
const size = Type.Integer({ minimum: 0, maximum: 65_535 })

export const sessions = {
  ...sessionInvitations,
  list: operation({
    title: 'Get sessions',
    summary:
      'The sessions of the namespace, or those that fit every filter given, newest first. `from` and `to` are about their start.',
    method: 'GET',
    path: '/api/sessions',
    access: member('observer'),
    query: Type.Object({
      active: Type.Optional(Type.Boolean({ description: 'Only live sessions, or only ended ones.' })),
      person: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          description:
            'Only sessions of this person: the user name or id of a user, the name of an API key, or the key id of a certificate.',
        }),
      ),
      device_uid: Type.Optional(DeviceUid),
      method: Type.Optional(
        Type.Enum([...sessionMethods], { description: 'Only sessions that were opened so.' }),
      ),
      from: Type.Optional(NotBefore),
      to: Type.Optional(NotAfter),
      recorded: Type.Optional(
        Type.Boolean({ description: 'Only sessions with a recording, or only those without one.' }),
      ),
      live_first: Type.Optional(
        Type.Boolean({
          description: 'Live sessions first, held ones behind them, then those that are over.',
        }),
      ),
      ...paging,
    }),
    list: Session,
    failures: [],
    example: { query: { page: '1' } },
  }),
  get: operation({
    title: 'Get session',
    summary: 'One session.',
    method: 'GET',
    path: '/api/sessions/:uid',
    access: member('observer'),
    params,
    answer: Session,
    failures: [],
    example: aSession,
  }),
  events: operation({
    title: 'Get session events',
    summary:
      'The files, commands and forwarded connections of a session, oldest first. The server keeps ' +
      `${sessionEvents_most} of each session.`,
    method: 'GET',
    path: '/api/sessions/:uid/events',
    access: member('administrator'),
    params,
    query: Type.Object({
      after: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'Only those behind this number.',
        }),
      ),
      limit: Type.Integer({ minimum: 1, maximum: sessionEventsPage_most, default: 100 }),
    }),
    answer: Type.Object({
      events: Type.Array(SessionEvent),
      next: Type.Union([Type.Null(), Type.Integer()], {
        description: 'For `after` of the next call; null: there is nothing more for now.',
      }),
    }),
    failures: [],
    example: { ...aSession, query: { limit: '20' } },
  }),
  setAuthenticated: operation({
    title: 'Set session authentication status',
    summary: 'Records whether the user of a session has authenticated.',
    method: 'POST',
    path: '/api/sessions/:uid',
    aliases: [{ method: 'PATCH', path: '/api/sessions/:uid' }],
    access: deviceOr('administrator'),
    audit: { none: 'an agent reports on its own session; the login has its own entry' },
    params,
    body: Type.Object({ authenticated: Type.Optional(Type.Boolean()) }),
    failures: ['conflict'],
    example: { ...aSession, body: { authenticated: true } },
  }),
  play: operation({
    title: 'Get session recorded data',
    summary: 'What the session’s terminal showed, frame by frame.',
    method: 'GET',
    path: '/api/sessions/:uid/play',
    access: member('administrator'),
    audit: 'recording.played',
    params,
    answer: Type.Array(Frame),
    streamed: true,
    failures: ['recordingDamaged'],
    example: aSession,
  }),
  ticket: operation({
    title: 'Get a ticket to watch a session',
    summary:
      'A ticket with which a browser watches the live session, as `ticket` in the query of the WebSocket.',
    method: 'POST',
    path: livePath,
    access: member('administrator', { apiKey: false }),
    audit: { none: 'the ticket shows nothing; redeeming it leaves session.watched' },
    params,
    answer: Ticket,
    failures: [],
    example: aSession,
  }),
  join: operation({
    title: 'Get a ticket to join a session',
    summary:
      'A ticket with which a browser asks to type in the live session, as `ticket` in the query of the WebSocket.',
    method: 'POST',
    path: '/api/sessions/:uid/join',
    access: member('operator', { apiKey: false }),
    audit: { none: 'the ticket shows nothing; permission to type leaves session.joined' },
    params,
    answer: Ticket,
    failures: [],
    example: aSession,
  }),
  cast: operation({
    title: 'Get session recorded data as asciicast',
    summary: 'One recorded terminal of the session as an asciicast file (version 2), for players.',
    method: 'GET',
    path: '/api/sessions/:uid/cast',
    access: member('administrator'),
    audit: 'recording.downloaded',
    params,
    query: Type.Object({
      channel: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 65_535,
          description: 'Which one, if there are several; from 0.',
        }),
      ),
    }),
    text: 'application/x-asciicast',
    streamed: true,
    headers: Type.Object({ 'content-disposition': Type.String() }),
    failures: ['recordingDamaged'],
    example: aSession,
  }),
  close: operation({
    title: 'Close session',
    summary: 'Ends a session.',
    method: 'POST',
    path: '/api/sessions/:uid/close',
    access: member('administrator'),
    audit: 'session.terminated',
    params,
    body: Type.Object({ device: DeviceUid }),
    failures: [],
    example: { ...aSession, body: { device: sample.device } },
  }),
  record: operation({
    title: 'Record session',
    summary: 'Adds a frame to the session’s recording, while the namespace records.',
    method: 'POST',
    path: '/api/sessions/:uid/record',
    access: deviceOr('administrator'),
    audit: { none: 'it is the recording itself, frame by frame' },
    params,
    body: Type.Object({ uid: SessionUid, message: Type.String(), width: size, height: size }),
    largestBody: 1024 * 1024,
    badInput: 'unprocessable',
    failures: ['conflict'],
    example: { ...aSession, body: { uid: sample.session, message: 'login: ', width: 80, height: 24 } },
  }),
  removeRecording: operation({
    title: 'Delete recorded session',
    summary: 'Deletes the recording; the session itself stays. A live session must be closed first.',
    method: 'DELETE',
    path: '/api/sessions/:uid/record',
    access: member('administrator'),
    audit: 'recording.removed',
    params,
    failures: ['conflict'],
    example: aSession,
  }),
}
