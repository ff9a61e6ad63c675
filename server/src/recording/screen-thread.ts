// A thread for work whose cost depends on output of devices: frames of terminals, and screens, parts, small
// pictures and searches of recordings. The server's own thread only copies bytes and reads files. Namespaces
// take turns, one task at a time, so that none can shut out others; tasks that a person waits for come first.
// Queues are bounded. A task ends with its caller: a waiting one is dropped, and a running one cannot read
// its journal further.
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import { concurrencyByKey, type QueueOptions } from '../kit/concurrency.ts'
import { thread, ThreadEnded } from './thread.ts'
import { lentJournals } from './lent-journals.ts'
import type { Frame, FrameRequest } from './screen-frame.ts'
import type { ScreenCalls } from './screen-worker.ts'
import type { Reading } from './storage/storage.ts'

export type JournalCall = <N extends keyof ScreenCalls>(
  file: Reading,
  name: N,
  ...given: Parameters<ScreenCalls[N]> extends [number, ...infer Rest] ? Rest : never
) => Promise<Awaited<ReturnType<ScreenCalls[N]>>>

export interface ScreenThread extends AsyncDisposable {
  /** `first`: a person waits for it. Refused with `tooMany` when too many wait. */
  frame(tenant_id: string, request: FrameRequest, options?: QueueOptions): Promise<Frame>
  hasRoom(tenant_id: string): boolean
  /** Refused with `tooMany` when too many wait. */
  turn<T>(
    tenant_id: string,
    signal: AbortSignal | undefined,
    task: (call: JournalCall) => Promise<T>,
  ): Promise<T>
}

/** One task takes up to a second of processor time; the rest is for a busy machine. */
const longest_ms = 30_000
const waitingNamespaces = 256
const retryAfter_s = 2

/** `waiting`: tasks of one namespace that may wait. */
export function screenThread(waiting: number = sessionLimits.frames.max): ScreenThread {
  const lent = lentJournals()
  const worker = thread<ScreenCalls>({
    file: new URL('./screen-worker.ts', import.meta.url),
    offers: lent.reader,
    most_mb: 256,
    name: 'the screens',
  })
  const turns = concurrencyByKey(waiting, { atOnce: 1, keys: waitingNamespaces })

  async function inTurn<T>(tenant_id: string, task: () => Promise<T>, options?: QueueOptions): Promise<T> {
    const turn = turns.run(tenant_id, task, options)
    if (!turn) throw beyond(sessionLimits.frames, retryAfter_s)
    try {
      return await turn
    } catch (cause) {
      if (!(cause instanceof ThreadEnded)) throw cause
      throw new Failure('unavailable', {
        message: 'The recording takes too long to read.',
        retryAfter: retryAfter_s,
        cause,
      })
    }
  }

  return {
    frame: (tenant_id, request, options) =>
      inTurn(
        tenant_id,
        async () => {
          const made = await worker.call(longest_ms, 'frame', request)
          return { ...made, frame: asBuffer(made.frame), unfinished: asBuffer(made.unfinished) }
        },
        options,
      ),
    hasRoom: turns.hasRoom,
    turn: (tenant_id, signal, task) => {
      const call: JournalCall = async (file, name, ...given) => {
        const journal = lent.lend(file)
        const takeBack = (): void => lent.takeBack(journal)
        signal?.addEventListener('abort', takeBack)
        try {
          signal?.throwIfAborted()
          return await (worker.call as OnThread)(longest_ms, name, journal, ...given)
        } catch (error) {
          // The journal was taken back: its reader need not say that it is closed.
          signal?.throwIfAborted()
          throw error
        } finally {
          signal?.removeEventListener('abort', takeBack)
          takeBack()
        }
      }
      return inTurn(tenant_id, () => task(call), { signal })
    },
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  }
}

type OnThread = (most_ms: number, name: string, ...given: unknown[]) => Promise<never>

export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
