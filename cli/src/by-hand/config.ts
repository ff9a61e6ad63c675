// `hawser config ssh`: plain `ssh device` works, and with it every program that uses ssh. One file of ours
// has a block for each accepted device and is written anew each time; the person's own configuration gets one
// Include line, once, at its top (further down it would belong to the Host above it), and is otherwise left
// as it is.
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Device } from '@hawser/contract/devices'
import type { Command } from '../command.ts'
import { progressOf } from '../commands.ts'
import { Complaint, usageCode } from '../complaint.ts'
import { bare, findGateway, sshidOf, type Gateway } from '../openssh.ts'
import { everyPage, filterOf } from '../resolve.ts'

/** What can stand in ssh_config without meaning something else there. */
const plain = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/

export const configSsh: Command = {
  words: ['config', 'ssh'],
  summary: 'Writes an ssh_config so that plain `ssh <device>` works; run it again when devices change.',
  options: [
    { name: 'user', short: 'u', value: 'name', doc: 'the user on the devices; your own name unless said' },
    {
      name: 'tag',
      value: 'tag',
      doc: 'only devices with this tag; repeated: with any of them',
      many: true,
      named: 'tag',
    },
    { name: 'file', value: 'file', doc: 'your ssh_config; ~/.ssh/config unless said', named: 'file' },
    { name: 'remove', doc: 'takes it all away again' },
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
      throw new Complaint(`${ours} has a space or a quote in it, which ssh_config cannot say.`, usageCode)
    if (given.flag('remove')) {
      includeIn(main, ours, false)
      rmSync(ours, { force: true })
      context.say(`Plain ssh knows your devices no more.`)
      return undefined
    }
    if (!/^[^\s"#@%\\]+$/.test(user))
      throw new Complaint(`${user} cannot be a user in ssh_config.`, usageCode)
    const api = context.api()
    const query = {
      status: 'accepted',
      sort_by: 'name',
      order_by: 'asc',
      ...filterOf(given.values('tag')),
    } as const
    const devices = await everyPage(
      (pages) => api.devices.list({ query: { ...query, ...pages } }),
      progressOf(context),
    )
    const usable = devices.filter(({ name, namespace }) => plain.test(name) && plain.test(namespace))
    write(ours, fileFor(usable, user, context.server(), await findGateway(context)))
    includeIn(main, ours, true)
    const first = usable[0]
    context.say(`${usable.length} devices are in ${ours}${first ? `. Try: ssh ${first.name}` : ''}`)
    return undefined
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

/** Puts the line there or takes it away; a file in which nothing changes is not touched. */
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

/** As a whole, for its owner only; a link stays a link. */
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
