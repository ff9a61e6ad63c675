// Services: web pages and other HTTP services that a device reaches, opened in a browser at an address of
// their own. Each is an origin of its own, under the services domain of the server.
import Type, { type Static } from './type.ts'
import { anyone, member, user } from './access.ts'
import { Device } from './devices.ts'
import { sample } from './examples.ts'
import { DeviceUid, KnownUsername, paging, Timestamp, UserId, Uuid } from './fields.ts'
import { operation } from './operation.ts'

export const serviceSchemes = ['http', 'https'] as const
/** `pin`: the certificate that the device showed first, and no other. */
export const serviceChecks = ['verify', 'pin', 'none'] as const
export type ServiceCheck = (typeof serviceChecks)[number]
export const serviceAudiences = ['members', 'people', 'link', 'public'] as const
export type ServiceAudience = (typeof serviceAudiences)[number]
/** Ownership is no condition: an owner may open whatever administrators may. */
export const openingRoles = ['observer', 'operator', 'administrator'] as const

/** A name or an address that the device knows; never a URL. */
export const targetHostPattern =
  '^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,39}|[0-9A-Fa-f:]{2,30}[0-9.]{7,15})$'
export const mostNamed = 50

/** How a person's browser is sent back to a service: the path that takes its code. */
export const returnPath = '/.well-known/hawser/return'
/** Where the holder of a link opens a service. */
export const linkPath = '/.well-known/hawser/link'

const Name = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[^\\s\\u0000-\\u001f\\u007f](?:[^\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f])?$',
  description: 'Display name, 1 to 64 characters.',
})
const Host = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: targetHostPattern,
  description: 'A name or an address as the device knows it. 127.0.0.1 is the device itself.',
})
const Port = Type.Integer({ minimum: 1, maximum: 65_535, description: 'The TCP port that it listens on.' })
const Scheme = Type.Enum([...serviceSchemes], { description: 'The protocol towards the device.' })
const Check = Type.Enum([...serviceChecks], {
  description:
    'What is expected of the device’s certificate: `verify`, that an authority known to the server has issued it for `tls_name`; ' +
    '`pin`, that it is the one it showed first; `none`, nothing, so that any program at that port is trusted.',
})
const TlsName = Type.String({
  maxLength: 253,
  pattern: '^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)?$',
  description: 'The name that the certificate is for. Empty: the host.',
})
const Audience = Type.Enum([...serviceAudiences], {
  description:
    'Who may open it: `members` of the namespace, from `role` on; the `people` named, while they are members; ' +
    'anyone with the `link`, and members from `role` on; or the `public`.',
})
const OpeningRole = Type.Enum([...openingRoles], {
  description: 'The minimum role of members who may open it.',
})
const HostHeader = Type.String({
  maxLength: 260,
  pattern: '^(?:own|target|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::[0-9]{1,5})?)$',
  description:
    'The Host header that the device gets: `own`, the one of the service’s address; `target`, host and port; or any other name.',
})
const Identify = Type.Boolean({
  description:
    'The device gets the user name of the person in X-Hawser-User, and in X-Hawser-Assertion a signed text that proves it.',
})
const Username = Type.String({
  maxLength: 32,
  description:
    'The account on the device by which the server connects, for devices without an agent and for agents of ShellHub that need one. Empty: none.',
})

const settings = {
  name: Name,
  host: Host,
  port: Port,
  scheme: Scheme,
  check: Check,
  tls_name: TlsName,
  audience: Audience,
  role: OpeningRole,
  host_header: HostHeader,
  identify: Identify,
  username: Username,
}

export const Service = Type.Object({
  id: Uuid,
  device_uid: DeviceUid,
  device_name: Type.String(),
  ...settings,
  people: Type.Array(Type.Object({ id: UserId, username: Type.String() })),
  address: Type.String({ description: 'The first label of its host name, 32 hexadecimal characters.' }),
  url: Type.String({ description: 'Where browsers open it.' }),
  expires_at: Type.Union([Type.Null(), Timestamp]),
  public_url: Type.Boolean({
    description: 'It is the `public_url` of the device: switched on and off there.',
  }),
  pinned: Type.Optional(
    Type.String({ description: 'SHA-256 of the pinned certificate, in hex; absent: none was shown yet.' }),
  ),
  created_at: Timestamp,
  created_by: Type.String({ description: 'The user, or the API key, that created it.' }),
})
export type Service = Static<typeof Service>

const People = Type.Array(KnownUsername, {
  maxItems: mostNamed,
  uniqueItems: true,
  description: 'The user names of members.',
})
const End = Type.Union([Type.Null(), Timestamp], {
  description: 'When it expires; null: never.',
})

const changes = {
  name: Type.Optional(Name),
  host: Type.Optional(Host),
  port: Type.Optional(Port),
  scheme: Type.Optional(Scheme),
  check: Type.Optional(Check),
  tls_name: Type.Optional(TlsName),
  audience: Type.Optional(Audience),
  role: Type.Optional(OpeningRole),
  people: Type.Optional(People),
  host_header: Type.Optional(HostHeader),
  identify: Type.Optional(Identify),
  username: Type.Optional(Username),
  expires_at: Type.Optional(End),
}

export const ListeningPorts = Type.Array(
  Type.Object({
    address: Type.String({ description: '0.0.0.0 and :: stand for all addresses.' }),
    port: Type.Integer(),
    program: Type.String({ description: 'Empty: the agent may not see it.' }),
  }),
)

const params = Type.Object({ id: Uuid })
const aService = { params: { id: sample.service } }
export const addressPattern = '^[a-f0-9]{32}$'
const Address = Type.String({
  pattern: addressPattern,
  description: 'The first label of the host name, 32 hexadecimal characters.',
})

export const services = {
  list: operation({
    title: 'Get services',
    summary: 'The services of the namespace’s devices, or of one device, by name.',
    method: 'GET',
    path: '/api/services',
    access: member('observer'),
    query: Type.Object({ device_uid: Type.Optional(DeviceUid), ...paging }),
    list: Service,
    failures: [],
    example: { query: { device_uid: sample.device } },
  }),
  get: operation({
    title: 'Get service',
    summary: 'One service.',
    method: 'GET',
    path: '/api/services/:id',
    access: member('observer'),
    params,
    answer: Service,
    failures: [],
    example: aService,
  }),
  create: operation({
    title: 'Create service',
    summary:
      'Makes an HTTP service of a device available in browsers. Another host than the device itself needs an administrator, and an agent that permits it.',
    method: 'POST',
    path: '/api/services',
    access: member('operator'),
    audit: 'service.created',
    body: Type.Object({ ...changes, device_uid: DeviceUid, name: Name, port: Port }),
    answer: Service,
    failures: ['notFound', 'roleTooLow', 'serviceLimit'],
    example: { body: { device_uid: sample.device, name: 'Dashboard', port: 3000 } },
  }),
  update: operation({
    title: 'Update service',
    summary: 'Changes a service. People who lose access to it are disconnected.',
    method: 'PATCH',
    path: '/api/services/:id',
    access: member('operator'),
    audit: 'service.updated',
    params,
    body: Type.Object({
      ...changes,
      forget_pin: Type.Optional(
        Type.Literal(true, { description: 'The next certificate of the device is pinned instead.' }),
      ),
    }),
    answer: Service,
    failures: ['roleTooLow', 'conflict'],
    example: { ...aService, body: { audience: 'members', role: 'operator' } },
  }),
  remove: operation({
    title: 'Delete service',
    summary: 'Removes a service and disconnects everybody. Its address is never used again.',
    method: 'DELETE',
    path: '/api/services/:id',
    access: member('operator'),
    audit: 'service.removed',
    params,
    failures: [],
    example: aService,
  }),
  newLink: operation({
    title: 'Create link to service',
    summary: 'Creates a link that opens the service for anyone who has it. An earlier link stops working.',
    method: 'POST',
    path: '/api/services/:id/link',
    access: member('operator'),
    audit: 'service.linked',
    params,
    answer: Type.Object({ link: Type.String({ description: 'Shown only now.' }) }),
    failures: ['conflict'],
    example: { params: { id: sample.linkedService } },
  }),
  open: operation({
    title: 'Open service',
    summary:
      'Returns a one-time address, valid for 30 seconds, that lets the browser into the service that has sent it here.',
    method: 'POST',
    path: '/api/services/open',
    access: user,
    audit: { none: 'the address shows nothing; using it leaves service.opened' },
    body: Type.Object({
      address: Address,
      state: Type.String({
        pattern: '^[A-Za-z0-9_-]{22,64}$',
        description: 'The state that the service gave the browser when it sent it here.',
      }),
      path: Type.Optional(
        Type.String({ maxLength: 4_096, description: 'Where to go in the service; empty: its first page.' }),
      ),
    }),
    answer: Type.Object({ url: Type.String() }),
    failures: ['notFound', 'tooMany'],
    example: { body: { address: sample.serviceAddress, state: 'c3RhdGUtb2YtYS1icm93c2Vy' } },
  }),
  scan: operation({
    title: 'Get listening ports',
    summary: 'The TCP ports on which programs of the device listen, as its agent sees them now.',
    method: 'GET',
    path: '/api/devices/:uid/listening',
    access: member('operator'),
    params: Type.Object({ uid: DeviceUid }),
    answer: Type.Object({ ports: ListeningPorts }),
    failures: ['conflict'],
    example: { params: { uid: sample.device } },
  }),
  keys: operation({
    title: 'Get keys of assertions',
    summary: 'The public keys that verify X-Hawser-Assertion, as a JSON Web Key Set.',
    method: 'GET',
    path: '/api/services/keys',
    access: anyone,
    answer: Type.Object({
      keys: Type.Array(
        Type.Object({
          kty: Type.String(),
          crv: Type.String(),
          x: Type.String(),
          kid: Type.String(),
          alg: Type.String(),
          use: Type.String(),
        }),
      ),
    }),
    failures: [],
    example: {},
  }),
}

/** The form of a service that newer clients of ShellHub know. */
export const WebEndpoint = Type.Object({
  address: Type.String(),
  full_address: Type.String({ description: 'The host name, and the port unless it is the usual one.' }),
  namespace: Type.String(),
  device_uid: DeviceUid,
  device: Device,
  host: Type.String(),
  port: Type.Integer(),
  ttl: Type.Integer({ description: 'Seconds from its creation to its end; -1: it has none.' }),
  expires_in: Type.String({ description: 'RFC 3339; 0001-01-01T00:00:00Z: never.' }),
  created_at: Timestamp,
  tls: Type.Object({ enabled: Type.Boolean(), verify: Type.Boolean(), domain: Type.String() }),
})
export type WebEndpoint = Static<typeof WebEndpoint>

export const webEndpoints = {
  list: operation({
    title: 'List web endpoints',
    summary: 'The public services of the namespace, in the form of ShellHub.',
    method: 'GET',
    path: '/api/web-endpoints',
    access: member('observer'),
    query: Type.Object({ ...paging }),
    list: WebEndpoint,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create web endpoint',
    summary: 'Makes a public service, in the form of ShellHub.',
    method: 'POST',
    path: '/api/web-endpoints',
    access: member('operator'),
    audit: 'service.created',
    body: Type.Object({
      uid: DeviceUid,
      host: Host,
      port: Port,
      ttl: Type.Integer({ minimum: -1, maximum: 315_360_000, description: 'Seconds; -1 or 0: no end.' }),
      tls: Type.Optional(
        Type.Union([
          Type.Null(),
          Type.Object({
            enabled: Type.Boolean(),
            verify: Type.Optional(Type.Boolean()),
            domain: Type.Optional(TlsName),
          }),
        ]),
      ),
    }),
    answer: WebEndpoint,
    failures: ['notFound', 'roleTooLow', 'serviceLimit'],
    example: { body: { uid: sample.device, host: '127.0.0.1', port: 8080, ttl: -1 } },
  }),
  remove: operation({
    title: 'Delete web endpoint',
    summary: 'Removes a public service by its address.',
    method: 'DELETE',
    path: '/api/web-endpoints/:address',
    access: member('operator'),
    audit: 'service.removed',
    params: Type.Object({ address: Address }),
    failures: [],
    example: { params: { address: sample.publicAddress } },
  }),
}
