// `hawser-agent connector`: every running container of an engine on this machine is a device of its own, with
// its own key and its own tunnel. Which device a container is says container-keys.ts: it keeps its device when
// it is renamed, and a new one takes over the device of one that is gone and had its name. When a container
// stops its tunnel goes; when it is gone for good, the server is told, and the device gives up its name. One
// container's trouble is its own. Settings beside the agent's: DOCKER_HOST (unix:///var/run/docker.sock), with
// DOCKER_TLS_VERIFY and DOCKER_CERT_PATH as the engine's own tools have them; PRIVATE_KEYS, the folder of the
// keys; CONNECTOR_LABEL, `name` or `name=value`, which containers must have to be offered.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createSecureContext } from 'node:tls'
import { version } from '@hawser/contract/version'
import {
  engineClient,
  findShadow,
  serveContainer,
  supervise,
  type Container,
  type EngineClient,
  type EngineFacts,
  type EngineEndpoint,
} from '@hawser/engine'
import { readShadow, accountState, today_days } from '@hawser/engine/shadow'
import { runAgent, type Log, type ServedDevice } from './agent.ts'
import { ConfigError, readCommon, type AgentConfig } from './config.ts'
import { containerKeys, shown, type KeptContainer } from './container-keys.ts'
import type { IdleMemory } from './idle-memory.ts'
import { goneReason } from './leaving.ts'
import { passwords, type Passwords } from './passwords.ts'

export interface ConnectorConfig {
  readonly common: Pick<
    AgentConfig,
    | 'server'
    | 'tenant_id'
    | 'enrolmentToken'
    | 'settingsFile'
    | 'features'
    | 'keepalive_ms'
    | 'caFile'
    | 'resetCopied'
    | 'compression'
    | 'longestPing_s'
  >
  /** Where the keys of the containers are. */
  readonly keys: string
  readonly engine: EngineEndpoint
  /** Undefined: all containers. */
  readonly label: { readonly name: string; readonly value: string | undefined } | undefined
  /** How long an attempt to notify the server of a removed container lasts, and the first pause after it. */
  readonly farewell_ms: number
}

const defaultEngine = 'unix:///var/run/docker.sock'

export function readConnectorConfig(
  environment: Readonly<Record<string, string | undefined>>,
  isRoot: boolean,
): ConnectorConfig {
  const { find, must, finish, common } = readCommon(environment)
  const host = find('DOCKER_HOST') || defaultEngine
  const kind = /^(unix|tcp|http|https):\/\//.exec(host)?.[1]
  must(
    'DOCKER_HOST',
    kind !== undefined,
    `unix:///path or tcp://host:port is expected, for example ${defaultEngine}`,
  )
  finish()
  const keys =
    find('PRIVATE_KEYS') ||
    (isRoot ? '/etc/hawser-agent-keys' : path.join(os.homedir(), '.hawser-agent-keys'))
  const [name = '', value] = find('CONNECTOR_LABEL').split(/=(.*)/s)
  return {
    common,
    // The original's agents take the folder of what is named here.
    keys: path.resolve(keys.endsWith('.key') ? path.dirname(keys) : keys),
    engine:
      kind === 'unix'
        ? { socketPath: host.slice('unix://'.length) }
        : tcp(host, kind === 'https' || find('DOCKER_TLS_VERIFY') !== '', find),
    label: name === '' ? undefined : { name, value },
    farewell_ms: 60 * 60_000,
  }
}

function tcp(host: string, secure: boolean, find: (name: string) => string): EngineEndpoint {
  const { hostname, port, host: name } = new URL(host.replace(/^tcp:/, 'http:'))
  const plain = hostname.replace(/^\[(.*)\]$/, '$1')
  const to = { host: plain, port: Number(port) || (secure ? 2376 : 2375), name }
  if (!secure) return to
  const folder = find('DOCKER_CERT_PATH') || path.join(os.homedir(), '.docker')
  try {
    const read = (file: string): Buffer => readFileSync(path.join(folder, file))
    const secureContext = createSecureContext({
      ca: read('ca.pem'),
      cert: read('cert.pem'),
      key: read('key.pem'),
      minVersion: 'TLSv1.2',
    })
    return { ...to, tls: { secureContext, servername: isIP(plain) ? '' : plain } }
  } catch (error) {
    throw new ConfigError(
      `HAWSER_DOCKER_CERT_PATH: ca.pem, cert.pem and key.pem in ${folder} cannot be used: ${(error as Error).message}`,
    )
  }
}

/** The reason with which an agent stops that could not notify the server; it may have rejected the device. */
const unheardReason = 'unheard'
/** The longest pause between two attempts, in lengths of one. Attempts end when the key is forgotten. */
const longestPause = 24

/** The agent of one container. */
interface RunningContainer {
  /** Undefined: the container is gone, and the server is being told. */
  readonly container: string | undefined
  readonly stopping: AbortController
  readonly ended: Promise<void>
  /** The container has this name now. */
  rename(name: string): void
}

/** What the server is told that a container is called. */
const hostnameOf = (name: string): string =>
  name
    .replaceAll('.', '_')
    .replaceAll(/[^a-zA-Z0-9_-]/g, '-')
    .slice(0, 64)

/** Resolves when the signal stops it. */
export async function runConnector(
  config: ConnectorConfig,
  log: Log,
  signal: AbortSignal,
  memory: IdleMemory,
): Promise<void> {
  const client = engineClient({ endpoint: () => config.engine })
  const check = passwords({ log })
  const keys = containerKeys(config.keys)
  const running = new Map<string, RunningContainer>()
  /** When the agent may try again to notify the server of a container that is gone, by performance.now(). */
  const postponed = new Map<string, { readonly until: number; readonly times: number }>()

  function postpone(identity: string): void {
    const times = (postponed.get(identity)?.times ?? 0) + 1
    const pause_ms = config.farewell_ms * Math.min(2 ** (times - 1), longestPause)
    postponed.set(identity, { until: performance.now() + pause_ms, times })
  }

  async function stop(identities: Iterable<string>): Promise<void> {
    await Promise.all(
      [...identities].map(async (identity) => {
        running.get(identity)?.stopping.abort()
        await running.get(identity)?.ended
      }),
    )
  }

  /** Runs the agent of a device until it is stopped. */
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
      .catch((error: unknown) =>
        about({ level: 'error', event: 'container.failed', why: (error as Error).message }),
      )
      .finally(() => {
        clearTimeout(limit)
        running.delete(identity)
        if (container !== undefined) return
        if (stopping.signal.reason === goneReason) return keys.told(device)
        if (stopping.signal.reason !== unheardReason) return
        postpone(identity)
        about({
          level: 'warn',
          event: 'container.unheard',
          why: 'The server was not notified that the container is gone; the agent tries again later.',
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
      // When the list was cut, a container that is not in it may still exist.
      keys.settle(offered, (id) => more > 0 || listed.has(id))
      const wanted = new Map(
        offered
          .filter((each) => each.running)
          .map((each) => [(keys.of(each.id) ?? keys.add(each)).identity, each]),
      )
      await stop(
        [...running]
          .filter(([identity, { container }]) => wanted.get(identity)?.id !== container)
          .map(([identity]) => identity),
      )
      if (signal.aborted) return
      for (const [identity, container] of wanted) {
        const device = keys.of(container.id)
        running.get(identity)?.rename(container.name)
        if (device && !running.has(identity))
          run(device, container.id, standFor(client, container, facts, check))
      }
      const untold = new Map(keys.untold().map((device) => [device.identity, device]))
      for (const identity of postponed.keys()) if (!untold.has(identity)) postponed.delete(identity)
      for (const [identity, device] of untold)
        if (!running.has(identity) && (postponed.get(identity)?.until ?? 0) <= performance.now())
          run(device, undefined, goneContainer(device, facts))
    },
    lost: async () => stop(running.keys()),
    state: async (state, message) =>
      log({ level: state === 'failed' ? 'warn' : 'info', event: `engine.${state}`, why: message }),
    onError: (error) =>
      log({
        level: 'debug',
        event: 'engine.lost',
        why: error instanceof Error ? error.message : String(error),
      }),
  })
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await supervised[Symbol.asyncDispose]()
  await stop(running.keys())
}

const factsOf = ({ arch }: EngineFacts, image: string): ReturnType<ServedDevice['facts']> => ({
  id: 'docker',
  pretty_name: image,
  version: `hawser-${version}`,
  arch,
  platform: 'connector',
})

/** Stands for a container that is gone while the server is told so. */
function goneContainer({ image }: KeptContainer, facts: EngineFacts): ServedDevice {
  return { facts: () => factsOf(facts, image), serve: async (stream) => void stream.destroy() }
}

function standFor(
  client: EngineClient,
  { id, image }: Container,
  engine: EngineFacts,
  check: Passwords,
): ServedDevice {
  return {
    facts: () => factsOf(engine, image),
    serve: async (stream, shared) =>
      serveContainer(stream, {
        ...shared,
        client,
        container: id,
        // As the container's own files say, and never for an account that has none.
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
