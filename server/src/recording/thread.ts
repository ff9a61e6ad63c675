// A thread that is started when it is needed and ended when it was idle for a while: an installation that
// never needs it pays nothing for it. A thread that died, or did not answer in time, is replaced at the next
// call. The thread offers functions (`calls` in its file), and is offered some; `close` of it, if there is
// one, is called before the thread is ended.
import os from 'node:os'
import { Worker } from 'node:worker_threads'
import { Failure } from '@hawser/contract/failures'
import { calls, type Calls, type CallHandlers } from './calls.ts'

const idle_ms = 60_000

/** The thread died, or was ended because it took too long: perhaps because of its input. */
export class ThreadEnded extends Error {}

export interface Thread<Theirs extends CallHandlers> extends AsyncDisposable {
  /**
   * Rejects with `ThreadEnded` after `most_ms`, and ends the thread: its work cannot be stopped otherwise.
   */
  call<N extends keyof Theirs & string>(
    most_ms: number,
    name: N,
    ...given: Parameters<Theirs[N]>
  ): Promise<Awaited<ReturnType<Theirs[N]>>>
}

export interface ThreadParts {
  readonly file: URL
  readonly data?: unknown
  readonly offers: CallHandlers
  readonly most_mb: number
  /** Names it in errors. */
  readonly name: string
}

interface Running {
  readonly worker: Worker
  readonly calls: Calls<CallHandlers>
  readonly ended: Promise<void>
  busy: number
}

export function thread<Theirs extends CallHandlers>({
  file,
  data,
  offers,
  most_mb,
  name: threadName,
}: ThreadParts): Thread<Theirs> {
  let running: Running | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false

  function start(): Running {
    const worker = new Worker(file, {
      workerData: data,
      resourceLimits: { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: most_mb },
    })
    const ended = Promise.withResolvers<void>()
    const one: Running = { worker, calls: calls<CallHandlers>(worker, offers), ended: ended.promise, busy: 0 }
    const end = (error: Error): void => {
      if (running === one) running = undefined
      one.calls.end(error)
    }
    worker.on('error', (cause) => end(new ThreadEnded(`the thread of ${threadName} has failed`, { cause })))
    worker.on('exit', () => {
      end(new ThreadEnded(`the thread of ${threadName} has ended`))
      ended.resolve()
    })
    return one
  }

  async function stop(one: Running | undefined): Promise<void> {
    if (!one) return
    if (running === one) running = undefined
    one.worker.ref()
    // Closed in good order, unless the thread does not answer.
    const late = setTimeout(() => void one.worker.terminate(), 2_000)
    await one.calls.call('close').catch(() => undefined)
    clearTimeout(late)
    await one.worker.terminate()
    await one.ended
  }

  async function call(most_ms: number, name: string, ...given: unknown[]): Promise<unknown> {
    if (closed) throw new Failure('unavailable', { message: 'The server is stopping.', retryAfter: 5 })
    clearTimeout(idle)
    const one = (running ??= start())
    one.busy++
    one.worker.ref()
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      late.reject(new ThreadEnded(`the thread of ${threadName} took too long`))
      if (running === one) running = undefined
      void one.worker.terminate()
    }, most_ms)
    timer.unref()
    try {
      return await Promise.race([one.calls.call(name, ...(given as never[])), late.promise])
    } finally {
      clearTimeout(timer)
      one.busy--
      // An idle thread keeps no process alive.
      if (one.busy === 0) one.worker.unref()
      if (one.busy === 0 && running === one) {
        clearTimeout(idle)
        idle = setTimeout(() => void (one.busy === 0 && stop(one)), idle_ms)
        idle.unref()
      }
    }
  }

  return {
    call: call as Thread<Theirs>['call'],
    async [Symbol.asyncDispose]() {
      closed = true
      clearTimeout(idle)
      await stop(running)
    },
  }
}

/**
 * Called by a thread that computes for long: the server's own thread goes first on a busy machine. Only Linux
 * counts this by thread; elsewhere it would be the whole process.
 */
export function giveWay(): void {
  if (process.platform !== 'linux') return
  try {
    os.setPriority(0, 10)
  } catch {
    // A sandbox may forbid it: then this thread competes like the others.
  }
}
