// A gateway's input and requests for a running program.
import type { Channel, Chunk, Session } from '@hawser/ssh'
import type { RunningProgram } from './program.ts'

/** Resolves at the end of the input. `isWanted`: whether this channel still has the program. */
export async function passInput(
  channel: Channel,
  running: RunningProgram,
  isWanted: () => boolean = () => true,
): Promise<void> {
  // Input that the program does not read is dropped, or the client would wait for ever.
  let wanted = true
  const take = ({ bytes, stream }: Chunk): Promise<void> | void => {
    if (stream !== 0 || !wanted || !isWanted()) return undefined
    const taken = running.write(bytes)
    if (typeof taken !== 'boolean') return taken.then((all) => void (wanted = all))
    wanted = taken
    return undefined
  }
  try {
    await channel.readAll(take)
  } catch {
    // The connection broke off.
  }
}

export async function passEvents(
  session: Pick<Session, 'events'>,
  running: Pick<RunningProgram, 'resize' | 'signal' | 'interrupt'>,
): Promise<void> {
  for await (const event of session.events) {
    if (event.type === 'window-change') running.resize(event.size)
    else if (event.type === 'signal') running.signal(event.signal)
    else running.interrupt()
  }
}
