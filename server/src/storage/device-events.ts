// What happened to devices, numbered for each device. Events are written in batches of many namespaces; the
// namespace of a row is that of its device, and a device that is gone gets none. How many are kept is bounded
// so that a device cannot push out what matters: see `KeptEvents`.
import { sql } from 'kysely'
import type { AllNamespaces, NamespaceContext } from './context.ts'

export interface DeviceEvent {
  readonly uid: string
  readonly at: string
  readonly kind: string
  /** JSON. */
  readonly detail: string
}

/** How many events of a device are kept, looked at whenever it has `trimmedEvery` new ones. */
export interface KeptEvents {
  /** The kinds that a device causes itself, as often as it likes. */
  readonly own: readonly string[]
  /** Of those together, the newest. */
  readonly own_most: number
  /** Of those in an hour, the first and the last so many; what comes between is forgotten. */
  readonly own_eachEndOfHour: number
  /** Of each other kind, and of connections before and after a change of the version. */
  readonly kind_most: number
}

export const trimmedEvery = 16

export function deviceEventStore({ db, dialect }: AllNamespaces) {
  return {
    /**
     * In the order given, after those that the device has, of which some are removed then. Fails as a
     * duplicate, without a trace, when another node writes about the same device at the same time.
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
    /** Newest first. */
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

export type TimelineStore = ReturnType<typeof timelineStore>
