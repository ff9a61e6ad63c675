// Passes the output of a program to its reader, one piece at a time: the next piece is read when the one
// before has been sent, so that a slow reader slows the program and nothing piles up here. Everything that
// the program has written is passed on, also after it ended. Processes that it left behind may hold its
// output open for ever. sshd waits for them. We wait while output keeps coming, for at most as much as a pipe
// can hold: the program's own last output is no more than what lies in the pipe when it ends.
import type { Readable } from 'node:stream'

/** Silence after the end of the program, not counting the time that the reader takes. */
const silence_ms = 1_000
/** The most that the kernel lets a pipe hold (fs.pipe-max-size). */
const leftover_bytes = 1024 * 1024

/** Resolves when there is no more; rejects when the reader is gone. Either way the output is closed. */
export async function passOutput(
  output: Readable,
  ended: Promise<unknown>,
  write: (bytes: Buffer) => Promise<void>,
): Promise<void> {
  let over = false
  let waiting = false
  let left_bytes = leftover_bytes
  let silence: NodeJS.Timeout | undefined
  const watch = (): void => {
    clearTimeout(silence)
    if (over && waiting) silence = setTimeout(() => output.destroy(), silence_ms)
  }
  void ended.then(() => {
    over = true
    watch()
  })
  // Told to the iterator as well, which may have gone by then.
  output.on('error', () => undefined)
  const pieces = (output as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  try {
    while (left_bytes > 0) {
      waiting = true
      watch()
      const piece = await nextOf(pieces)
      waiting = false
      clearTimeout(silence)
      if (!piece) return
      if (over) left_bytes -= piece.length
      await write(piece)
    }
  } finally {
    clearTimeout(silence)
    output.destroy()
  }
}

/**
 * A terminal whose last program is gone gives an error (EIO) instead of an end, and so does an output that we
 * closed.
 */
async function nextOf(pieces: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  try {
    const piece = await pieces.next()
    return piece.done ? undefined : piece.value
  } catch {
    return undefined
  }
}
