// The account of refused logins. It is told each of them once, and passes it on: to the log, to the audit log, and to
// the table in which administrators of the namespace find it by the reference that the refused person was shown.
// The log takes twenty lines a minute of a source; the audit log the first refusal of a source and reason, and a count
// of the rest of its minute (audit/refusals.ts). The table has one row with a count for the attempts under one
// reference, written in batches after a second; a namespace keeps its newest 1,000, for 30 days (system/sweeps.ts).
// A namespace that does not exist has neither row nor entry. Elsewhere: login-report.ts counts refusals for the
// metrics, and login.ts wrong proofs against the address (the first refused key of a connection, and of a repeated
// password every tenth, guesses.ts).
import { Failure } from '@hawser/contract/failures'
import { refusalSentences, type LoginRefusal } from '@hawser/contract/logins'
import { neighbourhood } from '../../kit/address.ts'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import { newLegibleCode } from '../../kit/ids.ts'
import { windows } from '../../kit/limiter.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { stranger } from '../audit/audit.ts'
import type { AuditRefusal, AuditRefusals } from '../audit/refusals.ts'
import type { Rules } from '../callers/rules.ts'
import { parseTarget } from './logins.ts'
import { spanOf } from './moments.ts'

/** The stored part of a refused login; texts of the client were made safe. */
type Detail = Omit<LoginRefusal, 'reference' | 'at' | 'last_at' | 'times' | 'sentence'>

/** A refused login, as the gateway knows it. */
export type RefusedLogin = Pick<Detail, 'reason' | 'sshid' | 'source' | 'via' | 'attempts'> & {
  readonly [Field in keyof Detail]: Detail[Field] | undefined
} & {
  readonly reference: string
  /** The namespace of the device; undefined: it was not found. */
  readonly tenant_id: string | undefined
}

/** Only the log has a device that may not join: it was refused by no namespace that its words name. */
export type RefusedEvent = 'login.refused' | 'enrolment.refused'

export interface RefusalParts extends WriteReport {
  stores: Stores
  clock: Clock
  audited: Pick<AuditRefusals, 'add'>
  /** Writes a line of the log; `keys`: the fingerprints that were tried, if there were several. */
  onRefused(login: RefusedLogin, event: RefusedEvent, keys: readonly string[] | undefined): void
}

export type Refusals = ReturnType<typeof refusals>

type Counted = Pick<LoginRefusal, 'at' | 'last_at' | 'times'>
/** A row of a reference in a namespace that waits to be written. */
type Waiting = Counted & { readonly login: RefusedLogin }

const mostWaiting = 2_000
const batch = 100
/** The newest of a namespace. */
const mostKept = 1_000
const uid = /^[0-9a-f]{64}$/
const longestSshid = 400

/**
 * References for refused people to quote, by network and SSHID. One is the same for a minute, whatever the reason, and
 * says nothing by itself. A network with too many shares one for its further attempts, and so do all networks.
 */
export function references(clock: Clock) {
  const given = windows<string>({ clock, perGroup: 20, most: 300 })
  return (source: string, sshid: string): string => {
    const near = neighbourhood(source)
    const names = { own: `${near} ${sshid.slice(0, longestSshid)}`, group: near, all: '' }
    return given.of(near, names, () => asReference(newLegibleCode(8)))
  }
}

const asReference = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

/** The namespace that the client has named. */
async function namespaceOf(
  { tenant_id, sshid }: RefusedLogin,
  { callers, namespaces }: StoresInTransaction,
): Promise<string | undefined> {
  // A namespace that was deleted a moment ago takes its refusals along.
  if (tenant_id !== undefined) return (await namespaces.find(tenant_id))?.tenant_id
  const name = namedIn(sshid)
  if (uid.test(name)) return callers.namespaceOfDevice(name)
  return (await namespaces.findByName(name))?.tenant_id
}

async function write(inside: StoresInTransaction, some: readonly Waiting[]): Promise<void> {
  const tenants = new Set<string>()
  for (const { login, at, last_at, times } of some) {
    const tenant_id = await namespaceOf(login, inside)
    if (tenant_id === undefined) continue
    tenants.add(tenant_id)
    const { tenant_id: _, reference, ...detail } = login
    const row = { reference, at, last_at, times, detail: JSON.stringify(detail) }
    await inside.of(tenant_id).refusals.add(row)
  }
  for (const tenant_id of tenants) await inside.of(tenant_id).refusals.trim(mostKept)
}

export function refusals({ stores, clock, audited, onRefused, ...report }: RefusalParts) {
  const waiting = new WriteBehind<Waiting>({
    ...report,
    delay_ms: second_ms,
    most: mostWaiting,
    batch,
    count: ({ times }) => times,
    merge: (older, newer) => ({ ...newer, at: older.at, times: older.times + newer.times }),
    write: (some) => stores.transaction((inside) => write(inside, some)),
  })

  return {
    reference: references(clock),
    note(login: RefusedLogin, event: RefusedEvent = 'login.refused', keys?: readonly string[]): void {
      onRefused(login, event, keys)
      if (event !== 'login.refused') return
      const at = iso(clock.now())
      const key = `${login.reference} ${login.tenant_id ?? namedIn(login.sshid)}`
      waiting.put(key, { login, at, last_at: at, times: 1 })
      const entry = auditEntry(login)
      if (entry) audited.add(entry)
    },
    /** Makes one attempt to write what waits; also done every second. */
    flush: () => waiting.flush(),
    rules: {
      async refusals({ query: { device_uid, reason, from, to, page, per_page } }, { tenant_id }) {
        // Few are kept, and what they are about is in JSON.
        const fitting = (await stores.of(tenant_id).refusals.list(spanOf({ from, to })))
          .map(present)
          .filter((one) => (device_uid ?? one.device) === one.device && (reason ?? one.reason) === one.reason)
        const skipped = (page - 1) * per_page
        return { items: fitting.slice(skipped, skipped + per_page), total: fitting.length }
      },
      async refusal({ params }, { tenant_id }) {
        const reference = asReference(params.reference.toUpperCase().replace('-', ''))
        const row = await stores.of(tenant_id).refusals.find(reference)
        if (!row)
          throw new Failure('notFound', {
            message:
              'No login to a device of this namespace was refused under this reference, or it was long ago.',
          })
        return present(row)
      },
    } satisfies Pick<Rules<'logins'>, 'refusals' | 'refusal'>,
    [Symbol.asyncDispose]: () => waiting[Symbol.asyncDispose](),
  }
}

/** The entry of a refused login in the audit log. Undefined: the words of the client name no namespace. */
function auditEntry(login: RefusedLogin): AuditRefusal | undefined {
  const { tenant_id, reason, rule, detail, method, fingerprint, via, attempts, reference } = login
  const target = parseTarget(login.sshid)
  const [namespace = '', name = ''] = target?.data.split('.', 2) ?? []
  if (!target || (tenant_id === undefined && (namespace === '' || name === ''))) return undefined
  return {
    scope: tenant_id === undefined ? { namespace } : { tenant_id },
    by: stranger(login.source),
    action: 'login.refused',
    target: { kind: 'device', id: login.device ?? '', name: name || (login.name ?? '') },
    reason,
    detail: { reference, username: target.username, via, method, fingerprint, rule, more: detail, attempts },
  }
}

/** The name of the namespace, or the uid of the device, that an SSHID begins with. */
function namedIn(sshid: string): string {
  const [name = ''] = sshid.slice(sshid.indexOf('@') + 1).split('.', 1)
  return name.toLowerCase()
}

function present({ detail: text, ...row }: Counted & { reference: string; detail: string }) {
  const detail = JSON.parse(text) as Detail
  const sentence = refusalSentences[detail.reason] ?? detail.detail ?? detail.reason
  return { ...row, sentence, ...detail }
}
