// Keeps one engine connected: asks for its facts, follows its containers, and reconnects when it is lost,
// with a growing delay and jitter. It retries a broken connection once before it reports the containers as
// lost: a short break of the network must not end people's sessions.
import type { EngineClient } from './client.ts'
import { engineFacts, followContainers, type EngineFacts, type Found } from './containers.ts'

export interface Supervision {
  /** The signal ends requests in progress. */
  open(signal: AbortSignal): EngineClient
  /** The containers of the engine; one call at a time. A failure of it counts as a failure of the engine. */
  found(all: Found, facts: EngineFacts): Promise<void>
  /** The engine cannot be reached, and neither can its containers. */
  lost(): Promise<void>
  /** Called when the state changes. */
  state(state: 'connected' | 'failed', message: string): Promise<void>
  onError(error: unknown): void
  readonly first_ms?: number
  readonly most_ms?: number
}

export interface Supervised extends AsyncDisposable {
  /** Lists or connects now. */
  poke(): void
}

export function supervise({
  open,
  found,
  lost,
  state,
  onError,
  first_ms = 1_000,
  most_ms = 60_000,
}: Supervision): Supervised {
  const stopping = new AbortController()
  const { signal } = stopping
  const client = open(signal)
  const bells = new Set<() => void>()
  const poked = (ring: () => void): Disposable => {
    bells.add(ring)
    return { [Symbol.dispose]: () => void bells.delete(ring) }
  }
  let said: string | undefined
  const say = async (now: 'connected' | 'failed', message: string): Promise<void> => {
    if (said === `${now} ${message}`) return
    said = `${now} ${message}`
    await state(now, message)
  }

  async function pause(wait_ms: number): Promise<void> {
    const over = Promise.withResolvers<void>()
    using _ = poked(over.resolve)
    const timer = setTimeout(over.resolve, wait_ms)
    await over.promise
    clearTimeout(timer)
  }

  async function run(): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      try {
        const facts = await engineFacts(client)
        await followContainers(client, {
          signal,
          poked,
          async found(all) {
            await found(all, facts)
            failures = 0
            await say('connected', all.more > 0 ? `${all.more} containers are too many and not offered.` : '')
          },
        })
      } catch (error) {
        if (signal.aborted) break
        failures += 1
        onError(error)
        // The first failure of a good connection may be a short break.
        if (failures > 1 || said === undefined || said.startsWith('failed')) {
          await lost().catch(onError)
          await say('failed', error instanceof Error ? error.message : 'failed').catch(onError)
        }
        await pause(Math.min(first_ms * 2 ** (failures - 1), most_ms) * (0.5 + Math.random() / 2))
      }
    }
  }

  const running = run().catch(onError)
  return {
    poke: () => bells.forEach((ring) => ring()),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      for (const ring of bells) ring()
      await running
    },
  }
}
