// Public keys for logins without a password, each on the devices and for the users that it names.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import {
  Filter,
  FilterAnswer,
  FilterQuery,
  Fingerprint,
  FingerprintSha256,
  paging,
  patterns,
  Pattern,
  Tag,
  Tags,
  TenantId,
  Timestamp,
} from './fields.ts'
import { operation } from './operation.ts'

export const PublicKey = Type.Object({
  data: Type.String({ description: 'Base64 of the OpenSSH public-key line, without its comment.' }),
  fingerprint: Fingerprint,
  fingerprint_sha256: FingerprintSha256,
  created_at: Timestamp,
  tenant_id: TenantId,
  name: Type.String(),
  filter: FilterAnswer,
  username: Type.String(),
  certificate_authority: Type.Boolean({
    description: 'It signs certificates for users and does not log anyone in by itself.',
  }),
  owner: Type.String({
    description:
      'The id of the member whose key it is: sessions name that person, and the key goes when the membership ends. Empty: nobody’s in particular.',
  }),
  owner_name: Type.String({ description: 'The user name of that member.' }),
})
export type PublicKey = Static<typeof PublicKey>

const Name = Type.String({ minLength: 1, maxLength: 255 })
const CertificateAuthority = Type.Optional(
  Type.Boolean({
    description: 'It signs certificates for users instead of logging its holder in; default: false.',
  }),
)
const Owner = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'The member whose key it is, by id or user name; empty: nobody in particular.',
  }),
)
const params = Type.Object({ fingerprint: Fingerprint })
const aKey = { params: { fingerprint: sample.fingerprint } }
const aTaggedKey = { params: { fingerprint: sample.taggedFingerprint } }

export const publicKeys = {
  list: operation({
    title: 'Get public keys',
    summary: 'The public keys of the namespace, oldest first.',
    method: 'GET',
    path: '/api/sshkeys/public-keys',
    access: member('observer'),
    query: Type.Object({ filter: Type.Optional(FilterQuery), ...paging }),
    list: PublicKey,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create public key',
    summary: 'Adds a public key.',
    method: 'POST',
    path: '/api/sshkeys/public-keys',
    access: member('administrator'),
    audit: 'public-key.created',
    body: Type.Object({
      data: Type.String({ pattern: patterns.base64, minLength: 4, maxLength: 65_536 }),
      filter: Filter,
      name: Name,
      username: Pattern,
      certificate_authority: CertificateAuthority,
      owner: Owner,
    }),
    largestBody: 96 * 1024,
    answer: Type.Omit(PublicKey, ['created_at']),
    failures: ['conflict', 'notFound'],
    example: {
      body: {
        data: sample.publicKeyLine,
        filter: { hostname: '.*' },
        name: 'olga at work',
        username: '^(root|deploy)$',
      },
    },
  }),
  update: operation({
    title: 'Update public key',
    summary: 'Changes the name, the filter, the users or the owner of a public key; the key itself stays.',
    method: 'PUT',
    path: '/api/sshkeys/public-keys/:fingerprint',
    access: member('administrator'),
    audit: 'public-key.updated',
    params,
    body: Type.Object({
      name: Name,
      username: Pattern,
      filter: Filter,
      certificate_authority: CertificateAuthority,
      owner: Owner,
    }),
    answer: PublicKey,
    failures: [],
    example: { ...aKey, body: { name: 'laptop', username: '.*', filter: { tags: [sample.tag] } } },
  }),
  remove: operation({
    title: 'Delete public key',
    summary: 'Removes a public key.',
    method: 'DELETE',
    path: '/api/sshkeys/public-keys/:fingerprint',
    access: member('administrator'),
    audit: 'public-key.removed',
    params,
    failures: [],
    example: aKey,
  }),
  addTag: operation({
    title: 'Add tag public key',
    summary: 'Adds a tag to the filter of a public key.',
    method: 'POST',
    path: '/api/sshkeys/public-keys/:fingerprint/tags',
    access: member('administrator'),
    audit: 'public-key.updated',
    params,
    body: Type.Object({ tag: Tag }),
    failures: ['conflict', 'tooManyTags'],
    example: { ...aTaggedKey, body: { tag: sample.spareTag } },
  }),
  setTags: operation({
    title: 'Update tags public key',
    summary: 'Replaces the tags in the filter of a public key.',
    method: 'PUT',
    path: '/api/sshkeys/public-keys/:fingerprint/tags',
    access: member('administrator'),
    audit: 'public-key.updated',
    params,
    body: Type.Object({ tags: Tags }),
    failures: [],
    example: { ...aTaggedKey, body: { tags: [sample.tag, sample.spareTag] } },
  }),
  removeTag: operation({
    title: 'Remove tag public key',
    summary: 'Removes a tag from the filter of a public key.',
    method: 'DELETE',
    path: '/api/sshkeys/public-keys/:fingerprint/tags/:tag',
    access: member('administrator'),
    audit: 'public-key.updated',
    params: Type.Object({ fingerprint: Fingerprint, tag: Tag }),
    failures: ['invalid'],
    example: { params: { fingerprint: sample.taggedFingerprint, tag: sample.tag } },
  }),
}
