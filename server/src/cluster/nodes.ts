// The nodes of an installation on PostgreSQL. Each gives a sign of life every few seconds; whoever is silent
// for longer is mourned by one of the others: its devices are offline until they come back elsewhere, and its
// sessions are closed. A node that was thought dead, because it was cut off from the database, says again
// what it has when it is back. Nobody is mourned by a node that has itself just come back: then the silence
// was the database's. Nodes that do not hear each other would contradict each other: one without NATS must be
// the only one, and does not start beside another. One that was killed a moment ago gives no further sign,
// and is waited for that long.
import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../storage/stores.ts'

const sign_ms = 2_000
const silence_ms = 10_000
/** Whoever lives gives a sign within it. */
const watching_ms = 2.5 * sign_ms
const look_ms = 250
/** The address of a node without NATS. */
const alone = 'alone'

export interface NodeParts {
  stores: Stores
  id: string
  /**
   * Where other nodes reach us; empty when that is no address that another one could have had before;
   * undefined without NATS.
   */
  address: string | undefined
  /** We were thought dead: what we have is to be written again. */
  returned(): Promise<void>
  onLost(id: string, left: { devices: number; sessions: number }): void
  onError(error: unknown): void
}

export interface Nodes extends AsyncDisposable {
  /** When the database last answered, in milliseconds of `performance.now()`. */
  readonly signed_at: number
  /** Whether what is to be done by one node alone is ours to do. */
  readonly leading: boolean
  /** Called when that changes. */
  onLeading(hearer: () => void): void
  /**
   * Called after every look for nodes that are gone, whether or not there was one: what they left may be
   * taken over.
   */
  onMourning(hearer: () => void): void
}

export async function nodes(parts: NodeParts): Promise<Nodes> {
  const { stores, id } = parts
  const address = parts.address ?? alone
  let signed_at = performance.now()
  /** Since when all signs have been given. */
  let steady_at = performance.now()
  let running = Promise.resolve()
  let leading = false
  const hearers = new Set<() => void>()
  const mourners = new Set<() => void>()

  async function bury(gone: string): Promise<void> {
    const { devices, sessions } = await stores.nodes.bury(gone)
    parts.onLost(gone, { devices: devices.length, sessions: sessions.length })
  }

  async function sign(): Promise<void> {
    const known = await stores.nodes.sign(id, address)
    const now = performance.now()
    if (now - signed_at > silence_ms / 2) steady_at = now
    signed_at = now
    if (!known) await parts.returned()
    await lead()
    if (now - steady_at < silence_ms) return
    for (const gone of await stores.nodes.lost(silence_ms)) await bury(gone)
    for (const orphaned of await stores.nodes.orphans()) await bury(orphaned)
    for (const mourner of mourners) mourner()
  }

  async function lead(): Promise<void> {
    const first = (await stores.nodes.first()) === id
    if (first === leading) return
    leading = first
    for (const hearer of hearers) hearer()
  }

  await stores.nodes.sign(id, address)
  try {
    await fitTogether(stores, id, address)
  } catch (error) {
    await stores.nodes.leave(id)
    throw error
  }
  if (address !== '' && address !== alone)
    for (const gone of await stores.nodes.predecessors(id, address)) await bury(gone)
  await lead()
  const timer = setInterval(() => void (running = running.then(sign).catch(parts.onError)), sign_ms)
  timer.unref()

  return {
    get signed_at() {
      return signed_at
    },
    get leading() {
      return leading
    },
    onLeading: (hearer) => void hearers.add(hearer),
    onMourning: (hearer) => void mourners.add(hearer),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await running
      await stores.nodes.bury(id).catch(parts.onError)
      await stores.nodes.leave(id).catch(parts.onError)
    },
  }
}

/** Throws when another node lives that could not hear us, or we it. */
async function fitTogether(stores: Stores, id: string, address: string): Promise<void> {
  const unheard = async () =>
    (await stores.nodes.others(id, silence_ms)).filter(
      (other) => address === alone || other.address === alone,
    )
  const before = new Map((await unheard()).map((other) => [other.id, other.seen]))
  for (
    const began = performance.now();
    before.size > 0 && performance.now() - began < watching_ms;
    await wait(look_ms)
  ) {
    // Of two that start at once, each is to see that the other lives.
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
