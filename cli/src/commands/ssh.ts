// ssh, scp and forward: they run the OpenSSH programs, with a device in place of a host. The options belong
// to those programs, so the words are parsed the way they do it, just far enough to find the device.
import type { Session } from '@hawser/contract/sessions'
import type { Argument, Command, Option } from '../command.ts'
import type { Context } from '../context.ts'
import { CliError, notFoundCode, usageCode } from '../errors.ts'
import { openIdentity } from '../identity.ts'
import { bare, findGateway, launch, targetOf } from '../openssh.ts'
import { findSession } from '../resolve.ts'

const target: Argument = {
  name: '[user@]device',
  doc: 'a device: its name, or its uid or the start of it',
  completes: 'device',
}

/** For commands that run ssh with options of their own. */
export const keyOptions: readonly Option[] = [
  { name: 'identity', short: 'i', value: 'file', doc: 'the private key to log in with', completes: 'file' },
  { name: 'ssh-option', value: 'name=value', doc: 'an option of ssh_config; may be repeated', many: true },
]

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

/** The options that choose the configuration of ssh and its keys (-F, -i, -o), with their values. */
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

/** Runs ssh as the signed-in user. */
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
  summary: 'Reattaches to a held session of yours, or takes one over from another client.',
  arguments: [
    { name: 'ssh options', doc: 'any option of ssh, such as -i …', optional: true },
    {
      name: 'session',
      doc: 'its uid or the start of it; default: the newest held session',
      optional: true,
      completes: 'session',
    },
  ],
  details: ['With --scrollback as the first word it also shows earlier output.'],
  raw: true,
  async run(given, context) {
    const scrollback = given.words[0] === '--scrollback'
    const words = scrollback ? given.words.slice(1) : given.words
    const count = optionWords(words, ofSsh)
    const [wanted] = words.slice(count)
    const options = words.slice(0, count).filter((word) => word !== '--')
    const session =
      wanted === undefined ? await newestHeld(context) : await findSession(context.api(), wanted)
    if (!session.active) throw new CliError('The session has ended.')
    const command = ['hawser-attach', ...(scrollback ? ['-s'] : []), session.uid]
    return reach(context, `${session.username}@${session.device.uid}`, ['-t', ...options], command)
  },
}

/** The newest held session of the signed-in user; with an API key, of anybody. */
async function newestHeld(context: Context): Promise<Session> {
  const person = context.accounts.find(context.server())?.username
  const mine = context.credential() === 'token' && person !== undefined ? { person } : {}
  const { body } = await context.api().sessions.list({ query: { active: true, per_page: 100, ...mine } })
  const found = body.find(({ held }) => held)
  if (!found)
    throw new CliError('You have no held session; `hawser sessions` lists the live ones.', notFoundCode)
  return found
}

export const ssh: Command = {
  words: ['ssh'],
  summary: 'Opens a shell on a device, or runs a command on it, using ssh.',
  arguments: [
    {
      name: 'ssh options',
      doc: 'any option of ssh, such as -A, -L 8080:localhost:80 or -o …',
      optional: true,
    },
    target,
    { name: 'command', doc: 'a command to run; default: opens a shell', optional: true, many: true },
  ],
  details: [
    'The exit code is that of the command, or 255 without a connection.',
    'Options of hawser go before the word ssh.',
    'With --resume as the first word it reattaches to your session instead of opening a new one.',
  ],
  raw: true,
  async run(given, context) {
    const resumes = given.words[0] === '--resume'
    const all = resumes ? given.words.slice(1) : given.words
    const count = optionWords(all, ofSsh)
    const [target, ...rest] = all.slice(count)
    if (target === undefined)
      throw new CliError(
        'No device given. Usage: hawser ssh [ssh options] [user@]device [command]',
        usageCode,
      )
    // ssh also takes options after the host, unless a -- came before it.
    const later = all[count - 1] === '--' ? 0 : optionWords(rest, ofSsh)
    const options = [...all.slice(0, count), ...rest.slice(0, later)].filter((word) => word !== '--')
    const command = rest.slice(later)
    if (resumes && command.length > 0)
      throw new CliError('--resume takes no command: the session is still running one.', usageCode)
    const wanted = resumes ? ['hawser-attach'] : command
    return reach(context, target, resumes ? ['-t', ...options] : options, wanted)
  },
}

export const scp: Command = {
  words: ['scp'],
  summary: 'Copies files from and to devices, using scp.',
  arguments: [
    { name: 'scp options', doc: 'any option of scp, such as -r or -p', optional: true },
    { name: 'from', doc: 'a local file, or [user@]device:path', many: true, completes: 'file' },
    { name: 'to', doc: 'a local file or folder, or [user@]device:path', completes: 'file' },
  ],
  details: ['A colon after a slash is part of a local file name. The exit code is that of scp.'],
  raw: true,
  async run(given, context) {
    const count = optionWords(given.words, ofScp)
    const files = given.words.slice(count)
    const options = given.words.slice(0, count).filter((word) => word !== '--')
    const isThere = (file: string): boolean => /^[^/:]+:/.test(file)
    if (files.length < 2)
      throw new CliError(
        'Source and target are needed. Usage: hawser scp [scp options] <from>… <to>',
        usageCode,
      )
    if (!files.some(isThere))
      throw new CliError('None of these is on a device; write it as device:path.', usageCode)
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
    `${text} is not a forward: use a port, or <port>:<port on the device>, or <port>:<host>:<port>.`,
    usageCode,
  )
}

export const forward: Command = {
  words: ['forward'],
  summary: 'Forwards local TCP ports to a device, or to hosts that it reaches, until Ctrl-C.',
  arguments: [
    { ...target, doc: 'the login, as for `hawser ssh`: a user of the device, and the device' },
    {
      name: 'forward',
      doc: '8080: the same port there; 8080:80: port 80 there; 5432:db:5432: port 5432 of the host db',
      optional: true,
      many: true,
    },
  ],
  options: [
    {
      name: 'reverse',
      value: 'forward',
      doc: 'the reverse: a port on the device leads to a local one; may be repeated',
      many: true,
    },
    { name: 'socks', value: 'port', doc: 'a local SOCKS proxy that connects from the device' },
    ...keyOptions,
  ],
  details: [
    'It runs ssh -N -L, and logs in as `hawser ssh` does. The exit code is that of ssh.',
    'It is for databases and everything else that is not HTTP: `hawser open` opens web pages, without a user of the device.',
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
      throw new CliError('No port to forward. For example: hawser forward crane 8080:80', usageCode)
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

/** The ssh options of commands that have these options. */
export function sshOptions(given: Parameters<Command['run']>[0]): string[] {
  const identity = given.value('identity')
  return [
    ...given.values('ssh-option').flatMap((option) => ['-o', option]),
    ...(identity === undefined ? [] : ['-i', identity]),
  ]
}
