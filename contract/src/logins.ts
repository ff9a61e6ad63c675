// Logins to devices, for administrators: whether a login would be let in, which rule refuses it, and why one
// was refused, by the reference that the person was shown.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import {
  DeviceUid,
  FingerprintSha256,
  KnownUsername,
  NotAfter,
  NotBefore,
  paging,
  Timestamp,
} from './fields.ts'
import { operation } from './operation.ts'
import { SentenceParts } from './sentences.ts'

/** In the order of a login. */
export const loginChecks = [
  'sign-in',
  'membership',
  'role',
  'device',
  'connection',
  'firewall',
  'device-limit',
  'key',
  'person',
  'attempts',
  'account',
  'policy',
] as const

export const loginClients = ['ssh', 'cli', 'browser'] as const
export type LoginClient = (typeof loginClients)[number]

/** `ignored`: a rule that does not apply. `unknown`: only the device or the client can tell. */
export const stepVerdicts = ['passed', 'refused', 'ignored', 'unknown'] as const

export const LoginStep = Type.Object({
  check: Type.Enum([...loginChecks]),
  verdict: Type.Enum([...stepVerdicts], {
    description:
      'ignored: a rule that does not apply; unknown: only the device or the client can tell, and nothing here refuses.',
  }),
  sentence: Type.String(),
  parts: Type.Optional(SentenceParts),
  rule: Type.Optional(
    Type.Object(
      {
        kind: Type.Enum(['firewall-rule', 'public-key', 'policy']),
        id: Type.String({
          description: 'The id of a firewall rule, the MD5 fingerprint of a key, or empty for the policy.',
        }),
        name: Type.String(),
        path: Type.String({ description: 'Where this API has it.' }),
      },
      { description: 'The rule or the key that this step is about.' },
    ),
  ),
})
export type LoginStep = Static<typeof LoginStep>

export const LoginExplanation = Type.Object({
  verdict: Type.Enum(['allowed', 'refused'], {
    description: 'allowed: the server would let the login through to the device, which then decides.',
  }),
  sentence: Type.String({ description: 'The first refusal, or what is left to the device.' }),
  parts: Type.Optional(SentenceParts),
  source: Type.String({ description: 'The address that the login was taken to come from.' }),
  steps: Type.Array(LoginStep, { description: 'In the order in which a login is checked.' }),
})
export type LoginExplanation = Static<typeof LoginExplanation>

const sentences = {
  'invalid-sshid': 'The user name was no SSHID, which is user@namespace.device.',
  'unknown-device': 'The namespace has no accepted device of that name.',
  offline: 'The device was offline.',
  unreachable: 'The device was connected, but could not be reached.',
  'host-key-changed': 'The device showed another host key than the one that it joined with.',
  firewall: 'A firewall rule denied the login.',
  'device-limit': 'The namespace is over its device limit.',
  'person-required':
    'This namespace only allows identified users, and the password or the key identifies nobody.',
  password: 'The device did not take the password, or has no such user.',
  'unknown-key': 'The namespace does not know the public key.',
  'key-scope': 'The public key is registered, but not for this user on this device.',
  'weak-key': 'The public key is too weak.',
  certificate: 'The certificate is not good for this login.',
  signature: 'The signature was not one of the public key.',
  'old-agent': 'The agent of the device is too old for logins by public key.',
  'device-refused': 'The device did not let the user in, though the key is good.',
  'rate-limited': 'Too many logins from the address had failed.',
  'too-many-sessions': 'Too many sessions from the address were open.',
  unavailable: 'The server could not check the login, as when its database is away.',
} as const
export type LoginRefusalReason = keyof typeof sentences
/** The reasons for which logins are refused, in words. docs/guides/monitoring.md lists them, too. */
export const refusalSentences: Readonly<Record<string, string>> = sentences

export const keyRefusals = {
  weak: 'The key is too weak.',
  nowhere: 'There is no such namespace or device.',
  unknown: 'The namespace does not know the key.',
  'no-authority': 'The key that signed it is no certificate authority.',
  'only-signs': 'The key is a certificate authority, which only signs.',
  scope: 'The key is not for this user on this device.',
  'former-member': 'The owner of the key is no longer a member.',
  'old-agent': 'The agent is too old.',
  'no-account':
    'The device has no such account, or the account has no home folder. Agents before 0.19.2 do not say which, and crash on an unknown account.',
} as const

export const LoginRefusal = Type.Object({
  reference: Type.String({ description: 'As the refused person was shown it.' }),
  at: Timestamp,
  last_at: Timestamp,
  times: Type.Integer({ description: 'How often this was refused under the same reference.' }),
  reason: Type.String({ description: 'A word, as in the log and the metrics.' }),
  sentence: Type.String(),
  detail: Type.Optional(Type.String({ description: 'More about the reason.' })),
  rule: Type.Optional(
    Type.String({ description: 'The id of the firewall rule, or the name of the key, that refused.' }),
  ),
  sshid: Type.String({ description: 'What the client asked for, shortened if it is long.' }),
  username: Type.Optional(Type.String()),
  device: Type.Optional(DeviceUid),
  name: Type.Optional(Type.String({ description: 'Of the device, as namespace.name.' })),
  source: Type.String({ description: 'The address of the client.' }),
  via: Type.Enum(['ssh', 'web']),
  by: Type.Optional(Type.String({ description: 'The person at the browser.' })),
  method: Type.Optional(Type.String()),
  fingerprint: Type.Optional(FingerprintSha256),
  attempts: Type.Integer({ description: 'Passwords and keys that were tried on the last connection.' }),
})
export type LoginRefusal = Static<typeof LoginRefusal>

export const logins = {
  explain: operation({
    title: 'Explain login',
    summary:
      'Whether a login to a device would be let in, step by step: the device, its connection, the firewall rule by ' +
      'rule, the public key. It asks what a login asks, and changes nothing.',
    method: 'POST',
    path: '/api/explain',
    access: member('administrator'),
    audit: { none: 'it only reads' },
    body: Type.Object({
      device: Type.String({ minLength: 1, maxLength: 256, description: 'Its name or its uid.' }),
      username: Type.String({ minLength: 1, maxLength: 128, description: 'The user on the device.' }),
      source: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 45,
          description: 'The address of the SSH client; default: that of this call.',
        }),
      ),
      key: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          description:
            'A public key: its name here, or its fingerprint, SHA-256 or MD5. Without one: a login by password.',
        }),
      ),
      person: Type.Optional(KnownUsername),
      via: Type.Optional(
        Type.Enum([...loginClients], {
          description:
            'ssh: an SSH client, which is the default; cli: hawser ssh, which says which member is signed in; browser: the terminal of the console, which only members have.',
        }),
      ),
    }),
    answer: LoginExplanation,
    failures: ['conflict'],
    example: {
      body: { device: 'crane-1', username: 'root', source: '192.0.2.9', key: sample.fingerprint },
    },
  }),
  refusals: operation({
    title: 'Get refused logins',
    summary:
      'Logins to devices of the namespace that were refused, or those that fit every filter given, newest first. The ' +
      'newest 1000 are kept, for 30 days.',
    method: 'GET',
    path: '/api/refusals',
    access: member('administrator'),
    query: Type.Object({
      device_uid: Type.Optional(DeviceUid),
      reason: Type.Optional(
        Type.Enum(Object.keys(refusalSentences), { description: 'Only those that were refused for this.' }),
      ),
      from: Type.Optional(NotBefore),
      to: Type.Optional(NotAfter),
      ...paging,
    }),
    list: LoginRefusal,
    failures: [],
    example: { query: { page: '1' } },
  }),
  refusal: operation({
    title: 'Get refused login',
    summary: 'Why a login was refused, by the reference that the client showed.',
    method: 'GET',
    path: '/api/refusals/:reference',
    access: member('administrator'),
    params: Type.Object({ reference: Type.String({ pattern: '^[0-9A-Za-z]{4}-?[0-9A-Za-z]{4}$' }) }),
    answer: LoginRefusal,
    failures: [],
    example: { params: { reference: sample.refusal } },
  }),
}
