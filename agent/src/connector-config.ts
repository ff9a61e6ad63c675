// The settings of the connector. Besides the agent's: DOCKER_HOST (unix:///var/run/docker.sock), DOCKER_TLS_VERIFY and
// DOCKER_CERT_PATH as for the engine's own tools; PRIVATE_KEYS, the folder of the keys; CONNECTOR_LABEL, `name` or
// `name=value`, which a container must have to be offered.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createSecureContext } from 'node:tls'
import type { EngineEndpoint } from '@hawser/engine'
import { ConfigError, readCommon, type AgentConfig } from './config.ts'

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
    | 'services'
  >
  readonly keys: string
  readonly engine: EngineEndpoint
  /** Undefined: all containers. */
  readonly label: { readonly name: string; readonly value: string | undefined } | undefined
  /**
   * The length of an attempt to notify the server of a removed container, and of the first pause after it.
   */
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
    // ShellHub's agents name a key here and use its folder.
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
