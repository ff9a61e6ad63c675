// For attacks on devices that may no longer connect: programs of people on the device, by their process, and
// the ways in which somebody takes the device away.
import { expect } from 'vitest'
import { begin, type Restarts } from '../clients/restarts.ts'
import type { Terminal } from '../clients/terminal.ts'
import { eventually } from '../harness/eventually.ts'

export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export const areGone = async (pids: readonly number[]): Promise<void> =>
  eventually(() => expect(pids.filter(isRunning)).toEqual([]))

export const ways = {
  rejected: async ({ api, agent: { uid } }: Restarts) =>
    api().devices.setStatus({ params: { uid, status: 'reject' } }),
  removed: async ({ api, agent: { uid } }: Restarts) => api().devices.remove({ params: { uid } }),
  'deleted with its namespace': async ({ api, owner: { tenant } }: Restarts) =>
    api().namespaces.remove({ params: { tenant } }),
} as const

/** A shell that is ready on a terminal, and its process. */
export async function shellOn(restarts: Restarts): Promise<{ terminal: Terminal; pid: number }> {
  const terminal = restarts.sit()
  return { terminal, pid: Number(await begin(terminal)) }
}

/** Programs of three kinds: on a terminal with a client, on a terminal without one, and without a terminal. */
export async function programsOn(restarts: Restarts): Promise<Disposable & { readonly pids: number[] }> {
  using open = new DisposableStack()
  const held = await shellOn(restarts)
  held.terminal.kill('SIGKILL')
  await held.terminal.ended
  await eventually(async () => expect(await restarts.held()).toHaveLength(1))
  // `-T`, after the `-t` that a command gets here: the program has no terminal.
  const bare = open.use(restarts.sit(['-T', 'echo "process $$"; exec sleep 600']))
  const pid = Number(await bare.until(/process (\d+)\r\n/))
  const shell = open.use(restarts.sit())
  shell.type('n')
  const pids = [held.pid, pid, Number(await begin(shell))]
  expect(pids.filter(isRunning)).toEqual(pids)
  const opened = open.move()
  return { pids, [Symbol.dispose]: () => opened.dispose() }
}
