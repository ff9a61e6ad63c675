// Delivers audit streams. The log itself is the queue and a stream only has its place in it, so a crash loses
// nothing and entries arrive in order. A round sends one batch for each due stream, longest waiting first, so
// that slow receivers do not delay others. A stream has at most one request under way, and a single node
// delivers it: see storage/audit-streams.ts.
// Entries wait for a week and up to 100,000 of them; what exceeds that when an attempt fails becomes a dead
// letter, with an entry in the log. Dead letters that are sent again come before new entries.
import type { AuditEntry } from '@hawser/contract/audit'
import { iso, second_ms } from '../../kit/clock.ts'
import type { Counter } from '../../kit/counter.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Receiver } from '../../receivers/receivers.ts'
import type { AuditStreamRow, DeadLetterRow } from '../../storage/audit-streams.ts'
import { presentEntry } from './audit-log.ts'
import { openReceiver } from './stream-view.ts'
import { streamOutcomes, type StreamOutcomeParts, type StreamOutcomes } from './stream-outcomes.ts'

export interface StreamDeliveryParts extends StreamOutcomeParts {
  vault: Vault
  /** This process's id among nodes; empty on SQLite. */
  node: string
  isServing: boolean
  onError(error: unknown): void
}

export interface StreamDelivery extends AsyncDisposable {
  wake(): void
  /** Delivers everything due; resolves when nothing is left. */
  settle(): Promise<void>
  readonly batches: Counter<'sent' | 'failed'>
  readonly entries: Counter<'sent' | 'given-up'>
}

const every_ms = 2 * second_ms
const mostAtOnce = 64
const mostInBatch = 100
const largestBatch = 256 * 1024

const window = 20_000

const trimmed = 'The log no longer has these entries.'

/** Resolves to whether the stream has moved on. */
function streamBatches(
  { stores, vault, receivers, clock, node }: StreamDeliveryParts,
  outcomes: StreamOutcomes,
  signal: AbortSignal,
): (uid: string) => Promise<boolean> {
  async function batchOf(tenant_id: string, after: number, last: number): Promise<AuditEntry[]> {
    const mine = stores.of(tenant_id).audit
    const { rows } = await mine.list({ oldest: 1, after, before: last + 1, limit: mostInBatch, window })
    let bytes = 0
    const fitting = rows.findIndex((row) => {
      bytes += row.detail.length + 512
      return bytes > largestBatch
    })
    return rows
      .slice(0, fitting === -1 ? undefined : Math.max(1, fitting))
      .map((row) => presentEntry(tenant_id, row))
  }

  const send = (row: AuditStreamRow, receiver: Receiver, some: readonly AuditEntry[], redelivery: boolean) =>
    receivers.send(
      receiver,
      { stream: row.uid, tenant_id: row.tenant_id, redelivery, test: false, entries: some },
      signal,
    )

  async function sendNext(row: AuditStreamRow, receiver: Receiver): Promise<boolean> {
    const { tenant_id } = row
    const head = await stores.of(tenant_id).audit.head()
    if (!head || head.seq <= row.sent_seq) return false
    if (head.first_seq > row.sent_seq + 1)
      return outcomes.bury(row, receiver, head.first_seq - 1, 'trimmed', trimmed)
    const some = await batchOf(tenant_id, row.sent_seq, head.seq)
    const last = some.at(-1)
    if (!last) return false
    const error = await send(row, receiver, some, false)
    if (signal.aborted) return false
    if (error === undefined) return outcomes.succeeded(row, receiver, some.length, last.seq)
    if (!(await outcomes.failed(row, receiver, error))) return false
    await outcomes.giveUp(row, receiver, head, error)
    return true
  }

  async function sendAgain(row: AuditStreamRow, receiver: Receiver, letter: DeadLetterRow): Promise<boolean> {
    const { tenant_id } = row
    const mine = stores.of(tenant_id)
    const oldest = (await mine.audit.head())?.first_seq ?? 1
    const after = Math.max(letter.from_seq, oldest) - 1
    const some = after < letter.to_seq ? await batchOf(tenant_id, after, letter.to_seq) : []
    const last = some.at(-1)
    if (!last) {
      await mine.auditStreams.saveLetter(letter.id, { queued: 0, reason: 'trimmed', error: trimmed })
      return true
    }
    const error = await send(row, receiver, some, true)
    if (signal.aborted) return false
    if (error !== undefined) {
      await mine.auditStreams.saveLetter(letter.id, { queued: 0, error })
      return outcomes.failed(row, receiver, error)
    }
    if (!(await outcomes.succeeded(row, receiver, some.length, row.sent_seq))) return false
    if (last.seq === letter.to_seq) await mine.auditStreams.removeLetter(letter.id)
    else await mine.auditStreams.saveLetter(letter.id, { from_seq: last.seq + 1 })
    return true
  }

  return async function deliver(uid: string): Promise<boolean> {
    const row = await stores.auditStreamQueue.claim(uid, node, iso(clock.now()))
    if (!row) return false
    const receiver = openReceiver(vault, row)
    const letter = await stores.of(row.tenant_id).auditStreams.queuedLetter(uid)
    return letter ? sendAgain(row, receiver, letter) : sendNext(row, receiver)
  }
}

export function streamDelivery(parts: StreamDeliveryParts): StreamDelivery {
  const { stores, clock, node } = parts
  const queue = stores.auditStreamQueue
  const busy = new Map<string, Promise<boolean>>()
  const stopping = new AbortController()
  const outcomes = streamOutcomes(parts)
  const deliver = streamBatches(parts, outcomes, stopping.signal)
  let looking: Promise<unknown> = Promise.resolve()
  let moves = 0
  let isAwake = false

  async function begin(): Promise<Promise<boolean>[]> {
    isAwake = false
    const room = mostAtOnce - busy.size
    if (room === 0 || stopping.signal.aborted) return []
    const due = await queue.due(node, iso(clock.now()), [...busy.keys()], room)
    return due.map((uid) => {
      const task = deliver(uid)
        .catch((error: unknown) => {
          parts.onError(error)
          return false
        })
        .then((moved) => {
          busy.delete(uid)
          // A stream that did not move waits for the next interval.
          if (moved) {
            moves++
            wake()
          }
          return moved
        })
      busy.set(uid, task)
      return task
    })
  }

  /** One check at a time; calls during one share the next. */
  async function look(): Promise<Promise<boolean>[]> {
    const mine = looking.then(begin).catch((error: unknown) => {
      parts.onError(error)
      return []
    })
    looking = mine
    return mine
  }

  function wake(): void {
    if (!parts.isServing || stopping.signal.aborted || isAwake) return
    isAwake = true
    void look()
  }

  const timer = parts.isServing ? setInterval(wake, every_ms).unref() : undefined

  return {
    batches: outcomes.batches,
    entries: outcomes.entries,
    wake,
    async settle() {
      for (let before = -1; before !== moves;) {
        before = moves
        await Promise.all([...(await look()), ...busy.values()])
      }
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stopping.abort()
      await looking
      await Promise.all(busy.values())
      if (node !== '') await queue.release(node).catch(parts.onError)
    },
  }
}
