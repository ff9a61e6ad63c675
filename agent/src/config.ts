// The agent's settings. A name is looked for as HAWSER_<NAME>, then SHELLHUB_<NAME>, then bare, so that a
// device which ran the original's agent needs no change. All mistakes are listed together.
import os from 'node:os'
import path from 'node:path'
import { features, longestPing_s, shortestPing_s, type Feature } from '@hawser/contract/tunnel'
import { readServices, type ServicesSetting } from './services-setting.ts'

export interface AgentConfig {
  readonly server: string
  /** Empty: the enrolment token names it. */
  readonly tenant_id: string
  /** Names the namespace until the device has enrolled once; empty: none. */
  readonly enrolmentToken: string
  /** The settings file to take the token out of; or empty. */
  readonly settingsFile: string
  /** Beyond the tunnels of agents in the field. */
  readonly features: readonly Feature[]
  readonly keyFile: string
  readonly keepalive_ms: number
  /** A file with additional certificates of authorities; or empty. */
  readonly caFile: string
  readonly preferredHostname: string
  readonly preferredIdentity: string
  /** A crypt hash; single-user mode, as the agent's own user. */
  readonly singleUserPassword: string
  /** Whether a key from another machine is replaced at the start. */
  readonly resetCopied: boolean
  /** When the agent compresses what it sends to the gateway. */
  readonly compression: (typeof compressions)[number]
  /** Between two pings of an idle tunnel. */
  readonly longestPing_s: number
  /** The targets that people may open as web services. */
  readonly services: ServicesSetting
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

const compressions = ['auto', 'always', 'never'] as const
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

type Environment = Readonly<Record<string, string | undefined>>

export function readCommon(environment: Environment) {
  const problems: string[] = []
  const find = (name: string): string => {
    for (const spelling of [`HAWSER_${name}`, `SHELLHUB_${name}`, name]) {
      const value = environment[spelling]?.trim()
      if (value) return value
    }
    return ''
  }
  const must = (name: string, fits: boolean, sentence: string): void => {
    if (!fits) problems.push(`HAWSER_${name}: ${sentence}`)
  }
  const finish = (): void => {
    if (problems.length > 0)
      throw new ConfigError(
        `These settings cannot be used:\n${problems.map((line) => `  ${line}`).join('\n')}`,
      )
  }

  const server = find('SERVER_ADDRESS').replace(/\/+$/, '')
  const known = URL.canParse(server) && ['http:', 'https:'].includes(new URL(server).protocol)
  must('SERVER_ADDRESS', known, 'use the address of the server, for example https://hawser.example.com')
  const tenant_id = find('TENANT_ID')
  const enrolmentToken = find('ENROLMENT_TOKEN')
  must(
    'TENANT_ID',
    uuid.test(tenant_id) || (tenant_id === '' && enrolmentToken !== ''),
    'use the id of the namespace, which the console shows',
  )
  must('ENROLMENT_TOKEN', /^$|^hwe_[a-z2-7]{32}$/.test(enrolmentToken), 'tokens begin with hwe_')
  // Set to nothing is not the same as not set: then the agent names no features.
  const named = environment.HAWSER_FEATURES
  must(
    'FEATURES',
    named === undefined || /^[a-z, ]*$/.test(named),
    `names separated by commas are expected, of: ${features.join(', ')}`,
  )
  const keepalive = find('KEEPALIVE_INTERVAL') || '30'
  must(
    'KEEPALIVE_INTERVAL',
    /^\d{1,5}$/.test(keepalive) && Number(keepalive) > 0,
    'seconds are expected, for example 30',
  )
  const wanted = find('COMPRESSION') || 'auto'
  const compression = compressions.find((name) => name === wanted)
  must('COMPRESSION', compression !== undefined, `one of ${compressions.join(', ')} is expected`)
  const longestPing = find('PING_INTERVAL') || String(longestPing_s)
  must(
    'PING_INTERVAL',
    /^\d{2,3}$/.test(longestPing) &&
      Number(longestPing) >= shortestPing_s &&
      Number(longestPing) <= longestPing_s,
    `seconds from ${shortestPing_s} to ${longestPing_s} are expected`,
  )
  const services = readServices(find('SERVICES') || 'localhost')
  must(
    'SERVICES',
    services !== undefined,
    'use off, localhost, network or a list, for example localhost:8080, 10.0.0.0/24:80, printer.lan:*, [fd00::1]:443',
  )
  return {
    find,
    must,
    finish,
    common: {
      server,
      tenant_id: tenant_id.toLowerCase(),
      enrolmentToken,
      settingsFile: find('SETTINGS_FILE'),
      features: features.filter((one) => named?.split(/[, ]+/).includes(one) ?? true),
      keepalive_ms: Number(keepalive) * 1000,
      caFile: find('CA_FILE'),
      resetCopied: /^(1|true|yes)$/i.test(find('RESET_COPIED_IDENTITY')),
      compression: compression ?? 'auto',
      longestPing_s: Number(longestPing),
      services: services ?? 'off',
    },
  }
}

export function readConfig(environment: Environment, isRoot: boolean): AgentConfig {
  const { find, must, finish, common } = readCommon(environment)
  const preferredHostname = find('PREFERRED_HOSTNAME')
  must(
    'PREFERRED_HOSTNAME',
    /^[a-zA-Z0-9_.-]{0,64}$/.test(preferredHostname),
    'up to 64 letters, digits and - _ . are expected',
  )
  const singleUserPassword = find('SINGLE_USER_PASSWORD') || find('SIMPLE_USER_PASSWORD')
  must(
    'SINGLE_USER_PASSWORD',
    isRoot ? !singleUserPassword : singleUserPassword !== '',
    isRoot
      ? 'as root, the users of the system log in with their own passwords; remove this setting or run the agent as another user'
      : 'without root, only one user can log in; set a crypt hash of the password (openssl passwd -6)',
  )
  finish()
  return {
    ...common,
    keyFile: path.resolve(
      find('PRIVATE_KEY') ||
        (isRoot ? '/etc/hawser-agent.key' : path.join(os.homedir(), '.hawser-agent.key')),
    ),
    preferredHostname,
    preferredIdentity: find('PREFERRED_IDENTITY'),
    singleUserPassword,
  }
}
