// ssh, scp and forward: they run the OpenSSH programs, with a device in place of a host. The options belong
// to those programs, so the words are parsed the way they do it, just far enough to find the device.
import type { Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { bare, findGateway, launch, targetOf } from '../openssh.ts'

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
  ],
  raw: true,
  async run(given, context) {
    const count = optionWords(given.words, ofSsh)
    const [target, ...rest] = given.words.slice(count)
    if (target === undefined)
      throw new CliError('Which device? Usage: hawser ssh [ssh options] [user@]device [command]', usageCode)
    // ssh also takes options after the host, unless a -- came before it.
    const later = given.words[count - 1] === '--' ? 0 : optionWords(rest, ofSsh)
    const options = [...given.words.slice(0, count), ...rest.slice(0, later)].filter((word) => word !== '--')
    const command = rest.slice(later)
    const sshid = await targetOf(context, target)
    const { host, port } = await findGateway(context)
    return launch('ssh', ['-p', port, '-o', `User=${sshid}`, ...options, '--', bare(host), ...command])
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
    return launch('scp', ['-P', port, ...options, '--', ...places])
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
    return launch('ssh', [
      '-p',
      port,
      '-o',
      `User=${sshid}`,
      ...own,
      ...sshOptions(given),
      ...wanted,
      '--',
      bare(host),
    ])
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
