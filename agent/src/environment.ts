// The variables of a program: those of sshd, the device's own for language and paths, and of the client's
// only a short list and those of the namespace. All others are dropped here (LD_PRELOAD runs code, PATH and
// BASH_ENV choose it). Values of listed variables are harmless text, because the tools that drop root's
// rights read them, too.
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { defined } from '@hawser/contract/defined'
import { readNamed } from '@hawser/contract/environment'
import { personVariable } from '@hawser/contract/tunnel'
import type { Account } from './users.ts'

export const passedOn: readonly string[] = [
  'LANG',
  'LC_*',
  'COLORTERM',
  'TERM_PROGRAM',
  'TERM_PROGRAM_VERSION',
]

const language = /^(?:LANG|LC_[A-Z]+|LANGUAGE)$/
const harmless = /^[\w .,:;@+=~-]{0,128}$/

/** The first of these files that names a variable wins. */
const languageFiles = ['/etc/locale.conf', '/etc/default/locale', '/etc/environment']
const pathFile = '/etc/environment'
const rootsPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const othersPath = '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games'

export interface Endpoint {
  readonly address: string
  readonly port: number
}

export interface EnvironmentOptions {
  readonly account: Account
  readonly deviceName: string
  readonly client: Endpoint
  /** Who opened the session; undefined: unknown. */
  readonly person?: string | undefined
  readonly server: Endpoint
  readonly sent: ReadonlyMap<string, string>
  readonly terminal?: string | undefined
  readonly agentSocket?: string | undefined
  readonly device: DeviceVariables
}

export interface DeviceVariables {
  readonly language: Readonly<Record<string, string>>
  readonly path: string | undefined
}

export function mayPass(name: string, value: string): boolean {
  const listed = passedOn.some((entry) =>
    entry.endsWith('*') ? /^LC_[A-Z]{1,32}$/.test(name) : entry === name,
  )
  return (listed && harmless.test(value)) || readNamed(name, value) !== undefined
}

/** "<address> <port>", as the gateway writes it; undefined: malformed. */
export function readEndpoint(text: string): Endpoint | undefined {
  const [address = '', port = '', ...rest] = text.split(' ')
  if (rest.length > 0 || isIP(address) === 0 || !/^\d{1,5}$/.test(port)) return undefined
  return { address, port: Number(port) }
}

export function environmentOf(options: EnvironmentOptions): Record<string, string> {
  const { account, deviceName, client, person, server, sent, terminal, agentSocket, device } = options
  return {
    ...device.language,
    ...Object.fromEntries(
      [...sent].flatMap(([name, value]) =>
        mayPass(name, value) ? [[readNamed(name, value) ?? name, value]] : [],
      ),
    ),
    HOME: account.home,
    SHELL: account.shell,
    USER: account.name,
    LOGNAME: account.name,
    PATH: device.path ?? (account.uid === 0 ? rootsPath : othersPath),
    SSH_CLIENT: `${client.address} ${client.port} ${server.port}`,
    SSH_CONNECTION: `${client.address} ${client.port} ${server.address} ${server.port}`,
    // The first is the name that scripts on existing fleets know.
    SHELLHUB_HOST: deviceName,
    HAWSER_DEVICE: deviceName,
    ...defined({
      [personVariable]: person,
      // SSH_TTY is set with the terminal, see pty.ts.
      TERM: terminal === undefined ? undefined : terminalName(terminal),
      SSH_AUTH_SOCK: agentSocket,
    }),
  }
}

function terminalName(name: string): string {
  return /^[\w.+-]{1,64}$/.test(name) ? name : 'xterm'
}

/** Read anew for each program: settings of a device change while its agent runs. */
export async function deviceVariables(
  files: readonly string[] = languageFiles,
  paths: string = pathFile,
): Promise<DeviceVariables> {
  const text = async (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '')
  const distinct = [...new Set([...files, paths])]
  const read = await Promise.all(distinct.map(async (file) => [file, assignments(await text(file))] as const))
  const assigned = new Map(read)
  const found: Record<string, string> = {}
  for (const file of files) {
    for (const [name, value] of assigned.get(file) ?? [])
      if (language.test(name) && harmless.test(value)) found[name] ??= value
  }
  const path = assigned.get(paths)?.find(([name]) => name === 'PATH')?.[1]
  return { language: Object.keys(found).length === 0 ? { LANG: 'C.UTF-8' } : found, path: path || undefined }
}

/** Lines of NAME=value, the value in quotes or not, with or without `export` before. */
function assignments(text: string): [string, string][] {
  return text.split('\n').flatMap((line): [string, string][] => {
    const read = /^\s*(?:export\s+)?([A-Za-z_]\w*)=(?:"([^"]*)"|'([^']*)'|([^\s#]*))\s*(?:#.*)?$/.exec(line)
    return read ? [[read[1]!, read[2] ?? read[3] ?? read[4] ?? '']] : []
  })
}
