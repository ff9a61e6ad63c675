// Connectors: container engines whose running containers are devices of the namespace, with the platform
// `connector`. Such a device is offline while the container or its engine is.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { paging, TenantId, Uuid } from './fields.ts'
import { operation } from './operation.ts'

export const Connector = Type.Object({
  uid: Uuid,
  tenant_id: TenantId,
  enable: Type.Boolean(),
  address: Type.String(),
  port: Type.Integer(),
  secure: Type.Boolean(),
  accept: Type.Boolean({
    description: 'Containers become accepted devices at once; otherwise they are pending.',
  }),
  status: Type.Object({
    State: Type.String(),
    Message: Type.String(),
    state: Type.String({ description: 'The same as State, as other clients spell it.' }),
    message: Type.String(),
  }),
  tls: Type.Union([Type.Null(), Type.Object({ ca: Type.String(), cert: Type.String() })], {
    description: 'The private key is never sent back.',
  }),
})
export type Connector = Static<typeof Connector>

const Pem = Type.String({ minLength: 1, maxLength: 65_536 })
/** Large enough for three PEM files as JSON strings. */
const largestBody = 256 * 1024
export const ConnectorTls = Type.Object({ ca: Pem, cert: Pem, key: Pem })
export type ConnectorTls = Static<typeof ConnectorTls>

const Address = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?$|^::1?$|^unix://(/[A-Za-z0-9._-]+)+$',
  description:
    'A host name or an address; or `unix:///path`, a socket of the server’s own machine, for which the port is ignored.',
})
const Port = Type.Integer({ minimum: 0, maximum: 65_535 })
const Tls = Type.Union([Type.Null(), ConnectorTls])
const params = Type.Object({ uid: Uuid })
const aConnector = { params: { uid: sample.connector } }

export const connectors = {
  create: operation({
    title: 'Connector create',
    summary: 'Adds a container engine. An engine that cannot be reached is not an error: the status says so.',
    method: 'POST',
    path: '/api/connector',
    access: member('administrator'),
    audit: 'connector.created',
    body: Type.Object({
      enable: Type.Optional(Type.Boolean()),
      address: Address,
      port: Port,
      secure: Type.Optional(Type.Boolean()),
      accept: Type.Optional(Type.Boolean()),
      tls: Type.Optional(Tls),
    }),
    largestBody,
    answer: Connector,
    failures: ['connectorLimit'],
    example: { body: { enable: false, address: 'engine.example.com', port: 2375, secure: false } },
  }),
  list: operation({
    title: 'Connector list',
    summary: 'The container engines of the namespace.',
    method: 'GET',
    path: '/api/connector',
    access: member('observer'),
    query: Type.Object({ enable: Type.Optional(Type.Boolean()), ...paging }),
    list: Connector,
    failures: [],
    example: { query: { enable: 'false' } },
  }),
  get: operation({
    title: 'Connector get',
    summary: 'One container engine.',
    method: 'GET',
    path: '/api/connector/:uid',
    access: member('observer'),
    params,
    answer: Connector,
    failures: [],
    example: aConnector,
  }),
  update: operation({
    title: 'Connector setting update',
    summary: 'Changes the given settings of a container engine.',
    method: 'PATCH',
    path: '/api/connector/:uid',
    access: member('administrator'),
    audit: 'connector.updated',
    params,
    body: Type.Object({
      enable: Type.Optional(Type.Boolean()),
      address: Type.Optional(Address),
      port: Type.Optional(Port),
      secure: Type.Optional(Type.Boolean()),
      accept: Type.Optional(Type.Boolean()),
      tls: Type.Optional(Tls),
    }),
    largestBody,
    answer: Connector,
    failures: [],
    example: { ...aConnector, body: { port: 2376 } },
  }),
  remove: operation({
    title: 'Delete connector',
    summary:
      'Removes a container engine; its containers are no longer offered. Devices without a session go with it, the others give up their names and places.',
    method: 'DELETE',
    path: '/api/connector/:uid',
    access: member('administrator'),
    audit: 'connector.removed',
    params,
    failures: [],
    example: aConnector,
  }),
  info: operation({
    title: 'Connector get container-engine info',
    summary: 'The engine’s own description of itself, unchanged.',
    method: 'GET',
    path: '/api/connector/:uid/info',
    access: member('observer'),
    params,
    answer: Type.Record(Type.String(), Type.Unknown()),
    failures: ['engineFailed'],
    example: aConnector,
  }),
}
