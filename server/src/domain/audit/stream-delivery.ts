// Delivers audit streams. The log itself is the queue: a stream has only its place in it, so nothing is lost
// when a process dies, and entries come in the order of their numbers. A round looks which streams are due,
// and sends one batch for each; the one that waited longest comes first, so that nobody who answers slowly
// holds up the others. A stream has one request under way at most, and on several nodes one node delivers it
// (storage/audit-streams.ts). After a failure the next attempt waits, longer each time.
//
// Entries wait for a receiver for a week and up to 100,000 of them; what is beyond that when an attempt
// fails is a dead letter, and an entry of the log says so. Dead letters that somebody has sent again come
// before new entries.
import type { AuditEntry } from '@hawser/contract/audit'
import { giveUp_days, mostDeadLetters, mostUnsent } from '@hawser/contract/audit-streams'
import { day_ms, iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Receiver, Receivers } from '../../receivers/receivers.ts'
import type { AuditHeadRow } from '../../storage/audit.ts'
import type { AuditStreamRow, DeadLetterRow } from '../../storage/audit-streams.ts'
import type { Stores } from '../../storage/stores.ts'
import { theServer, type Audit } from './audit.ts'
import { presentEntry } from './audit-log.ts'
import { openReceiver } from './audit-streams.ts'

/**
 * What a stream has come to: the receiver takes nothing, it takes something again, or entries were given up.
 */
export interface StreamEvent {
  readonly event: 'failing' | 'recovered' | 'gave-up'
  readonly stream: string
  readonly tenant_id: string
  /** The host of the receiver. */
  readonly receiver: string
  readonly error?: string
  readonly from_seq?: number
  readonly to_seq?: number
}

export interface StreamDeliveryParts {
  stores: Stores
  audit: Audit
  vault: Vault
  receivers: Receivers
  clock: Clock
  /** This process among those that share the database; empty on SQLite. */
  node: string
  /** Runs rounds by itself. */
  isServing: boolean
  onEvent(event: StreamEvent): void
  onError(error: unknown): void
  random?: () => number
}

export interface StreamDelivery extends AsyncDisposable {
  /** Looks what is due, soon. */
  wake(): void
  /** Delivers everything that is due, and resolves when nothing is. */
  settle(): Promise<void>
  readonly batches: Counter<'sent' | 'failed'>
  readonly entries: Counter<'sent' | 'given-up'>
}

const every_ms = 2 * second_ms
/** Requests under way at once, of all streams. */
const mostAtOnce = 64
const mostInBatch = 100
const largestBatch = 256 * 1024
/** The first wait after a failure, and the longest. */
const wait_ms = { first: 5 * second_ms, longest: 15 * minute_ms }

/** Entries that one statement reads at most for a batch. */
const window = 20_000

export function streamDelivery(parts: StreamDeliveryParts): StreamDelivery {
  const { stores, audit, vault, receivers, clock, node, onEvent, random = Math.random } = parts
  const queue = stores.auditStreamQueue
  const batches = new Counter(['sent', 'failed'] as const)
  const entries = new Counter(['sent', 'given-up'] as const)
  /** Streams with a request under way. */
  const busy = new Map<string, Promise<boolean>>()
  const stopping = new AbortController()
  /** The last look at what is due. */
  let looking: Promise<unknown> = Promise.resolve()
  /** Batches that something came of. */
  let moves = 0
  /** A look is about to begin. */
  let isAwake = false

  /** The next entries after a place, and up to another. */
  async function batchOf(tenant_id: string, after: number, last: number): Promise<AuditEntry[]> {
    const mine = stores.of(tenant_id).audit
    const { rows } = await mine.list({
      oldest: 1,
      after,
      before: last + 1,
      limit: mostInBatch,
      window,
    })
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
      stopping.signal,
    )

  function told(
    row: AuditStreamRow,
    receiver: Receiver,
    about: Pick<StreamEvent, 'event'> & Partial<StreamEvent>,
  ) {
    const { address } = receivers.describe(receiver.url)
    onEvent({ ...about, stream: row.uid, tenant_id: row.tenant_id, receiver: address })
  }

  /** The receiver took a batch. */
  async function succeeded(row: AuditStreamRow, receiver: Receiver, count: number, sent_seq: number) {
    batches.add('sent')
    entries.add('sent', count)
    if (row.failures > 0) told(row, receiver, { event: 'recovered' })
    return stores.of(row.tenant_id).auditStreams.saveAttempt(row, {
      sent_seq,
      sent_at: iso(clock.now()),
      failures: 0,
      error: '',
      failing_since: '',
      retry_at: '',
    })
  }

  /** The receiver did not take a batch. */
  async function failed(row: AuditStreamRow, receiver: Receiver, error: string): Promise<boolean> {
    batches.add('failed')
    if (row.failures === 0) told(row, receiver, { event: 'failing', error })
    const longest = Math.min(wait_ms.longest, wait_ms.first * 2 ** Math.min(row.failures, 20))
    const now = clock.now()
    return stores.of(row.tenant_id).auditStreams.saveAttempt(row, {
      failures: row.failures + 1,
      error,
      failing_since: row.failing_since || iso(now),
      // Half of the wait is chance, so that streams to one receiver do not come back all at once.
      retry_at: iso(now + longest * (0.5 + random() / 2)),
    })
  }

  /**
   * Makes a dead letter of everything up to `to_seq`, and an entry if it does not go on with the last one.
   */
  async function bury(
    row: AuditStreamRow,
    receiver: Receiver,
    to_seq: number,
    reason: DeadLetterRow['reason'],
    error: string,
  ): Promise<boolean> {
    const { uid, tenant_id } = row
    const from_seq = row.sent_seq + 1
    const done = await audit.change({ ...theServer, tenant_id }, async (inside, record) => {
      const mine = inside.of(tenant_id).auditStreams
      if (!(await mine.saveAttempt(row, { sent_seq: to_seq }))) return false
      const last = await mine.newestLetter(uid)
      if (last?.to_seq === row.sent_seq && last.reason === reason && last.queued === 0) {
        await mine.saveLetter(last.id, { to_seq, error })
        return true
      }
      const at = iso(clock.now())
      await mine.addLetter({ stream: uid, from_seq, to_seq, reason, error, at }, mostDeadLetters)
      record({
        action: 'audit-stream.gave-up',
        target: { kind: 'audit stream', id: uid, name: row.name },
        detail: { from_seq, to_seq, reason, error },
      })
      return true
    })
    if (!done) return false
    entries.add('given-up', to_seq - row.sent_seq)
    told(row, receiver, { event: 'gave-up', from_seq, to_seq, error })
    return true
  }

  /** After a failure: what has waited for too long is given up. */
  async function giveUp(row: AuditStreamRow, receiver: Receiver, head: AuditHeadRow, error: string) {
    const old = await stores.auditLogs.lastBefore(row.tenant_id, iso(clock.now() - giveUp_days * day_ms))
    const to_seq = Math.max(old?.seq ?? 0, head.seq - mostUnsent)
    if (to_seq > row.sent_seq) await bury(row, receiver, to_seq, 'unsent', error)
  }

  /** False: nothing came of it. */
  async function sendNext(row: AuditStreamRow, receiver: Receiver): Promise<boolean> {
    const { tenant_id } = row
    const head = await stores.of(tenant_id).audit.head()
    if (!head || head.seq <= row.sent_seq) return false
    if (head.first_seq > row.sent_seq + 1)
      return bury(
        row,
        receiver,
        head.first_seq - 1,
        'trimmed',
        'The log does not keep these entries any more.',
      )
    const some = await batchOf(tenant_id, row.sent_seq, head.seq)
    const last = some.at(-1)
    if (!last) return false
    const error = await send(row, receiver, some, false)
    if (stopping.signal.aborted) return false
    if (error === undefined) return succeeded(row, receiver, some.length, last.seq)
    if (!(await failed(row, receiver, error))) return false
    await giveUp(row, receiver, head, error)
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
      const error = 'The log does not keep these entries any more.'
      await mine.auditStreams.saveLetter(letter.id, { queued: 0, reason: 'trimmed', error })
      return true
    }
    const error = await send(row, receiver, some, true)
    if (stopping.signal.aborted) return false
    if (error !== undefined) {
      await mine.auditStreams.saveLetter(letter.id, { queued: 0, error })
      return failed(row, receiver, error)
    }
    if (!(await succeeded(row, receiver, some.length, row.sent_seq))) return false
    if (last.seq === letter.to_seq) await mine.auditStreams.removeLetter(letter.id)
    else await mine.auditStreams.saveLetter(letter.id, { from_seq: last.seq + 1 })
    return true
  }

  /** Sends one batch of a stream. */
  async function deliver(uid: string): Promise<boolean> {
    const row = await queue.claim(uid, node, iso(clock.now()))
    if (!row) return false
    const receiver = openReceiver(vault, row)
    const letter = await stores.of(row.tenant_id).auditStreams.queuedLetter(uid)
    return letter ? sendAgain(row, receiver, letter) : sendNext(row, receiver)
  }

  /** Begins what is due and has room; gives what it began. */
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
          // What came to nothing is looked at again when the timer says so, and not at once.
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

  /** One look at a time; whoever asks during one is looked after by the next. */
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
    batches,
    entries,
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
