// `hawser-agent connector`: every running container of an engine on this machine is a device of its own, with
// its own key and its own tunnel. A container is known by its id; when it stops its tunnel goes, and when it
// is gone for good its key, too. One container's trouble is its own: the others go on. Settings beside the
// agent's: DOCKER_HOST (unix:///var/run/docker.sock), with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH as the
// engine's own tools have them; PRIVATE_KEYS, the folder of the keys; CONNECTOR_LABEL, `name` or
// `name=value`, which containers must have to be offered.
import { readFileSync, rmSync } from 'node:fs'
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
import type { IdleMemory } from './idle-memory.ts'
import { namespaceFile } from './namespace.ts'
import { serverKeyFile } from './server-key.ts'
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
}

/** Devices are known by the short form of a container's id. */
const shown = 12
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

/** Resolves when the signal stops it. */
export async function runConnector(
  config: ConnectorConfig,
  log: Log,
  signal: AbortSignal,
  memory: IdleMemory,
): Promise<void> {
  const client = engineClient({ endpoint: () => config.engine })
  const check = passwords({ log })
  const running = new Map<string, { readonly stopping: AbortController; readonly ended: Promise<void> }>()
  /** Those that were seen in this life, whose keys are ours to remove. */
  const seen = new Set<string>()
  const keyOf = (id: string): string => path.join(config.keys, `${id.slice(0, shown)}.key`)

  async function stop(ids: Iterable<string>): Promise<void> {
    await Promise.all(
      [...ids].map(async (id) => {
        running.get(id)?.stopping.abort()
        await running.get(id)?.ended
      }),
    )
  }

  function start(container: Container, facts: EngineFacts): void {
    const { id } = container
    const stopping = new AbortController()
    const about = (event: Record<string, unknown>): void => log({ ...event, container: id.slice(0, shown) })
    const agent: AgentConfig = {
      ...config.common,
      keyFile: keyOf(id),
      preferredHostname: container.name
        .replaceAll('.', '_')
        .replaceAll(/[^a-zA-Z0-9_-]/g, '-')
        .slice(0, 64),
      preferredIdentity: id.slice(0, shown),
      singleUserPassword: '',
    }
    const ended = runAgent(agent, about, stopping.signal, memory, standFor(client, container, facts, check))
      .catch((error: unknown) =>
        about({ level: 'error', event: 'container.failed', why: (error as Error).message }),
      )
      .finally(() => void running.delete(id))
    running.set(id, { stopping, ended })
  }

  const fits = ({ labels }: Container): boolean => {
    if (!config.label) return true
    const found = labels[config.label.name]
    return found !== undefined && (config.label.value === undefined || config.label.value === found)
  }

  const supervised = supervise({
    open: (stopped) => engineClient({ endpoint: () => config.engine, signal: stopped }),
    async found({ containers, more }, facts) {
      const wanted = new Map(
        containers.filter((each) => each.running && fits(each)).map((each) => [each.id, each]),
      )
      await stop([...running.keys()].filter((id) => !wanted.has(id)))
      for (const [id, container] of wanted) {
        seen.add(id)
        if (!running.has(id) && !signal.aborted) start(container, facts)
      }
      if (more > 0) return
      const there = new Set(containers.map(({ id }) => id))
      for (const id of seen) {
        if (there.has(id)) continue
        seen.delete(id)
        const key = keyOf(id)
        for (const file of [key, namespaceFile(key), serverKeyFile(key)]) rmSync(file, { force: true })
      }
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

function standFor(
  client: EngineClient,
  { id, image }: Container,
  { arch }: EngineFacts,
  check: Passwords,
): ServedDevice {
  return {
    facts: () => ({
      id: 'docker',
      pretty_name: image,
      version: `hawser-${version}`,
      arch,
      platform: 'connector',
    }),
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
