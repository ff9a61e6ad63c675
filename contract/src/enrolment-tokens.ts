// Enrolment tokens, with which agents join at scale. A token names the namespace, so a device needs no tenant
// id. It gives devices tags and names, accepts them if told so, and ends at a moment, after a number of
// devices, or with its creator's membership. The token itself is shown once; the server stores only its hash.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { paging, patterns, Tag, TenantId, Timestamp, UserId, Uuid } from './fields.ts'
import { operation } from './operation.ts'

/** A prefix that secret scanners can find, and 160 random bits in base32. */
export const tokenPattern = '^hwe_[a-z2-7]{32}$'

/** The words that may stand in braces in a name pattern; see `NamePattern`. */
export const namePlaceholders = ['n', 'nn', 'nnn', 'nnnn', 'hostname', 'mac', 'mac4'] as const

export const usualToken = { most_devices: 1, valid_days: 30 } as const

export const mostEnrolmentTokens = 100

const NamePattern = Type.String({
  pattern: `^([a-zA-Z0-9_-]|\\{(${namePlaceholders.join('|')})\\})*$`,
  maxLength: 64,
  description:
    'The names of the devices, for example shop-{nnn}. {n}: the number of the device among those of the token, ' +
    'with zeros for {nn} to {nnnn}; {hostname}; {mac}; {mac4}: the last four digits of the MAC address. ' +
    'Empty: the device’s own name.',
})

export const PresetTags = Type.Array(Tag, {
  maxItems: 3,
  uniqueItems: true,
  description: 'Tags that the devices get.',
})

export const EnrolmentToken = Type.Object({
  id: Uuid,
  tenant_id: TenantId,
  name: Type.String(),
  hint: Type.String({ description: 'The last four characters of the token.' }),
  accept: Type.Boolean(),
  tags: Type.Array(Type.String()),
  name_pattern: Type.String(),
  most_devices: Type.Integer({ description: '0: any number.' }),
  used: Type.Integer({ description: 'Devices that have joined with it.' }),
  expires_at: Type.Union([Timestamp, Type.Null()], { description: 'null: never.' }),
  last_used_at: Type.Union([Timestamp, Type.Null()]),
  created_by: UserId,
  created_at: Timestamp,
})
export type EnrolmentToken = Static<typeof EnrolmentToken>

export const enrolmentTokens = {
  list: operation({
    title: 'Get enrolment tokens',
    summary:
      'The tokens with which agents may join the namespace, oldest first, without the tokens themselves.',
    method: 'GET',
    path: '/api/enrolment-tokens',
    access: member('observer'),
    query: Type.Object(paging),
    list: EnrolmentToken,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create enrolment token',
    summary:
      'Creates a token with which agents join the namespace. The response is the only one that contains it.',
    method: 'POST',
    path: '/api/enrolment-tokens',
    access: member('administrator'),
    audit: 'enrolment-token.created',
    body: Type.Object({
      name: Type.String({ minLength: 1, maxLength: 64, description: 'For people: what the token is for.' }),
      accept: Type.Optional(
        Type.Boolean({
          description: 'Whether devices that join with it are accepted at once; else they wait.',
        }),
      ),
      most_devices: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          default: usualToken.most_devices,
          description: 'How many devices may join with it; 0: any number.',
        }),
      ),
      valid_days: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 3650,
          default: usualToken.valid_days,
          description: 'Days until it expires; 0: it never does.',
        }),
      ),
      tags: Type.Optional(PresetTags),
      name_pattern: Type.Optional(NamePattern),
    }),
    answer: Type.Object({
      token: Type.String({ description: 'The token itself.' }),
      ...EnrolmentToken.properties,
    }),
    failures: ['conflict', 'enrolmentTokenLimit'],
    example: {
      body: {
        name: 'shops',
        accept: true,
        most_devices: 50,
        valid_days: 7,
        tags: ['shop'],
        name_pattern: 'shop-{nnn}',
      },
    },
  }),
  remove: operation({
    title: 'Delete enrolment token',
    summary: 'Revokes an enrolment token at once. The devices that joined with it stay.',
    method: 'DELETE',
    path: '/api/enrolment-tokens/:id',
    access: member('administrator'),
    audit: 'enrolment-token.removed',
    params: Type.Object({ id: Type.String({ pattern: patterns.uuid }) }),
    failures: [],
    example: { params: { id: sample.enrolmentTokenId } },
  }),
}
