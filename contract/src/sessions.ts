// Sessions: SSH connections through the server to a device, from authentication to the last byte.
import Type, { type Static } from './type.ts'
import { deviceOr, member } from './access.ts'
import { Device } from './devices.ts'
import { sample } from './examples.ts'
import { DeviceUid, paging, Position, SessionUid, TenantId, Timestamp } from './fields.ts'
import { operation } from './operation.ts'
import { Ticket } from './terminals.ts'

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
  unrecorded: Type.Boolean({
    description:
      'It could not be recorded, or not to its end, and continued, as the namespace’s settings allow.',
  }),
  type: Type.String({ description: '`none` until a program starts, then shell, exec or subsystem.' }),
  term: Type.String({ description: 'The terminal’s kind, as the client names it.' }),
  position: Position,
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
 * The WebSocket for watching a live session. It needs the same role as playing the recording: with the usual
 * headers, or with a `ticket` in the query, because browsers cannot set headers.
 */
export const livePath = '/api/sessions/:uid/live'

const params = Type.Object({ uid: SessionUid })
const aSession = { params: { uid: sample.session } }
const size = Type.Integer({ minimum: 0, maximum: 65_535 })

export const sessions = {
  list: operation({
    title: 'Get sessions',
    summary: 'The sessions of the namespace, newest first.',
    method: 'GET',
    path: '/api/sessions',
    access: member('observer'),
    query: Type.Object({
      active: Type.Optional(Type.Boolean({ description: 'Only live sessions, or only ended ones.' })),
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
  setAuthenticated: operation({
    title: 'Set session authentication status',
    summary: 'Records whether the user of a session has authenticated.',
    method: 'POST',
    path: '/api/sessions/:uid',
    aliases: [{ method: 'PATCH', path: '/api/sessions/:uid' }],
    access: deviceOr('administrator'),
    params,
    body: Type.Object({ authenticated: Type.Optional(Type.Boolean()) }),
    failures: [],
    example: { ...aSession, body: { authenticated: true } },
  }),
  play: operation({
    title: 'Get session recorded data',
    summary: 'What the session’s terminal showed, frame by frame.',
    method: 'GET',
    path: '/api/sessions/:uid/play',
    access: member('administrator'),
    params,
    answer: Type.Array(Frame),
    streamed: true,
    failures: ['recordingDamaged'],
    example: aSession,
  }),
  ticket: operation({
    title: 'Get a ticket to watch a session',
    summary:
      'A ticket with which a browser watches the session while it goes on, as `ticket` in the query of the WebSocket.',
    method: 'POST',
    path: livePath,
    access: member('administrator', { apiKey: false }),
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
    params,
    body: Type.Object({ uid: SessionUid, message: Type.String(), width: size, height: size }),
    largestBody: 1024 * 1024,
    badInput: 'unprocessable',
    failures: [],
    example: { ...aSession, body: { uid: sample.session, message: 'login: ', width: 80, height: 24 } },
  }),
  removeRecording: operation({
    title: 'Delete recorded session',
    summary: 'Deletes the recording; the session itself stays. A live session must be closed first.',
    method: 'DELETE',
    path: '/api/sessions/:uid/record',
    access: member('administrator'),
    params,
    failures: ['conflict'],
    example: aSession,
  }),
}
