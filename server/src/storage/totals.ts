// Totals of all namespaces for the metrics, from the counters that triggers keep, on the connection for
// lists.
import { sql } from 'kysely'
import type { AllNamespaces } from './context.ts'

const subjects = ['devices.accepted', 'devices.pending', 'devices.rejected', 'online.accepted'] as const
type TotalSubject = (typeof subjects)[number]

export function totalStore({ reader }: AllNamespaces) {
  return {
    async count(): Promise<Record<TotalSubject, number>> {
      const rows = await reader
        .selectFrom('tallies')
        .select(['subject', sql<number | string>`sum(n)`.as('n')])
        .where('subject', 'in', subjects)
        .groupBy('subject')
        .execute()
      const of = (subject: TotalSubject): number =>
        Number(rows.find((row) => row.subject === subject)?.n ?? 0)
      return {
        'devices.accepted': of('devices.accepted'),
        'devices.pending': of('devices.pending'),
        'devices.rejected': of('devices.rejected'),
        'online.accepted': of('online.accepted'),
      }
    },
  }
}
