// Search over the recordings of the caller's namespace. The index may be ahead of or behind the database, so
// a hit counts only while its session is there and recorded.
import { Failure } from '@hawser/contract/failures'
import type { SearchHit } from '@hawser/contract/recordings'
import type { Cursor, LineHit } from '../../search/finding.ts'
import type { Query } from '../../search/query.ts'
import type { Search } from '../../search/search.ts'
import type { Stores } from '../../storage/stores.ts'
import { iso } from '../../kit/clock.ts'
import type { Audit } from '../audit/audit.ts'
import { momentOf } from '../access/moments.ts'
import type { Rules } from '../callers/rules.ts'
import { personIds, personOf } from './persons.ts'

export interface SearchRuleParts {
  stores: Stores
  audit: Pick<Audit, 'eventOnce'>
  search: Pick<Search, 'find'>
  /** Throws a Failure that says what is wrong with the query. */
  parse(text: string): Query
}

export function searchRules({
  stores,
  audit,
  search,
  parse,
}: SearchRuleParts): Pick<Rules<'recordings'>, 'find'> {
  /** By uid or by name. */
  async function deviceOf(named: string | undefined, tenant_id: string): Promise<string | undefined> {
    if (named === undefined) return undefined
    const { devices } = stores.of(tenant_id)
    const found = (await devices.find(named)) ?? (await devices.findAcceptedByName(named.toLowerCase()))
    if (!found) throw new Failure('notFound', { message: 'There is no such device.' })
    return found.uid
  }

  async function taggedWith(tag: string | undefined, tenant_id: string): Promise<Set<string> | undefined> {
    if (tag === undefined) return undefined
    return new Set((await stores.of(tenant_id).devices.withTag(tag)).map(({ uid }) => uid))
  }

  async function present(hits: readonly LineHit[], tenant_id: string): Promise<SearchHit[]> {
    const { sessions, devices } = stores.of(tenant_id)
    const rows = await sessions.findMany([...new Set(hits.map(({ session_uid }) => session_uid))])
    const byUid = new Map(rows.map((row) => [row.uid, row]))
    const known = await devices.findMany([...new Set(rows.map(({ device_uid }) => device_uid))])
    const names = new Map(known.map(({ uid, name }) => [uid, name]))
    return hits.flatMap((hit) => {
      const row = byUid.get(hit.session_uid)
      if (row?.recorded !== 1) return []
      const { session_uid, channel, username, started_ms, time_ms, text, command, before, after } = hit
      return {
        session_uid,
        channel,
        device_uid: row.device_uid,
        device_name: names.get(row.device_uid) ?? '',
        username,
        person: personOf(row),
        typist: hit.typist?.name ?? '',
        started_at: iso(started_ms),
        at: iso(started_ms + time_ms),
        time_ms,
        text,
        matches: hit.matches.map(([from, to]) => [from, to]),
        command: command ? { text: text.slice(command.at).trim(), source: command.source } : null,
        before: [...before],
        after: [...after],
      }
    })
  }

  return {
    async find({ query }, caller, end) {
      const { tenant_id } = caller
      if (!(await stores.searchQueue.isOn(tenant_id)))
        throw new Failure('conflict', { message: 'The search is switched off in this namespace.' })
      // The text is not logged: people look for secrets that leaked.
      await audit.eventOnce(caller, {
        action: 'recording.searched',
        target: { kind: 'recordings', id: tenant_id, name: '' },
      })
      const { hits, next } = await search.find(
        {
          tenant_id,
          query: parse(query.text),
          commands: query.commands === true,
          device_uid: await deviceOf(query.device, tenant_id),
          device_uids: await taggedWith(query.tag, tenant_id),
          username: query.username,
          persons: query.person === undefined ? undefined : await personIds(stores, query.person),
          from_ms: momentOf('from', query.from),
          to_ms: momentOf('to', query.to, 'end'),
          after: query.after === undefined ? undefined : cursorOf(query.after),
          limit: query.limit,
        },
        end?.signal,
      )
      return {
        hits: await present(hits, tenant_id),
        next: next ? `${next.passage}.${next.line}` : null,
        waiting: await stores.searchQueue.count(tenant_id),
        failed: await stores.searchQueue.failed(tenant_id),
      }
    },
  }
}

function cursorOf(text: string): Cursor {
  const [passage, line] = text.split('.').map(Number)
  return { passage: passage ?? 0, line: line ?? 0 }
}
