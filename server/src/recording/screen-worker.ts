// The thread that makes frames (screen-frame.ts), one after the other. It keeps nothing: all that a frame is
// made of comes with the request. What it answers is in memory of its own, which is handed over: of bytes in
// shared memory, the answer would copy all of that memory, and a session would keep it.
import { parentPort } from 'node:worker_threads'
import { invariant } from '@hawser/contract/failures'
import { nextFrame, type Frame, type FrameRequest } from './screen-frame.ts'

export type FrameAnswer = {
  readonly made?: Record<'frame' | 'unfinished', Uint8Array> & Pick<Frame, 'size'>
  readonly error?: string
}

invariant(parentPort, 'this file is a worker')
const port = parentPort
port.on('message', (request: FrameRequest) => {
  nextFrame(request).then(
    ({ frame, size, unfinished }) => {
      const made = { frame: own(frame), size, unfinished: own(unfinished) }
      port.postMessage({ made } satisfies FrameAnswer, [made.frame.buffer, made.unfinished.buffer])
    },
    (error: unknown) => port.postMessage({ error: String(error) } satisfies FrameAnswer),
  )
})

function own(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}
