// `hawser run` runs one command on many devices, with the ssh of this machine and a limit on how many run at
// a time. It groups devices with equal output. The output of each device is cut off at a limit, and the
// report says so. It never prompts for passwords: it needs keys or an SSH agent.
import { spawn } from 'node:child_process'
import os from 'node:os'
import type { Device } from '@hawser/contract/devices'
import { wholeNumber, type Command } from '../command.ts'
import { CliError } from '../errors.ts'
import type { Context } from '../context.ts'
import { openIdentity } from '../identity.ts'
import { bare, findGateway, missing, sshidOf, type Gateway } from '../openssh.ts'
import { safeText, screenFilter } from '../safe-text.ts'
import { selectDevices, selectors } from '../device-selection.ts'
import { keyOptions, sshOptions } from './ssh.ts'

const mostOutput_bytes = 1024 * 1024
const mostAtOnce = 64
/** Exit codes: 255 is ssh's own for a failed connection; 124, as of timeout(1), is for a command cut off. */
const [noConnection, tooLong] = [255, 124]

interface Outcome {
  readonly device: string
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export const run: Command = {
  words: ['run'],
  summary: 'Runs a command on many devices at once and groups equal output.',
  arguments: [
    { name: 'command', doc: 'as the shell there reads it; quote it, or put -- before it', many: true },
  ],
  options: [
    ...selectors('all accepted devices'),
    { name: 'online', doc: 'leave out devices that are offline, instead of counting them as failed' },
    {
      name: 'device',
      short: 'd',
      value: 'device',
      doc: "a device by its name, or a pattern such as 'shop-*'; may be repeated",
      many: true,
      completes: 'device',
    },
    { name: 'user', short: 'u', value: 'name', doc: 'the user on the devices; default: your own name' },
    { name: 'jobs', short: 'j', value: 'number', doc: `devices at a time, 1 to ${mostAtOnce}; default: 8` },
    { name: 'timeout', value: 'seconds', doc: 'the time limit for each device; default: 60; 0: none' },
    ...keyOptions,
  ],
  details: [
    'The exit code is 0 if the command ended with 0 everywhere, and 1 if not. For each device: its own code, 255 without a',
    'connection, 124 when it took too long. There is no password prompt: use a key of the namespace.',
  ],
  async run(given, context) {
    const atOnce = wholeNumber(given, 'jobs', 8, 1, mostAtOnce)
    const timeout_s = wholeNumber(given, 'timeout', 60, 0, 86_400)
    const chosen = await selectDevices(context.api(), given.values('device'), given, {
      all: 'accepted',
      tagged: 'accepted',
    })
    const accepted = chosen.filter(({ status }) => status === 'accepted')
    for (const { name, status } of chosen)
      if (status !== 'accepted') context.say(`${safeText(name)} is ${status} and left out.`)
    const devices = given.flag('online') ? accepted.filter(({ online }) => online) : accepted
    const offline = accepted.filter((device) => !devices.includes(device)).map(({ name }) => safeText(name))
    if (offline.length > 0) context.say(`Offline and left out: ${offline.join(', ')}.`)
    if (devices.length === 0) throw new CliError('None of these devices can run it now.')
    const gateway = await findGateway(context)
    const command = given.words.join(' ')
    const user = given.value('user') ?? os.userInfo().username
    const stopped = new AbortController()
    const stop = (): void => stopped.abort()
    process.on('SIGINT', stop).on('SIGTERM', stop)
    const progress = progressOf(context, devices.length)
    using identity = openIdentity(context)
    const options = sshOptions(given)
    try {
      const outcomes = await mapConcurrently(devices, atOnce, async (device) => {
        if (stopped.signal.aborted)
          return { device: device.name, code: 130, stdout: '', stderr: 'not run: interrupted' }
        const outcome = await runOn(device, {
          command,
          user,
          gateway,
          timeout_s,
          options: [...options, ...(await identity.options(options, bare(gateway.host)))],
          signal: stopped.signal,
        })
        progress.done(outcome)
        return outcome
      })
      progress.clear()
      report(context, outcomes)
      if (outcomes.some(isUnknownHost))
        context.say(
          'This machine does not know the host key of the server. Connect once with `hawser ssh`, which shows ' +
            'its fingerprint and asks; for scripts, put the key into known_hosts.',
        )
      if (stopped.signal.aborted) return 130
      return chosen.length === accepted.length && outcomes.every(({ code }) => code === 0) ? 0 : 1
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
    }
  },
}

/** With BatchMode ssh cannot ask whether a host key is the right one. */
const isUnknownHost = ({ code, stderr }: Outcome): boolean =>
  code === noConnection && stderr.includes('Host key verification failed')

interface Task {
  readonly command: string
  readonly user: string
  readonly gateway: Gateway
  readonly timeout_s: number
  readonly options: readonly string[]
  readonly signal: AbortSignal
}

async function runOn(
  device: Device,
  { command, user, gateway, timeout_s, options, signal }: Task,
): Promise<Outcome> {
  const { name } = device
  if (!device.online)
    return { device: name, code: noConnection, stdout: '', stderr: 'The device is offline.' }
  const settings = [`User=${sshidOf(user, device)}`, 'BatchMode=yes', 'ConnectTimeout=30']
  const own = ['-p', gateway.port, ...settings.flatMap((setting) => ['-o', setting])]
  const child = spawn('ssh', [...own, ...options, '-T', '--', bare(gateway.host), command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  let late = false
  const timer = timeout_s > 0 ? setTimeout(() => (late = child.kill()), timeout_s * 1000) : undefined
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') reject(missing('ssh'))
        else if (!signal.aborted) reject(error)
      })
      child.on('close', (status) => resolve(status ?? noConnection))
    })
    const output = { device: name, stdout: stdout(), stderr: stderr() }
    if (late)
      return { ...output, code: tooLong, stderr: `${output.stderr}It took longer than ${timeout_s} s.` }
    return { ...output, code: signal.aborted ? 130 : code }
  } finally {
    clearTimeout(timer)
  }
}

/** The rest is read and dropped, because a program that cannot write blocks. */
function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  let length = 0
  stream.on('data', (chunk: Buffer) => {
    if (length < mostOutput_bytes) chunks.push(chunk.subarray(0, mostOutput_bytes - length))
    length += chunk.length
  })
  return () =>
    Buffer.concat(chunks).toString() +
    (length > mostOutput_bytes ? `\n[${length - mostOutput_bytes} more bytes are left out]\n` : '')
}

/** Like Promise.all over `act`, with at most `atOnce` running at a time. Results keep the order. */
export async function mapConcurrently<T, R>(
  things: readonly T[],
  atOnce: number,
  act: (thing: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < things.length) {
      const mine = next
      next += 1
      results[mine] = await act(things[mine]!)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, things.length) }, worker))
  return results
}

function progressOf(context: Context, total: number) {
  const shown = process.stderr.isTTY && context.output === 'table'
  let [done, failed] = [0, 0]
  const width = 24
  return {
    done({ code }: Outcome): void {
      done += 1
      if (code !== 0) failed += 1
      if (!shown) return
      const full = Math.round((done / total) * width)
      const bar = `${'#'.repeat(full)}${'.'.repeat(width - full)}`
      process.stderr.write(`\r\u001b[K[${bar}] ${done} of ${total}${failed > 0 ? `, ${failed} failed` : ''}`)
    },
    clear: (): void => void (shown && process.stderr.write('\r\u001b[K')),
  }
}

/** The largest group first, equally large ones by name. */
export function grouped(
  outcomes: readonly Outcome[],
): { readonly devices: string[]; readonly said: Outcome }[] {
  const groups = Map.groupBy(outcomes, ({ code, stdout, stderr }) => JSON.stringify([code, stdout, stderr]))
  return [...groups.values()]
    .map((group) => ({ devices: group.map(({ device }) => device).toSorted(), said: group[0]! }))
    .toSorted((a, b) => b.devices.length - a.devices.length || (a.devices[0]! < b.devices[0]! ? -1 : 1))
}

function report(context: Context, outcomes: readonly Outcome[]): void {
  if (context.output === 'json') return context.print(outcomes)
  // Colours pass; the filter drops all other control sequences of the device.
  const clean = (text: string): string => screenFilter()(text.replaceAll(/\r\n/g, '\n')).replaceAll('\r', '')
  for (const { devices, said } of grouped(outcomes)) {
    const names = devices.map(safeText).join(', ')
    const count = devices.length === 1 ? '' : `${devices.length} devices: `
    process.stdout.write(`── ${count}${names} (exit code ${said.code})\n`)
    const text = clean(said.stdout) + clean(said.stderr)
    process.stdout.write(text === '' || text.endsWith('\n') ? text : `${text}\n`)
  }
  const failed = outcomes.filter(({ code }) => code !== 0)
  const names = failed.map(({ device }) => safeText(device)).join(', ')
  const rest = failed.length > 0 ? `, ${failed.length} failed: ${names}` : ''
  context.say(`${outcomes.length - failed.length} of ${outcomes.length} succeeded${rest}.`)
}
