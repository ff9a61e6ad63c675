// Refusals in the audit log: logins at the SSH door, sign-ins, enrolment tokens and services. Strangers cause them, so
// a flood must not fill the log, and nothing may be dropped in silence. The first refusal of a source for a
// reason is written at once; the rest of the minute is counted, and the count is written at its end.
// The entries of a log in a minute are bounded; further sources are counted together.
// Entries wait while the database is away. The server's own log reports how many found no room.
import { defined } from '@hawser/contract/defined'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import { windows } from '../../kit/limiter.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { stranger, type Audit, type AuditActor, type AuditNote, type AuditRecord } from './audit.ts'

/** Whose log a refusal belongs to: a namespace, by id or name, or all namespaces of a user. */
type RefusalScope =
  | { readonly tenant_id: string }
  | { readonly namespace: string }
  | { readonly user_id: string }

export interface AuditRefusal {
  readonly scope: RefusalScope
  readonly by: AuditActor
  readonly action: 'login.refused' | 'user.sign-in.refused' | 'enrolment-token.refused' | 'service.refused'
  readonly target: AuditRecord['target']
  readonly reason: string
  readonly detail?: Readonly<Record<string, unknown>>
}

export type AuditRefusals = ReturnType<typeof auditRefusals>

export interface AuditRefusalParts extends WriteReport {
  stores: Stores
  audit: Audit
  clock: Clock
}

/** An entry that was written later names the moment of the refusal. */
const late_ms = 5 * second_ms
/** Sources that are counted separately in one scope and minute. */
const mostSources = 30
/** Counts in memory. Beyond that all new ones are one count, in the server's own log. */
const mostCounts = 10_000
/** The most entries that wait to be written: first refusals and all counts. */
const mostDue = 2 * mostCounts
const batch = 200
/** Logs that one refused sign-in is written to. */
const mostLogs = 50

/** An entry that waits to be written: a refusal, and what is counted under it. */
interface Due {
  readonly refusal: AuditRefusal
  readonly at?: number
  readonly many_sources?: true
  readonly repeated?: number
  readonly last_at?: string
  /** Refusals that found no room. */
  readonly missing?: number
}

/**
 * The logs that an event of an account belongs to: the server's own, and those of the namespaces that the
 * user has come to. Anybody can make anybody a member, and must learn nothing about the account by that.
 */
export async function logsOf({ namespaces }: Pick<StoresInTransaction, 'namespaces'>, user_id: string) {
  const known = await namespaces.memberships(user_id, mostLogs, 'signed-in')
  return ['', ...known.map(({ tenant_id }) => tenant_id)]
}

async function logsAbout(inside: StoresInTransaction, scope: RefusalScope): Promise<readonly string[]> {
  if ('tenant_id' in scope) return [scope.tenant_id]
  if ('user_id' in scope) return logsOf(inside, scope.user_id)
  const found = await inside.namespaces.findByName(scope.namespace.toLowerCase())
  return found ? [found.tenant_id] : []
}

const nameOf = ({ scope, action, reason, by }: AuditRefusal): string =>
  JSON.stringify([scope, action, reason, by.source, by.id])

export function auditRefusals({ stores, audit, clock, ...report }: AuditRefusalParts) {
  const waiting = new WriteBehind<Due>({
    ...report,
    delay_ms: 0,
    batch,
    merge: (older, newer) => ({ ...newer, missing: (older.missing ?? 0) + (newer.missing ?? 0) }),
    write: (some) =>
      stores.transaction(async (inside) => {
        const late = clock.now() - late_ms
        const notes: AuditNote[] = []
        for (const { refusal, at = Infinity, ...counted } of some) {
          const { scope, by, action, target, reason } = refusal
          const refused_at = at < late ? iso(at) : undefined
          const detail = { ...refusal.detail, reason, ...defined({ refused_at }), ...counted }
          for (const tenant_id of await logsAbout(inside, scope))
            notes.push({ by, record: { action, target, tenant_id, detail } })
        }
        await audit.append(inside, notes)
      }),
  })

  function put(due: Due): void {
    const { action } = due.refusal
    if (waiting.size < mostDue) waiting.add(due)
    else waiting.put(action, { refusal: crowd(action), missing: due.repeated ?? 1 })
  }

  /** The first refusal of each, which is written at once, and how many have followed. */
  const counts = windows<{ readonly first: AuditRefusal; repeated: number; last_at: number }>({
    clock,
    perGroup: mostSources,
    most: mostCounts,
    onEnd(all) {
      for (const { first, repeated, last_at } of all)
        if (repeated > 0) put({ refusal: first, repeated, last_at: iso(last_at) })
    },
  })

  return {
    add(refusal: AuditRefusal): void {
      const { scope, action, by } = refusal
      // Strangers choose the names of namespaces: the server's own log has the rest.
      const firsts = { own: refusal, group: { ...refusal, by: { ...by, source: '' } }, all: crowd(action) }
      const names = { own: nameOf(firsts.own), group: nameOf(firsts.group), all: nameOf(firsts.all) }
      const at = clock.now()
      const count = counts.of(JSON.stringify([scope, action]), names, (share) => {
        const first = firsts[share]
        put(defined({ refusal: first, at, many_sources: share !== 'own' || undefined }))
        return { first, repeated: -1, last_at: at }
      })
      count.repeated += 1
      count.last_at = at
    },
    /** Resolves after an attempt to write everything that is due. */
    settled(): Promise<void> {
      counts.endIfOver()
      return waiting.flush()
    },
    [Symbol.asyncDispose](): Promise<void> {
      counts[Symbol.dispose]()
      return waiting[Symbol.asyncDispose]()
    },
  }
}

/** Refusals of any source and namespace, in the server's own log. */
const crowd = (action: AuditRefusal['action']): AuditRefusal => ({
  scope: { tenant_id: '' },
  by: stranger(''),
  action,
  target: { kind: 'server', id: '', name: '' },
  reason: 'too-many',
})
