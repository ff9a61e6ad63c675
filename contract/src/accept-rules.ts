// Accept rules: which new devices of a namespace are accepted without a person. The first match by priority
// accepts the device and gives it tags; without one it is pending. Only a device's enrolment token judges a
// device that has one. The id of a namespace is no secret, and devices choose host name, MAC address and
// platform; only the source network is certain.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Paging, Pattern, TenantId } from './fields.ts'
import { PresetTags } from './enrolment-tokens.ts'
import { operation } from './operation.ts'

export const mostAcceptRules = 100

export const usualPriority = 100

export const AcceptRule = Type.Object({
  id: Type.String({ description: 'A decimal number, sent as a string.' }),
  tenant_id: TenantId,
  priority: Type.Integer({ description: 'Rules with lower numbers are asked first.' }),
  source: Type.String({ description: 'A network; empty: any.' }),
  hostname: Type.String({ description: 'A regular expression; empty: any.' }),
  mac: Type.String({ description: 'The beginning of a MAC address; empty: any.' }),
  platform: Type.String({ description: 'As in info.platform of a device; empty: any.' }),
  tags: Type.Array(Type.String()),
})
export type AcceptRule = Static<typeof AcceptRule>

const params = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) })

export const acceptRules = {
  list: operation({
    title: 'Get accept rules',
    summary: 'The rules by which new devices are accepted without a person, in the order of evaluation.',
    method: 'GET',
    path: '/api/accept-rules',
    access: member('observer'),
    query: Paging,
    list: AcceptRule,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create accept rule',
    summary:
      'Adds a rule by which new devices are accepted without a person. All that the rule names must fit. ' +
      'Without `source` everybody who knows the id of the namespace can bring in a device.',
    method: 'POST',
    path: '/api/accept-rules',
    access: member('administrator'),
    audit: 'accept-rule.created',
    body: Type.Object({
      priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: usualPriority })),
      source: Type.Optional(
        Type.String({
          minLength: 2,
          maxLength: 64,
          pattern: '^[0-9a-fA-F:.]+(/[0-9]{1,3})?$',
          description: 'The network that devices connect from: an address, or an address with /bits.',
        }),
      ),
      hostname: Type.Optional(Pattern),
      mac: Type.Optional(
        Type.String({
          pattern: '^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){0,5}$',
          description: 'The beginning of a MAC address, for example b8:27:eb.',
        }),
      ),
      platform: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: '^[a-zA-Z0-9_.-]+$' })),
      tags: Type.Optional(PresetTags),
    }),
    answer: AcceptRule,
    headers: Type.Object({
      'x-notice': Type.String({
        description: 'What the rule means, if it names no source network; else empty.',
      }),
    }),
    failures: ['acceptRuleLimit'],
    example: { body: { source: '192.0.2.0/24', hostname: '^till-', tags: ['shop'] } },
  }),
  remove: operation({
    title: 'Delete accept rule',
    summary: 'Removes an accept rule. The devices that it accepted stay.',
    method: 'DELETE',
    path: '/api/accept-rules/:id',
    access: member('administrator'),
    audit: 'accept-rule.removed',
    params,
    failures: [],
    example: { params: { id: sample.acceptRule } },
  }),
}
