// The server itself: its info, the install script, health, a namespace's figures, and the first set-up.
import Type from './type.ts'
import { anyone, member } from './access.ts'
import { sample } from './examples.ts'
import { Email, Password, NamespaceName, Username } from './fields.ts'
import { operation } from './operation.ts'
import { UserSession } from './users.ts'

export const statsDays_most = 31

export const system = {
  info: operation({
    title: 'Server info',
    summary: 'The version that agents are to run, and the addresses of the server as the caller reached it.',
    method: 'GET',
    path: '/info',
    aliases: [{ path: '/api/info' }],
    access: anyone,
    query: Type.Object({ agent_version: Type.Optional(Type.String({ maxLength: 255 })) }),
    answer: Type.Object({
      version: Type.String(),
      endpoints: Type.Object({ api: Type.String(), ssh: Type.String() }),
      setup: Type.Boolean({
        description: 'Whether the first user has been created; people who registered do not count.',
      }),
      mail: Type.Optional(
        Type.Boolean({
          description:
            'Whether there is a mail server. If not, e-mails are stored in the outbox of the data folder.',
        }),
      ),
    }),
    failures: [],
    example: { query: { agent_version: 'v0.16.4' } },
  }),
  install: operation({
    title: 'Install script',
    summary: 'A shell script that starts an agent for the given namespace.',
    method: 'GET',
    path: '/install.sh',
    aliases: [{ path: '/kickstart.sh' }, { path: '/api/install' }],
    access: anyone,
    query: Type.Object({
      // Any text, because the script explains a wrong id, where a 400 would only make `curl -f` fail.
      tenant_id: Type.Optional(Type.String({ pattern: '^[a-zA-Z0-9-]{1,64}$' })),
      token: Type.Optional(
        Type.String({
          pattern: '^[a-zA-Z0-9_-]{1,64}$',
          description: 'An enrolment token, instead of tenant_id.',
        }),
      ),
      keepalive_interval: Type.Optional(Type.String({ pattern: '^[0-9]{1,6}$' })),
      preferred_hostname: Type.Optional(Type.String({ pattern: '^[a-zA-Z0-9_.-]{1,64}$' })),
      preferred_identity: Type.Optional(Type.String({ pattern: '^[a-zA-Z0-9_.:-]{1,255}$' })),
    }),
    text: 'text/x-shellscript',
    failures: [],
    example: { query: { tenant_id: sample.tenant } },
  }),
  healthcheck: operation({
    title: 'Gateway health',
    summary: 'Answers when the server is ready.',
    method: 'GET',
    path: '/healthcheck',
    aliases: [{ path: '/api/healthcheck' }],
    access: anyone,
    headers: Type.Object({
      'x-disk': Type.Optional(
        Type.String({
          description:
            'Absent: there is room. `low`: nothing is recorded. `full`: people can still sign in, read and delete, and nothing is added.',
        }),
      ),
    }),
    failures: ['unavailable'],
    example: {},
  }),
  stats: operation({
    title: 'Stats',
    summary: 'How many devices and live sessions the namespace has.',
    method: 'GET',
    path: '/api/stats',
    access: member('observer'),
    answer: Type.Object({
      registered_devices: Type.Integer({ description: 'Accepted.' }),
      online_devices: Type.Integer({ description: 'Accepted and online.' }),
      pending_devices: Type.Integer(),
      rejected_devices: Type.Integer(),
      active_sessions: Type.Integer(),
    }),
    failures: [],
    example: {},
  }),
  statsByDay: operation({
    title: 'Stats by day',
    summary:
      'How many sessions, connected devices and bytes the namespace had on each of the last days. Counted once a minute.',
    method: 'GET',
    path: '/api/stats/days',
    access: member('observer'),
    query: Type.Object({
      days: Type.Integer({
        minimum: 1,
        maximum: statsDays_most,
        default: 14,
        description: 'The number of days, including today.',
      }),
    }),
    answer: Type.Object({
      days: Type.Array(
        Type.Object({
          day: Type.String({ description: 'As 2026-11-17, in UTC.' }),
          sessions: Type.Integer({ description: 'Sessions that began on this day.' }),
          devices: Type.Integer({ description: 'Devices that were connected.' }),
          bytes: Type.Integer({
            description:
              'What the connections of devices have carried in both directions. A connection is counted within an hour.',
          }),
        }),
        { description: 'Every day, oldest first.' },
      ),
    }),
    failures: [],
    example: { query: { days: '7' } },
  }),
  setup: operation({
    title: 'First-run setup',
    summary:
      'Creates the first user and namespace, with the one-time code that the server printed at its first start.',
    method: 'POST',
    path: '/api/setup',
    access: anyone,
    audit: ['user.created', 'user.removed', 'namespace.created', 'user.signed-in'],
    body: Type.Object({
      code: Type.String({ minLength: 1, maxLength: 128 }),
      name: Type.String({ minLength: 1, maxLength: 64 }),
      email: Email,
      username: Username,
      password: Password,
      namespace: Type.Optional(NamespaceName),
    }),
    answer: UserSession,
    failures: ['wrongToken', 'takenFields', 'locked'],
    failureBody: 'fields',
    badInput: 'invalidFields',
    example: {
      body: {
        code: sample.setupCode,
        name: 'Sam',
        email: 'sam@example.com',
        username: 'sam',
        password: 'lighthouse',
        namespace: 'lagoon',
      },
    },
  }),
}
