// Resolves names to ids: a device by its name, its uid or a prefix of it; a session by a prefix of its uid,
// or `last`; a namespace by its name; a member by the username; a service by its name. A name that fits
// several objects is an error.
import type { Client } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import type { Device, DeviceStatus } from '@hawser/contract/devices'
import { patterns } from '@hawser/contract/fields'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import type { Service } from '@hawser/contract/services'
import type { Session } from '@hawser/contract/sessions'
import { CliError, notFoundCode, usageCode } from './errors.ts'
import { safeText } from './safe-text.ts'

const page_size = 100
/** The most pages searched for a prefix of an id. */
const mostPages = 20
const shortestStart = 4

const isUid = (text: string): boolean => new RegExp(patterns.hex64).test(text)
const isStart = (text: string): boolean => text.length >= shortestStart && /^[0-9a-f]{4,64}$/.test(text)

export const property = (
  name: string,
  operator: 'contains' | 'eq' | 'bool',
  value: unknown,
): FilterElement => ({
  type: 'property',
  params: { name, operator, value },
})
export const byName = { sort_by: 'name', order_by: 'asc' } as const

/** A filter for devices that have at least one of the tags and meet every condition. */
export function filterOf(
  tags: readonly string[],
  conditions: readonly FilterElement[] = [],
): { filter?: string } {
  const join = (name: 'and' | 'or'): FilterElement => ({ type: 'operator', params: { name } })
  const elements = [
    ...(tags.length > 0 ? [...tags.map((tag) => property('tags', 'eq', tag)), join('or')] : []),
    ...(conditions.length > 0 ? [...conditions, join('and')] : []),
  ]
  return elements.length > 0 ? { filter: encodeFilter(elements) } : {}
}

export async function everyPage<T>(
  read: (query: { page: number; per_page: number }) => Promise<{ body: T[]; total: number }>,
  progress?: (read: number, total: number) => void,
): Promise<T[]> {
  const found: T[] = []
  for (let page = 1; ; page += 1) {
    const { body, total } = await read({ page, per_page: page_size })
    found.push(...body)
    progress?.(found.length, total)
    if (body.length < page_size || found.length >= total) return found
  }
}

/** * stands for any characters, ? for one. */
export const isGlob = (text: string): boolean => /[*?]/.test(text)

export interface Narrowing {
  readonly status?: DeviceStatus | undefined
  readonly tags?: readonly string[]
  readonly conditions?: readonly FilterElement[]
}

export async function matchingDevices(
  api: Client,
  glob: string,
  { status, tags = [], conditions = [] }: Narrowing = {},
): Promise<Device[]> {
  if (!/^[\w*?-]{1,255}$/.test(glob))
    throw new CliError(
      `No device has a name like ${safeText(glob)}: in a pattern, * stands for any characters and ? for one; ` +
        'names have letters, digits, - and _.',
      usageCode,
    )
  // The server narrows the list down by the longest fixed part; the pattern decides.
  const fixed = glob.split(/[*?]+/).reduce((longest, part) => (part.length > longest.length ? part : longest))
  const query = {
    ...filterOf(tags, [...(fixed ? [property('name', 'contains', fixed)] : []), ...conditions]),
    ...defined({ status }),
    ...byName,
  } as const
  const devices = await everyPage((pages) => api.devices.list({ query: { ...query, ...pages } }))
  const pattern = new RegExp(`^${glob.replaceAll(/\*+/g, '.*').replaceAll('?', '.')}$`, 'i')
  return devices.filter(({ name }) => pattern.test(name))
}

export async function findDevice(api: Client, text: string): Promise<Device> {
  if (isUid(text)) return (await api.devices.get({ params: { uid: text } })).body
  const where = async (condition: FilterElement): Promise<Device[]> => {
    return (await api.devices.list({ query: { per_page: page_size, ...filterOf([], [condition]) } })).body
  }
  const named = await where(property('name', 'eq', text.toLowerCase()))
  // A pending device may have the same name as an accepted one; prefer the accepted one.
  const accepted = named.filter(({ status }) => status === 'accepted')
  if (accepted.length === 1) return accepted[0]!
  const found =
    named.length > 0 || !isStart(text)
      ? named
      : (await where(property('uid', 'contains', text))).filter(({ uid }) => uid.startsWith(text))
  return only(
    found,
    `device ${safeText(text)}`,
    'hawser devices list',
    ({ uid, status }) => `${uid.slice(0, 16)} (${status})`,
  )
}

export async function findSession(api: Client, text: string): Promise<Session> {
  if (isUid(text)) return (await api.sessions.get({ params: { uid: text } })).body
  if (text !== 'last' && !isStart(text)) {
    throw new CliError(
      `A session is named by its uid, by the first ${shortestStart} characters of it or more, or as \`last\`.`,
      usageCode,
    )
  }
  for (let page = 1; page <= mostPages; page += 1) {
    const { body } = await api.sessions.list({ query: { page, per_page: page_size } })
    if (text === 'last' && body[0]) return body[0]
    const found = body.filter(({ uid }) => uid.startsWith(text))
    if (found.length > 0)
      return only(found, `session ${text}`, 'hawser sessions list', ({ uid }) => uid.slice(0, 16))
    if (body.length < page_size) break
  }
  throw new CliError(`There is no session ${text} here; \`hawser sessions list\` shows them.`, notFoundCode)
}

/** By its id, its name, or `device/name`. */
export async function findService(api: Client, text: string): Promise<Service> {
  if (new RegExp(patterns.uuid).test(text)) return (await api.services.get({ params: { id: text } })).body
  const all = await everyPage((query) => api.services.list({ query }))
  const called = (name: string): Service[] =>
    all.filter((service) => service.name.toLowerCase() === name.toLowerCase())
  const slash = text.indexOf('/')
  let found = called(text)
  if (found.length === 0 && slash > 0) {
    const { uid } = await findDevice(api, text.slice(0, slash))
    found = called(text.slice(slash + 1)).filter(({ device_uid }) => device_uid === uid)
  }
  return only(
    found,
    `service ${safeText(text)}`,
    'hawser services list',
    ({ id, device_name }) => `${id} (${safeText(device_name)})`,
    'id',
  )
}

export async function findNamespace(api: Client, text: string): Promise<{ tenant_id: string; name: string }> {
  if (new RegExp(patterns.uuid).test(text)) return { tenant_id: text, name: text }
  const mine = await everyPage((query) => api.namespaces.list({ query }))
  return only(
    mine.filter(({ name }) => name === text.toLowerCase()),
    `namespace ${safeText(text)} that you are a member of`,
    'hawser namespaces list',
    ({ tenant_id }) => tenant_id,
  )
}

interface NamedKey {
  readonly name: string
  readonly fingerprint: string
  readonly fingerprint_sha256?: string
}

/** The MD5 fingerprint of a key, which identifies it in the interface, by its name or any fingerprint. */
export async function findKey(
  list: (query: { page: number; per_page: number }) => Promise<{ body: NamedKey[]; total: number }>,
  kind: 'public key' | 'enrolment key',
  text: string,
): Promise<string> {
  if (new RegExp(patterns.fingerprint).test(text)) return text
  const keys = (await everyPage(list)).filter(
    ({ name, fingerprint_sha256 }) => name === text || fingerprint_sha256 === text,
  )
  const found = only(
    keys,
    `${kind} ${safeText(text)}`,
    `hawser ${kind.replace(' ', '-')}s list`,
    ({ fingerprint_sha256, fingerprint }) => fingerprint_sha256 ?? fingerprint,
  )
  return found.fingerprint
}

/** By its name, or the text as it is. */
export async function findAuditStream(api: Client, text: string): Promise<string> {
  if (new RegExp(patterns.uuid).test(text)) return text
  const { body } = await api.auditStreams.list({ query: { per_page: 100 } })
  const found = body.filter(({ name }) => name === text)
  return only(found, `audit stream ${safeText(text)}`, 'hawser audit-streams list', ({ uid }) => uid).uid
}

export async function findMember(api: Client, tenant: string, text: string): Promise<string> {
  if (new RegExp(patterns.userId).test(text)) return text
  const { body } = await api.namespaces.get({ params: { tenant } })
  const found = body.members.filter(({ username }) => username === text.toLowerCase())
  return only(found, `member ${safeText(text)}`, `hawser namespaces get ${tenant}`, ({ id }) => id).id
}

function only<T>(found: readonly T[], what: string, list: string, spell: (one: T) => string, id = 'uid'): T {
  const [first, ...others] = found
  if (!first) throw new CliError(`There is no ${what}; \`${list}\` shows them.`, notFoundCode)
  if (others.length > 0)
    throw new CliError(
      `There are several: ${what} could be ${found.map(spell).join(' or ')}. Name it by its ${id}.`,
      notFoundCode,
    )
  return first
}
