// E-mail invitations into a namespace. Only an account with the invited address, or one made through the
// link, can accept. Without a mail server the inviter sees the token, once; such a link does not prove that
// its holder reads the mailbox. The server stores only the hash of a token. An invitation expires, and ends
// with its inviter's right to invite.
import Type, { type Static } from './type.ts'
import { anyone, member, memberRoles, user } from './access.ts'
import { sample } from './examples.ts'
import { Email, paging, Password, patterns, Timestamp, Username, Uuid } from './fields.ts'
import { operation } from './operation.ts'

/** A prefix that secret scanners can find, and 160 random bits in base32. */
export const memberInvitationPattern = '^hwn_[a-z2-7]{32}$'

/** The token follows as the fragment, which browsers send to nobody. */
export const memberInvitationPage = '/invitation'

export const usualInvitation_days = 7
export const longestInvitation_days = 30
/** With expired ones that can be sent again. */
export const mostMemberInvitations = 100

const MemberRole = Type.Enum([...memberRoles], { description: 'The role that the person gets.' })

export const MemberInvitation = Type.Object({
  id: Uuid,
  email: Type.String(),
  role: MemberRole,
  invited_by: Type.String({ description: 'The user name of the inviter.' }),
  created_at: Timestamp,
  sent_at: Type.String({ format: 'date-time', description: 'When its present link was made.' }),
  expires_at: Timestamp,
})
export type MemberInvitation = Static<typeof MemberInvitation>

const Sent = Type.Object({
  ...MemberInvitation.properties,
  token: Type.String({
    description: 'The end of the link, where the server sends no e-mails; empty: it is on its way by e-mail.',
  }),
})
const Token = Type.String({ pattern: memberInvitationPattern, description: 'The token of the link.' })
const params = Type.Object({ id: Type.String({ pattern: patterns.uuid }) })
const one = { params: { id: sample.memberInvitation.id } }
/** Only people invite: the invitation ends with their right to. */
const access = member('administrator', { apiKey: false })

export const invitations = {
  list: operation({
    title: 'Get invitations',
    summary: 'Who is invited into the namespace and has not accepted yet, oldest first.',
    method: 'GET',
    path: '/api/invitations',
    access,
    query: Type.Object(paging),
    list: MemberInvitation,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Invite a member',
    summary:
      'Invites an e-mail address into the namespace. The link goes there by e-mail; without a mail server the response has its token, once.',
    method: 'POST',
    path: '/api/invitations',
    access,
    audit: 'invitation.created',
    body: Type.Object({
      email: Email,
      role: MemberRole,
      valid_days: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: longestInvitation_days,
          default: usualInvitation_days,
          description: 'Days until it ends.',
        }),
      ),
    }),
    answer: Sent,
    failures: ['conflict', 'forbidden', 'invitationLimit', 'tooMany'],
    example: { body: { email: 'nadia@example.com', role: 'operator', valid_days: 7 } },
  }),
  resend: operation({
    title: 'Send an invitation again',
    summary: 'Makes a new link, for as many days as before; the link before ends.',
    method: 'POST',
    path: '/api/invitations/:id/resend',
    access,
    audit: 'invitation.sent-again',
    params,
    answer: Sent,
    failures: ['forbidden', 'tooMany'],
    example: one,
  }),
  remove: operation({
    title: 'Withdraw an invitation',
    summary: 'Ends an invitation at once.',
    method: 'DELETE',
    path: '/api/invitations/:id',
    access,
    audit: 'invitation.withdrawn',
    params,
    failures: ['forbidden'],
    example: one,
  }),
  open: operation({
    title: 'Look at an invitation',
    summary: 'Describes an invitation to the holder of its link. It changes nothing.',
    method: 'POST',
    path: '/api/invitations/open',
    access: anyone,
    audit: { none: 'it shows the invitation to the holder of its link, and changes nothing' },
    body: Type.Object({ token: Token }),
    answer: Type.Object({
      namespace: Type.String(),
      role: MemberRole,
      invited_by: Type.String(),
      email: Type.String(),
      expires_at: Timestamp,
      account: Type.Optional(
        Type.Boolean({
          description: 'Whether this address has an account; only if the link came by e-mail.',
        }),
      ),
      sign_up: Type.Boolean({ description: 'Whether an account can be made through the link.' }),
    }),
    failures: ['wrongToken'],
    example: { body: { token: sample.memberInvitation.token } },
  }),
  accept: operation({
    title: 'Accept an invitation',
    summary: 'Makes the caller a member, if the invitation is for their confirmed e-mail address.',
    method: 'POST',
    path: '/api/invitations/accept',
    access: user,
    audit: 'member.added',
    body: Type.Object({ token: Token }),
    answer: Type.Object({ tenant_id: Uuid, namespace: Type.String(), role: MemberRole }),
    failures: ['wrongToken', 'forbidden', 'conflict'],
    example: { body: { token: sample.memberInvitation.elsewhere } },
  }),
  signUp: operation({
    title: 'Sign up by an invitation',
    summary:
      'Creates an account for the invited address, adds it to the namespace and signs it in. If the link did not come by e-mail, the account has to confirm its address first, and accepts the invitation afterwards.',
    method: 'POST',
    path: '/api/invitations/sign-up',
    access: anyone,
    audit: ['user.registered', 'user.removed', 'member.added', 'user.signed-in'],
    body: Type.Object({
      token: Token,
      name: Type.String({ minLength: 1, maxLength: 64 }),
      username: Username,
      password: Password,
    }),
    answer: Type.Object({
      token: Type.String({ description: 'The JWT; empty: the address has to be confirmed first.' }),
    }),
    failureBody: 'fields',
    badInput: 'invalidFields',
    failures: ['takenFields', 'registrationClosed', 'wrongToken'],
    example: {
      body: {
        token: sample.memberInvitation.token,
        name: 'Nora',
        username: 'nora',
        password: 'lighthouse',
      },
    },
  }),
}
