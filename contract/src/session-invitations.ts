// Invitations to a live session: a link for one person, to watch it or to ask to type in it. The first
// signed-in person to open the link is its only guest. The token is shown once; the server stores only its hash. An
// invitation expires, and ends with the session and with its maker's rights.
import Type, { type Static } from './type.ts'
import { member, user } from './access.ts'
import { sample } from './examples.ts'
import { patterns, SessionUid, Timestamp, Uuid } from './fields.ts'
import { operation } from './operation.ts'
import { Ticket } from './terminals.ts'

/** A prefix that secret scanners can find, and 160 random bits in base32. */
export const invitationPattern = '^hwi_[a-z2-7]{32}$'

/** The token follows as the fragment, which browsers send to nobody, so it is in no log. */
export const invitationPage = '/join'

/** `watch`: sees the terminal. `join`: may ask to type in it, too. */
export const invitationModes = ['watch', 'join'] as const
export type InvitationMode = (typeof invitationModes)[number]

/** Default and maximum. */
export const usualInvitation_min = 60
export const longestInvitation_min = 24 * 60
/** Open ones of one session. */
export const mostInvitations = 10

export const SessionInvitation = Type.Object({
  id: Uuid,
  session_uid: SessionUid,
  mode: Type.Enum([...invitationModes]),
  to: Type.String({ description: 'The user name or e-mail address that it is for; empty: who comes first.' }),
  used_by: Type.Union([Type.String(), Type.Null()], {
    description: 'The user name of the guest; null: not accepted yet.',
  }),
  used_at: Type.Union([Timestamp, Type.Null()]),
  created_by: Type.String({ description: 'The user name of the inviter.' }),
  created_at: Timestamp,
  expires_at: Timestamp,
})
export type SessionInvitation = Static<typeof SessionInvitation>

const params = Type.Object({ uid: SessionUid })
const path = '/api/sessions/:uid/invitations'
/** The person of the session, and administrators. */
const access = member('observer', { apiKey: false })

export const sessionInvitations = {
  invite: operation({
    title: 'Invite to a session',
    summary:
      'An invitation to a live session, for one person. The person of the session and administrators invite. The response is the only one that contains the token.',
    method: 'POST',
    path,
    access,
    audit: 'session.invitation.created',
    params,
    body: Type.Object({
      mode: Type.Enum([...invitationModes], {
        description: '`watch`: to see the terminal. `join`: to ask to type in it, too.',
      }),
      to: Type.Optional(
        Type.String({
          minLength: 3,
          maxLength: 254,
          pattern: '^[^\\s\\u0000-\\u001f\\u007f]+$',
          description: 'The user name or e-mail address of the guest; without it, the first user to accept.',
        }),
      ),
      valid_minutes: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: longestInvitation_min,
          default: usualInvitation_min,
          description: 'Minutes until it ends, also for a guest who is there.',
        }),
      ),
    }),
    answer: Type.Object({
      token: Type.String({ description: `For the link: ${invitationPage}#token on this server.` }),
      ...SessionInvitation.properties,
    }),
    failures: ['conflict', 'forbidden', 'tooMany'],
    example: { params: { uid: sample.session }, body: { mode: 'watch', valid_minutes: 30 } },
  }),
  invitations: operation({
    title: 'Get invitations to a session',
    summary: 'The open invitations to a session, without their tokens, oldest first.',
    method: 'GET',
    path,
    access,
    params,
    answer: Type.Array(SessionInvitation),
    failures: ['forbidden'],
    example: { params: { uid: sample.session } },
  }),
  uninvite: operation({
    title: 'Revoke an invitation to a session',
    summary: 'Ends an invitation at once, also for a guest who is there.',
    method: 'DELETE',
    path: `${path}/:id`,
    access,
    audit: 'session.invitation.revoked',
    params: Type.Object({ uid: SessionUid, id: Type.String({ pattern: patterns.uuid }) }),
    failures: ['forbidden'],
    example: { params: { uid: sample.session, id: sample.sessionInvitationId } },
  }),
  acceptInvitation: operation({
    title: 'Accept an invitation to a session',
    summary:
      'Takes an invitation for the caller, who need not be a member of the namespace, and returns a ticket for the WebSocket. The same user may repeat this until the invitation ends; others may not.',
    method: 'POST',
    path: '/api/session-invitations',
    access: user,
    audit: 'session.invitation.used',
    body: Type.Object({ token: Type.String({ pattern: invitationPattern }) }),
    answer: Type.Object({
      ...Ticket.properties,
      session_uid: SessionUid,
      mode: Type.Enum([...invitationModes]),
      username: Type.String({ description: 'The user on the device.' }),
      device_name: Type.String(),
      created_by: Type.String({ description: 'The user name of the inviter.' }),
      expires_at: Timestamp,
    }),
    failures: ['notFound', 'forbidden', 'tooMany'],
    example: { body: { token: sample.sessionInvitation } },
  }),
}
