// The effect of a firewall rule, shown while it is written: how many devices it is about, which recent
// sessions it would have refused, and whose they were. The server has the last word: it orders rules by their
// priority, and another rule may decide before this one.
import type { Device } from '@hawser/contract/devices'
import { encodeFilter } from '@hawser/contract/filters'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { filterFrom } from './filter-fields.tsx'
import type { Values } from './form.tsx'
import { accountOf } from './session-actions.tsx'
import { number } from '../language/format.ts'
import { t, tn } from '../language/language.ts'

const page_size = 100
const mostPages = 10
/** Longer patterns, and those that the browser cannot read, are left to the server. */
const longestPattern = 256

type Test = (text: string) => boolean

/**
 * The server's patterns are RE2's. Those that the browser reads differently, or could be stalled by, are not
 * tried.
 */
export function testOf(pattern: string): Test | undefined {
  if (pattern === '.*' || pattern === '') return () => true
  if (pattern.length > longestPattern || /[*+}]\)?[*+{]|\)[*+{]|\(\?/.test(pattern)) return undefined
  try {
    const expression = new RegExp(pattern)
    return (text) => expression.test(text)
  } catch {
    return undefined
  }
}

const nameOf = (session: Session): string =>
  session.person.kind === 'unknown'
    ? t('someone as {username}', { username: accountOf(session) })
    : session.person.name

const accepted = { status: 'accepted', sort_by: 'name', order_by: 'asc' } as const

/** Or the first thousand. `total` counts all accepted devices. */
async function someDevices(): Promise<{ body: Device[]; total: number }> {
  const found: Device[] = []
  for (let page = 1; ; page += 1) {
    const { body, total } = await api.devices.list({ query: { ...accepted, per_page: page_size, page } })
    found.push(...body)
    if (found.length >= total || body.length === 0 || page === mostPages) return { body: found, total }
  }
}

const taggedWith = (tags: readonly string[]) => ({
  filter: encodeFilter([
    { type: 'property', params: { name: 'tags', operator: 'contains', value: tags } },
    { type: 'operator', params: { name: 'or' } },
  ]),
})

export function RulePreview({ values }: { values: Values }) {
  const { action = '', source_ip = '', username = '' } = values
  const filter = filterFrom(values)
  const tags = 'tags' in filter ? (filter.tags ?? []) : undefined
  const pattern = 'hostname' in filter ? (filter.hostname ?? '.*') : '.*'
  const everything = tags === undefined && pattern === '.*'
  // The server counts tagged devices, but only this page tries a pattern on names.
  const byPattern = tags === undefined && !everything
  const asked = useNamespaceQuery(
    ['rule preview', tags ?? (everything ? 'all' : 'names')],
    () =>
      tags?.length === 0
        ? Promise.resolve({ body: [], total: 0 })
        : byPattern
          ? someDevices()
          : api.devices.list({ query: { ...accepted, per_page: 3, ...(tags ? taggedWith(tags) : {}) } }),
    false,
  )
  // Devices of the previous choice would be counted wrongly.
  const devices = asked.isPlaceholderData ? undefined : asked.data
  const sessions = useNamespaceQuery(
    ['rule preview sessions'],
    () => api.sessions.list({ query: { per_page: page_size } }),
    false,
  ).data?.body
  const tests = [source_ip, username, pattern].map(testOf)
  const [bySource, byUser, byName] = tests
  if (!devices || !sessions || action === '') return null
  if (!bySource || !byUser || !byName)
    return (
      <p className="note" role="status">
        {t(
          'The effect of this rule is not known until it is saved: the browser cannot evaluate one of its patterns.',
        )}
      </p>
    )
  const fits = tags ? devices.body : devices.body.filter(({ name }) => byName(name))
  const count = byPattern ? fits.length : devices.total
  const isPart = byPattern && devices.body.length < devices.total
  const hits = sessions.filter(
    ({ ip_address, username: user, device }) =>
      bySource(ip_address) &&
      byUser(user) &&
      (tags ? device.tags.some((tag) => tags.includes(tag)) : byName(device.name)),
  )
  const people = [...new Set(hits.map(nameOf))]
  const live = hits.filter(({ active }) => active).length
  const denies = action === 'deny'
  const all = everything && testAll(source_ip) && testAll(username)
  return (
    <div className={denies && count > 0 ? 'says' : 'note'} role="status" aria-label={t('Effect of the rule')}>
      {denies && all && (
        <p>
          <strong>{t('This rule locks everybody out of every device.')}</strong>
        </p>
      )}
      <p>
        {count === 0
          ? t('No accepted device matches it now.')
          : tn(count, 'Applies to {count} device: {names}', 'Applies to {count} devices: {names}', {
              names: [...fits.slice(0, 3).map(({ name }) => name), ...(count > 3 ? ['…'] : [])].join(', '),
            })}
        {isPart &&
          ` ${t('Only the first {count} devices were checked.', { count: number(devices.body.length) })}`}
      </p>
      {sessions.length > 0 && (
        <p>
          {hits.length === 0
            ? t('None of the last {count} sessions matches it.', { count: sessions.length })
            : t(
                denies
                  ? 'Of the last {count} sessions, it would have refused {hits}: {people}.'
                  : 'Of the last {count} sessions, it would have allowed {hits}: {people}.',
                { count: sessions.length, hits: hits.length, people: some(people) },
              )}
          {denies &&
            live > 0 &&
            ` ${tn(live, '{count} of them is still running and stays open.', '{count} of them are still running and stay open.')}`}
        </p>
      )}
    </div>
  )
}

const some = (people: readonly string[]): string =>
  people.slice(0, 5).join(', ') +
  (people.length > 5 ? ` ${t('and {count} more', { count: people.length - 5 })}` : '')

const testAll = (pattern: string): boolean => pattern === '.*' || pattern === ''
