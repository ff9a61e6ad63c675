// `hawser-agent install` and `uninstall`. Installing enrols the device (with a tenant id, an enrolment token,
// or a confirmed code), copies the program, writes the settings where only root reads them, registers a
// service, and waits until the agent is connected. A device that the server refuses gets nothing. Installing
// again replaces the program and the named settings, and nothing else. Uninstalling removes all of it, and
// the identity only with --purge.
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { ConfigError } from '../config.ts'
import { discardedKeys, markFile } from '../machine.ts'
import { namespaceFile } from '../namespace.ts'
import { serverKeyFile } from '../server-key.ts'
import { defaultStatusFile, removeStatus } from '../status.ts'
import { enrolDevice, takeOverKey, waitUntilConnected } from './enrol-device.ts'
import { trustFile, writeTrust } from '../update/trust.ts'
import { writeWhole } from '../whole-file.ts'
import {
  defaultKey,
  missingIn,
  readInstall,
  readUninstall,
  serverName,
  tenantName,
  tokenName,
} from './options.ts'
import { pairDevice } from './pair-device.ts'
import { ownForm, installProgram, removeProgram, type Form } from './program.ts'
import { runCommand } from './run-command.ts'
import {
  inits,
  logFile,
  logOf,
  plainService,
  serviceOf,
  type Agent,
  type Init,
  type Service,
} from './services.ts'

const keyName = 'HAWSER_PRIVATE_KEY'
/** For the enrolment, and again for the agent to connect. */
const limit_ms = 60_000

type Say = (line: string) => void

const aloud: Say = (line) => void process.stdout.write(`hawser-agent: ${line}\n`)

export async function install(
  args: readonly string[],
  say: Say = aloud,
  form: Form = ownForm(),
): Promise<void> {
  const asked = readInstall(args, process.env)
  const { root, dir, settings: file } = asked
  mustBeRoot(root)
  const before = readSettings(root + file)
  const key = asked.key ?? before.get(keyName) ?? defaultKey
  const settings = new Map([...before, [keyName, key], ...asked.given])
  // The token decides the namespace, whatever it was before.
  if (asked.given.has(tokenName) && !asked.given.has(tenantName)) settings.delete(tenantName)
  const init = asked.init ?? initOf(root)
  // An installation that starts no agent does not enrol: an image must not have an identity.
  const enrols = root === '' && init !== 'none' && !asked.offline
  const pairs = enrols && settings.has(serverName) && missingIn(settings).length > 0
  if (pairs) settings.set(tenantName, await pairDevice(settings, key, say))
  const missing = missingIn(settings)
  if (missing.length > 0)
    throw new ConfigError(`Invalid options:\n${missing.map((line) => `  ${line}`).join('\n')}`)
  const device = enrols ? await enrolDevice(settings, key, limit_ms) : undefined
  if (device) {
    settings.set(tenantName, device.tenant_id)
    settings.delete(tokenName)
  } else if (settings.has(tokenName)) {
    // The agent takes the token out of this file when it has enrolled.
    settings.set('HAWSER_SETTINGS_FILE', file)
  }

  const command = installProgram(form, root, dir)
  takeOverKey(root, key)
  // Without a service nobody would start the former agent again if an update failed.
  if (init === 'none') rmSync(path.join(root + dir, 'updates'), { recursive: true, force: true })
  // The person who installs it decides anew whose updates it takes.
  rmSync(trustFile(root + key), { force: true })
  if (asked.updateKey !== undefined) writeTrust(trustFile(root + key), { key: asked.updateKey })
  put(root + file, [...settings].map(([name, value]) => `${name}=${value}\n`).join(''), 0o600)

  const agent: Agent = { command, settings: file }
  for (const other of inits.filter((each) => each !== init)) end(serviceOf(other, agent), root)
  const service = serviceOf(init, agent)
  for (const { path: place, text, mode } of service.files) put(root + place, text, mode)
  for (const { path: place, to } of service.links) link(root + place, to)
  if (root !== '') return say(`installed into ${root} (${init}); it enrols when that system boots`)
  if (init === 'none') return say(`installed; start it with: env $(cat ${file}) ${command.join(' ')}`)
  removeStatus(defaultStatusFile)
  for (const words of service.start) run(words)
  if (!device)
    say(`installed and started (${init}); it enrols once it reaches the server. Log: ${logOf(init)}`)
  else {
    await waitUntilConnected(defaultStatusFile, logOf(init), limit_ms)
    const next =
      device.status === 'accepted'
        ? 'already accepted'
        : `accept the device ${device.name} in the console, or with \`hawser devices accept ${device.name}\``
    say(`installed and running (${init}) as ${device.namespace}.${device.name}; ${next}. Log: ${logOf(init)}`)
  }
  if (init === 'plain')
    say(
      `this device has neither systemd nor OpenRC; run \`${plainService} start\` at boot, for example from /etc/rc.local or an \`@reboot\` line in root's crontab`,
    )
}

export function uninstall(args: readonly string[], say: Say = aloud): void {
  const { root, dir, settings, purge, ...asked } = readUninstall(args)
  mustBeRoot(root)
  const key = asked.key ?? readSettings(root + settings).get(keyName) ?? defaultKey
  const agent: Agent = { command: [], settings }
  take(trustFile(root + key))
  const found = [removeProgram(root, dir), take(root + settings), purge && take(root + key)]
  take(root + namespaceFile(key))
  take(root + serverKeyFile(key))
  if (purge) for (const file of [markFile(root + key), ...discardedKeys(root + key)]) take(file)
  for (const init of inits) found.push(end(serviceOf(init, agent), root))
  for (const file of [logFile, `${logFile}.1`, defaultStatusFile]) take(root + file)
  if (!found.includes(true)) return say('nothing to remove')
  say(
    !purge && existsSync(root + key)
      ? `removed; the device's identity is still in ${key} (--purge removes it)`
      : 'removed',
  )
}

function mustBeRoot(root: string): void {
  if (root === '' && process.getuid?.() !== 0)
    throw new ConfigError('This command needs root: run it with sudo.')
}

function initOf(root: string): Init {
  const some = (...files: string[]): boolean => files.some((file) => existsSync(root + file))
  if (root === '' ? some('/run/systemd/system') : some('/usr/lib/systemd/systemd', '/lib/systemd/systemd'))
    return 'systemd'
  return some('/sbin/openrc-run', '/usr/sbin/openrc-run') ? 'openrc' : 'plain'
}

function readSettings(file: string): Map<string, string> {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, name, value] = /^([A-Z_]+)=(.+)$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name, value]]
    }),
  )
}

function put(file: string, text: string, mode: number): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeWhole(file, text, mode)
}

function link(file: string, to: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  rmSync(file, { force: true })
  symlinkSync(to, file)
}

function take(file: string): boolean {
  if (!lstatSync(file, { throwIfNoEntry: false })) return false
  rmSync(file)
  return true
}

/** Stops a service and removes its files, if they are there. */
function end(service: Service, root: string): boolean {
  const [own] = service.files
  if (!own || !existsSync(root + own.path)) return false
  for (const { path: place } of service.links) take(root + place)
  // systemd ends all that the agent has started, maybe us, and knows the service without its file; the others
  // need theirs.
  const first = service.forget.length > 0
  if (first) for (const { path: place } of service.files) take(root + place)
  if (root === '') for (const words of service.stop) run(words, 'try')
  if (!first) for (const { path: place } of service.files) take(root + place)
  if (root === '') for (const words of service.forget) run(words, 'try')
  return true
}

function run(words: readonly string[], how: 'must' | 'try' = 'must'): void {
  const failed = runCommand(words)
  if (!failed || how === 'try') return
  throw new ConfigError(
    `\`${words.join(' ')}\` failed${failed.why}; the agent is installed, but does not run.`,
  )
}
