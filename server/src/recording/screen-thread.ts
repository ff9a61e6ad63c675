// Frames of terminals, made in a thread of their own: what a device writes costs the server's thread a copy.
// The thread is started when it is needed and ended when it was idle for a while; one that died or took too
// long is replaced. It makes one frame after the other, because a terminal takes half a megabyte and many
// sessions may be lost at the same moment; those that somebody waits for come first.
import { Worker } from 'node:worker_threads'
import type { Frame, FrameRequest } from './screen-frame.ts'
import type { FrameAnswer } from './screen-worker.ts'

export interface ScreenThread extends AsyncDisposable {
  /** `first`: somebody waits for it. */
  frame(request: FrameRequest, first?: 'first'): Promise<Frame>
  /** Frames that are asked for and not made yet. */
  readonly waiting: number
}

const idle_ms = 60_000
/** One frame takes some tens of milliseconds. */
const longest_ms = 10_000

interface Asked extends PromiseWithResolvers<Frame> {
  readonly request: FrameRequest
}

export function screenThread(): ScreenThread {
  let worker: Worker | undefined
  let making: Asked | undefined
  const queue: Asked[] = []
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function start(): Worker {
    const one = new Worker(new URL('./screen-worker.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 },
    })
    one.unref()
    const end = (error: Error): void => {
      if (worker !== one) return
      worker = undefined
      making?.reject(error)
      done()
    }
    one.on('message', ({ made, error }: FrameAnswer) => {
      if (worker !== one) return
      if (made)
        making?.resolve({ ...made, frame: asBuffer(made.frame), unfinished: asBuffer(made.unfinished) })
      else making?.reject(new Error(error))
      done()
    })
    one.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    one.on('exit', () => end(new Error('the thread of the screens has ended')))
    return one
  }

  function done(): void {
    making = undefined
    makeNext()
  }

  function makeNext(): void {
    if (making) return
    clearTimeout(timer)
    making = queue.shift()
    timer = setTimeout(() => void worker?.terminate(), making ? longest_ms : idle_ms).unref()
    if (!making) return
    worker ??= start()
    worker.postMessage(making.request)
  }

  return {
    async frame(request, first) {
      if (closed) throw new Error('The server is stopping.')
      const asked: Asked = { request, ...Promise.withResolvers<Frame>() }
      if (first) queue.unshift(asked)
      else queue.push(asked)
      makeNext()
      return asked.promise
    },
    get waiting() {
      return queue.length + (making ? 1 : 0)
    },
    async [Symbol.asyncDispose]() {
      closed = true
      clearTimeout(timer)
      for (const { reject } of queue.splice(0)) reject(new Error('The server is stopping.'))
      await worker?.terminate()
    },
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
