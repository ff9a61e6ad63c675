// The agent's program.
//   hawser-agent            runs until it is told to stop
//   hawser-agent connector  does the same for every container of an engine on this machine
//   hawser-agent install    keeps it running on this device, and `uninstall` takes it away again (install/)
//   hawser-agent status     says whether the installed agent is connected
//   hawser-agent reset-identity  makes a copied machine a device of its own
//   hawser-agent info       prints the facts that the device reports
//   hawser-agent help       lists all of it (help.ts)
//   hawser-agent --version
import { realpathSync } from 'node:fs'
import v8 from 'node:v8'
import { cipherImplementation } from '@hawser/ssh/ciphers'
import { version } from '@hawser/contract/version'
import { runAgent } from './agent.ts'
import { closeInherited } from './children.ts'
import { ConfigError, readConfig } from './config.ts'
import { facts } from './facts.ts'
import { idleMemory } from './idle-memory.ts'
import { macAddress } from './identity.ts'
import { updateReason } from './leaving.ts'
import { hideLibraries } from './own-libraries.ts'
import { trustAuthorities } from './trust.ts'

/** Writes the status file, if the service names one. */
let note: ((event: Record<string, unknown>) => void) | undefined

const log = (event: Record<string, unknown>): void => {
  note?.(event)
  if (event['level'] === 'debug' && !process.env['HAWSER_DEBUG']) return
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), level: 'info', ...event })}\n`)
}

function logCiphers(): void {
  const { name: implementation, ...why } = cipherImplementation()
  log({ event: 'ssh.ciphers', implementation, ...why })
}

async function main(args: readonly string[]): Promise<void> {
  hideLibraries()
  const [command] = args
  if (command === '--version') return void process.stdout.write(`${version}\n`)
  if (command === 'help' || command === '--help' || command === '-h') {
    const { help } = await import('./help.ts')
    return void process.stdout.write(help())
  }
  if (command === 'status') {
    const { defaultStatusFile, tellStatus } = await import('./status.ts')
    const { sentence, code } = tellStatus(process.env['HAWSER_STATUS_FILE'] ?? defaultStatusFile)
    process.stdout.write(`hawser-agent: ${sentence}\n`)
    process.exit(code)
  }
  if (command === 'info')
    return void process.stdout.write(`${JSON.stringify({ ...facts(), mac: macAddress() }, null, 2)}\n`)
  const isInstalling = command === 'install' || command === 'uninstall'
  if (isInstalling || command === 'reset-identity') {
    if (args.some((word) => /^(-h|--help)$/.test(word))) {
      const { usage } = await import('./install/options.ts')
      return void process.stdout.write(usage)
    }
    // The session of this command may end with the agent, which may carry it.
    process.on('SIGHUP', () => undefined)
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
    if (!isInstalling) {
      const { resetIdentity } = await import('./install/reset-identity.ts')
      return resetIdentity(args.slice(1), process.env)
    }
    const commands = await import('./install/install.ts')
    return commands[command](args.slice(1))
  }
  if (command !== undefined && command !== 'connector') {
    const { help } = await import('./help.ts')
    throw new ConfigError(`Unknown command ${command}.\n\n${help()}`)
  }
  closeInherited()
  // Bytes that pass count as a part of the heap, or V8 would collect all of it for every 64 MB of them.
  v8.setFlagsFromString('--external-memory-accounted-in-global-limit')
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopping.abort())
  const isRoot = process.getuid?.() === 0
  if (command === 'connector') {
    const [{ readConnectorConfig }, { runConnector }] = await Promise.all([
      import('./connector-config.ts'),
      import('./connector.ts'),
    ])
    const config = readConnectorConfig(process.env, isRoot)
    await trustAuthorities(config.common.caFile)
    logCiphers()
    await runConnector(config, log, stopping.signal, idleMemory())
  } else {
    const config = readConfig(process.env, isRoot)
    await trustAuthorities(config.caFile)
    const file = process.env['HAWSER_STATUS_FILE']
    if (file) note = (await import('./status.ts')).statusWriter(file)
    logCiphers()
    const [{ deviceUpdates }, { placeOf }] = await Promise.all([
      import('./update/updates.ts'),
      import('./update/place.ts'),
    ])
    const updates = deviceUpdates({
      server: config.server,
      keyFile: config.keyFile,
      place: placeOf(realpathSync(process.argv[1] ?? process.execPath)),
      log,
      signal: stopping.signal,
      stop: () => stopping.abort(updateReason),
    })
    await runAgent(config, log, stopping.signal, idleMemory(), undefined, updates)
    updates.finish()
  }
  process.exit(0)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(
    `hawser-agent: ${error instanceof ConfigError ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  )
  process.exit(1)
}
