// Data budgets: how many bytes devices may use in a month, and what happens above that. Nothing here runs for
// a message or a session of a device: budgets are judged after the sums of bytes were written (traffic.ts),
// each against the sum of the month. What was found stays in the budget's row, where recordings, updates and
// the pages of devices read it. A state counts only in its month, so a new month begins without a sweep.
//
// The work is bounded: a budget of a device is judged when the device has a new sum; a budget of a tag, which
// walks over all its devices, at most every five minutes, and for two seconds in a round. Changes that are
// found together go to people in one e-mail for each namespace; a budget has one for each state of a month.
// The mark that there is one to send is written with the state, and removed when it is sent: after a crash
// another round sends it.
import {
  budgetStates,
  mostBudgets,
  warnedShare,
  type BudgetState,
  type DataBudget,
  type DeviceBudget,
} from '@hawser/contract/budgets'
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../../bus/bus.ts'
import { iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { BudgetResult, BudgetRow } from '../../storage/budgets.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit } from '../audit/audit.ts'
import type { Rules } from '../callers/rules.ts'

export interface BudgetParts {
  stores: Stores
  audit: Audit
  clock: Clock
  bus: Bus
  mailer: Pick<Mailer, 'send'>
  emails: Pick<Emails, 'budgets'>
  /** E-mails about budgets, by namespace. */
  emailsPerNamespace: Limiter
  /** Budgets of tags that are judged because somebody has just written them, by namespace. */
  tagsPerNamespace: Limiter
  /** Runs work that nobody waits for; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
  onChanged(change: BudgetChange): void
  /** A namespace gets no more e-mails for a while. */
  onUnsent(tenant_id: string): void
  onError(error: unknown): void
}

/** A budget has another state than before. */
export interface BudgetChange {
  readonly tenant_id: string
  readonly id: string
  readonly device: string | undefined
  readonly tag: string | undefined
  readonly used: number
  readonly bytes: number
  readonly state: BudgetState
}

/** What the sums of bytes tell, and ask for. */
export interface BudgetUsage {
  /** These devices have new sums. */
  note(uids: Iterable<string>): void
  /** Judges what is due. It never throws. */
  judge(): Promise<void>
}

export interface Budgets extends Rules<'budgets'>, BudgetUsage {
  /** Whether a budget says that sessions on the device are not recorded now. */
  stopsRecordings(tenant_id: string, device_uid: string): Promise<boolean>
  /** Changes by the state that they led to. */
  readonly changes: Counter<BudgetState>
}

/** A budget of a tag is judged again after so long. */
const tag_every_ms = 5 * minute_ms
/** For so long a round judges budgets of tags; the others wait for the next one. */
const tags_ms = 2 * second_ms
/** Budgets of tags that a round looks at. */
const mostWaiting = 10_000
/** Devices, or budgets of devices, that one statement names. */
const batch = 1_000
/** Tries to write what was found while others change the same budget. */
const tries = 3
/** An e-mail that was not sent in so long is sent by another round, or by another node. */
const resend_after_ms = 30 * minute_ms
/** People of a namespace who get an e-mail. */
const mostRecipients = 50
/** Budgets that an e-mail names. */
const mostNamed = 20

const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)
const monthOf = (clock: Clock): string => iso(clock.now()).slice(0, 7)
const rank = (state: BudgetState): number => budgetStates.indexOf(state)

/** What a row says about this month. */
const inMonth = ({ month, used, state, told }: BudgetRow, now: string) =>
  month === now ? { used, state, told } : ({ used: 0, state: 'under', told: 'under' } as const)

const stateOf = (used: number, bytes: number): BudgetState => {
  if (used >= bytes) return 'over'
  return used >= bytes * warnedShare ? 'warned' : 'under'
}

/** What a device shows of its budgets. */
export interface ShownBudget {
  readonly shown: DeviceBudget
  /** One of them keeps its agent from being updated now. */
  readonly stopsUpdates: boolean
}

/** By uid, for devices of one namespace: the budget that is used up most. */
export async function budgetsOf(
  { stores, clock }: Pick<BudgetParts, 'stores' | 'clock'>,
  tenant_id: string,
  rows: readonly DeviceRow[],
): Promise<Map<string, ShownBudget>> {
  const tagsOf = new Map(rows.map(({ uid, tags }) => [uid, JSON.parse(tags) as string[]]))
  const tags = [...new Set([...tagsOf.values()].flat())]
  const budgets = await stores.of(tenant_id).budgets.concerning([...tagsOf.keys()], tags)
  const found = new Map<string, ShownBudget>()
  if (budgets.length === 0) return found
  const month = monthOf(clock)
  const byDevice = new Map(budgets.map((budget) => [budget.device, budget]))
  const byTag = new Map(budgets.map((budget) => [budget.tag, budget]))
  for (const [uid, its] of tagsOf) {
    const mine = [byDevice.get(uid), ...its.map((tag) => byTag.get(tag))].filter((one) => one !== undefined)
    const shown = mine.map((budget) => shownOf(budget, month))
    const [most] = shown.toSorted((one, other) => other.used / other.bytes - one.used / one.bytes)
    if (!most) continue
    const stopsUpdates = mine.some((one) => one.stop_updates === 1 && inMonth(one, month).state === 'over')
    found.set(uid, { shown: most, stopsUpdates })
  }
  return found
}

function shownOf(row: BudgetRow, now: string): DeviceBudget {
  const { used, state } = inMonth(row, now)
  return { id: String(row.id), ...(row.tag === null ? {} : { tag: row.tag }), bytes: row.bytes, used, state }
}

type Audited = Pick<BudgetRow, 'device' | 'tag' | 'bytes' | 'stop_recordings' | 'stop_updates'>

const targetOf = (id: number, { device, tag }: Pick<Audited, 'device' | 'tag'>) => ({
  kind: 'data budget',
  id: String(id),
  name: tag === null ? `device ${(device ?? '').slice(0, 12)}` : `tag ${tag}`,
})

const audited = ({ device, tag, bytes, stop_recordings, stop_updates }: Audited) => ({
  device,
  tag,
  bytes,
  stop_recordings: stop_recordings === 1,
  stop_updates: stop_updates === 1,
})

export function budgets(parts: BudgetParts): Budgets {
  const { stores, audit, clock, bus } = parts
  const store = stores.budgetJudgements
  const changes = new Counter(budgetStates)
  /** Devices with new sums. */
  const noted = new Set<string>()
  /** Budgets of tags that are to be judged when five minutes have passed since the last time. */
  const waiting = new Set<number>()
  /** One round after the other. */
  let judging = Promise.resolve()

  async function present(tenant_id: string, rows: readonly BudgetRow[]): Promise<DataBudget[]> {
    const uids = rows.flatMap(({ device }) => device ?? [])
    const devices = await stores.of(tenant_id).devices.findMany(uids)
    const names = new Map(devices.map(({ uid, name }) => [uid, name]))
    const month = monthOf(clock)
    return rows.map((row) => ({
      id: String(row.id),
      tenant_id,
      ...(row.device === null ? {} : { device: row.device }),
      device_name: names.get(row.device ?? '') ?? '',
      ...(row.tag === null ? {} : { tag: row.tag }),
      bytes: row.bytes,
      stop_recordings: row.stop_recordings === 1,
      stop_updates: row.stop_updates === 1,
      month,
      used: inMonth(row, month).used,
      state: inMonth(row, month).state,
      created_at: row.created_at,
    }))
  }

  /** What is used of these budgets in the month. */
  async function sums(rows: readonly BudgetRow[], month: string): Promise<Map<number, number>> {
    const since = `${month}-01`
    const ids = rows.filter(({ device }) => device !== null).map(({ id }) => id)
    const used = ids.length > 0 ? await store.usedByDevices(ids, since) : new Map<number, number>()
    for (const { id, tenant_id, tag } of rows)
      if (tag !== null) used.set(id, await store.usedByTag(tenant_id, tag, since))
    return used
  }

  /** Judges these budgets; gives what was found. */
  async function judgeAll(ids: readonly number[]): Promise<BudgetResult[]> {
    const done: BudgetResult[] = []
    let open = ids
    for (let attempt = 0; open.length > 0 && attempt < tries; attempt++) {
      const month = monthOf(clock)
      const rows = await store.findMany(open)
      const used = await sums(rows, month)
      const found = rows.map((row): BudgetResult => {
        const sum = used.get(row.id) ?? 0
        const state = stateOf(sum, row.bytes)
        const { told } = inMonth(row, month)
        const isNews = rank(state) > rank(told)
        return { row, month, used: sum, state, told: isNews ? state : told, isNews }
      })
      const written = found.length > 0 ? await store.save(found, iso(clock.now())) : new Set<number>()
      done.push(...found.filter(({ row }) => written.has(row.id)))
      // Another node or a person was quicker: these are read again.
      open = rows.filter(({ id }) => !written.has(id)).map(({ id }) => id)
    }
    return done
  }

  async function round(): Promise<void> {
    const uids = [...noted]
    noted.clear()
    try {
      await judgeDevices(uids)
    } catch (error) {
      // The database is away: the next round judges them.
      for (const uid of uids) noted.add(uid)
      throw error
    }
    if (waiting.size > 0) await judgeTags([...waiting].slice(0, mostWaiting))
    await sendAgain()
  }

  /** Sends what was to be sent when a server crashed, as far as it is about this month. */
  async function sendAgain(): Promise<void> {
    const now = clock.now()
    const month = monthOf(clock)
    const rows = await store.takeUnsent(iso(now - resend_after_ms), iso(now), batch)
    const old = rows.filter((row) => inMonth(row, month).told === 'under').map(({ id }) => id)
    if (old.length > 0) await store.emailed(old, iso(now))
    email(
      rows
        .filter(({ id }) => !old.includes(id))
        .map((row) => ({ row, month, used: row.used, state: row.told, told: row.told, isNews: true })),
    )
  }

  /** Judges the budgets of these devices; those of their tags wait for their turn. */
  async function judgeDevices(uids: readonly string[]): Promise<void> {
    for (let start = 0; start < uids.length; start += batch) {
      const some = uids.slice(start, start + batch)
      announce(await judgeAll(await store.ofDevices(some)))
      for (const id of await store.ofTags(some)) waiting.add(id)
    }
  }

  /** Judges those that were not judged for a while, as long as the time of a round lasts. */
  async function judgeTags(ids: readonly number[]): Promise<void> {
    const rows = await store.findMany(ids)
    const exist = new Set(rows.map(({ id }) => id))
    for (const id of ids) if (!exist.has(id)) waiting.delete(id)
    const before = iso(clock.now() - tag_every_ms)
    const ends_at = performance.now() + tags_ms
    const judged: BudgetResult[] = []
    try {
      for (const { id, judged_at } of rows) {
        if (judged_at > before || performance.now() > ends_at) break
        judged.push(...(await judgeAll([id])))
        waiting.delete(id)
      }
    } finally {
      // Together, for one e-mail; also when the database went away half-way.
      announce(judged)
    }
  }

  const inTurn = (work: () => Promise<void>): Promise<void> =>
    (judging = judging.then(work).catch(parts.onError))

  /** Tells everybody whom a change concerns. */
  function announce(judged: readonly BudgetResult[]): void {
    for (const one of judged) {
      const { row, state, isNews } = one
      // The row's state may be of the month before: what it stopped goes on.
      if (state !== row.state || isNews) report(one)
      if (row.stop_recordings === 1 && (state === 'over') !== (row.state === 'over'))
        bus.tell('namespace.changed', { tenant_id: row.tenant_id })
    }
    email(judged.filter(({ isNews }) => isNews))
  }

  /** One e-mail for each namespace and person. */
  function email(news: readonly BudgetResult[]): void {
    for (const [tenant_id, about] of Map.groupBy(news, ({ row }) => row.tenant_id)) {
      const isTooMuch = parts.emailsPerNamespace.take(tenant_id) > 0
      if (isTooMuch) parts.onUnsent(tenant_id)
      parts.later('email.budgets', async () => {
        const since = iso(clock.now())
        if (!isTooMuch) await send(tenant_id, about)
        await store.emailed(
          about.map(({ row }) => row.id),
          since,
        )
      })
    }
  }

  function report({ row, used, state }: BudgetResult): void {
    changes.add(state)
    parts.onChanged({
      tenant_id: row.tenant_id,
      id: String(row.id),
      device: row.device ?? undefined,
      tag: row.tag ?? undefined,
      used,
      bytes: row.bytes,
      state,
    })
  }

  async function send(tenant_id: string, about: readonly BudgetResult[]): Promise<void> {
    const namespace = await stores.namespaces.find(tenant_id)
    if (!namespace) return
    const named = about.slice(0, mostNamed)
    const devices = await stores.of(tenant_id).devices.findMany(named.flatMap(({ row }) => row.device ?? []))
    const names = new Map(devices.map(({ uid, name }) => [uid, name]))
    const lines = named.map(({ row, used, state }) => ({
      device: row.device === null ? undefined : { uid: row.device, name: names.get(row.device) ?? '' },
      tag: row.tag ?? undefined,
      used,
      bytes: row.bytes,
      isOver: state === 'over',
      stops: [
        ...(row.stop_recordings === 1 ? ['recordings' as const] : []),
        ...(row.stop_updates === 1 ? ['updates' as const] : []),
      ],
    }))
    const more = about.length - named.length
    for (const { name, address } of await store.recipients(tenant_id, mostRecipients))
      await parts.mailer.send(
        parts.emails.budgets({ to: address, name, namespace: namespace.name, budgets: lines, more }),
      )
  }

  /** Judges a budget that somebody has just written. */
  async function judgeWritten(tenant_id: string, id: number, isOfTag: boolean): Promise<void> {
    if (isOfTag && parts.tagsPerNamespace.take(tenant_id) > 0) waiting.add(id)
    else await inTurn(async () => announce(await judgeAll([id])))
  }

  async function show(tenant_id: string, id: number): Promise<DataBudget> {
    const row = await stores.of(tenant_id).budgets.find(id)
    const [shown] = row ? await present(tenant_id, [row]) : []
    if (!shown) throw new Failure('notFound')
    return shown
  }

  /** Sessions that go on are recorded, or not, as the budgets now say. */
  function recordingsMayChange({ tenant_id, stop_recordings, state }: BudgetRow): void {
    if (stop_recordings === 1 && state === 'over') bus.tell('namespace.changed', { tenant_id })
  }

  return {
    changes,
    note(uids) {
      for (const uid of uids) noted.add(uid)
    },
    judge: () => inTurn(round),
    stopsRecordings: (tenant_id, device_uid) =>
      stores.of(tenant_id).budgets.stopsRecordings(device_uid, monthOf(clock)),

    async list({ query }, { tenant_id }) {
      const mine = stores.of(tenant_id).budgets
      return { items: await present(tenant_id, await mine.list(query)), total: await mine.count() }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { device = null, tag = null, bytes } = body
      if ((device === null) === (tag === null))
        throw new Failure('invalid', { message: 'device or tag: one of them is needed' })
      const id = await audit
        .change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both find room for the last budget.
          await inside.namespaces.hold(tenant_id)
          const { devices, budgets: mine } = inside.of(tenant_id)
          if (device !== null && !(await devices.find(device))) throw new Failure('notFound')
          if ((await mine.count()) >= mostBudgets) throw new Failure('budgetLimit')
          const row = {
            device,
            tag,
            bytes,
            stop_recordings: flag(body.stop_recordings ?? false),
            stop_updates: flag(body.stop_updates ?? false),
            created_at: iso(clock.now()),
          }
          const added = await mine.insert(row)
          record({ action: 'budget.created', target: targetOf(added, row), after: audited(row) })
          return added
        })
        .catch((error: unknown) => {
          if (!stores.isDuplicate(error)) throw error
          throw new Failure('conflict', {
            message: `This ${device === null ? 'tag' : 'device'} has a data budget already.`,
          })
        })
      await judgeWritten(tenant_id, id, tag !== null)
      return show(tenant_id, id)
    },
    async update({ params, body }, caller) {
      const { tenant_id } = caller
      const id = Number(params.id)
      const { before, change } = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).budgets
        const found = await mine.find(id)
        if (!found) throw new Failure('notFound')
        const wanted = {
          bytes: body.bytes ?? found.bytes,
          stop_recordings: flag(body.stop_recordings ?? found.stop_recordings === 1),
          stop_updates: flag(body.stop_updates ?? found.stop_updates === 1),
        }
        if (!(await mine.save(id, wanted))) throw new Failure('notFound')
        record({
          action: 'budget.updated',
          target: targetOf(id, found),
          before: audited(found),
          after: audited({ ...found, ...wanted }),
        })
        return { before: found, change: wanted }
      })
      if (change.bytes !== before.bytes) await judgeWritten(tenant_id, id, before.tag !== null)
      const after = await show(tenant_id, id)
      if (change.stop_recordings !== before.stop_recordings)
        recordingsMayChange({ ...before, stop_recordings: 1, state: after.state })
      return after
    },
    async remove({ params }, caller) {
      const before = await audit.change(caller, async (inside, record) => {
        const row = await inside.of(caller.tenant_id).budgets.remove(Number(params.id))
        if (!row) throw new Failure('notFound')
        record({ action: 'budget.removed', target: targetOf(Number(params.id), row), before: audited(row) })
        return row
      })
      recordingsMayChange(before)
    },
  }
}
