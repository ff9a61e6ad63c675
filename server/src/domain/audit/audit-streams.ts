// Audit streams as administrators manage them: receivers, their tests, and dead letters. URL, secret and
// certificates are sealed at rest; the secret is shown once, and a URL, which may contain a token, is never
// logged or audited.
import { randomBytes } from 'node:crypto'
import { mostStreams, type DeadLetter } from '@hawser/contract/audit-streams'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { beyond, peopleLimits } from '@hawser/contract/limits'
import { iso, second_ms } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { Receiver, Receivers } from '../../receivers/receivers.ts'
import type { DeadLetterRow } from '../../storage/audit-streams.ts'
import { orConflict } from './conflicts.ts'
import type { Rules } from '../callers/rules.ts'
import type { With } from './parts.ts'
import { openReceiver, sealReceiver, streamView, targetOf } from './stream-view.ts'

export interface AuditStreamParts extends With<'stores' | 'audit' | 'vault' | 'clock'> {
  receivers: Receivers
  /** Test messages, by namespace. */
  testsPerNamespace: Limiter
  /** Changes of streams after which an attempt is made at once, by namespace. */
  attemptsPerNamespace: Limiter
  wake(): void
}

export const auditStreams = (parts: AuditStreamParts): Rules<'auditStreams'> => ({
  ...managed(parts),
  ...attempted(parts),
})

type Attempts = 'test' | 'deadLetters' | 'redeliver'

function managed(parts: AuditStreamParts): Omit<Rules<'auditStreams'>, Attempts> {
  const { stores, audit, vault, receivers, clock, wake } = parts
  const view = streamView(parts)

  return {
    async list({ query }, { tenant_id }) {
      const mine = stores.of(tenant_id).auditStreams
      return { items: await view.present(tenant_id, await mine.list(query)), total: await mine.count() }
    },
    get: ({ params }, { tenant_id }) => view.show(tenant_id, params.uid),

    async create({ body }, caller) {
      const { tenant_id } = caller
      const secret = body.secret ?? `hws_${randomBytes(32).toString('base64url')}`
      const receiver = { url: body.url, secret, ca: body.ca ?? null }
      requireUsable(receivers, receiver)
      const row = {
        uid: newUuid(),
        name: body.name,
        receiver: sealReceiver(vault, receiver),
        enable: body.enable === false ? (0 as const) : (1 as const),
        retry_at: nextAttempt(parts, tenant_id),
        created_at: iso(clock.now()),
      }
      await audit
        .change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both create the last stream.
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id)
          if ((await mine.auditStreams.count()) >= mostStreams) throw new Failure('streamLimit')
          const head = await mine.audit.head()
          const newest = body.from_start === true ? (head?.first_seq ?? 1) - 1 : (head?.seq ?? 0)
          await mine.auditStreams.insert({ ...row, sent_seq: newest })
          record({ action: 'audit-stream.created', target: targetOf(row), after: view.audited(row) })
        })
        .catch(orConflict(stores))
      wake()
      const shown = await view.show(tenant_id, row.uid)
      return { ...shown, ...defined({ secret: shown.kind === 'webhook' ? secret : undefined }) }
    },

    async update({ params, body }, caller) {
      const { tenant_id } = caller
      const { uid } = params
      const retry_at = nextAttempt(parts, tenant_id)
      await audit
        .change(caller, async (inside, record) => {
          const mine = inside.of(tenant_id).auditStreams
          const before = await mine.find(uid)
          if (!before) throw new Failure('notFound')
          const old = openReceiver(vault, before)
          const receiver = {
            url: body.url ?? old.url,
            secret: body.secret ?? old.secret,
            ca: body.ca === undefined ? old.ca : body.ca,
          }
          const same = JSON.stringify(receiver) === JSON.stringify(old)
          if (!same) requireUsable(receivers, receiver)
          const change = {
            name: body.name ?? before.name,
            enable: (body.enable ?? before.enable === 1) ? (1 as const) : (0 as const),
            receiver: same ? before.receiver : sealReceiver(vault, receiver),
          }
          await mine.save(uid, { ...change, retry_at })
          record({
            action: 'audit-stream.updated',
            target: targetOf(before),
            before: view.audited(before),
            after: view.audited(change),
          })
        })
        .catch(orConflict(stores))
      wake()
      return view.show(tenant_id, uid)
    },

    async remove({ params }, caller) {
      const row = await view.mustFind(caller.tenant_id, params.uid)
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.of(caller.tenant_id).auditStreams.remove(params.uid)))
          throw new Failure('notFound')
        record({ action: 'audit-stream.removed', target: targetOf(row), before: view.audited(row) })
      })
    },
  }
}

function attempted(parts: AuditStreamParts): Pick<Rules<'auditStreams'>, Attempts> {
  const { stores, audit, vault, receivers, wake } = parts
  const view = streamView(parts)

  return {
    async test({ params }, caller) {
      const { tenant_id } = caller
      const row = await view.mustFind(tenant_id, params.uid)
      const wait_s = parts.testsPerNamespace.take(tenant_id)
      if (wait_s > 0) throw beyond(peopleLimits.streamTests, wait_s)
      const receiver = openReceiver(vault, row)
      const wrong = await receivers.send(receiver, {
        stream: row.uid,
        tenant_id,
        redelivery: false,
        test: true,
        entries: [],
      })
      const outcome = wrong === undefined ? { outcome: 'taken' } : { outcome: 'failed', why: wrong }
      await audit.change(caller, async (inside, record) => {
        if (wrong === undefined) await inside.of(tenant_id).auditStreams.save(row.uid, { retry_at: '' })
        // A failed test is recorded, too: it shows which addresses the server reaches.
        record({
          action: 'audit-stream.tested',
          target: targetOf(row),
          detail: { receiver: receivers.describe(receiver.url).address, ...outcome },
        })
      })
      if (wrong !== undefined) throw new Failure('streamFailed', { message: wrong })
      wake()
    },

    async deadLetters({ params, query }, { tenant_id }) {
      await view.mustFind(tenant_id, params.uid)
      const { items, total } = await stores.of(tenant_id).auditStreams.letters(params.uid, query)
      return { items: items.map(presentLetter), total }
    },

    async redeliver({ params, body }, caller) {
      const { tenant_id } = caller
      const id = body.dead_letter === undefined ? undefined : Number(body.dead_letter)
      const retry_at = nextAttempt(parts, tenant_id)
      const queued = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).auditStreams
        const row = await mine.find(params.uid)
        if (!row) throw new Failure('notFound')
        const letters = await mine.queueLetters(row.uid, id)
        if (id !== undefined && letters.length === 0) throw new Failure('notFound')
        if (letters.length === 0) return 0
        await mine.save(row.uid, { retry_at })
        record({
          action: 'audit-stream.redelivered',
          target: targetOf(row),
          detail: { ranges: letters.map(({ from_seq, to_seq }) => `${from_seq}-${to_seq}`) },
        })
        return letters.length
      })
      if (queued > 0) wake()
      return { queued }
    },
  }
}

function requireUsable(receivers: Receivers, receiver: Receiver): void {
  const wrong = receivers.check(receiver)
  if (wrong !== undefined)
    throw new Failure('invalid', { message: `${wrong.includes('(ca)') ? 'ca' : 'url'}: ${wrong}` })
}

/** At once after a change, but too rarely to scan for open ports by changing a URL repeatedly. */
function nextAttempt({ attemptsPerNamespace, clock }: AuditStreamParts, tenant_id: string): string {
  const wait_s = attemptsPerNamespace.take(tenant_id)
  return wait_s === 0 ? '' : iso(clock.now() + wait_s * second_ms)
}

const presentLetter = ({ id, from_seq, to_seq, reason, error, queued, at }: DeadLetterRow): DeadLetter => ({
  id: String(id),
  from_seq,
  to_seq,
  reason,
  error,
  queued: queued === 1,
  at,
})
