// Requests that only another node can serve: its sessions, the tickets it issued, streams of its tunnels.
import type { Upgrade } from '../http/upgrade.ts'
import type { Neighbours } from './neighbours.ts'

/** Hands a request to the node that has registered its name; without one, it is served here. */
export function elsewhereFirst(
  neighbours: Pick<Neighbours, 'forward'> | undefined,
  here: (upgrade: Upgrade) => Promise<void>,
  name: (upgrade: Upgrade) => string | undefined,
): (upgrade: Upgrade) => Promise<void> {
  if (!neighbours) return here
  return async (upgrade) => {
    const wanted = name(upgrade)
    if (wanted === undefined || !(await neighbours.forward(wanted, upgrade))) await here(upgrade)
  }
}
