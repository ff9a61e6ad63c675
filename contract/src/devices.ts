// Devices: machines with an agent. A device enrols itself with Auth device, is `pending`, and can be reached
// once a member has accepted it. Devices without an agent join by SSH (see enrolment-keys.ts) and otherwise
// work the same.
import Type, { type Static } from './type.ts'
import { AgentAnswer, AgentReport, DeviceAgent } from './agents.ts'
import { anyone, device, deviceOr, member } from './access.ts'
import { sample } from './examples.ts'
import {
  DeviceName,
  DeviceTags,
  DeviceUid,
  Fingerprint,
  FilterQuery,
  OrderBy,
  paging,
  Position,
  Tag,
  TenantId,
  Timestamp,
} from './fields.ts'
import { operation } from './operation.ts'

export const deviceStatuses = ['accepted', 'rejected', 'pending', 'removed', 'unused'] as const
export const DeviceStatus = Type.Enum([...deviceStatuses])
export type DeviceStatus = Static<typeof DeviceStatus>

/** The words of Update device status → the status that the device then has. */
export const statusChanges = {
  accept: 'accepted',
  reject: 'rejected',
  pending: 'pending',
  unused: 'unused',
} as const
export type StatusChange = keyof typeof statusChanges

/** How a device may join beside waiting for somebody to accept it. */
export const enrolmentKinds = ['token', 'rule', 'pairing'] as const

export const DeviceInfo = Type.Object({
  id: Type.String(),
  pretty_name: Type.String(),
  version: Type.String(),
  arch: Type.String(),
  platform: Type.String(),
})

export const Device = Type.Object({
  uid: DeviceUid,
  name: Type.String({ description: 'The host name, or the MAC address with dashes.' }),
  identity: Type.Object({ mac: Type.String() }),
  info: DeviceInfo,
  public_key: Type.String(),
  tenant_id: TenantId,
  last_seen: Timestamp,
  online: Type.Boolean(),
  namespace: Type.String(),
  status: DeviceStatus,
  status_update_at: Timestamp,
  status_updated_at: Type.String({
    format: 'date-time',
    description: 'The same as status_update_at, as older clients spell it.',
  }),
  created_at: Timestamp,
  remote_addr: Type.String(),
  position: Position,
  tags: Type.Array(Type.String()),
  public_url: Type.Boolean(),
  public_url_address: Type.String(),
  agent: Type.Optional(DeviceAgent),
  acceptable: Type.Boolean({ description: 'Whether accepting it now would stay within the device limit.' }),
  enrolled_with: Type.Optional(
    Type.Object(
      { kind: Type.Enum([...enrolmentKinds]), id: Type.String(), name: Type.String() },
      {
        description:
          'How it joined, if not by the id of the namespace alone: the enrolment token, the accept rule, or the user ' +
          'who confirmed its pairing.',
      },
    ),
  ),
  replaces: Type.Optional(
    Type.Object(
      { uid: DeviceUid, name: Type.String() },
      {
        description:
          'The accepted device with the same MAC address. Accepting this one replaces it: its name, tags and sessions go over, ' +
          'and it is removed. While it is connected, that is refused.',
      },
    ),
  ),
  conflict: Type.Optional(
    Type.Object(
      { since: Timestamp, last_at: Timestamp, addresses: Type.Array(Type.String()) },
      {
        description:
          'Two machines use this identity, as copies of an SD card do: since when, when that was last seen, and from which ' +
          'addresses they came. Gone fifteen minutes after only one was left.',
      },
    ),
  ),
})
export type Device = Static<typeof Device>

/** The fields that Get devices can sort by. Its filter takes these and more. */
export const deviceSorts = [
  'last_seen',
  'name',
  'created_at',
  'status',
  'status_update_at',
  'status_updated_at',
  'online',
  'uid',
  'remote_addr',
  'identity.mac',
  'info.id',
  'info.pretty_name',
  'info.version',
  'info.arch',
  'info.platform',
] as const

const Short = Type.String({ maxLength: 255 })
const params = Type.Object({ uid: DeviceUid })
const replaced = Type.Object({
  'x-replaced-device': Type.Optional(
    Type.String({ description: 'The name of the device that this one replaced; absent: none.' }),
  ),
})
const aDevice = { params: { uid: sample.device } }

export const devices = {
  auth: operation({
    title: 'Auth device',
    summary: 'An agent reports that its device is online and gets a token; the first call enrols the device.',
    method: 'POST',
    path: '/api/devices/auth',
    aliases: [{ path: '/api/auth/device' }],
    access: anyone,
    largestBody: 160 * 1024,
    body: Type.Object({
      info: Type.Object({
        id: Type.Optional(Short),
        pretty_name: Type.Optional(Short),
        version: Type.Optional(Short),
        arch: Type.Optional(Short),
        platform: Type.Optional(Short),
      }),
      sessions: Type.Optional(
        Type.Array(Type.String({ maxLength: 128 }), {
          maxItems: 1000,
          description: 'Sessions the agent still holds.',
        }),
      ),
      hostname: Type.Optional(
        Type.String({
          pattern: '^[a-zA-Z0-9_.-]{0,255}$',
          description: 'May be absent when identity.mac is there.',
        }),
      ),
      identity: Type.Optional(Type.Object({ mac: Type.Optional(Short) })),
      public_key: Type.String({ minLength: 1, maxLength: 16_384 }),
      tenant_id: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: 'Needed without an enrolment token.' }),
      ),
      enrolment_token: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'Names the namespace instead of tenant_id.',
        }),
      ),
      agent: Type.Optional(AgentReport),
    }),
    answer: Type.Object({
      uid: DeviceUid,
      token: Type.String(),
      name: Type.String(),
      namespace: Type.String(),
      status: DeviceStatus,
      tenant_id: Type.Optional(
        Type.String({ description: 'The namespace, if the device came with an enrolment token.' }),
      ),
      agent: Type.Optional(AgentAnswer),
    }),
    failures: ['notFound', 'tooMany', 'wrongToken'],
    example: {
      body: {
        info: {
          id: 'debian',
          pretty_name: 'Debian GNU/Linux 12 (bookworm)',
          version: 'v0.16.4',
          arch: 'amd64',
          platform: 'native',
        },
        hostname: 'crane',
        identity: { mac: sample.mac },
        public_key: sample.publicKeyPem,
        tenant_id: sample.tenant,
      },
    },
  }),

  authSsh: operation({
    title: 'Auth SSH public key',
    summary:
      'An agent asks the server to sign for a public-key login that the server is making on the same device.',
    method: 'POST',
    path: '/api/auth/ssh',
    access: device,
    body: Type.Object({ fingerprint: Fingerprint, data: Type.String({ minLength: 1, maxLength: 16_384 }) }),
    answer: Type.Object({
      signature: Type.String({ description: 'Base64 of RSA PKCS#1 v1.5 over SHA-256 of `data`.' }),
    }),
    failures: ['notFound', 'tooMany'],
    example: { body: { fingerprint: sample.fingerprint, data: '{"Username":"root","Namespace":"harbour"}' } },
  }),

  offline: operation({
    title: 'Update device status to offline',
    summary: 'Marks the device as offline until its agent reports again.',
    method: 'POST',
    path: '/api/devices/:uid/offline',
    aliases: [{ path: '/internal/devices/:uid/offline' }],
    access: deviceOr('operator'),
    params,
    failures: [],
    example: aDevice,
  }),

  list: operation({
    title: 'Get devices',
    summary: 'The devices of the namespace, in pages.',
    method: 'GET',
    path: '/api/devices',
    access: member('observer'),
    query: Type.Object({
      filter: Type.Optional(FilterQuery),
      ...paging,
      status: Type.Optional(DeviceStatus),
      sort_by: Type.Enum([...deviceSorts], { default: 'last_seen' }),
      order_by: OrderBy,
    }),
    list: Device,
    failures: [],
    example: { query: { status: 'accepted', per_page: '5' } },
  }),

  get: operation({
    title: 'Get device',
    summary: 'One device.',
    method: 'GET',
    path: '/api/devices/:uid',
    access: member('observer'),
    params,
    answer: Device,
    failures: [],
    example: aDevice,
  }),

  remove: operation({
    title: 'Delete device',
    summary: 'Removes the device and its sessions. Its agent, if it still runs, enrols it again as pending.',
    method: 'DELETE',
    path: '/api/devices/:uid',
    access: member('administrator'),
    params,
    failures: [],
    example: aDevice,
  }),

  update: operation({
    title: 'Update device',
    summary: 'Renames the device, or changes whether it has a public URL.',
    method: 'PUT',
    path: '/api/devices/:uid',
    access: member('operator'),
    params,
    body: Type.Object({
      name: Type.Optional(DeviceName),
      public_url: Type.Optional(Type.Boolean()),
    }),
    failures: ['conflict'],
    example: { ...aDevice, body: { name: 'gantry' } },
  }),

  rename: operation({
    title: 'Rename device',
    summary: 'The older form of Update device.',
    method: 'PATCH',
    path: '/api/devices/:uid',
    access: member('operator'),
    params,
    body: Type.Object({ name: DeviceName }),
    failures: ['conflict'],
    example: { ...aDevice, body: { name: 'gantry' } },
  }),

  accept: operation({
    title: 'Accept device',
    summary:
      'Lets people reach the device. Works from any state. If an accepted device has the same MAC address, this one replaces it, ' +
      'unless that one is connected.',
    method: 'PATCH',
    path: '/api/devices/:uid/accept',
    access: member('operator'),
    params,
    headers: replaced,
    failures: ['conflict', 'deviceLimit', 'paymentRequired', 'unavailable'],
    example: { params: { uid: sample.pendingDevice } },
  }),

  setStatus: operation({
    title: 'Update device status',
    summary: 'Rejects the device, or makes it pending or unused; leaving `accepted` ends its live sessions.',
    method: 'PATCH',
    path: '/api/devices/:uid/:status',
    access: member('operator'),
    params: Type.Object({
      uid: DeviceUid,
      status: Type.String({ description: 'accept, reject, pending or unused.' }),
    }),
    headers: replaced,
    failures: ['invalid', 'conflict', 'deviceLimit', 'paymentRequired', 'unavailable'],
    example: { params: { uid: sample.pendingDevice, status: 'reject' } },
  }),

  addTag: operation({
    title: 'Create a tag',
    summary: 'Adds one tag to the device.',
    method: 'POST',
    path: '/api/devices/:uid/tags',
    access: member('operator'),
    params,
    body: Type.Object({ tag: Tag }),
    failures: ['conflict', 'tooManyTags'],
    example: { ...aDevice, body: { tag: 'starboard' } },
  }),

  setTags: operation({
    title: 'Update tags to device',
    summary:
      'Replaces the tags of the device: at most three, or as many as the server’s `HAWSER_DEVICE_TAGS` allows.',
    method: 'PUT',
    path: '/api/devices/:uid/tags',
    access: member('operator'),
    params,
    body: Type.Object({ tags: DeviceTags }),
    failures: [],
    example: { ...aDevice, body: { tags: ['pier', 'north'] } },
  }),

  removeTag: operation({
    title: 'Delete a tag from device',
    summary: 'Removes one tag from the device.',
    method: 'DELETE',
    path: '/api/devices/:uid/tags/:tag',
    access: member('operator'),
    params: Type.Object({ uid: DeviceUid, tag: Tag }),
    failures: [],
    example: { params: { uid: sample.device, tag: sample.tag } },
  }),

  mostUsed: operation({
    title: 'Devices listing',
    summary: 'The three devices with the most sessions, to choose from when a device limit is reached.',
    method: 'GET',
    path: '/api/billing/devices-most-used',
    access: member('owner'),
    list: Device,
    failures: [],
    example: {},
  }),

  choose: operation({
    title: 'Choice devices',
    summary:
      'Keeps the chosen devices accepted and makes every other accepted device pending; only where namespaces are billed.',
    method: 'POST',
    path: '/api/billing/device-choice',
    access: member('owner'),
    body: Type.Object({
      choices: Type.Optional(Type.Array(Type.String(), { maxItems: 3 })),
      devices: Type.Optional(
        Type.Array(Type.Object({ uid: Type.String() }), {
          maxItems: 3,
          description: 'The form of an older client.',
        }),
      ),
    }),
    failureBody: 'code',
    failures: ['notFound', 'providerFailed'],
    example: { body: { choices: [sample.device] } },
  }),
}
