// Device events, numbered for each device and written in batches of many namespaces. The namespace of a row
// is that of its device; events of a deleted device are dropped. Limits (`KeptEvents`) stop a device from
// pushing out what matters.
import { sql } from 'kysely'
import type { AllNamespaces, NamespaceContext } from './context.ts'

export interface DeviceEvent {
  readonly uid: string
  readonly at: string
  readonly kind: string
  readonly detail: string
}

/** How many events of a device are kept; checked after every `trimmedEvery` new ones. */
export interface KeptEvents {
  /** Kinds that a device can cause at will. */
  readonly own: readonly string[]
  readonly own_most: number
  /** At most this many from each end of an hour; those between are dropped. */
  readonly own_eachEndOfHour: number
  /** At most this many of each other kind, and of connections before and after a change of version. */
  readonly kind_most: number
}

export const trimmedEvery = 16

export function deviceEventStore({ db, dialect }: AllNamespaces) {
  return {
    /**
     * Appends in the given order and trims. Fails as a duplicate, changing nothing, when another node writes
     * about the same device at the same time.
     */
    async add(events: readonly DeviceEvent[], kept: KeptEvents): Promise<void> {
      const batch = JSON.stringify(events.map(({ uid, at, kind, detail }) => [uid, at, kind, detail]))
      const rows =
        dialect === 'sqlite'
          ? sql`json_each(${batch}) as event`
          : sql`json_array_elements(${batch}::json) with ordinality as event (value, key)`
      const written = await sql<{ uid: string; seq: number }>`
        insert into device_events (tenant_id, uid, seq, at, kind, detail)
        select devices.tenant_id, devices.uid,
          coalesce((select max(seq) from device_events where device_events.uid = devices.uid), 0)
            + row_number() over (partition by devices.uid order by event.key),
          event.value ->> 1, event.value ->> 2, event.value ->> 3
        from ${rows} join devices on devices.uid = event.value ->> 0 where true
        returning uid, seq`.execute(db)
      const due = written.rows.filter(({ seq }) => seq % trimmedEvery === 0).map(({ uid }) => uid)
      if (due.length > 0) await trim([...new Set(due)], kept)
    },
  }

  async function trim(uids: readonly string[], kept: KeptEvents): Promise<void> {
    const isSqlite = dialect === 'sqlite'
    const list = JSON.stringify(uids)
    const about = isSqlite
      ? sql`(select value from json_each(${list}))`
      : sql`(select json_array_elements_text(${list}::json))`
    const version = isSqlite ? sql`detail ->> 'version'` : sql`detail::json ->> 'version'`
    const end = kept.own_eachEndOfHour
    await sql`with events as (
        select uid, seq, at, kind, kind in (${sql.join(kept.own)}) as own,
          case when kind = 'up' then coalesce(${version}, '') end as version
        from device_events where uid in ${about}),
      compared as (
        select uid, seq, substr(at, 1, 13) as hour, kind, own, version,
          lag(version, 1, version) over by_kind as before, lead(version, 1, version) over by_kind as after
        from events window by_kind as (partition by uid, kind order by seq)),
      sorted as (
        select uid, seq, hour,
          case when version <> before or version <> after then 'version' when own then '' else kind end as sort
        from compared),
      placed as (
        select uid, seq, sort,
          row_number() over (partition by uid, sort, hour order by seq) as from_start,
          row_number() over (partition by uid, sort, hour order by seq desc) as from_end
        from sorted),
      ranked as (
        select uid, seq, sort, row_number() over (partition by uid, sort order by seq desc) as rank
        from placed where sort <> '' or from_start <= ${end} or from_end <= ${end})
      delete from device_events where uid in ${about} and (uid, seq) not in (
        select uid, seq from ranked
        where (sort = '' and rank <= ${kept.own_most}) or (sort <> '' and rank <= ${kept.kind_most}))`.execute(
      db,
    )
  }
}

export function timelineStore(context: NamespaceContext) {
  return {
    newest: (uid: string, most: number) =>
      context
        .read('device_events')
        .select(['at', 'kind', 'detail'])
        .where('uid', '=', uid)
        .orderBy('seq', 'desc')
        .limit(most)
        .execute(),
  }
}
