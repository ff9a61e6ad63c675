// Runs a command of the device's init system. The command is in a session of its own: the person who installs the
// agent, or resets its identity, may be logged in through this very agent. When it stops, their session is
// hung up, and a `restart` that ended with it would leave the device without an agent.
import { spawnSync, type SpawnSyncOptions } from 'node:child_process'

/** Undefined: success. Else the reason, or an empty text. */
export function runCommand([program = '', ...args]: readonly string[]): { readonly why: string } | undefined {
  const options: SpawnSyncOptions & { detached: boolean } = {
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  }
  const { status, error } = spawnSync(program, args, options)
  return status === 0 ? undefined : { why: error ? `: ${error.message}` : '' }
}
