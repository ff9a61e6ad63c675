// Refusals in the audit log: logins at the SSH door, sign-ins and enrolment tokens. Strangers cause them, so
// a flood must not fill the log, and nothing may be dropped in silence. The first refusal of a source for a
// reason is written at once; what follows within a minute is counted, and the count is written when the
// minute is over. A log gets so many of these entries a minute; beyond that the sources are counted together.
// What cannot be written waits for the database; so many wait, and the server's own log says how many did not.
import { iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
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
  readonly action: 'login.refused' | 'user.sign-in.refused' | 'enrolment-token.refused'
  readonly target: AuditRecord['target']
  readonly reason: string
  readonly detail?: Readonly<Record<string, unknown>>
}

export interface AuditRefusals extends AsyncDisposable {
  add(refusal: AuditRefusal): void
  /** Resolves when everything that is due is written. */
  settled(): Promise<void>
}

export interface AuditRefusalParts {
  stores: Stores
  audit: Audit
  clock: Clock
  onError(error: unknown): void
}

const window_ms = minute_ms
const check_ms = 5 * second_ms
/** Sources that are told apart in one scope and minute. */
const mostSources = 30
/** Windows in memory. Above it all that is new is counted together, in the server's own log. */
const mostWindows = 10_000
/** What waits to be written: the first refusals and the counts of all windows. */
const mostDue = 2 * mostWindows
const batch = 200
/** Logs that one refused sign-in is written to. */
const mostLogs = 50

interface Due {
  readonly refusal: AuditRefusal
  /** When it was refused; a count has the moment of the last one instead. */
  readonly at?: number
  readonly more?: { readonly repeated?: number; readonly [field: string]: unknown }
}

interface Window {
  readonly first: AuditRefusal
  /** Refusals since the first, which was written at once. */
  count: number
  last_at: number
  readonly ends_at: number
}

/**
 * The logs that an event of an account belongs to: the server's own, and those of the namespaces that the
 * user has come to. Anybody can make anybody a member, and must learn nothing about the account by that.
 */
export async function logsOf({ namespaces }: Pick<StoresInTransaction, 'namespaces'>, user_id: string) {
  const known = await namespaces.memberships(user_id, mostLogs, 'signed-in')
  return ['', ...known.map(({ tenant_id }) => tenant_id)]
}

export function auditRefusals({ stores, audit, clock, onError }: AuditRefusalParts): AuditRefusals {
  const windows = new Map<string, Window>()
  /** Sources told apart in each scope since its first window began. */
  const sources = new Map<string, { count: number; ends_at: number }>()
  let due: Due[] = []
  /** Refusals that found no place among those that wait. */
  const missing = new Map<AuditRefusal['action'], number>()
  let isQueued = false
  let isFailing = false
  let writing = Promise.resolve()

  async function logs(inside: StoresInTransaction, scope: RefusalScope): Promise<readonly string[]> {
    if ('tenant_id' in scope) return [scope.tenant_id]
    if ('user_id' in scope) return logsOf(inside, scope.user_id)
    const found = await inside.namespaces.findByName(scope.namespace.toLowerCase())
    return found ? [found.tenant_id] : []
  }

  function put(one: Due): void {
    const { action } = one.refusal
    if (due.length < mostDue) due.push(one)
    else missing.set(action, (missing.get(action) ?? 0) + (one.more?.repeated ?? 1))
  }

  async function writeSome(some: readonly Due[]): Promise<void> {
    const late = clock.now() - check_ms
    await stores.transaction(async (inside) => {
      const notes: AuditNote[] = []
      for (const { refusal, at = Infinity, more } of some) {
        const { by, action, target, reason } = refusal
        const detail = { ...refusal.detail, reason, ...(at < late ? { refused_at: iso(at) } : {}), ...more }
        for (const tenant_id of await logs(inside, refusal.scope))
          notes.push({ by, record: { action, target, tenant_id, detail } })
      }
      await audit.append(inside, notes)
    })
  }

  async function write(): Promise<void> {
    isQueued = false
    try {
      while (due.length > 0) {
        const some = due.slice(0, batch)
        await writeSome(some)
        due = due.slice(some.length)
        for (const [action, count] of missing) put({ refusal: crowd(action), more: { missing: count } })
        missing.clear()
      }
      isFailing = false
    } catch (error) {
      isFailing = true
      onError(error)
    }
  }

  function writeNow(): void {
    if (isQueued) return
    isQueued = true
    writing = writing.then(write)
  }

  /** While nothing can be written, the timer tries again: not every stranger makes the database work. */
  const writeSoon = (): void => void (isFailing || writeNow())

  /** Whether another source of this scope may have entries of its own. */
  function toldApart(scope: string, now: number): boolean {
    const seen = sources.get(scope)
    if (!seen || seen.ends_at <= now) {
      if (windows.size >= mostWindows) return false
      sources.set(scope, { count: 1, ends_at: now + window_ms })
      return true
    }
    if (seen.count >= mostSources || windows.size >= mostWindows) return false
    seen.count += 1
    return true
  }

  /**
   * Strangers choose the names of namespaces: with too many windows, one of the server's
   * own log has the rest.
   */
  function addToCrowd({ action }: AuditRefusal, now: number): void {
    const key = JSON.stringify(['crowd', action])
    const known = windows.get(key)
    if (known) {
      known.count += 1
      known.last_at = now
      return
    }
    const first = crowd(action)
    windows.set(key, { first, count: 0, last_at: now, ends_at: now + window_ms })
    put({ refusal: first, at: now, more: { many_sources: true } })
    writeSoon()
  }

  function add(refusal: AuditRefusal): void {
    const now = clock.now()
    const { action, reason, by } = refusal
    const scope = JSON.stringify([refusal.scope, action])
    const key = (source: string) => JSON.stringify([scope, reason, source])
    const known = windows.get(key(by.source)) ?? windows.get(key(''))
    if (known && known.ends_at > now) {
      known.count += 1
      known.last_at = now
      return
    }
    const alone = toldApart(scope, now)
    if (!alone && windows.size >= mostWindows) return addToCrowd(refusal, now)
    const first = alone ? refusal : { ...refusal, by: { ...by, source: '' } }
    windows.set(key(alone ? by.source : ''), { first, count: 0, last_at: now, ends_at: now + window_ms })
    put({ refusal: first, at: now, ...(alone ? {} : { more: { many_sources: true } }) })
    writeSoon()
  }

  /** Writes the counts of windows that are over; of all of them when the server stops. */
  function close(all: boolean): void {
    const now = clock.now()
    for (const [key, { first, count, last_at, ends_at }] of windows) {
      if (!all && ends_at > now) continue
      windows.delete(key)
      if (count > 0) put({ refusal: first, more: { repeated: count, last_at: iso(last_at) } })
    }
    for (const [scope, { ends_at }] of sources) if (all || ends_at <= now) sources.delete(scope)
    writeNow()
  }

  const timer = setInterval(() => close(false), check_ms)
  timer.unref()

  return {
    add,
    async settled() {
      close(false)
      await writing
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      close(true)
      await writing
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
