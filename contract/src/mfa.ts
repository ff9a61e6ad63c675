// The second factor: time-based codes (SHA-1, 6 digits, 30 s), recovery codes, and the reset by two e-mails.
import Type from './type.ts'
import { anyone, user } from './access.ts'
import { sample } from './examples.ts'
import { operation } from './operation.ts'
import { UserSession } from './users.ts'

const Code = Type.String({ minLength: 1, maxLength: 64 })
const Identifier = Type.String({ minLength: 1, maxLength: 254 })

export const mfa = {
  authenticate: operation({
    title: 'Auth MFA',
    summary: 'The second half of a sign-in: the token that Login gave, and a code.',
    method: 'POST',
    path: '/api/mfa/auth',
    aliases: [{ path: '/api/user/mfa/auth' }],
    access: anyone,
    audit: ['user.signed-in', 'user.sign-in.refused'],
    body: Type.Object({ token: Type.String({ minLength: 1, maxLength: 128 }), code: Code }),
    answer: UserSession,
    failures: ['wrongCode', 'locked'],
    example: { body: { token: sample.mfaToken, code: sample.totp } },
  }),
  recover: operation({
    title: 'Recover MFA',
    summary: 'Signs in with a recovery code, which is spent; for ten minutes Disable MFA takes it once more.',
    method: 'POST',
    path: '/api/user/mfa/recover',
    access: anyone,
    audit: ['user.signed-in', 'user.sign-in.refused'],
    body: Type.Object({ identifier: Identifier, recovery_code: Code }),
    answer: UserSession,
    headers: Type.Object({
      'x-expires-at': Type.String({ description: 'Unix seconds at which those ten minutes end.' }),
    }),
    failures: ['wrongCode', 'locked'],
    example: { body: { identifier: sample.careful.username, recovery_code: sample.recoveryCode } },
  }),
  requestReset: operation({
    title: 'Request reset MFA',
    summary:
      'Sends one code to the main and one to the recovery address. The answer does not tell whether there is such a user.',
    method: 'POST',
    path: '/api/user/mfa/reset',
    access: anyone,
    audit: { none: 'it sends e-mails and changes nothing, for known and unknown users alike' },
    body: Type.Object({ identifier: Identifier }),
    failures: [],
    example: { body: { identifier: sample.careful.email } },
  }),
  reset: operation({
    title: 'Reset MFA',
    summary: 'Switches the second factor off with both codes, and signs in.',
    method: 'PUT',
    path: '/api/user/mfa/reset/:user_id',
    access: anyone,
    audit: ['user.mfa.disabled', 'user.signed-in', 'user.sign-in.refused'],
    params: Type.Object({ user_id: Type.String() }),
    body: Type.Object({ main_email_code: Code, recovery_email_code: Code }),
    answer: UserSession,
    failures: ['wrongCode', 'locked'],
    example: {
      params: { user_id: sample.careful.id },
      body: { main_email_code: sample.resetCodes.main, recovery_email_code: sample.resetCodes.recovery },
    },
  }),
  generate: operation({
    title: 'Generate MFA credentials',
    summary: 'A fresh secret and recovery codes, for Enable MFA.',
    method: 'GET',
    path: '/api/user/mfa/generate',
    access: user,
    audit: { none: 'it is a draft, and nothing counts before Enable' },
    answer: Type.Object({
      link: Type.String({ description: 'otpauth URI.' }),
      secret: Type.String(),
      recovery_codes: Type.Array(Type.String()),
    }),
    failures: ['conflict'],
    example: {},
  }),
  enable: operation({
    title: 'Enable MFA',
    summary: 'Switches the second factor on.',
    method: 'PUT',
    path: '/api/user/mfa/enable',
    access: user,
    audit: 'user.mfa.enabled',
    body: Type.Object({
      code: Code,
      secret: Type.String({ maxLength: 128 }),
      recovery_codes: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 32 }),
    }),
    failures: ['wrongCode', 'conflict', 'locked'],
    example: {
      body: { code: sample.totp, secret: sample.draftSecret, recovery_codes: [sample.recoveryCode] },
    },
  }),
  disable: operation({
    title: 'Disable MFA',
    summary: 'Switches the second factor off, with a code or a recovery code.',
    method: 'PUT',
    path: '/api/user/mfa/disable',
    access: user,
    audit: 'user.mfa.disabled',
    body: Type.Object({
      code: Type.Optional(Type.String({ maxLength: 64 })),
      recovery_code: Type.Optional(Type.String({ maxLength: 64 })),
    }),
    failures: ['wrongCode', 'conflict', 'locked'],
    example: { body: { code: sample.totp } },
  }),
}
