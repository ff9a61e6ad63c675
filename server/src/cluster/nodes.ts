// The nodes of an installation on PostgreSQL. Each writes a heartbeat every few seconds. When a node's
// heartbeats stop for too long, another one marks its devices offline until they connect elsewhere, and
// closes its sessions, except those whose terminals agents keep. A node that was only cut off from the database writes them again when it is back, and
// cleans up after nobody, because then the database was silent and not the others. Nodes that cannot hear
// each other would contradict each other, so a node without NATS must be the only one; at its start it waits
// for the heartbeats of others, which a node killed a moment ago no longer writes.
import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../storage/stores.ts'
import type { PeerAddress } from './peers.ts'

const heartbeat_ms = 2_000
const silence_ms = 10_000
/** A node that is alive writes a heartbeat within this time. */
const watching_ms = 2.5 * heartbeat_ms
const poll_ms = 250
const alone = 'alone'

export interface NodeParts {
  stores: Stores
  id: string
  /**
   * Where other nodes reach this one; empty when no earlier node can have had the same address; undefined
   * without NATS.
   */
  address: string | undefined
  /** Another node has cleaned up after this one: devices and sessions must be written again. */
  returned(): Promise<void>
  cleanUp(id: string): Promise<{ devices: number; sessions: number }>
  onLost(id: string, left: { devices: number; sessions: number }): void
  onError(error: unknown): void
}

export interface Nodes extends AsyncDisposable {
  /** When the database last answered, in milliseconds of `performance.now()`. */
  readonly signed_at: number
  /** Whether this node is the leader, which does what only one node may do. */
  readonly leading: boolean
  /** Called when `leading` changes. */
  onLeading(listener: () => void): void
  /** Called after every check for lost nodes, whether or not one was lost. */
  onCleanup(listener: () => void): void
}

export async function nodes(parts: NodeParts): Promise<Nodes> {
  const { stores, id } = parts
  const address = parts.address ?? alone
  let signed_at = performance.now()
  /** Since when no heartbeat of this node was late. */
  let steady_at = performance.now()
  let running = Promise.resolve()
  /** Whether another node has cleaned up after this one, until everything is written again. */
  let writtenOff = false
  let leading = false
  const leadingListeners = new Set<() => void>()
  const cleanupListeners = new Set<() => void>()

  async function cleanUp(lost: string): Promise<void> {
    parts.onLost(lost, await parts.cleanUp(lost))
  }

  async function heartbeat(): Promise<void> {
    const known = await stores.nodes.sign(id, address)
    const now = performance.now()
    if (now - signed_at > silence_ms / 2) steady_at = now
    signed_at = now
    writtenOff ||= !known
    if (writtenOff) await parts.returned()
    writtenOff = false
    await lead()
    if (now - steady_at < silence_ms) return
    for (const lost of await stores.nodes.lost(silence_ms)) await cleanUp(lost)
    for (const orphaned of await stores.nodes.orphans()) await cleanUp(orphaned)
    for (const listener of cleanupListeners) listener()
  }

  async function lead(): Promise<void> {
    const first = (await stores.nodes.first()) === id
    if (first === leading) return
    leading = first
    for (const listener of leadingListeners) listener()
  }

  await stores.nodes.sign(id, address)
  try {
    await requireHearable(stores, id, address)
  } catch (error) {
    await stores.nodes.leave(id)
    throw error
  }
  if (address !== '' && address !== alone)
    for (const former of await stores.nodes.predecessors(id, address)) await cleanUp(former)
  await lead()
  const timer = setInterval(() => void (running = running.then(heartbeat).catch(parts.onError)), heartbeat_ms)
  timer.unref()

  return {
    get signed_at() {
      return signed_at
    },
    get leading() {
      return leading
    },
    onLeading: (listener) => void leadingListeners.add(listener),
    onCleanup: (listener) => void cleanupListeners.add(listener),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await running
      await stores.nodes.cleanUp(id).catch(parts.onError)
      await stores.nodes.leave(id).catch(parts.onError)
    },
  }
}

/** Empty with a port that the system chooses, which no earlier node can have had. */
export function addressText(address: PeerAddress): string {
  if ('path' in address) return `unix:${address.path}`
  return address.port === 0 ? '' : `${address.host}:${address.port}`
}

/** Throws when another node is alive and the two cannot hear each other. */
async function requireHearable(stores: Stores, id: string, address: string): Promise<void> {
  const unheard = async () =>
    (await stores.nodes.others(id, silence_ms)).filter(
      (other) => address === alone || other.address === alone,
    )
  const before = new Map((await unheard()).map((other) => [other.id, other.seen]))
  for (
    const began = performance.now();
    before.size > 0 && performance.now() - began < watching_ms;
    await wait(poll_ms)
  ) {
    // When two nodes start at once, each must see that the other is alive.
    await stores.nodes.sign(id, address)
    for (const other of await unheard()) {
      if ((before.get(other.id) ?? other.seen) === other.seen) continue
      throw new Failure('unavailable', {
        message:
          address === alone
            ? 'Another node is at work on this database. Several nodes need the same HAWSER_NATS, and a HAWSER_NODE_ADDRESS each.'
            : 'A node without HAWSER_NATS is at work on this database. Stop it, or set HAWSER_NATS and HAWSER_NODE_ADDRESS there, too.',
      })
    }
  }
}
