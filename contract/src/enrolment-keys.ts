// Enrolment keys, for devices without an agent. Such a device joins by an outgoing SSH connection, which an
// enrolment key of the namespace authenticates and which allows nothing else: the device's host key
// identifies it. Where a device authorizes the server's login key, the namespace's public keys log in.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Fingerprint, FingerprintSha256, paging, TenantId, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const EnrolmentKey = Type.Object({
  fingerprint: Fingerprint,
  fingerprint_sha256: FingerprintSha256,
  name: Type.String(),
  public_key: Type.String({ description: 'The OpenSSH public-key line, without its comment.' }),
  tenant_id: TenantId,
  created_at: Timestamp,
})
export type EnrolmentKey = Static<typeof EnrolmentKey>

/** Several devices may share one. */
export const mostEnrolmentKeys = 100

export const enrolmentKeys = {
  list: operation({
    title: 'Get enrolment keys',
    summary: 'The keys with which devices without an agent may join the namespace, oldest first.',
    method: 'GET',
    path: '/api/enrolment-keys',
    access: member('observer'),
    query: Type.Object(paging),
    list: EnrolmentKey,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create enrolment key',
    summary:
      'Adds a key with which devices without an agent may join the namespace; each waits as pending until it is accepted.',
    method: 'POST',
    path: '/api/enrolment-keys',
    access: member('administrator'),
    audit: 'enrolment-key.created',
    body: Type.Object({
      name: Type.String({ minLength: 1, maxLength: 255 }),
      public_key: Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: 'An OpenSSH public-key line, as in a .pub file.',
      }),
    }),
    answer: EnrolmentKey,
    failures: ['conflict', 'enrolmentKeyLimit'],
    example: { body: { name: 'boilers', public_key: atob(sample.publicKeyLine) } },
  }),
  remove: operation({
    title: 'Delete enrolment key',
    summary:
      'Removes an enrolment key. Connections that devices made with it end; the devices stay in the namespace.',
    method: 'DELETE',
    path: '/api/enrolment-keys/:fingerprint',
    access: member('administrator'),
    audit: 'enrolment-key.removed',
    params: Type.Object({ fingerprint: Fingerprint }),
    failures: [],
    example: { params: { fingerprint: sample.enrolmentFingerprint } },
  }),
  loginKey: operation({
    title: 'Get login key',
    summary:
      'The line for authorized_keys of a device without an agent: with it there, the namespace’s public keys log in.',
    method: 'GET',
    path: '/api/enrolment-keys/login-key',
    access: member('observer'),
    answer: Type.Object({
      public_key: Type.String({
        description: 'An OpenSSH public-key line, the same for all devices of the namespace.',
      }),
      fingerprint: Type.String({ description: 'SHA-256, as OpenSSH shows it.' }),
    }),
    failures: [],
    example: {},
  }),
}
