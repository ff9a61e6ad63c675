// Firewall rules: who may connect to which device, from where, as which user. The first active rule that matches,
// by ascending priority, decides; without one the connection is allowed.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Filter, FilterAnswer, Paging, Pattern, Tag, Tags, TenantId } from './fields.ts'
import { operation } from './operation.ts'

export const FirewallRule = Type.Object({
  id: Type.String({ description: 'A decimal number, sent as a string.' }),
  tenant_id: TenantId,
  action: Type.Enum(['allow', 'deny']),
  active: Type.Boolean(),
  filter: FilterAnswer,
  priority: Type.Integer(),
  source_ip: Type.String(),
  username: Type.String(),
})
export type FirewallRule = Static<typeof FirewallRule>

const params = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) })
const body = Type.Object({
  action: Type.Enum(['allow', 'deny']),
  active: Type.Boolean(),
  filter: Filter,
  priority: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
  source_ip: Pattern,
  username: Pattern,
})
const aRule = { params: { id: sample.firewallRule } }
const aTaggedRule = { params: { id: sample.taggedFirewallRule } }
const rule = {
  action: 'deny',
  active: true,
  filter: { hostname: '^crane' },
  priority: 5,
  source_ip: '^192\\.0\\.2\\.',
  username: '^root$',
}

export const firewall = {
  create: operation({
    title: 'Create firewall rule',
    summary: 'Adds a firewall rule.',
    method: 'POST',
    path: '/api/firewall/rules',
    access: member('administrator'),
    audit: 'firewall.rule.created',
    body,
    answer: FirewallRule,
    failures: ['notFound', 'firewallLimit'],
    example: { body: rule },
  }),
  list: operation({
    title: 'Get firewall rules',
    summary: 'The firewall rules of the namespace, in the order of evaluation.',
    method: 'GET',
    path: '/api/firewall/rules',
    access: member('observer'),
    query: Paging,
    list: FirewallRule,
    failures: [],
    example: { query: { page: '1' } },
  }),
  get: operation({
    title: 'Get firewall rule',
    summary: 'One firewall rule.',
    method: 'GET',
    path: '/api/firewall/rules/:id',
    access: member('observer'),
    params,
    answer: FirewallRule,
    failures: [],
    example: aRule,
  }),
  update: operation({
    title: 'Update firewall rule',
    summary: 'Replaces a firewall rule.',
    method: 'PUT',
    path: '/api/firewall/rules/:id',
    access: member('administrator'),
    audit: 'firewall.rule.updated',
    params,
    body,
    answer: FirewallRule,
    failures: ['firewallLimit'],
    example: { ...aRule, body: { ...rule, action: 'allow' } },
  }),
  remove: operation({
    title: 'Delete firewall rule',
    summary: 'Removes a firewall rule.',
    method: 'DELETE',
    path: '/api/firewall/rules/:id',
    access: member('administrator'),
    audit: 'firewall.rule.removed',
    params,
    failures: [],
    example: aRule,
  }),
  addTag: operation({
    title: 'Add a tag to firewall rule',
    summary: 'Adds a tag to the filter of a firewall rule.',
    method: 'POST',
    path: '/api/firewall/rules/:id/tags',
    access: member('administrator'),
    audit: 'firewall.rule.updated',
    params,
    body: Type.Object({ tag: Tag }),
    failures: ['conflict', 'tooManyTags'],
    example: { ...aTaggedRule, body: { tag: sample.spareTag } },
  }),
  removeTag: operation({
    title: 'Remove a tag from firewall rule',
    summary:
      'Removes a tag from the filter of a firewall rule. The body names the tag. An active rule without another tag becomes inactive.',
    method: 'DELETE',
    path: '/api/firewall/rules/:id/tags',
    access: member('administrator'),
    audit: 'firewall.rule.updated',
    params,
    body: Type.Object({ tag: Tag }),
    headers: Type.Object({
      'x-notice': Type.String({ description: 'Names the rule if it became inactive; else empty.' }),
    }),
    failures: [],
    example: { ...aTaggedRule, body: { tag: sample.tag } },
  }),
  setTags: operation({
    title: 'Update tags in firewall rule',
    summary: 'Replaces the tags in the filter of a firewall rule.',
    method: 'PUT',
    path: '/api/firewall/rules/:id/tags',
    access: member('administrator'),
    audit: 'firewall.rule.updated',
    params,
    body: Type.Object({ tags: Tags }),
    failures: [],
    example: { ...aTaggedRule, body: { tags: [sample.tag, sample.spareTag] } },
  }),
}
