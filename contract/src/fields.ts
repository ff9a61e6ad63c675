// Shared fields. Those of requests carry the limits of the interface; those of responses only a type, because
// the server makes them.
import Type, { type Static } from './type.ts'

export const patterns = {
  uuid: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  uuid4: '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
  hex64: '^[0-9a-f]{64}$',
  userId: '^[0-9a-f]{24}$',
  fingerprint: '^([0-9a-f]{2}:){15}[0-9a-f]{2}$',
  email:
    '^[^\\s\\u0000-\\u001f\\u007f@<>()\\[\\]\\\\,;:"]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$',
  username: '^[a-zA-Z0-9_.@-]{3,30}$',
  /** Names imported from ShellHub may be longer than new ones. */
  knownUsername: '^[a-zA-Z0-9_.@-]{3,32}$',
  tag: '^[^\\s/@&:]{3,255}$',
  deviceName: '^[a-zA-Z0-9_-]{1,64}$',
  namespaceName: '^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$',
  base64: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
} as const

export const TenantId = Type.String({ pattern: patterns.uuid, description: 'The id of a namespace.' })
export const Uuid = Type.String({ pattern: patterns.uuid })
export const DeviceUid = Type.String({ pattern: patterns.hex64, description: 'The uid of a device.' })
export const SessionUid = Type.String({ pattern: patterns.hex64, description: 'The uid of a session.' })
export const UserId = Type.String({ pattern: patterns.userId })
export const Fingerprint = Type.String({
  pattern: patterns.fingerprint,
  description: 'MD5 of the key blob, colon separated.',
})
export const FingerprintSha256 = Type.String({ description: 'SHA-256 of the key blob, as OpenSSH shows it.' })
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, with milliseconds.',
})
export const Email = Type.String({
  pattern: patterns.email,
  maxLength: 254,
  description: 'an e-mail address',
})
export const Username = Type.String({
  pattern: patterns.username,
  description: '3 to 30 letters, digits or any of - _ . @',
})
export const KnownUsername = Type.String({
  pattern: patterns.knownUsername,
  description: 'the username of somebody, 3 to 32 letters, digits or any of - _ . @',
})
export const DeviceName = Type.String({
  pattern: patterns.deviceName,
  description: '1 to 64 letters, digits, - or _',
})
export const NamespaceName = Type.String({
  pattern: patterns.namespaceName,
  description: '1 to 63 letters, digits or -, not beginning with -',
})
export const passwordLength = { minLength: 5, maxLength: 30 }
export const Password = Type.String(passwordLength)
export const Tag = Type.String({
  pattern: patterns.tag,
  description: '3 to 255 characters, no white space, none of / @ & :',
})
export const Tags = Type.Array(Tag, { minItems: 1, maxItems: 3, uniqueItems: true })
/** The maximum of `HAWSER_DEVICE_TAGS`. */
export const mostDeviceTags = 64
/** The server allows three, as the interface says, unless `HAWSER_DEVICE_TAGS` says more. */
export const DeviceTags = Type.Array(Tag, { minItems: 1, maxItems: mostDeviceTags, uniqueItems: true })
/** A regular expression in RE2 syntax, unanchored; checked when it is stored, run in linear time. */
export const Pattern = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: 'A regular expression, RE2 syntax, unanchored.',
})
export const Position = Type.Object({ latitude: Type.Number(), longitude: Type.Number() })

/** The devices that a public key or a firewall rule applies to: exactly one of the two forms. */
export const Filter = Type.Union([
  Type.Object({ hostname: Pattern }, { additionalProperties: false }),
  Type.Object({ tags: Tags }, { additionalProperties: false }),
])

export type StoredFilter = Static<typeof Filter>

/** No union here: unions are slow to serialise, and the stored value is valid. */
export const FilterAnswer = Type.Object({
  hostname: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Array(Type.String())),
})

const page = Type.Integer({ minimum: 1, maximum: 2_000_000_000, default: 1, description: 'Counted from 1.' })
const perPage = Type.Integer({ minimum: 1, maximum: 100, default: 10 })
export const paging = { page, per_page: perPage }
export const Paging = Type.Object(paging)
export type Paging = Static<typeof Paging>

const dateOrMoment = { minLength: 10, maxLength: 35 }
/** A day without a time counts whole. */
export const NotBefore = Type.String({
  ...dateOrMoment,
  description: 'Not before this moment: 2026-11-17, or 2026-11-17T03:30:00Z.',
})
export const NotAfter = Type.String({
  ...dateOrMoment,
  description: 'Not after this moment: 2026-11-17, the whole day, or 2026-11-17T03:30:00Z.',
})

export const OrderBy = Type.Enum(['asc', 'desc'], { default: 'desc' })
export const FilterQuery = Type.String({
  maxLength: 16_384,
  description: 'Base64 (standard or url-safe) of a JSON array of conditions.',
})
