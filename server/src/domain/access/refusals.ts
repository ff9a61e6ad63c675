// Logins that were refused, for the administrators of the namespace that they were meant for: found by the
// reference that the refused person was shown, or listed, newest first. Attempts under one reference are one
// row with a count. Rows are written a second late and in turn; the newest of a namespace are kept, for some
// days. An attempt at a namespace that does not exist leaves only its line in the log.
import { Failure } from '@hawser/contract/failures'
import { refusalSentences, type LoginRefusal } from '@hawser/contract/logins'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'
import { spanOf } from './moments.ts'

/** What is kept of a refused login; texts of the client were made safe. */
type Detail = Omit<LoginRefusal, 'reference' | 'at' | 'last_at' | 'times' | 'sentence'>

/** A refused login, as the gateway knows it. */
export type RefusedLogin = { readonly [Field in keyof Detail]: Detail[Field] | undefined } & {
  readonly reference: string
  readonly sshid: string
  /** Of the device; undefined: it was not found. */
  readonly tenant_id: string | undefined
}

export interface RefusalParts {
  stores: Stores
  clock: Clock
  onError(error: unknown): void
  /** So many refusals were not kept, because they came too fast. */
  onDropped(refusals: number): void
}

export interface Refusals extends AsyncDisposable {
  note(login: RefusedLogin): void
  /** Writes what waits; also done every second. */
  flush(): Promise<void>
  readonly rules: Pick<Rules<'logins'>, 'refusals' | 'refusal'>
}

/** What is not written yet of a reference in a namespace. */
interface Waiting {
  readonly login: RefusedLogin
  readonly at: string
  readonly last_at: string
  readonly times: number
}

const flush_every_ms = second_ms
const mostWaiting = 2_000
/** The newest of a namespace. */
const mostKept = 1_000
const uid = /^[0-9a-f]{64}$/
const longestNamespace = 63

export function refusals({ stores, clock, onError, onDropped }: RefusalParts): Refusals {
  const waiting = new BoundedMap<string, Waiting>(mostWaiting)
  let dropped = 0
  let writing = Promise.resolve()

  function put(key: string, { login, at, last_at, times }: Waiting): void {
    const before = waiting.get(key)
    const sum = { login, at: before?.at ?? at, last_at, times: times + (before?.times ?? 0) }
    dropped += waiting.set(key, sum)?.times ?? 0
  }

  /** The namespace that the client has named. */
  async function namespaceOf({ tenant_id, sshid }: RefusedLogin): Promise<string | undefined> {
    if (tenant_id !== undefined) return tenant_id
    const name = namedIn(sshid)
    if (uid.test(name)) return stores.callers.namespaceOfDevice(name)
    return name.length > longestNamespace ? undefined : (await stores.namespaces.findByName(name))?.tenant_id
  }

  async function write({ login, at, last_at, times }: Waiting): Promise<string | undefined> {
    const tenant_id = await namespaceOf(login)
    if (tenant_id === undefined) return undefined
    const { tenant_id: _, reference, ...detail } = login
    try {
      await stores
        .of(tenant_id)
        .refusals.add({ reference, at, last_at, times, detail: JSON.stringify(detail) })
    } catch (error) {
      // A namespace that was deleted a moment ago takes its refusals along.
      if (await stores.namespaces.find(tenant_id)) throw error
    }
    return tenant_id
  }

  async function writeAll(): Promise<void> {
    const namespaces = new Set<string>()
    // Those of this moment: more may come all the time.
    const due = Array.from(waiting)
    for (const [key, one] of due) {
      waiting.delete(key)
      try {
        const tenant_id = await write(one)
        if (tenant_id !== undefined) namespaces.add(tenant_id)
      } catch (error) {
        // The database is away: it waits for the next flush.
        put(key, one)
        throw error
      }
    }
    for (const tenant_id of namespaces) await stores.of(tenant_id).refusals.trim(mostKept)
    if (dropped === 0) return
    onDropped(dropped)
    dropped = 0
  }

  /** One write after the other. */
  function flush(): Promise<void> {
    const next = writing.then(writeAll)
    writing = next.catch(() => undefined)
    return next
  }

  const timer = setInterval(() => {
    if (waiting.size > 0) void flush().catch(onError)
  }, flush_every_ms)
  timer.unref()

  return {
    note(login) {
      const now = iso(clock.now())
      const key = `${login.reference} ${login.tenant_id ?? namedIn(login.sshid)}`
      put(key, { login, at: now, last_at: now, times: 1 })
    },
    flush,
    rules: {
      async refusals({ query }, { tenant_id }) {
        const { device_uid, reason, from, to, ...slice } = query
        const span = spanOf({ from, to })
        const { refusals } = stores.of(tenant_id)
        if (device_uid === undefined && reason === undefined) {
          const { items, total } = await refusals.list(slice, span)
          return { items: items.map(present), total }
        }
        // Few are kept, and what they are about is in JSON.
        const { items } = await refusals.list({ page: 1, per_page: mostKept }, span)
        const fitting = items
          .map(present)
          .filter((one) => device_uid === undefined || one.device === device_uid)
          .filter((one) => reason === undefined || one.reason === reason)
        const skipped = (slice.page - 1) * slice.per_page
        return { items: fitting.slice(skipped, skipped + slice.per_page), total: fitting.length }
      },
      async refusal({ params }, { tenant_id }) {
        const code = params.reference.toUpperCase().replace('-', '')
        const row = await stores.of(tenant_id).refusals.find(`${code.slice(0, 4)}-${code.slice(4)}`)
        if (!row)
          throw new Failure('notFound', {
            message:
              'No login to a device of this namespace was refused under this reference, or it was long ago.',
          })
        return present(row)
      },
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await flush().catch(onError)
    },
  }
}

/** The name of the namespace, or the uid of the device, that an SSHID begins with. */
function namedIn(sshid: string): string {
  const [name = ''] = sshid.slice(sshid.indexOf('@') + 1).split('.', 1)
  return name.toLowerCase()
}

function present(row: {
  reference: string
  at: string
  last_at: string
  times: number
  detail: string
}): LoginRefusal {
  const detail = JSON.parse(row.detail) as Detail
  const { reference, at, last_at, times } = row
  const sentence = refusalSentences[detail.reason] ?? detail.detail ?? detail.reason
  return { reference, at, last_at, times, sentence, ...detail }
}
