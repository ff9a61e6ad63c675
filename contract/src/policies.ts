// The policy of a namespace: what is forbidden in sessions on its devices, for everybody and every client. A
// shell can still do what its user may do on the device.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { operation } from './operation.ts'

export const mostExceptions = 100

/** One `*` stands for any text, in the host or at any place of a path. */
export const destinationPattern =
  '^(?:(?:\\[[0-9A-Fa-f:.]*\\*?[0-9A-Fa-f:.]*\\]|[^\\s*:\\[\\]]*\\*?[^\\s*:\\[\\]]*):' +
  '(?:\\*|[0-9]{1,5}(?:-[0-9]{1,5})?)|unix:[^*]*\\*?[^*]*)$'

const Destination = Type.String({
  minLength: 3,
  maxLength: 300,
  pattern: destinationPattern,
  description:
    'host:port, such as `db.internal:5432`, `*.internal:*`, `10.0.*:8000-8999` or `[::1]:22`; or `unix:` and the path of a socket.',
})

const Rule = Type.Enum(['allow', 'forbid'])
const Uploads = Type.Boolean({
  description:
    'Whether files may be written and changed: by SFTP, and by the commands of scp and rsync where they are recognised.',
})
const Downloads = Type.Boolean({ description: 'Whether files may be read by the same ways.' })
const ForwardExceptions = Type.Array(Destination, {
  maxItems: mostExceptions,
  description: 'Destinations for which the opposite of `forwards` holds.',
})
const Services = Type.Enum(['allow', 'forbid'], {
  description: 'Whether services of the devices can be opened in browsers.',
})
const SubsystemExceptions = Type.Array(Type.String({ pattern: '^[\\x21-\\x7e]{1,64}$' }), {
  maxItems: mostExceptions,
  description: 'Names of subsystems for which the opposite of `subsystems` holds, such as sftp.',
})

export const Policy = Type.Object({
  uploads: Uploads,
  downloads: Downloads,
  forwards: Rule,
  forward_exceptions: ForwardExceptions,
  subsystems: Rule,
  subsystem_exceptions: SubsystemExceptions,
  services: Services,
})
export type Policy = Static<typeof Policy>

/** The default. */
export const openPolicy: Policy = {
  uploads: true,
  downloads: true,
  forwards: 'allow',
  forward_exceptions: [],
  subsystems: 'allow',
  subsystem_exceptions: [],
  services: 'allow',
}

export const policies = {
  get: operation({
    title: 'Get policy',
    summary: 'Returns the policy for sessions on the devices of the namespace.',
    method: 'GET',
    path: '/api/policy',
    access: member('observer'),
    answer: Policy,
    failures: [],
    example: {},
  }),
  update: operation({
    title: 'Update policy',
    summary: 'Changes the policy for sessions. It applies at once and ends whatever it forbids.',
    method: 'PATCH',
    path: '/api/policy',
    access: member('administrator'),
    audit: 'policy.updated',
    body: Type.Object({
      uploads: Type.Optional(Uploads),
      downloads: Type.Optional(Downloads),
      forwards: Type.Optional(Rule),
      forward_exceptions: Type.Optional(ForwardExceptions),
      subsystems: Type.Optional(Rule),
      subsystem_exceptions: Type.Optional(SubsystemExceptions),
      services: Type.Optional(Services),
    }),
    answer: Policy,
    failures: [],
    example: { body: { uploads: false, forwards: 'forbid', forward_exceptions: ['db.internal:5432'] } },
  }),
}
