// The agents of the connector: one for each container that runs, and one for each removed container whose server
// has not been notified yet. A failed notification is tried again after longer and longer pauses.
import type { Container } from '@hawser/engine'
import { runAgent, type Log } from './agent.ts'
import type { AgentConfig } from './config.ts'
import type { ConnectorConfig } from './connector-config.ts'
import { shown, type KeptContainer } from './container-keys.ts'
import type { IdleMemory } from './idle-memory.ts'
import { goneReason } from './leaving.ts'
import { messageOf } from './message-of.ts'
import type { ServedDevice } from './serving.ts'

export interface ContainerAgents {
  serve(device: KeptContainer, container: Container, stand: () => ServedDevice): void
  /** Notifies the server that these containers are removed. */
  sayGoodbye(untold: readonly KeptContainer[], stand: (device: KeptContainer) => ServedDevice): void
  /** `container`: undefined for a removed one. */
  stopUnless(isWanted: (identity: string, container: string | undefined) => boolean): Promise<void>
}

interface RunningAgent {
  /** Undefined: the container is removed, and the server is being notified. */
  readonly container: string | undefined
  readonly stopping: AbortController
  readonly ended: Promise<void>
  rename(name: string): void
}

/** Stops an agent that could not notify the server; the server may have rejected the device. */
const unheardReason = 'unheard'
/** In lengths of one attempt. Attempts end when the key is forgotten. */
const longestPause = 24

const hostnameOf = (name: string): string =>
  name
    .replaceAll('.', '_')
    .replaceAll(/[^a-zA-Z0-9_-]/g, '-')
    .slice(0, 64)

export function containerAgents(
  config: Pick<ConnectorConfig, 'common' | 'farewell_ms'>,
  notified: (device: KeptContainer) => void,
  log: Log,
  memory: IdleMemory,
): ContainerAgents {
  const running = new Map<string, RunningAgent>()
  /** When the agent may next notify the server of a removed container, by performance.now(). */
  const postponed = new Map<string, { readonly until: number; readonly times: number }>()

  function postpone(identity: string): void {
    const times = (postponed.get(identity)?.times ?? 0) + 1
    const pause_ms = config.farewell_ms * Math.min(2 ** (times - 1), longestPause)
    postponed.set(identity, { until: performance.now() + pause_ms, times })
  }

  function run(device: KeptContainer, container: string | undefined, served: ServedDevice): void {
    const { identity, keyFile } = device
    const stopping = new AbortController()
    const about = (event: Record<string, unknown>): void =>
      log({ ...event, container: device.id.slice(0, shown) })
    let hostname = hostnameOf(device.name)
    const watching = new Set<() => void>()
    const agent: AgentConfig = {
      ...config.common,
      keyFile,
      get preferredHostname() {
        return hostname
      },
      preferredIdentity: identity,
      singleUserPassword: '',
    }
    const watched: ServedDevice = {
      ...served,
      watch(changed) {
        watching.add(changed)
        return { [Symbol.dispose]: () => void watching.delete(changed) }
      },
      known: () => container === undefined && stopping.abort(goneReason),
    }
    const limit =
      container === undefined
        ? setTimeout(() => stopping.abort(unheardReason), config.farewell_ms).unref()
        : undefined
    const ended = runAgent(agent, about, stopping.signal, memory, watched)
      .catch((error: unknown) => about({ level: 'error', event: 'container.failed', why: messageOf(error) }))
      .finally(() => {
        clearTimeout(limit)
        running.delete(identity)
        if (container !== undefined) return
        if (stopping.signal.reason === goneReason) return notified(device)
        if (stopping.signal.reason !== unheardReason) return
        postpone(identity)
        about({
          level: 'warn',
          event: 'container.unheard',
          why: 'The server could not be notified that the container is removed; the agent tries again later.',
        })
      })
    running.set(identity, {
      container,
      stopping,
      ended,
      rename(name) {
        if (hostname === hostnameOf(name)) return
        hostname = hostnameOf(name)
        for (const changed of watching) changed()
      },
    })
  }

  return {
    serve(device, { id, name }, stand) {
      running.get(device.identity)?.rename(name)
      if (!running.has(device.identity)) run(device, id, stand())
    },
    sayGoodbye(untold, stand) {
      const identities = new Set(untold.map(({ identity }) => identity))
      for (const identity of postponed.keys()) if (!identities.has(identity)) postponed.delete(identity)
      for (const device of untold)
        if (
          !running.has(device.identity) &&
          (postponed.get(device.identity)?.until ?? 0) <= performance.now()
        )
          run(device, undefined, stand(device))
    },
    async stopUnless(isWanted) {
      const stopped = [...running].filter(([identity, { container }]) => !isWanted(identity, container))
      await Promise.all(
        stopped.map(async ([, { stopping, ended }]) => {
          stopping.abort()
          await ended
        }),
      )
    },
  }
}
