// Audit streams as administrators manage them: where the log is sent, whether a receiver answers, and dead
// letters. What a receiver needs (URL, secret, certificates) is sealed at rest; the secret is shown once,
// when the stream is created, and a URL, which may have a token in it, is in no entry and no line of the log.
import { createHash, randomBytes } from 'node:crypto'
import { mostStreams, type AuditStream, type DeadLetter } from '@hawser/contract/audit-streams'
import { Failure } from '@hawser/contract/failures'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Receiver, Receivers } from '../../receivers/receivers.ts'
import type { AuditStreamRow, DeadLetterRow } from '../../storage/audit-streams.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'
import type { Audit } from './audit.ts'

export interface AuditStreamParts {
  stores: Stores
  audit: Audit
  vault: Vault
  receivers: Receivers
  clock: Clock
  /** Test messages, by namespace. */
  testsPerNamespace: Limiter
  /** Changes of streams after which an attempt is made at once, by namespace. */
  attemptsPerNamespace: Limiter
  /** Something may be due now. */
  wake(): void
}

const sealed = 'audit stream receiver'

export const openReceiver = (vault: Vault, row: Pick<AuditStreamRow, 'receiver'>): Receiver =>
  JSON.parse(vault.open(sealed, row.receiver)) as Receiver

export function auditStreams(parts: AuditStreamParts): Rules<'auditStreams'> {
  const { stores, audit, vault, receivers, clock, wake } = parts

  const seal = ({ url, secret, ca }: Receiver): string =>
    vault.seal(sealed, JSON.stringify({ url, secret, ca }))

  async function present(tenant_id: string, rows: readonly AuditStreamRow[]): Promise<AuditStream[]> {
    const mine = stores.of(tenant_id)
    const newest = (await mine.audit.head())?.seq ?? 0
    const letters = await mine.auditStreams.letterCounts(rows.map(({ uid }) => uid))
    return rows.map((row) => {
      const { url, ca } = openReceiver(vault, row)
      const isOn = row.enable === 1
      return {
        uid: row.uid,
        tenant_id,
        name: row.name,
        kind: receivers.describe(url).kind,
        url,
        ca,
        enable: isOn,
        state: isOn ? (row.failures > 0 ? 'failing' : 'sending') : 'off',
        sent_seq: row.sent_seq,
        unsent: Math.max(0, newest - row.sent_seq),
        failures: row.failures,
        error: row.error,
        failing_since: row.failing_since || null,
        retry_at: row.retry_at || null,
        sent_at: row.sent_at || null,
        dead_letters: letters.get(row.uid) ?? 0,
        created_at: row.created_at,
      }
    })
  }

  /** What an entry of the audit log shows: of the URL its host, and of the rest whether it is the same. */
  function audited(row: Pick<AuditStreamRow, 'name' | 'enable' | 'receiver'>) {
    const { url, secret, ca } = openReceiver(vault, row)
    const { kind, address } = receivers.describe(url)
    const mark = (text: string): string => vault.mark(sealed, text).slice(0, 16)
    return {
      name: row.name,
      enable: row.enable === 1,
      kind,
      receiver: address,
      url_mark: mark(url),
      secret_mark: kind === 'webhook' ? mark(secret) : null,
      ca: ca && createHash('sha256').update(ca).digest('hex'),
    }
  }
  const targetOf = ({ uid, name }: Pick<AuditStreamRow, 'uid' | 'name'>) => ({
    kind: 'audit stream',
    id: uid,
    name,
  })

  async function mustFind(tenant_id: string, uid: string): Promise<AuditStreamRow> {
    const row = await stores.of(tenant_id).auditStreams.find(uid)
    if (!row) throw new Failure('notFound')
    return row
  }

  async function show(tenant_id: string, uid: string): Promise<AuditStream> {
    const [shown] = await present(tenant_id, [await mustFind(tenant_id, uid)])
    if (!shown) throw new Failure('notFound')
    return shown
  }

  function requireUsable(receiver: Receiver): void {
    const wrong = receivers.check(receiver)
    if (wrong !== undefined)
      throw new Failure('invalid', { message: `${wrong.includes('(ca)') ? 'ca' : 'url'}: ${wrong}` })
  }

  /**
   * When the next attempt is made after a change. Whoever has mended something need not wait, and nobody
   * looks for open ports by changing a URL again and again.
   */
  function nextAttempt(tenant_id: string): string {
    const wait_s = parts.attemptsPerNamespace.take(tenant_id)
    return wait_s === 0 ? '' : iso(clock.now() + wait_s * second_ms)
  }

  /** A name that is taken is a conflict. */
  async function uniquely<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (stores.isDuplicate(error)) throw new Failure('conflict', { cause: error })
      throw error
    }
  }

  return {
    async list({ query }, { tenant_id }) {
      const mine = stores.of(tenant_id).auditStreams
      return { items: await present(tenant_id, await mine.list(query)), total: await mine.count() }
    },
    get: ({ params }, { tenant_id }) => show(tenant_id, params.uid),

    async create({ body }, caller) {
      const { tenant_id } = caller
      const secret = body.secret ?? `hws_${randomBytes(32).toString('base64url')}`
      const receiver = { url: body.url, secret, ca: body.ca ?? null }
      requireUsable(receiver)
      const row = {
        uid: newUuid(),
        name: body.name,
        receiver: seal(receiver),
        enable: body.enable === false ? (0 as const) : (1 as const),
        retry_at: nextAttempt(tenant_id),
        created_at: iso(clock.now()),
      }
      await uniquely(() =>
        audit.change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both find room for the last stream.
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id)
          if ((await mine.auditStreams.count()) >= mostStreams) throw new Failure('streamLimit')
          const head = await mine.audit.head()
          const newest = body.from_start === true ? (head?.first_seq ?? 1) - 1 : (head?.seq ?? 0)
          await mine.auditStreams.insert({ ...row, sent_seq: newest })
          record({ action: 'audit-stream.created', target: targetOf(row), after: audited(row) })
        }),
      )
      wake()
      const shown = await show(tenant_id, row.uid)
      return { ...shown, ...(shown.kind === 'webhook' ? { secret } : {}) }
    },

    async update({ params, body }, caller) {
      const { tenant_id } = caller
      const { uid } = params
      const retry_at = nextAttempt(tenant_id)
      await uniquely(() =>
        audit.change(caller, async (inside, record) => {
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
          if (!same) requireUsable(receiver)
          const change = {
            name: body.name ?? before.name,
            enable: (body.enable ?? before.enable === 1) ? (1 as const) : (0 as const),
            receiver: same ? before.receiver : seal(receiver),
          }
          await mine.save(uid, { ...change, retry_at })
          record({
            action: 'audit-stream.updated',
            target: targetOf(before),
            before: audited(before),
            after: audited(change),
          })
        }),
      )
      wake()
      return show(tenant_id, uid)
    },

    async remove({ params }, caller) {
      const row = await mustFind(caller.tenant_id, params.uid)
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.of(caller.tenant_id).auditStreams.remove(params.uid)))
          throw new Failure('notFound')
        record({ action: 'audit-stream.removed', target: targetOf(row), before: audited(row) })
      })
    },

    async test({ params }, caller) {
      const { tenant_id } = caller
      const row = await mustFind(tenant_id, params.uid)
      const wait_s = parts.testsPerNamespace.take(tenant_id)
      if (wait_s > 0) throw new Failure('tooMany', { retryAfter: wait_s })
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
        // What waits need not wait for the next attempt.
        if (wrong === undefined) await inside.of(tenant_id).auditStreams.save(row.uid, { retry_at: '' })
        // Also of a test that failed: it says which addresses the server reaches.
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
      await mustFind(tenant_id, params.uid)
      const { items, total } = await stores.of(tenant_id).auditStreams.letters(params.uid, query)
      return { items: items.map(presentLetter), total }
    },

    async redeliver({ params, body }, caller) {
      const { tenant_id } = caller
      const id = body.dead_letter === undefined ? undefined : Number(body.dead_letter)
      const retry_at = nextAttempt(tenant_id)
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

const presentLetter = ({ id, from_seq, to_seq, reason, error, queued, at }: DeadLetterRow): DeadLetter => ({
  id: String(id),
  from_seq,
  to_seq,
  reason,
  error,
  queued: queued === 1,
  at,
})
