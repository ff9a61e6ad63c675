// API keys: credentials of a namespace, for scripts. A key never has a higher role than its creator, and ends
// with that membership. The key itself is shown once; the server stores only its hash.
import Type, { type Static } from './type.ts'
import { member, Role } from './access.ts'
import { sample } from './examples.ts'
import { OrderBy, paging, patterns, TenantId, Timestamp, UserId } from './fields.ts'
import { operation } from './operation.ts'

export const ApiKey = Type.Object({
  tenant_id: TenantId,
  created_by: UserId,
  role: Role,
  name: Type.String(),
  expires_in: Type.Integer({ description: 'Unix seconds at which it expires; -1: never.' }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type ApiKey = Static<typeof ApiKey>

export const apiKeySorts = ['expires_in', 'name', 'role', 'created_by', 'created_at', 'updated_at'] as const

const Name = Type.String({ pattern: '^\\S{3,20}$', description: '3 to 20 characters without white space' })

export const apiKeys = {
  create: operation({
    title: 'Create API key',
    summary: 'Creates an API key. The response is the only one that contains it.',
    method: 'POST',
    path: '/api/namespaces/api-key',
    access: member('administrator', { apiKey: false }),
    audit: 'api-key.created',
    body: Type.Object({
      name: Name,
      expires_at: Type.Enum([-1, 30, 60, 90, 365], { description: 'Days; -1: never.' }),
      role: Type.Optional(Role),
      key: Type.Optional(
        Type.String({ pattern: patterns.uuid4, description: 'a UUID of version 4, lower case' }),
      ),
    }),
    answer: Type.Object({
      id: Type.String({ description: 'The key itself.' }),
      user_id: Type.String({ description: 'The same as created_by, as older clients spell it.' }),
      ...ApiKey.properties,
    }),
    failures: ['conflict', 'roleTooLow'],
    example: { body: { name: 'nightly', expires_at: 30, role: 'observer' } },
  }),
  list: operation({
    title: 'List API keys',
    summary: 'The API keys of the namespace, without the keys themselves.',
    method: 'GET',
    path: '/api/namespaces/api-key',
    access: member('observer'),
    query: Type.Object({
      ...paging,
      order_by: OrderBy,
      sort_by: Type.Enum([...apiKeySorts], { default: 'expires_in' }),
    }),
    list: ApiKey,
    failures: [],
    example: { query: { order_by: 'asc' } },
  }),
  update: operation({
    title: 'Update an API key',
    summary: 'Renames an API key or changes its role.',
    method: 'PATCH',
    path: '/api/namespaces/api-key/:key',
    access: member('administrator', { apiKey: false }),
    audit: 'api-key.updated',
    params: Type.Object({ key: Type.String({ description: 'The name of the key.' }) }),
    body: Type.Object({ name: Type.Optional(Name), role: Type.Optional(Role) }),
    failures: ['conflict', 'roleTooLow'],
    example: { params: { key: sample.apiKeyName }, body: { name: 'backup-2' } },
  }),
  remove: operation({
    title: 'Delete API key',
    summary: 'Ends an API key at once.',
    method: 'DELETE',
    path: '/api/namespaces/api-key/:key',
    access: member('administrator', { apiKey: false }),
    audit: 'api-key.removed',
    params: Type.Object({ key: Type.String({ description: 'The name of the key.' }) }),
    failures: [],
    example: { params: { key: sample.apiKeyName } },
  }),
}
