// Devices: machines with an agent. A device enrols itself with Auth device, is `pending`, and can be reached
// once a member has accepted it. Devices without an agent join by SSH (see enrolment-keys.ts) and otherwise
// work the same.
import Type, { type Static } from './type.ts'
import { AgentAnswer, AgentReport, DeviceAgent } from './agents.ts'
import { anyone, device, deviceOr, member } from './access.ts'
import { DeviceBudget } from './budgets.ts'
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
import { SentenceParts } from './sentences.ts'
import { TimelineEvent, timelineEvents_most, timelineSentences_most } from './timeline.ts'

export const deviceStatuses = ['accepted', 'rejected', 'pending', 'removed', 'unused'] as const
export const DeviceStatus = Type.Enum([...deviceStatuses])
export type DeviceStatus = Static<typeof DeviceStatus>

/** The words of Update device status → the resulting status. */
export const statusChanges = {
  accept: 'accepted',
  reject: 'rejected',
  pending: 'pending',
  unused: 'unused',
} as const
export type StatusChange = keyof typeof statusChanges

/** Ways to join without being accepted by a person. */
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
  ping_interval: Type.Optional(
    Type.Integer({
      description:
        'Seconds between two pings of its agent, as the agent has learnt what the network bears. A device that is gone is ' +
        'shown as offline within twice this time. Absent for agents that do not learn it.',
    }),
  ),
  data_budget: Type.Optional(DeviceBudget),
  offline_reason: Type.Optional(
    Type.String({
      description:
        'Why it is offline, in a sentence, as far as the server knows. Only in Get device, and not while it is online.',
    }),
  ),
  offline_parts: Type.Optional(SentenceParts),
  waiting_reason: Type.Optional(
    Type.String({
      description:
        'What it waits for, in a sentence: to be accepted, or for the name of its container. Only in Get device.',
    }),
  ),
  waiting_parts: Type.Optional(SentenceParts),
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

export const trafficDays_most = 400

const Flow = Type.Object({
  received: Type.Integer({ description: 'Bytes that the device has received.' }),
  sent: Type.Integer({ description: 'Bytes that it has sent.' }),
})

export const DeviceTraffic = Type.Object({
  days: Type.Array(
    Type.Object({
      day: Type.String({ description: 'As 2026-11-17, in UTC.' }),
      idle: Flow,
      sessions: Flow,
    }),
    { description: 'Oldest first. A day on which the device was not connected is left out.' },
  ),
})
export type DeviceTraffic = Static<typeof DeviceTraffic>

/** Filters take these and more. */
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

export const ReportedInfo = Type.Object({
  id: Type.Optional(Short),
  pretty_name: Type.Optional(Short),
  version: Type.Optional(Short),
  arch: Type.Optional(Short),
  platform: Type.Optional(Short),
})
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
    audit: 'device.enrolled',
    largestBody: 160 * 1024,
    body: Type.Object({
      info: ReportedInfo,
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
      approval_key: Type.Optional(
        Type.String({
          description:
            'The public key with which the server approves logins, as OpenSSH writes it. Only for our own agent.',
        }),
      ),
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
    audit: { none: 'it signs for a login that the server makes itself; the session has its own entry' },
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
    audit: { none: 'presence is no setting: the agent reports again a moment later' },
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

  traffic: operation({
    title: 'Get device traffic',
    summary:
      'How many bytes the connection of the device to the server has carried on each day, while sessions were open and ' +
      'while none was. Headers of TCP and IP are estimated.',
    method: 'GET',
    path: '/api/devices/:uid/traffic',
    access: member('observer'),
    params,
    query: Type.Object({
      days: Type.Integer({
        minimum: 1,
        maximum: trafficDays_most,
        default: 30,
        description: 'The number of days, including today.',
      }),
    }),
    answer: DeviceTraffic,
    failures: [],
    example: { ...aDevice, query: { days: '7' } },
  }),

  timeline: operation({
    title: 'Get device timeline',
    summary:
      'What happened to the device: when it was connected and why it was not, and what changed about it. Newest first; ' +
      `the server keeps ${timelineEvents_most} events, of which up to three lines are made. Of an hour with many ` +
      'connections it keeps the first and the last, so that a day stays.',
    method: 'GET',
    path: '/api/devices/:uid/timeline',
    access: member('observer'),
    params,
    query: Type.Object({
      limit: Type.Integer({ minimum: 1, maximum: timelineSentences_most, default: 100 }),
    }),
    answer: Type.Object({ events: Type.Array(TimelineEvent) }),
    failures: [],
    example: { ...aDevice, query: { limit: '10' } },
  }),

  remove: operation({
    title: 'Delete device',
    summary: 'Removes the device and its sessions. Its agent, if it still runs, enrols it again as pending.',
    method: 'DELETE',
    path: '/api/devices/:uid',
    access: member('administrator'),
    audit: 'device.removed',
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
    audit: 'device.updated',
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
    audit: 'device.updated',
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
    audit: ['device.accepted', 'device.replaced'],
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
    audit: ['device.accepted', 'device.rejected', 'device.pending', 'device.unused', 'device.replaced'],
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
    audit: 'device.tags.updated',
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
    audit: 'device.tags.updated',
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
    audit: 'device.tags.updated',
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
      'Keeps the chosen devices accepted and makes every other accepted device pending; only in a namespace that has more accepted devices than its limit.',
    method: 'POST',
    path: '/api/billing/device-choice',
    access: member('owner'),
    audit: 'device.pending',
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
    failures: ['notFound', 'conflict', 'providerFailed'],
    example: { body: { choices: [sample.device] } },
  }),
}
