// ssh, scp and forward: they run the OpenSSH programs, with a device in place of a host. The options belong
// to those programs, so the words are parsed the way they do it, just far enough to find the device.
import type { Session } from '@hawser/contract/sessions'
import type { Command } from '../command.ts'
import type { Context } from '../context.ts'
import { CliError, notFoundCode, usageCode } from '../errors.ts'
import { openIdentity } from '../identity.ts'
import { bare, findGateway, launch, targetOf } from '../openssh.ts'
import { findSession } from '../resolve.ts'

/** The options of each program that take a value. */
const ofSsh = 'BbcDEeFIiJLlmOoPpQRSWw'
const ofScp = 'cDFiJloPSX'

/** Counts the leading words that are options or their values. */
function optionWords(words: readonly string[], withValue: string): number {
  let i = 0
  while (i < words.length) {
    const word = words[i]!
    if (word === '--') return i + 1
    if (!/^-./.test(word)) return i
    // Flags may be combined; the first that takes a value takes the rest of the word, or the next word.
    const at = Array.from(word.slice(1)).findIndex((letter) => withValue.includes(letter))
    i += at >= 0 && at === word.length - 2 ? 2 : 1
  }
  return i
}

/** The options that choose the configuration of ssh and its keys (-F, -i, -o), each with its value. */
function configWords(words: readonly string[], withValue: string): string[] {
  const found: string[] = []
  for (let i = 0; i < words.length; i += 1) {
    const letters = Array.from((words[i] ?? '').slice(1))
    const at = letters.findIndex((letter) => withValue.includes(letter))
    if (at < 0) continue
    const value = letters.slice(at + 1).join('') || (words[(i += 1)] ?? '')
    if (/[Fio]/.test(letters[at] ?? '')) found.push(`-${letters[at]}`, value)
  }
  return found
}

/** Runs ssh to a device, as whoever is signed in. */
async function reach(
  context: Context,
  target: string,
  options: readonly string[],
  command: readonly string[],
): Promise<number> {
  const sshid = await targetOf(context, target)
  const { host, port } = await findGateway(context)
  using identity = openIdentity(context)
  const own = await identity.options(configWords(options, ofSsh), bare(host))
  const words = ['-p', port, '-o', `User=${sshid}`, ...options, ...own]
  return await launch('ssh', [...words, '--', bare(host), ...command])
}

export const attach: Command = {
  words: ['attach'],
  summary: 'Continues a session of yours that lost its client, or takes one from another client.',
  arguments: [
    { name: 'ssh options', doc: 'all that ssh takes, such as -i …', optional: true },
    {
      name: 'session',
      doc: 'its uid or the beginning of it; without one the newest that is held',
      optional: true,
      completes: 'session',
    },
  ],
  details: ['With --scrollback as the first word it shows what scrolled by, too.'],
  raw: true,
  async run(given, context) {
    const scrollback = given.words[0] === '--scrollback'
    const words = scrollback ? given.words.slice(1) : given.words
    const count = optionWords(words, ofSsh)
    const [wanted] = words.slice(count)
    const options = words.slice(0, count).filter((word) => word !== '--')
    const session =
      wanted === undefined ? await newestHeld(context) : await findSession(context.api(), wanted)
    if (!session.active) throw new CliError('The session is over.')
    const command = ['hawser-attach', ...(scrollback ? ['-s'] : []), session.uid]
    return reach(context, `${session.username}@${session.device.uid}`, ['-t', ...options], command)
  },
}

/** The newest session that waits for whoever is signed in. */
async function newestHeld(context: Context): Promise<Session> {
  const person = context.accounts.find(context.server())?.username
  const mine = context.credential() === 'token' && person !== undefined ? { person } : {}
  const { body } = await context.api().sessions.list({ query: { active: true, per_page: 100, ...mine } })
  const found = body.find(({ held }) => held)
  if (!found)
    throw new CliError('No session of yours is held; `hawser sessions` shows those that go on.', notFoundCode)
  return found
}

export const ssh: Command = {
  words: ['ssh'],
  summary: 'Opens a shell on a device, or runs a command there, with the ssh of this machine.',
  arguments: [
    {
      name: 'ssh options',
      doc: 'all that ssh takes, such as -A, -L 8080:localhost:80 or -o …',
      optional: true,
    },
    {
      name: '[user@]device',
      doc: 'a device: its name, or its uid or the beginning of it',
      completes: 'device',
    },
    { name: 'command', doc: 'runs there; without one a shell is opened', optional: true, many: true },
  ],
  details: [
    'The exit code is the one of the command, or 255 if there was no connection.',
    'Options of hawser stand before the word ssh.',
    'With --resume as the first word it continues your session there, and opens none.',
  ],
  raw: true,
  async run(given, context) {
    const resumes = given.words[0] === '--resume'
    const all = resumes ? given.words.slice(1) : given.words
    const count = optionWords(all, ofSsh)
    const [target, ...rest] = all.slice(count)
    if (target === undefined)
      throw new CliError('Which device? Usage: hawser ssh [ssh options] [user@]device [command]', usageCode)
    // ssh also takes options after the host, unless a -- came before it.
    const later = all[count - 1] === '--' ? 0 : optionWords(rest, ofSsh)
    const options = [...all.slice(0, count), ...rest.slice(0, later)].filter((word) => word !== '--')
    const command = rest.slice(later)
    if (resumes && command.length > 0)
      throw new CliError('With --resume there is no command: what runs there goes on.', usageCode)
    const wanted = resumes ? ['hawser-attach'] : command
    return reach(context, target, resumes ? ['-t', ...options] : options, wanted)
  },
}

export const scp: Command = {
  words: ['scp'],
  summary: 'Copies files from and to devices, with the scp of this machine.',
  arguments: [
    { name: 'scp options', doc: 'all that scp takes, such as -r or -p', optional: true },
    { name: 'from', doc: 'a file here, or [user@]device:path', many: true, completes: 'file' },
    { name: 'to', doc: 'a file or folder here, or [user@]device:path', completes: 'file' },
  ],
  details: [
    'A colon with a slash before it belongs to the name of a file here. The exit code is the one of scp.',
  ],
  raw: true,
  async run(given, context) {
    const count = optionWords(given.words, ofScp)
    const files = given.words.slice(count)
    const options = given.words.slice(0, count).filter((word) => word !== '--')
    const isThere = (file: string): boolean => /^[^/:]+:/.test(file)
    if (files.length < 2)
      throw new CliError('What, and where to? Usage: hawser scp [scp options] <from>… <to>', usageCode)
    if (!files.some(isThere))
      throw new CliError('None of these is on a device: write device:path.', usageCode)
    const { host, port } = await findGateway(context)
    const places: string[] = []
    for (const file of files) {
      const colon = file.indexOf(':')
      places.push(
        isThere(file) ? `${await targetOf(context, file.slice(0, colon))}@${host}${file.slice(colon)}` : file,
      )
    }
    using identity = openIdentity(context)
    const own = await identity.options(configWords(options, ofScp), bare(host))
    return await launch('scp', ['-P', port, ...options, ...own, '--', ...places])
  },
}

/** Expands `8080`, `8080:80`, `8080:host:80` or `address:8080:host:80` to the form that ssh takes. */
export function forwardOf(text: string): string {
  const parts = text.match(/\[[^\]]*\]|[^:]+/g) ?? []
  const [first = '', second = ''] = parts
  const whole = parts.join(':') === text
  const isPort = (port: string | undefined): boolean => /^\d{1,5}$/.test(port ?? '') && Number(port) <= 65_535
  if (parts.length === 1 && whole && isPort(first)) return `${first}:localhost:${first}`
  if (parts.length === 2 && whole && isPort(first) && isPort(second)) return `${first}:localhost:${second}`
  if (parts.length === 3 && whole && isPort(first) && isPort(parts[2])) return text
  if (parts.length === 4 && whole && isPort(second) && isPort(parts[3])) return text
  throw new CliError(
    `${text} is no forward: write a port, or <port>:<port on the device>, or <port>:<host>:<port>.`,
    usageCode,
  )
}

export const forward: Command = {
  words: ['forward'],
  summary: 'Forwards ports of this machine to a device, or to what it reaches, until Ctrl-C.',
  arguments: [
    {
      name: '[user@]device',
      doc: 'a device: its name, or its uid or the beginning of it',
      completes: 'device',
    },
    {
      name: 'forward',
      doc: '8080, 8080:80 or 8080:host:80: here 8080, there 80',
      optional: true,
      many: true,
    },
  ],
  options: [
    {
      name: 'reverse',
      value: 'forward',
      doc: 'the other way: a port there leads to one here; may be repeated',
      many: true,
    },
    { name: 'socks', value: 'port', doc: 'a SOCKS proxy here that connects from the device' },
    { name: 'identity', short: 'i', value: 'file', doc: 'the private key to log in with', completes: 'file' },
    { name: 'ssh-option', value: 'name=value', doc: 'an option of ssh_config; may be repeated', many: true },
  ],
  async run(given, context) {
    const [target = '', ...here] = given.words
    const [reverse, socks] = [given.values('reverse'), given.value('socks')]
    const wanted = [
      ...here.flatMap((text) => ['-L', forwardOf(text)]),
      ...reverse.flatMap((text) => ['-R', forwardOf(text)]),
      ...(socks === undefined ? [] : ['-D', socks]),
    ]
    if (wanted.length === 0)
      throw new CliError('What shall be forwarded? For example: hawser forward crane 8080:80', usageCode)
    const sshid = await targetOf(context, target)
    const { host, port } = await findGateway(context)
    context.say(
      `Forwarding ${[...here, ...reverse, ...(socks === undefined ? [] : [`SOCKS on ${socks}`])].join(', ')}; Ctrl-C ends it.`,
    )
    const own = ['-N', '-o', 'ExitOnForwardFailure=yes', '-o', 'ServerAliveInterval=30']
    using identity = openIdentity(context)
    const options = sshOptions(given)
    const certified = await identity.options(options, bare(host))
    const words = ['-p', port, '-o', `User=${sshid}`, ...own, ...options, ...certified, ...wanted]
    return await launch('ssh', [...words, '--', bare(host)])
  },
}

/** The ssh options of commands that have --identity and --ssh-option. */
export function sshOptions(given: Parameters<Command['run']>[0]): string[] {
  const identity = given.value('identity')
  return [
    ...given.values('ssh-option').flatMap((option) => ['-o', option]),
    ...(identity === undefined ? [] : ['-i', identity]),
  ]
}
