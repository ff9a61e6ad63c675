// Namespaces: a team's devices, keys, rules and sessions, and its members. `tenant_id` is the id of a
// namespace.
import Type, { type Static } from './type.ts'
import { AgentUpdateMode } from './agents.ts'
import { member, Role, user, userOrKey } from './access.ts'
import { variablePattern } from './environment.ts'
import { sample } from './examples.ts'
import { FilterQuery, paging, NamespaceName, TenantId, Timestamp, UserId } from './fields.ts'
import { operation } from './operation.ts'

const AcceptEnv = Type.Array(Type.String({ pattern: variablePattern }), {
  maxItems: 64,
  description:
    'Variables that clients may send (SendEnv) beside LANG and LC_*: names, or beginnings of names with `*`.',
})

export const Namespace = Type.Object({
  name: Type.String(),
  owner: UserId,
  tenant_id: TenantId,
  members: Type.Array(Type.Object({ id: UserId, username: Type.String(), role: Role })),
  settings: Type.Object({
    session_record: Type.Boolean(),
    connection_announcement: Type.String(),
    continue_unrecorded: Type.Boolean({
      description: 'A session that cannot be recorded continues and is marked; otherwise it ends.',
    }),
    accept_env: AcceptEnv,
    agent_updates: AgentUpdateMode,
  }),
  max_devices: Type.Integer({ description: '-1: no limit.' }),
  device_count: Type.Integer({ description: 'Accepted devices.' }),
  devices_count: Type.Integer({ description: 'The same as device_count, as older clients spell it.' }),
  created_at: Timestamp,
  billing: Type.Union([Type.Null(), Type.Record(Type.String(), Type.Unknown())]),
})
export type Namespace = Static<typeof Namespace>

const Name = NamespaceName
const params = Type.Object({ tenant: TenantId })
const memberParams = Type.Object({ tenant: TenantId, uid: Type.String() })
const here = { params: { tenant: sample.tenant } }
const anObserver = { params: { tenant: sample.tenant, uid: sample.observer.id } }

export const namespaces = {
  list: operation({
    title: 'Get namespaces list',
    summary: 'The namespaces that the caller is a member of.',
    method: 'GET',
    path: '/api/namespaces',
    access: userOrKey,
    query: Type.Object({ filter: Type.Optional(FilterQuery), ...paging }),
    list: Namespace,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create namespace',
    summary: 'Creates a namespace that the caller owns.',
    method: 'POST',
    path: '/api/namespaces',
    access: user,
    body: Type.Object({ name: Name }),
    answer: Namespace,
    failures: ['conflict', 'namespaceLimit'],
    example: { body: { name: 'shipyard' } },
  }),
  get: operation({
    title: 'Get a namespace',
    summary: 'One namespace.',
    method: 'GET',
    path: '/api/namespaces/:tenant',
    access: member('observer', { of: 'path' }),
    params,
    answer: Namespace,
    failures: [],
    example: here,
  }),
  edit: operation({
    title: 'Edit namespace',
    summary: 'Renames the namespace or changes its settings.',
    method: 'PUT',
    path: '/api/namespaces/:tenant',
    access: member('administrator', { of: 'path' }),
    params,
    body: Type.Object({
      name: Type.Optional(Name),
      settings: Type.Optional(
        Type.Object({
          session_record: Type.Optional(Type.Boolean()),
          connection_announcement: Type.Optional(Type.String({ maxLength: 4096 })),
          continue_unrecorded: Type.Optional(Type.Boolean()),
          accept_env: Type.Optional(AcceptEnv),
          agent_updates: Type.Optional(AgentUpdateMode),
        }),
      ),
    }),
    answer: Namespace,
    failures: ['conflict'],
    example: { ...here, body: { settings: { connection_announcement: 'Mind the gap.' } } },
  }),
  remove: operation({
    title: 'Delete namespace',
    summary: 'Removes the namespace with everything in it.',
    method: 'DELETE',
    path: '/api/namespaces/:tenant',
    access: member('owner', { of: 'path', apiKey: false }),
    params,
    failures: ['paymentRequired'],
    example: here,
  }),
  addMember: operation({
    title: 'Add a member',
    summary: 'Makes a user a member of the namespace.',
    method: 'POST',
    path: '/api/namespaces/:tenant/members',
    access: member('administrator', { of: 'path' }),
    params,
    body: Type.Object({
      identifier: Type.Optional(
        Type.String({ minLength: 3, maxLength: 254, description: 'Username or e-mail.' }),
      ),
      username: Type.Optional(Type.String({ minLength: 3, maxLength: 254 })),
      email: Type.Optional(Type.String({ minLength: 3, maxLength: 254 })),
      role: Role,
    }),
    answer: Namespace,
    failures: ['conflict', 'forbidden', 'notFound'],
    example: { ...here, body: { identifier: sample.stranger.username, role: 'observer' } },
  }),
  removeMember: operation({
    title: 'Remove a member',
    summary: 'Ends a membership; the member’s tokens and API keys for the namespace stop working at once.',
    method: 'DELETE',
    path: '/api/namespaces/:tenant/members/:uid',
    access: member('administrator', { of: 'path' }),
    params: memberParams,
    answer: Namespace,
    failures: ['forbidden'],
    example: anObserver,
  }),
  updateMember: operation({
    title: 'Update a member',
    summary: 'Changes a member’s role; the member’s present tokens for the namespace stop working.',
    method: 'PATCH',
    path: '/api/namespaces/:tenant/members/:uid',
    access: member('administrator', { of: 'path' }),
    params: memberParams,
    body: Type.Object({ role: Type.Optional(Role) }),
    failures: ['forbidden'],
    example: { ...anObserver, body: { role: 'operator' } },
  }),
  setSessionRecord: operation({
    title: 'Set session record',
    summary: 'Switches the recording of sessions on or off.',
    method: 'PUT',
    path: '/api/users/security/:tenant',
    access: member('administrator', { of: 'path' }),
    params,
    body: Type.Object({ session_record: Type.Boolean({ default: false }) }),
    failures: [],
    example: { ...here, body: { session_record: false } },
  }),
  getSessionRecord: operation({
    title: 'Get session-record setting',
    summary: 'Whether sessions of the namespace are recorded: a bare true or false.',
    method: 'GET',
    path: '/api/users/security',
    access: member('observer'),
    answer: Type.Boolean(),
    failures: [],
    example: {},
  }),
}
