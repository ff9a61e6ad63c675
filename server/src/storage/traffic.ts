// Bytes of devices per day, added in batches of many namespaces. The namespace of a row is that of its
// device; bytes of a deleted device are dropped.
import { sql } from 'kysely'
import type { AllNamespaces, NamespaceContext } from './context.ts'

export interface TrafficSum {
  readonly uid: string
  readonly day: string
  readonly idle_received: number
  readonly idle_sent: number
  readonly session_received: number
  readonly session_sent: number
}

const columns = ['idle_received', 'idle_sent', 'session_received', 'session_sent'] as const

export function trafficSumStore({ db, dialect }: AllNamespaces) {
  return {
    async add(sums: readonly TrafficSum[]): Promise<void> {
      const batch = JSON.stringify(sums.map((sum) => [sum.uid, sum.day, ...columns.map((one) => sum[one])]))
      const field = (index: number) =>
        dialect === 'sqlite'
          ? sql`cast(sums.value ->> ${sql.raw(String(index))} as integer)`
          : sql`(sums.value ->> ${sql.raw(String(index))})::bigint`
      const rows =
        dialect === 'sqlite'
          ? sql`json_each(${batch}) as sums`
          : sql`json_array_elements(${batch}::json) as sums (value)`
      const added = columns.map(
        (one) => sql`${sql.ref(one)} = device_traffic.${sql.ref(one)} + excluded.${sql.ref(one)}`,
      )
      await sql`insert into device_traffic (tenant_id, uid, day, ${sql.join(columns.map((one) => sql.ref(one)))})
        select devices.tenant_id, devices.uid, sums.value ->> 1, ${field(2)}, ${field(3)}, ${field(4)}, ${field(5)}
        from ${rows} join devices on devices.uid = sums.value ->> 0 where true
        on conflict (uid, day) do update set ${sql.join(added)}`.execute(db)
    },

    /** In steps, so that no other writer waits long. */
    async sweep(before: string, step = 10_000): Promise<void> {
      for (;;) {
        const rows = await db
          .selectFrom('device_traffic')
          .select(['uid', 'day'])
          .where('day', '<', before)
          .orderBy('day')
          .limit(step)
          .execute()
        if (rows.length === 0) return
        const batch = JSON.stringify(rows.map(({ uid, day }) => [uid, day]))
        const old =
          dialect === 'sqlite'
            ? sql`json_each(${batch}) as old`
            : sql`json_array_elements(${batch}::json) as old (value)`
        await sql`delete from device_traffic
          where (uid, day) in (select old.value ->> 0, old.value ->> 1 from ${old})`.execute(db)
      }
    },
  }
}

export function trafficStore(context: NamespaceContext) {
  return {
    days: (uid: string, since: string) =>
      context
        .read('device_traffic')
        .select(['day', ...columns])
        .where('uid', '=', uid)
        .where('day', '>=', since)
        .orderBy('day')
        .execute(),
    async allByDay(since: string) {
      const rows = await context
        .read('device_traffic')
        .select(['day', (eb) => eb.fn.countAll<number>().as('devices')])
        .select(
          sql<number | string>`sum(${sql.join(
            columns.map((one) => sql.ref(one)),
            sql` + `,
          )})`.as('bytes'),
        )
        .where('day', '>=', since)
        .groupBy('day')
        .execute()
      return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }))
    },
  }
}
