// Collects the garbage of another Node from outside, over its debugger, so that what a program holds can be
// told from what it has not yet thrown away. The debugger is started by the signal that Node has for it and
// only then: before, the program runs as it always does. Its Node wants the flag below, for a port of its
// own.
import type { Running } from './programs.ts'

export const collectable = '--inspect-port=127.0.0.1:0'

const addresses = new WeakMap<Running, Promise<string>>()

function addressOf(running: Running): Promise<string> {
  const known = addresses.get(running)
  if (known) return known
  running.child.kill('SIGUSR1')
  const address = running.printed(/Debugger listening on (ws:\S+)/)
  addresses.set(running, address)
  return address
}

/** Returns the memory after that, in MiB. */
export async function collect(running: Running): Promise<number> {
  const socket = new WebSocket(await addressOf(running))
  const { promise: done, resolve, reject } = Promise.withResolvers<number>()
  socket.addEventListener('error', () => reject(new Error('the debugger does not answer')))
  // Twice: a second collection frees what a first one releases.
  const questions = [
    { method: 'HeapProfiler.collectGarbage' },
    { method: 'HeapProfiler.collectGarbage' },
    {
      method: 'Runtime.evaluate',
      params: { expression: 'process.memoryUsage().heapUsed + process.memoryUsage().external' },
    },
  ]
  const ask = (id: number): void => socket.send(JSON.stringify({ id, ...questions[id] }))
  socket.addEventListener('open', () => ask(0))
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id: number; result: { result?: { value: number } } }
    if (id + 1 < questions.length) ask(id + 1)
    else resolve((result.result?.value ?? 0) / 2 ** 20)
  })
  try {
    return await done
  } finally {
    // A Node waits with its end for its debugger to leave.
    socket.close()
  }
}
