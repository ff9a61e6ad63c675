// The options of `hawser-agent install` and `uninstall`. Everything for a service file, a script or the
// settings is a plain word: no blanks, no quotes, nothing special to a shell or systemd. All mistakes are
// listed together.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { updateKeyPattern } from '@hawser/contract/releases'
import { ConfigError } from '../config.ts'
import { inits, type Init } from './services.ts'

export interface Where {
  /** Empty for this machine; else the folder of a system image. Nothing is started there. */
  readonly root: string
  readonly dir: string
  readonly settings: string
  /** Undefined: from the settings. */
  readonly key: string | undefined
}

export interface Install extends Where {
  readonly init: Init | undefined
  /** Do not contact the server: it cannot be reached yet. */
  readonly offline: boolean
  /** The server's update key; undefined: the first one that the server names is trusted. */
  readonly updateKey: string | undefined
  /** By their names in the settings. */
  readonly given: ReadonlyMap<string, string>
}

export interface Uninstall extends Where {
  readonly purge: boolean
}

/** The settings that have an option, and the form of their values. */
const wanted = {
  server: [
    'HAWSER_SERVER_ADDRESS',
    /^https?:\/\/[\w.-]+(:\d{1,5})?(\/[\w./~-]*)?$|^https?:\/\/\[[\da-f:]+\](:\d{1,5})?$/i,
    'the address of the server, for example https://hawser.example.com',
  ],
  tenant: [
    'HAWSER_TENANT_ID',
    /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i,
    'the id of the namespace, which the console shows',
  ],
  token: ['HAWSER_ENROLMENT_TOKEN', /^hwe_[a-z2-7]{32}$/, 'an enrolment token, which begins with hwe_'],
  name: ['HAWSER_PREFERRED_HOSTNAME', /^[\w.-]{1,64}$/, 'up to 64 letters, digits and - _ .'],
  identity: ['HAWSER_PREFERRED_IDENTITY', /^[\w.:-]{1,255}$/, 'up to 255 letters, digits and - _ . :'],
  keepalive: ['HAWSER_KEEPALIVE_INTERVAL', /^[1-9]\d{0,4}$/, 'seconds, for example 30'],
} as const
export const needed = ['server', 'tenant'] as const
export const serverName = wanted.server[0]
export const tenantName = wanted.tenant[0]
export const tokenName = wanted.token[0]

const where = {
  root: { type: 'string' },
  dir: { type: 'string' },
  settings: { type: 'string' },
  key: { type: 'string' },
} as const
export const defaults = { dir: '/opt/hawser-agent', settings: '/etc/hawser-agent.env' } as const
export const defaultKey = '/etc/hawser-agent.key'

/** At least two names: what is removed must not be a folder of the system. */
const plainPath = /^\/[\w+@.-]+(\/[\w+@.-]+)+$/

export const isPlainPath = (path: string): boolean =>
  plainPath.test(path) && !path.split('/').some((name) => name === '.' || name === '..')

export const usage = `hawser-agent install   installs the agent as a service; run it again to update the agent or change its settings
  --server <address>     of the server, for example https://hawser.example.com
  --tenant <id>          of the namespace; the console shows it. Without it and without a token, install prints a
                         code that a person confirms in the console
  --token-file <file>    with an enrolment token, instead of --tenant. Or --token <token>, which everyone on the
                         machine can see while install runs, or HAWSER_ENROLMENT_TOKEN in the environment
  --name <name>          the name of the device (its hostname)
  --identity <text>      identifies the device to the server (the MAC address of the first network card)
  --keepalive <seconds>  between keepalive messages on a connection
  --update-key <key>     the server's key that signs updates (the first one that the server presents)
  --init <kind>          systemd, openrc, plain (our own script) or none (detected)
  --offline              does not contact the server: the device enrols once it reaches it
  --root <folder>        installs into the folder of another system, such as an image, and starts nothing
  --dir <folder>         for the program (${defaults.dir})
  --settings <file>      (${defaults.settings})
  --key <file>           the device's identity (${defaultKey})
hawser-agent uninstall   removes everything that install created, except the device's identity
  --purge                also removes the identity
  --root --dir --settings --key  as given to install
hawser-agent reset-identity  makes this machine a separate device, after its disk was copied from another
  --settings --key       as given to install
`

export function readInstall(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
): Install {
  const text = { type: 'string' } as const
  const options = {
    ...where,
    init: text,
    offline: { type: 'boolean' } as const,
    server: text,
    tenant: text,
    token: text,
    'token-file': text,
    name: text,
    identity: text,
    keepalive: text,
    'update-key': text,
  }
  const parsed = parse(args, options)
  const problems: string[] = []
  const values: Values = { ...parsed, token: tokenOf(parsed, environment, problems) }
  const given = new Map<string, string>()
  for (const [option, [name, pattern, sentence]] of Object.entries(wanted)) {
    const value = (values[option] as string | undefined)?.replace(option === 'server' ? /\/+$/ : /^$/, '')
    if (value === undefined || value === '') continue
    if (pattern.test(value)) given.set(name, option === 'tenant' ? value.toLowerCase() : value)
    else problems.push(`--${option} is invalid: ${sentence}`)
  }
  const init = inits.find((each) => each === values['init'])
  if (values['init'] !== undefined && !init) problems.push(`--init must be one of ${inits.join(', ')}`)
  const updateKey = values['update-key']
  if (updateKey !== undefined && !new RegExp(updateKeyPattern).test(String(updateKey)))
    problems.push('--update-key is invalid: use the server’s update key, which `hawser agents get` shows')
  return {
    ...readWhere(values, problems),
    init,
    offline: values['offline'] === true,
    given,
    updateKey: updateKey === undefined ? undefined : String(updateKey),
  }
}

export function readUninstall(args: readonly string[]): Uninstall {
  const values = parse(args, { ...where, purge: { type: 'boolean' } })
  return { ...readWhere(values, []), purge: values['purge'] === true }
}

function tokenOf(
  values: Values,
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): string | undefined {
  const { token, 'token-file': file } = values
  if (typeof token === 'string') return token
  if (typeof file !== 'string') return environment[tokenName]
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    problems.push(`--token-file cannot be read: ${(error as Error).message}`)
    return undefined
  }
}

export function missingIn(settings: ReadonlyMap<string, string>): string[] {
  return needed
    .filter((option) => !settings.has(wanted[option][0]) && !(option === 'tenant' && settings.has(tokenName)))
    .map((option) => `--${option} is missing: ${wanted[option][2]}`)
}

type Values = Readonly<Record<string, string | boolean | undefined>>

function parse(
  args: readonly string[],
  options: Record<string, { readonly type: 'string' | 'boolean' }>,
): Values {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new ConfigError(
      `${error instanceof Error ? error.message.split('.')[0] : String(error)}.\n\n${usage}`,
    )
  }
}

function readWhere(values: Values, problems: string[]): Where {
  const root = typeof values['root'] === 'string' ? values['root'].replace(/\/+$/, '') : ''
  if (values['root'] !== undefined && !root.startsWith('/'))
    problems.push('--root is invalid: use an absolute path')
  const read = (name: 'dir' | 'settings' | 'key'): string | undefined => {
    const value = values[name]
    if (typeof value !== 'string' || value === '') return undefined
    if (!isPlainPath(value))
      problems.push(
        `--${name} is invalid: use an absolute path of letters, digits and - _ . + @, with at least two names`,
      )
    return value
  }
  const found = {
    root,
    dir: read('dir') ?? defaults.dir,
    settings: read('settings') ?? defaults.settings,
    key: read('key'),
  }
  if (problems.length > 0)
    throw new ConfigError(`Invalid options:\n${problems.map((line) => `  ${line}`).join('\n')}`)
  return found
}
