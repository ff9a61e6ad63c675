// Namespaces: a team's devices, keys, rules, sessions and members. `tenant_id` is the id of a namespace.
import Type, { type Static } from './type.ts'
import { AgentUpdateMode } from './agents.ts'
import { member, Role, roles, user, userOrKey } from './access.ts'
import { variablePattern } from './environment.ts'
import { sample } from './examples.ts'
import { FilterQuery, paging, NamespaceName, TenantId, Timestamp, UserId } from './fields.ts'
import { operation } from './operation.ts'
import { mostGrace_s } from './tunnel.ts'

const AcceptEnv = Type.Array(Type.String({ pattern: variablePattern }), {
  maxItems: 64,
  description:
    'Variables that clients may send (SendEnv) besides LANG and LC_*: names, or prefixes with `*`.',
})

const ReconnectGrace = Type.Integer({
  minimum: 0,
  maximum: mostGrace_s,
  description:
    'How many seconds sessions wait for a device whose connection is lost, and then continue where they were. 0: they end with the connection. Only agents of Hawser can continue; with others they always end.',
})

const MaskSecrets = Type.Boolean({
  description:
    'Whether secrets of known shapes, such as tokens and private keys, are masked in what is recorded.',
})

const MaskAfter = Type.Array(
  Type.String({
    pattern: '^(?=.*[!-~]$)[ -~]{4,32}$',
    description: '4 to 32 printable ASCII characters, the last of them no space',
  }),
  {
    maxItems: 20,
    description:
      'Texts that come before secrets of your own, such as `ticket#`. The rest of the word behind one is masked in what is recorded. Upper and lower case are the same.',
  },
)

const AuditRetention = Type.Integer({
  minimum: 0,
  maximum: 36_500,
  description: 'How many days entries of the audit log are kept. 0: for ever.',
})

export const mostHold_s = 86_400

const HoldSessions = Type.Integer({
  minimum: 0,
  maximum: mostHold_s,
  description:
    'How many seconds a terminal is held when its client is lost, so that its person can reattach. 0: it ends at once, and no open terminal can be continued elsewhere.',
})

const HoldUnknown = Type.Boolean({
  description:
    'Terminals are held also for logins by a device’s password of which nobody knows who it was. Anyone who has that password can then take over a held terminal of the same account, with the programs in it; a terminal that has a client is not given to anybody else. Switched off, it counts at once, also for terminals that are open.',
})

const JoinWithoutConsent = Type.Boolean({
  description:
    'Administrators and owners may type in live sessions without being allowed to by the person of the session.',
})

const InviteOutsiders = Type.Boolean({
  description:
    'Users of the server who are no members of the namespace may be invited to live sessions of it, each to one.',
})

const RequirePerson = Type.Boolean({
  description:
    'Only known people reach devices: with the browser’s terminal, `hawser ssh`, a key that has an owner, or a certificate that names somebody. A login by a device’s password alone, or by a key without an owner, is refused.',
})

const Search = Type.Boolean({
  description:
    'What recorded sessions showed is indexed and can be searched. Off: nothing is indexed, and what was is removed.',
})

const LogWebRequests = Type.Boolean({
  description:
    'Requests to services are logged as events of their sessions: time, method, path without its query, status and bytes.',
})

const GrantedRole = Type.Enum([...roles], {
  description: 'The member’s role in the namespace; only a hand-over changes the owner.',
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
    reconnect_grace_s: ReconnectGrace,
    audit_retention_days: AuditRetention,
    mask_secrets: MaskSecrets,
    mask_after: MaskAfter,
    require_person: RequirePerson,
    hold_sessions: HoldSessions,
    hold_unknown: HoldUnknown,
    join_without_consent: JoinWithoutConsent,
    invite_outsiders: InviteOutsiders,
    search: Search,
    log_web_requests: LogWebRequests,
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
    audit: 'namespace.created',
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
    audit: 'namespace.updated',
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
          reconnect_grace_s: Type.Optional(ReconnectGrace),
          audit_retention_days: Type.Optional(AuditRetention),
          mask_secrets: Type.Optional(MaskSecrets),
          mask_after: Type.Optional(MaskAfter),
          require_person: Type.Optional(RequirePerson),
          hold_sessions: Type.Optional(HoldSessions),
          hold_unknown: Type.Optional(HoldUnknown),
          join_without_consent: Type.Optional(JoinWithoutConsent),
          invite_outsiders: Type.Optional(InviteOutsiders),
          search: Type.Optional(Search),
          log_web_requests: Type.Optional(LogWebRequests),
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
    audit: 'namespace.removed',
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
    audit: 'member.added',
    params,
    body: Type.Object({
      identifier: Type.Optional(
        Type.String({ minLength: 3, maxLength: 254, description: 'Username or e-mail.' }),
      ),
      username: Type.Optional(
        Type.String({ minLength: 3, maxLength: 254, description: 'The username, as older clients send it.' }),
      ),
      email: Type.Optional(
        Type.String({ minLength: 3, maxLength: 254, description: 'The e-mail, as older clients send it.' }),
      ),
      role: GrantedRole,
    }),
    answer: Namespace,
    failures: ['conflict', 'forbidden', 'notFound', 'tooMany'],
    example: { ...here, body: { identifier: sample.stranger.username, role: 'observer' } },
  }),
  removeMember: operation({
    title: 'Remove a member',
    summary: 'Ends a membership; the member’s tokens and API keys for the namespace stop working at once.',
    method: 'DELETE',
    path: '/api/namespaces/:tenant/members/:uid',
    access: member('administrator', { of: 'path' }),
    audit: 'member.removed',
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
    audit: 'member.updated',
    params: memberParams,
    body: Type.Object({ role: Type.Optional(GrantedRole) }),
    failures: ['forbidden', 'conflict'],
    example: { ...anObserver, body: { role: 'operator' } },
  }),
  leave: operation({
    title: 'Leave a namespace',
    summary:
      'Ends the caller’s own membership, with their sessions, API keys and public keys there. The owner cannot leave.',
    method: 'DELETE',
    path: '/api/namespaces/:tenant/members',
    access: user,
    audit: 'member.left',
    params,
    failures: ['forbidden'],
    example: here,
  }),
  handOver: operation({
    title: 'Hand a namespace over',
    summary:
      'Makes another member the owner; the caller becomes an administrator. It needs the password, or a code where there is a second factor.',
    method: 'POST',
    path: '/api/namespaces/:tenant/members/:uid/hand-over',
    access: member('owner', { of: 'path', apiKey: false }),
    audit: 'namespace.handed-over',
    params: memberParams,
    body: Type.Object({
      password: Type.Optional(Type.String({ maxLength: 1024, description: 'The caller’s password.' })),
      code: Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'A code of the caller’s second factor, where there is one.',
        }),
      ),
    }),
    failures: ['conflict', 'namespaceLimit', 'wrongCredentials', 'wrongCode', 'locked', 'tooMany'],
    example: {
      params: { tenant: sample.tenant, uid: sample.administrator.id },
      body: { password: sample.owner.password },
    },
  }),
  setSessionRecord: operation({
    title: 'Set session record',
    summary: 'Switches the recording of sessions on or off.',
    method: 'PUT',
    path: '/api/users/security/:tenant',
    access: member('administrator', { of: 'path' }),
    audit: 'namespace.updated',
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
