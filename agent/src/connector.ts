// `hawser-agent connector`: every running container of an engine on this machine is a device of its own, with
// its own key and its own tunnel. container-keys.ts decides which device a container is: it keeps its device when
// it is renamed, and a new one takes over the device of a removed one with the same name. When a container stops,
// its tunnel ends; when it is removed, the server is notified and the device gives up its name. A failure affects
// one container only.
import { version } from '@hawser/contract/version'
import {
  containerAddresses,
  engineClient,
  findShadow,
  serveContainer,
  supervise,
  type Container,
  type EngineClient,
  type EngineFacts,
} from '@hawser/engine'
import { readShadow, accountState, today_days } from '@hawser/engine/shadow'
import type { Log } from './agent.ts'
import type { ConnectorConfig } from './connector-config.ts'
import { containerAgents } from './container-agents.ts'
import type { ServedDevice } from './serving.ts'
import { containerKeys, type KeptContainer } from './container-keys.ts'
import type { IdleMemory } from './idle-memory.ts'
import { messageOf } from './message-of.ts'
import { passwords, type Passwords } from './passwords.ts'

export async function runConnector(
  config: ConnectorConfig,
  log: Log,
  signal: AbortSignal,
  memory: IdleMemory,
): Promise<void> {
  const client = engineClient({ endpoint: () => config.engine })
  const isHere = 'socketPath' in config.engine
  const check = passwords({ log })
  const keys = containerKeys(config.keys)
  const agents = containerAgents(config, (device) => keys.told(device), log, memory)

  const fits = ({ labels }: Container): boolean => {
    if (!config.label) return true
    const found = labels[config.label.name]
    return found !== undefined && (config.label.value === undefined || config.label.value === found)
  }

  const supervised = supervise({
    open: (stopped) => engineClient({ endpoint: () => config.engine, signal: stopped }),
    async found({ containers, more }, facts) {
      const listed = new Set(containers.map(({ id }) => id))
      const offered = containers.filter(fits)
      // When the list was cut, a missing container may still exist.
      keys.settle(offered, (id) => more > 0 || listed.has(id))
      const wanted = new Map(
        offered
          .filter((each) => each.running)
          .map((each) => [(keys.of(each.id) ?? keys.add(each)).identity, each]),
      )
      await agents.stopUnless((identity, container) => wanted.get(identity)?.id === container)
      if (signal.aborted) return
      for (const container of wanted.values()) {
        const device = keys.of(container.id)
        if (device) agents.serve(device, container, () => standFor(client, container, facts, check, isHere))
      }
      agents.sayGoodbye(keys.untold(), (device) => goneContainer(device, facts))
    },
    lost: async () => agents.stopUnless(() => false),
    state: async (state, message) =>
      log({ level: state === 'failed' ? 'warn' : 'info', event: `engine.${state}`, why: message }),
    onError: (error) => log({ level: 'debug', event: 'engine.lost', why: messageOf(error) }),
  })
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await supervised[Symbol.asyncDispose]()
  await agents.stopUnless(() => false)
}

const factsOf = ({ arch }: EngineFacts, image: string): ReturnType<ServedDevice['facts']> => ({
  id: 'docker',
  pretty_name: image,
  version: `hawser-${version}`,
  arch,
  platform: 'connector',
})

/** Stands for a removed container while the server is notified. */
function goneContainer({ image }: KeptContainer, facts: EngineFacts): ServedDevice {
  return { facts: () => factsOf(facts, image), serve: async (stream) => void stream.destroy() }
}

function standFor(
  client: EngineClient,
  { id, image }: Container,
  engine: EngineFacts,
  check: Passwords,
  isHere: boolean,
): ServedDevice {
  return {
    facts: () => factsOf(engine, image),
    // This machine may have something else at the address of a container on another machine.
    addresses: async () => (isHere ? containerAddresses(client, id) : []),
    serve: async (stream, shared) =>
      serveContainer(stream, {
        ...shared,
        client,
        container: id,
        // Follows the container's own files. An account without a password never logs in.
        async checkPassword({ name }, password) {
          const entry = readShadow((await findShadow(client, id, name)) ?? '')
          const state = entry && accountState(entry, today_days(Date.now()))
          if (!entry || state?.closed !== undefined || state?.noPassword !== undefined)
            return check.pretend(password)
          return check.matches(password, entry.hash)
        },
      }),
  }
}
