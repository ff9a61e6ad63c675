// Composition of this node among others: it signs on, hears when others took it for lost, and ends when it hangs.
import { addressText, nodes, type Nodes } from '../cluster/nodes.ts'
import { watchdog } from '../cluster/watchdog.ts'
import type { Audit } from '../domain/audit/audit.ts'
import { cleanUpAfter } from '../domain/sessions/live-sessions.ts'
import type { Foundation } from './foundation.ts'

/** Devices or sessions that another node has written off in the database while this node still has them. */
export interface Revivable {
  revive(): Promise<void>
}

/** Undefined where this process is the only one on the database. */
export async function openNodes(
  foundation: Foundation,
  audit: Audit,
  ours: readonly Revivable[],
): Promise<Nodes | undefined> {
  const { config, log, stores, background, node, clustered, serving } = foundation
  if (node === '' || !serving) return undefined
  if (clustered) background.own(watchdog((err) => log.error({ event: 'node.unwatched', err })))
  const listen = config.HAWSER_NODE_ADDRESS
  return background.own(
    await nodes({
      stores,
      id: node,
      address: clustered && listen ? addressText(listen) : undefined,
      async returned() {
        log.warn({
          event: 'node.returned',
          message: 'other nodes took this one for lost; it writes its devices and sessions again',
        })
        for (const one of ours) await one.revive()
      },
      cleanUp: (lost) => cleanUpAfter({ stores, audit }, lost),
      onLost: (id, left) => log.warn({ event: 'node.lost', node: id, ...left }),
      onError: (err) => log.error({ event: 'node.unsigned', err }),
    }),
  )
}
