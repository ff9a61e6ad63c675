// For tests: a channel read to its end, and a command run to its.
import type { Channel } from '../src/connection/channel.ts'
import type { Connection } from '../src/connection/connection.ts'
import type { Exit } from '../src/connection/requests.ts'
import { startSession } from '../src/connection/session.ts'

export async function all(channel: Channel): Promise<{ stdout: Buffer; stderr: Buffer }> {
  const parts: [Buffer[], Buffer[]] = [[], []]
  for await (const { bytes, stream } of channel) parts[stream === 0 ? 0 : 1].push(bytes)
  return { stdout: Buffer.concat(parts[0]), stderr: Buffer.concat(parts[1]) }
}

export async function outputOf(
  connection: Connection,
  command: string,
  input: string | Buffer = '',
): Promise<{ stdout: Buffer; stderr: Buffer; exit: Exit | undefined }> {
  const session = await startSession(connection, { program: { type: 'exec', command } })
  const feed = async (): Promise<void> => {
    // A program that wants nothing may be gone by now, and with it the channel.
    if (input.length > 0) await session.channel.write(Buffer.from(input))
    await session.channel.end()
  }
  const [output] = await Promise.all([all(session.channel), feed()])
  return { ...output, exit: await session.exit }
}
