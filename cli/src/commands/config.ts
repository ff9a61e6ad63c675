// `hawser config ssh` makes plain `ssh device` work, and with it every program that uses ssh. It writes one
// file with a block for each accepted device, and adds one Include line to the person's own ssh_config. The
// line goes to the top, because further down it would belong to the Host block above it.
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Device } from '@hawser/contract/devices'
import type { Command, Option, ParsedArgs } from '../command.ts'
import type { Context } from '../context.ts'
import { tagSelector } from '../device-selection.ts'
import { progressOf } from '../generated-commands.ts'
import { CliError, usageCode } from '../errors.ts'
import { bare, findGateway, sshidOf, type Gateway } from '../openssh.ts'
import { byName, everyPage, filterOf } from '../resolve.ts'

export const deviceOptions: readonly Option[] = [
  { name: 'user', short: 'u', value: 'name', doc: 'the user on the devices; default: your own name' },
  tagSelector,
]

export async function acceptedDevices(given: ParsedArgs, context: Context): Promise<Device[]> {
  const api = context.api()
  const query = { status: 'accepted', ...byName, ...filterOf(given.values('tag')) } as const
  return everyPage((pages) => api.devices.list({ query: { ...query, ...pages } }), progressOf(context))
}

const plain = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/

/**
 * Whether the names are plain in ssh_config, an inventory and a shell, and do not mean the person's own
 * machine.
 */
export const hasPlainName = ({ name, namespace }: Device): boolean =>
  plain.test(name) && plain.test(namespace) && name !== 'localhost'

export const configSsh: Command = {
  words: ['config', 'ssh'],
  summary: 'Writes an ssh_config so that plain `ssh <device>` works; run it again when devices change.',
  options: [
    ...deviceOptions,
    { name: 'file', value: 'file', doc: 'your ssh_config; default: ~/.ssh/config', completes: 'file' },
    { name: 'remove', doc: 'removes the file and the Include line' },
  ],
  details: [
    'For another user than the one in the file: ssh -l <user>@<namespace>.<device> <device>, or hawser ssh <user>@<device>.',
  ],
  async run(given, context) {
    const main = path.resolve(
      given.value('file') ?? path.join(context.env['HOME'] || os.homedir(), '.ssh/config'),
    )
    const ours = path.join(path.dirname(main), 'hawser.config')
    const user = given.value('user') ?? os.userInfo().username
    if (/["\s]/.test(ours))
      throw new CliError(`${ours} contains a space or a quote, which ssh_config does not support.`, usageCode)
    if (given.flag('remove')) {
      includeIn(main, ours, false)
      rmSync(ours, { force: true })
      context.say('Plain ssh no longer knows your devices.')
      return
    }
    if (!/^[^\s"#@%\\]+$/.test(user))
      throw new CliError(`${user} is not a valid user in ssh_config.`, usageCode)
    const usable = (await acceptedDevices(given, context)).filter(hasPlainName)
    write(ours, fileFor(usable, user, context.server(), await findGateway(context)))
    includeIn(main, ours, true)
    const first = usable[0]
    context.say(
      `${usable.length} ${usable.length === 1 ? 'device is' : 'devices are'} in ${ours}${first ? `. Try: ssh ${first.name}` : ''}`,
    )
  },
}

function fileFor(devices: readonly Device[], user: string, server: string, { host, port }: Gateway): string {
  const blocks = devices.map((device) =>
    [
      `Host ${device.name} ${device.namespace}.${device.name}`,
      `  HostName ${bare(host)}`,
      `  Port ${port}`,
      `  User ${sshidOf(user, device)}`,
    ].join('\n'),
  )
  return [
    `# Written by \`hawser config ssh\` for ${server}. Changes made here are lost.`,
    ...blocks,
    '',
  ].join('\n\n')
}

const mark = '# of hawser: '

/** Adds or removes the Include line; an unchanged file is not written. */
function includeIn(main: string, ours: string, wanted: boolean): void {
  let old = ''
  try {
    old = readFileSync(main, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const lines = [`${mark}plain ssh to devices`, `Include ${ours}`]
  const others = old.split('\n').filter((line) => line !== lines[0] && line !== lines[1])
  const fresh = wanted ? [...lines, ...others].join('\n') : others.join('\n')
  const same = wanted
    ? old.startsWith(`${lines.join('\n')}\n`) && others.length === old.split('\n').length - 2
    : others.length === old.split('\n').length
  if (!same) write(main, fresh)
}

/** Replaces a file atomically. A new one is readable by its owner only; a symbolic link stays one. */
function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  let [real, mode] = [file, 0o600]
  try {
    real = realpathSync(file)
    mode = statSync(real).mode & 0o777
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const fresh = `${real}.${process.pid}`
  try {
    writeFileSync(fresh, text, { mode, flag: 'wx' })
    renameSync(fresh, real)
  } finally {
    rmSync(fresh, { force: true })
  }
}
