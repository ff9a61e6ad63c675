// Pairing: a device joins without id or token. Its agent shows a short code; a member who may accept devices
// enters it, sees which device asks, and confirms: the device is then accepted in the member's namespace. A
// code works once and for 15 minutes. The agent asks for the outcome with a secret of its own.
import Type, { type Static } from './type.ts'
import { anyone, member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, patterns, Tags, TenantId, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

/** No 0, O, 1, I or L. Small letters, blanks and other dashes are forgiven. */
const Code = Type.String({
  pattern: '^\\s*[2-9A-HJKMNP-Za-hjkmnp-z]{4}[ -]?[2-9A-HJKMNP-Za-hjkmnp-z]{4}\\s*$',
  description: 'The code that the agent shows, for example K7QX-2MPT.',
})
const Short = Type.String({ maxLength: 255 })

export const pairingStates = ['waiting', 'confirmed', 'refused'] as const

export const Pairing = Type.Object({
  hostname: Type.String(),
  mac: Type.String(),
  info: Type.Object({
    id: Type.String(),
    pretty_name: Type.String(),
    version: Type.String(),
    arch: Type.String(),
    platform: Type.String(),
  }),
  remote_addr: Type.String({ description: 'The address that the device asked from.' }),
  fingerprint: Type.String({ description: 'SHA-256 of its key, as OpenSSH shows it; the agent prints it.' }),
  created_at: Timestamp,
  expires_at: Timestamp,
})
export type Pairing = Static<typeof Pairing>

const publicKey =
  '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA4yqqeRXOubRJ0bpQ6ioouxpuAfkL2iRaLR2HaX0YomU=\n-----END PUBLIC KEY-----\n'

export const pairings = {
  create: operation({
    title: 'Create pairing',
    summary: 'An agent without a namespace asks to be taken in, and gets a code for a person to confirm.',
    method: 'POST',
    path: '/api/pairings',
    access: anyone,
    audit: { none: 'a device asks to be paired; no namespace has anything to do with it yet' },
    body: Type.Object({
      info: Type.Object({
        id: Type.Optional(Short),
        pretty_name: Type.Optional(Short),
        version: Type.Optional(Short),
        arch: Type.Optional(Short),
        platform: Type.Optional(Short),
      }),
      hostname: Type.String({ pattern: '^[a-zA-Z0-9_.-]{1,255}$' }),
      identity: Type.Optional(Type.Object({ mac: Type.Optional(Short) })),
      public_key: Type.String({ minLength: 1, maxLength: 2048, description: 'PEM.' }),
    }),
    answer: Type.Object({
      code: Type.String(),
      url: Type.String({ description: 'The page of the console where the code is confirmed.' }),
      secret: Type.String({ description: 'For Get pairing outcome.' }),
      interval_s: Type.Integer({ description: 'Seconds between two questions for the outcome.' }),
      expires_at: Timestamp,
    }),
    failures: [],
    example: {
      body: {
        info: { id: 'debian', pretty_name: 'Debian GNU/Linux 12 (bookworm)', arch: 'amd64' },
        hostname: 'crane',
        identity: { mac: sample.mac },
        public_key: publicKey,
      },
    },
  }),
  outcome: operation({
    title: 'Get pairing outcome',
    summary: 'The agent asks whether its code was confirmed.',
    method: 'POST',
    path: '/api/pairings/outcome',
    access: anyone,
    audit: { none: 'it only reads' },
    body: Type.Object({ secret: Type.String({ pattern: patterns.hex64 }) }),
    answer: Type.Object({
      status: Type.Enum([...pairingStates]),
      tenant_id: Type.Optional(TenantId),
      namespace: Type.Optional(Type.String()),
      confirmed_by: Type.Optional(Type.String({ description: 'The user who confirmed it.' })),
    }),
    failures: ['wrongToken'],
    example: { body: { secret: sample.pairingSecret } },
  }),
  get: operation({
    title: 'Get pairing',
    summary: 'The device that shows the code, and waits to be confirmed.',
    method: 'GET',
    path: '/api/pairings',
    access: member('operator'),
    query: Type.Object({ code: Code }),
    answer: Pairing,
    failures: ['notFound', 'locked', 'tooMany'],
    example: { query: { code: sample.pairingCode } },
  }),
  confirm: operation({
    title: 'Confirm pairing',
    summary:
      'Takes the device that shows the code into the namespace, accepted. If an accepted device has the same MAC address, ' +
      'this one replaces it, unless that one is connected.',
    method: 'POST',
    path: '/api/pairings/confirm',
    access: member('operator'),
    audit: ['pairing.confirmed', 'device.accepted', 'device.replaced'],
    body: Type.Object({
      code: Code,
      name: Type.Optional(Type.String({ pattern: patterns.deviceName })),
      tags: Type.Optional(Tags),
    }),
    answer: Type.Object({ uid: DeviceUid, name: Type.String(), namespace: Type.String() }),
    headers: Type.Object({
      'x-replaced-device': Type.Optional(
        Type.String({ description: 'The name of the device that this one replaced; absent: none.' }),
      ),
    }),
    failures: ['notFound', 'locked', 'tooMany', 'conflict', 'deviceLimit', 'paymentRequired', 'unavailable'],
    example: { body: { code: sample.pairingCode, name: 'gantry', tags: ['pier'] } },
  }),
  refuse: operation({
    title: 'Refuse pairing',
    summary: 'Refuses the device that shows the code; its agent ends.',
    method: 'POST',
    path: '/api/pairings/refuse',
    access: member('operator'),
    audit: 'pairing.refused',
    body: Type.Object({ code: Code }),
    failures: ['notFound', 'locked', 'tooMany'],
    example: { body: { code: sample.pairingCode } },
  }),
}
