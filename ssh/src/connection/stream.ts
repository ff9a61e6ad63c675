// A channel as a stream of Node, for code that needs one: another SSH connection through this one, a pipe to a
// program. Its buffers are the channel's: nothing is taken from the channel before somebody reads, and
// writing waits for the window. What comes on stderr is not part of it.
import { Duplex } from 'node:stream'
import type { Channel } from './channel.ts'

/** For code that wants a Duplex of Node. */
export function channelStream(channel: Channel): Duplex {
  const pull = async (): Promise<void> => {
    for (;;) {
      const chunk = await channel.read()
      if (!chunk) {
        stream.push(null)
        return
      }
      if (chunk.stream === 0) {
        stream.push(chunk.bytes)
        return
      }
    }
  }
  const settle = (work: Promise<void>, done: (error?: Error | null) => void): void => {
    work.then(
      () => done(),
      (error: unknown) => done(error as Error),
    )
  }
  const stream = new Duplex({
    allowHalfOpen: true,
    readableHighWaterMark: 0,
    writableHighWaterMark: 64 * 1024,
    read() {
      pull().catch((error: unknown) => stream.destroy(error as Error))
    },
    write: (bytes: Buffer, _, done) => settle(channel.write(bytes), done),
    writev: (chunks, done) =>
      settle(channel.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer))), done),
    final: (done) => settle(channel.end(), done),
    destroy(error, done) {
      void channel.close('now')
      done(error)
    },
  })
  return stream
}
