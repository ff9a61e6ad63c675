// Announces judged budgets: log lines, the bus, and e-mails. Changes found together go into one e-mail per
// namespace; a budget has one per state and month. A mark that an e-mail is due is written with the state and
// removed when it is sent, so that another round sends it after a crash.
import { budgetStates, type BudgetState } from '@hawser/contract/budgets'
import { iso, minute_ms } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { BudgetResult } from '../../storage/budgets.ts'
import type { With } from '../audit/parts.ts'
import { inMonth, monthOf } from './budget-state.ts'

export interface BudgetNewsParts extends With<'stores' | 'clock' | 'bus'> {
  mailer: Pick<Mailer, 'send'>
  emails: Pick<Emails, 'budgets'>
  emailsPerNamespace: Limiter
  /** Runs background work; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
  onChanged(change: BudgetChange): void
  onUnsent(tenant_id: string): void
}

export interface BudgetChange {
  readonly tenant_id: string
  readonly id: string
  readonly device: string | undefined
  readonly tag: string | undefined
  readonly used: number
  readonly bytes: number
  readonly state: BudgetState
}

export interface BudgetNews {
  readonly changes: Counter<BudgetState>
  announce(judged: readonly BudgetResult[]): void
  /** Sends the e-mails of this month that a crash held back. */
  sendAgain(): Promise<void>
}

const resend_after_ms = 30 * minute_ms
const mostResent = 1_000
const mostRecipients = 50
const mostNamed = 20

export function budgetNews(parts: BudgetNewsParts): BudgetNews {
  const { stores, clock, bus } = parts
  const store = stores.budgetJudgements
  const changes = new Counter(budgetStates)

  function announce(judged: readonly BudgetResult[]): void {
    for (const one of judged) {
      const { row, state, isNews } = one
      // The row may be last month's, and what it stopped is possible again.
      if (state !== row.state || isNews) report(one)
      if (row.stop_recordings === 1 && (state === 'over') !== (row.state === 'over'))
        bus.tell('namespace.changed', { tenant_id: row.tenant_id })
    }
    email(judged.filter(({ isNews }) => isNews))
  }

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

  async function sendAgain(): Promise<void> {
    const now = clock.now()
    const month = monthOf(clock)
    const rows = await store.takeUnsent(iso(now - resend_after_ms), iso(now), mostResent)
    const old = rows.filter((row) => inMonth(row, month).told === 'under').map(({ id }) => id)
    if (old.length > 0) await store.emailed(old, iso(now))
    email(
      rows
        .filter(({ id }) => !old.includes(id))
        .map((row) => ({ row, month, used: row.used, state: row.told, told: row.told, isNews: true })),
    )
  }

  return { changes, announce, sendAgain }
}
