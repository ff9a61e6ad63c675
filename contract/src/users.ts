// Users: sign-in, tokens, the profile, registration and account recovery. Where the interface wants the names
// of the offending fields, a 400 or 409 is a bare array of them.
import Type, { type Static } from './type.ts'
import { anyone, user, userOfAnyRole } from './access.ts'
import { sample } from './examples.ts'
import { Email, Password, patterns, Username } from './fields.ts'
import { operation } from './operation.ts'

export const UserSession = Type.Object({
  token: Type.String({ description: 'The JWT for the Authorization header.' }),
  id: Type.String(),
  user: Type.String({ description: 'The username.' }),
  name: Type.String(),
  email: Type.String(),
  recovery_email: Type.String(),
  tenant: Type.String({ description: 'The namespace the token is for; empty: none.' }),
  role: Type.String({ description: 'The role there; empty: none.' }),
  mfa: Type.Boolean(),
})
export type UserSession = Static<typeof UserSession>

const Secret = Type.String({ minLength: 1, maxLength: 1024 })
const Identifier = Type.String({ minLength: 1, maxLength: 254 })
const Name = Type.String({ minLength: 1, maxLength: 64 })
/** An empty string asks to clear the value, which is refused once there was one; an absent field does not. */
const RecoveryEmail = Type.Union([Email, Type.Literal('')])

const signInHeaders = Type.Object({
  'x-account-lockout': Type.String({
    default: '0',
    description: 'Unix seconds at which a lock ends; 0: none.',
  }),
})
const credentials = Type.Object({ username: Identifier, password: Secret })
const signIn = {
  access: anyone,
  audit: ['user.signed-in', 'user.sign-in.refused'],
  body: credentials,
  answer: UserSession,
  headers: signInHeaders,
  failures: ['wrongCredentials', 'mfaRequired', 'unconfirmed', 'locked'],
  example: { body: { username: sample.observer.username, password: sample.observer.password } },
} as const

/** Invitations that the user made end with a password, in the logs of their namespaces. */
const invitationEnds = ['invitation.ended', 'session.invitation.revoked'] as const
const passwordActions = ['user.password.changed', ...invitationEnds] as const

const profile = {
  name: Type.Optional(Name),
  username: Type.Optional(
    Type.String({
      pattern: patterns.knownUsername,
      description: 'a new one has 3 to 30 letters, digits or any of - _ . @',
    }),
  ),
  email: Type.Optional(Email),
  recovery_email: Type.Optional(RecoveryEmail),
}
const ownId = Type.Object({ id: Type.String() })

export const users = {
  login: operation({
    title: 'Login',
    summary: 'Signs a user in. With a second factor on, the answer is 401 with X-MFA-Token, for Auth MFA.',
    method: 'POST',
    path: '/api/login',
    ...signIn,
  }),
  auth: operation({
    title: 'Auth a user',
    summary: 'The same as Login, at another address.',
    method: 'POST',
    path: '/api/auth/user',
    ...signIn,
  }),
  refresh: operation({
    title: 'User info',
    summary:
      'The caller’s profile with a fresh token for the preferred namespace; also for a token that a role change has ended.',
    method: 'GET',
    path: '/api/auth/user',
    access: userOfAnyRole,
    query: Type.Object({
      keep_namespace: Type.Optional(
        Type.Boolean({
          description:
            'Whether the fresh token is for the namespace of the old one, while the caller is a member there.',
        }),
      ),
    }),
    answer: UserSession,
    failures: [],
    example: {},
  }),
  namespaceToken: operation({
    title: 'Get a new namespace token',
    summary: 'A token for another namespace of the caller.',
    method: 'GET',
    path: '/api/auth/token/:tenant',
    access: user,
    audit: 'user.signed-in',
    params: Type.Object({ tenant: Type.String() }),
    answer: UserSession,
    failures: [],
    example: { params: { tenant: sample.tenant } },
  }),
  token: operation({
    title: 'Get token',
    summary: 'The older address of Get a new namespace token.',
    method: 'GET',
    path: '/api/token/:tenant',
    access: user,
    audit: 'user.signed-in',
    params: Type.Object({ tenant: Type.String() }),
    answer: UserSession,
    failures: [],
    example: { params: { tenant: sample.tenant } },
  }),
  update: operation({
    title: 'Update user',
    summary:
      'Changes the caller’s own profile or password; absent fields stay as they are. A username with an @ must be the caller’s own confirmed address. A new password ends all other tokens, and the invitations that the caller made.',
    method: 'PATCH',
    path: '/api/users',
    access: user,
    audit: ['user.updated', ...passwordActions],
    body: Type.Object({
      ...profile,
      password: Type.Optional(Password),
      current_password: Type.Optional(Type.String({ maxLength: 1024 })),
    }),
    failureBody: 'fields',
    badInput: 'invalidFields',
    failures: ['takenFields', 'conflict', 'locked', 'tooMany'],
    example: { body: { name: 'Vera', recovery_email: 'vera@example.org' } },
  }),
  updateData: operation({
    title: 'Update user data',
    summary: 'The older form of Update user.',
    method: 'PATCH',
    path: '/api/users/:id/data',
    access: user,
    audit: 'user.updated',
    deprecated: true,
    params: ownId,
    body: Type.Object(profile),
    failureBody: 'fields',
    badInput: 'invalidFields',
    failures: ['takenFields', 'conflict', 'forbidden', 'tooMany'],
    example: { params: { id: sample.observer.id }, body: { name: 'Vera' } },
  }),
  updatePassword: operation({
    title: 'Update user password',
    summary:
      'The older form of a password change; it ends all other tokens, and the invitations that the caller made.',
    method: 'PATCH',
    path: '/api/users/:id/password',
    access: user,
    audit: passwordActions,
    deprecated: true,
    params: ownId,
    body: Type.Object({ current_password: Secret, new_password: Password }),
    failureBody: 'fields',
    badInput: 'invalidFields',
    failures: ['conflict', 'forbidden', 'locked', 'tooMany'],
    example: {
      params: { id: sample.observer.id },
      body: { current_password: sample.observer.password, new_password: 'a-new-rope' },
    },
  }),
  register: operation({
    title: 'Register user',
    summary:
      'Creates an account, which waits for its e-mail address to be confirmed, for seven days. A username with an @ must be that address.',
    method: 'POST',
    path: '/api/register',
    access: anyone,
    audit: 'user.registered',
    body: Type.Object({
      name: Name,
      email: Email,
      username: Username,
      password: Password,
      email_marketing: Type.Optional(Type.Boolean()),
    }),
    failureBody: 'fields',
    badInput: 'invalidFields',
    failures: ['takenFields', 'registrationClosed'],
    example: { body: { name: 'Nora', email: 'nora@example.com', username: 'nora', password: 'lighthouse' } },
  }),
  resend: operation({
    title: 'Resend confirmation',
    summary:
      'Sends the e-mail again that confirms an account or a changed address. The answer does not tell whether there is such a user.',
    method: 'POST',
    path: '/api/user/resend_email',
    access: anyone,
    audit: { none: 'it sends an e-mail and changes nothing' },
    body: Type.Object({ username: Identifier }),
    failures: [],
    example: { body: { username: sample.unconfirmed.username } },
  }),
  activate: operation({
    title: 'Validate activation link',
    summary:
      'Confirms an account with the token of the e-mail. Other accounts that wait for the same address end; while there are any, `confirmEmail` has to be called instead, with the password of the account.',
    method: 'GET',
    path: '/api/user/validation_account',
    access: anyone,
    audit: ['user.activated', 'user.removed'],
    query: Type.Object({ email: Identifier, token: Secret }),
    failures: ['wrongToken', 'passwordRequired'],
    example: { query: { email: sample.unconfirmed.email, token: sample.activationToken } },
  }),
  confirmEmail: operation({
    title: 'Confirm e-mail address',
    summary:
      'Makes a changed e-mail or recovery address, or that of a new account, count, with the token of the e-mail that went there. It needs the password of the account while other accounts claim the same e-mail address.',
    method: 'POST',
    path: '/api/user/confirm_email',
    access: anyone,
    audit: ['user.email.confirmed', 'user.activated', 'user.removed'],
    body: Type.Object({
      token: Secret,
      password: Type.Optional(
        Type.String({ maxLength: 1024, description: 'The password of the account that the link is for.' }),
      ),
    }),
    failures: ['wrongToken', 'passwordRequired', 'wrongCredentials', 'locked'],
    example: { body: { token: sample.confirmToken } },
  }),
  undoChange: operation({
    title: 'Undo change',
    summary:
      'Puts addresses and second factor back as they were before a change and ends all tokens and invitations of the user, with the token of the e-mail about it.',
    method: 'POST',
    path: '/api/user/undo_change',
    access: anyone,
    audit: ['user.identity.restored', ...invitationEnds],
    body: Type.Object({ token: Secret }),
    failures: ['wrongToken'],
    example: { body: { token: sample.undoToken } },
  }),
  recover: operation({
    title: 'Recover password',
    summary:
      'Sends an e-mail with a link to set a new password. The answer does not tell whether there is such a user.',
    method: 'POST',
    path: '/api/user/recover_password',
    access: anyone,
    audit: { none: 'it sends an e-mail and changes nothing, for known and unknown users alike' },
    body: Type.Object({ username: Type.Optional(Identifier), email: Type.Optional(Identifier) }),
    failures: [],
    example: { body: { username: sample.observer.username } },
  }),
  resetPassword: operation({
    title: 'Update user password from recovery token',
    summary:
      'Sets a new password with the token of the e-mail. It ends all tokens and invitations of the user.',
    method: 'POST',
    path: '/api/user/:uid/update_password',
    access: anyone,
    audit: passwordActions,
    params: Type.Object({ uid: Type.String() }),
    body: Type.Object({ password: Password, token: Secret }),
    failures: ['wrongToken'],
    example: {
      params: { uid: sample.observer.id },
      body: { password: 'a-new-rope', token: sample.recoveryToken },
    },
  }),
}
