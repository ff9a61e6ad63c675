// The server's program: `serve` runs the server until a signal stops it; `admin …` runs one command of the
// administrator; `import` imports another installation; `recording verify` checks one file and needs neither
// a server nor its folder.
import { existsSync } from 'node:fs'
import path from 'node:path'
import v8 from 'node:v8'
import { Failure } from '@hawser/contract/failures'
import { version } from '@hawser/contract/version'
import { parseCommand, runCommand, usage } from './commands/admin.ts'
import { checkDataFolder, damagedDatabase } from './commands/data-folder.ts'
import { giveBackMemory, giveBackWhenIdle } from './idle-memory.ts'
import { ConfigError, dataFolder, environment, printConfig, readConfig, type Config } from './config.ts'
import { askServer, isServed, sentence, serveControl } from './commands/control.ts'
import { openLog } from './kit/log.ts'
import { hasMasterKey } from './kit/secrets.ts'

const write = (line: string): void => void process.stdout.write(`${line}\n`)
const complain = (line: string): void => void process.stderr.write(`${line}\n`)
/** Loaded only when needed: a command that a running server executes is quicker without. */
const rooms = () => import('./compose/rooms.ts')

const asksForHelp = (word: string | undefined): boolean =>
  word === 'help' || word === '--help' || word === '-h'

const howToServe = `Usage: hawser serve

Runs the server until Ctrl-C or SIGTERM stops it. It takes no arguments: settings are variables of the environment,
and \`hawser admin config print\` shows each with its value in force.`

/**
 * EX_CONFIG of sysexits.h: a person has to do something first, so that systemd does not restart the server.
 */
const exit_config = 78
const notBuilt = `The web console of this version has not been built: run \`npm run build\` in ${path.join(import.meta.dirname, '../..')}, then start again.`

async function serve(args: string[], { console = '', agents }: MainOptions): Promise<void> {
  if (asksForHelp(args[0])) return write(howToServe)
  if (args.length > 0) throw new Failure('invalid', { message: howToServe })
  collectByNeed()
  const config = readConfig(environment())
  const log = openLog(config.HAWSER_LOG)
  checkDataFolder(config.HAWSER_DATA)
  if (await isServed(config.HAWSER_DATA))
    throw new Failure('conflict', {
      message: `Another server runs on ${config.HAWSER_DATA}: stop it, or set HAWSER_DATA to another folder.`,
    })
  if (!existsSync(console)) {
    complain(notBuilt)
    process.exitCode = exit_config
    return
  }
  const { startServer } = await import('./compose/server.ts')
  await using parts = new AsyncDisposableStack()
  const server = parts.use(await startServer({ config, log, console, agents }))
  parts.use(await serveControl(config.HAWSER_DATA, server.rooms, log))
  const code = await server.rooms.setupCode()
  log.info({
    event: 'server.ready',
    version,
    url: server.rooms.url,
    data: config.HAWSER_DATA,
    ms: Math.round(performance.now()),
  })
  if (!config.HAWSER_SMTP)
    log.info({ event: 'mail.outbox', message: 'no HAWSER_SMTP: e-mails are written to the outbox folder' })
  if (code !== undefined) welcome(`${server.rooms.url}/setup?code=${code}`)
  // The start leaves some 40 MB of garbage.
  giveBackMemory()
  // Again when the first requests have compiled what they need.
  setTimeout(giveBackMemory, 10_000).unref()
  parts.use(giveBackWhenIdle(() => server.reach.sessions.size))

  log.info({ event: 'server.stopping', signal: await stopSignal() })
}

/** One Ctrl-C arrives from the terminal, from npm and from the starter, a moment apart. */
const same_signal_ms = 500

/**
 * Resolves at the first signal to stop. A second signal ends the process at once. `endSessions` in
 * gateway/login/listen.ts decides what becomes of sessions.
 */
function stopSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let first: number | undefined
  const onSignal = (signal: NodeJS.Signals): void => {
    first ??= performance.now()
    if (performance.now() - first > same_signal_ms) process.exit(1)
    resolve(signal)
  }
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  return promise
}

/**
 * The bytes of sessions live outside of V8's heap, each for a few hundred microseconds. By default V8
 * collects the whole heap whenever 64 MB of them have passed, which costs three times what everything else
 * does. With this flag they count as a part of all memory.
 */
function collectByNeed(): void {
  v8.setFlagsFromString('--external-memory-accounted-in-global-limit')
}

/** Greets the person at the terminal, on stderr, so that stdout stays one JSON object a line. */
function welcome(link: string): void {
  complain(
    [
      '',
      '  Hawser is running, and has no user yet. Make the first one here (the link works once):',
      '',
      `    ${link}`,
      '',
    ].join('\n'),
  )
}

async function admin(args: string[]): Promise<void> {
  if (args.length === 0 || asksForHelp(args[0])) return write(usage())
  if (args.join(' ') === 'config print') return printSettings()
  const config = readConfig(environment())
  const log = openLog('silent')
  // A backup only reads: it may be what saves a disk that was mounted read-only.
  if (args[0] === 'migrate' || existsSync(config.HAWSER_DATA))
    checkDataFolder(config.HAWSER_DATA, args[0] === 'backup' ? 'read' : 'write')
  if (args.join(' ') === 'migrate') {
    const missing = await missingFrom(config)
    const opened = await (await rooms()).openRooms({ config, log })
    await opened[Symbol.asyncDispose]()
    if (missing) write(`There was ${missing}: a new installation was created.`)
    return write('The schema is up to date.')
  }
  const [verb, folder, ...more] = args
  if (verb === 'backup' || verb === 'restore') {
    if (folder === undefined || more.length > 0)
      throw new Failure('invalid', { message: `Usage: hawser admin ${verb} <folder>` })
    if (verb === 'restore' && (await isServed(config.HAWSER_DATA)))
      throw new Failure('conflict', { message: `A server runs on ${config.HAWSER_DATA}: stop it first.` })
    const { backup, restore } = await import('./commands/backup.ts')
    const done = verb === 'backup' ? backup : restore
    return (await done(config, path.resolve(folder))).forEach(write)
  }
  const command = parseCommand(args)
  const asked = await askServer(config.HAWSER_DATA, command)
  if (asked && 'failure' in asked) throw new Failure('invalid', { message: asked.failure })
  if (asked) return asked.lines.forEach(write)
  const missing = await missingFrom(config)
  if (missing)
    throw new Failure('notFound', {
      message:
        `There is ${missing}, so there is no installation of Hawser here. Set HAWSER_DATA${config.HAWSER_DATABASE ? ' and HAWSER_DATABASE' : ''} ` +
        'as they are set for the server. A new installation is made by the first start of the server, or by `hawser admin migrate`.',
    })
  await using opened = await (await rooms()).openRooms({ config, log })
  for (const line of await runCommand(opened, command)) write(line)
}

/** The settings of the running server, or those that a server would have in this environment. */
async function printSettings(): Promise<void> {
  const folder = dataFolder(environment())
  const asked = await askServer(folder, { words: 'config print', given: [] })
  if (asked && 'failure' in asked) throw new Failure('invalid', { message: asked.failure })
  complain(
    asked
      ? `The server that runs on ${folder} uses these settings:`
      : `No server that this user can ask runs on ${folder}. These are the settings of this environment:`,
  )
  for (const line of asked?.lines ?? printConfig(environment())) write(line)
}

/** Names what an installation with these settings lacks; undefined: nothing. Creates nothing. */
async function missingFrom({
  HAWSER_DATA: folder,
  HAWSER_DATABASE: url,
  HAWSER_SECRET: secret,
}: Config): Promise<string | undefined> {
  const { isInstalled } = await import('./storage/database.ts')
  if (!(await isInstalled({ url, folder })))
    return url ? 'nothing of Hawser in the database of HAWSER_DATABASE' : `no database in ${folder}`
  return hasMasterKey(folder, secret) ? undefined : `no master key in ${folder}`
}

async function imported(args: string[]): Promise<void> {
  const { importShellHub, readArguments, usage: how } = await import('./commands/import-shellhub.ts')
  const wanted = readArguments(args)
  if (!wanted) return write(how)
  const config = readConfig(environment())
  checkDataFolder(config.HAWSER_DATA)
  if (await isServed(config.HAWSER_DATA))
    throw new Failure('conflict', { message: `A server runs on ${config.HAWSER_DATA}: stop it first.` })
  const { done, lines } = await importShellHub(config, wanted)
  lines.forEach(write)
  if (!done) process.exitCode = 1
}

async function recording([verb, file, key, ...rest]: string[]): Promise<void> {
  const how = 'Usage: hawser recording verify <file> [the public key that must have signed it]'
  if (asksForHelp(verb)) return write(how)
  if (verb !== 'verify' || file === undefined || rest.length > 0)
    throw new Failure('invalid', { message: how })
  const { verifyFile } = await import('./commands/verify-recording.ts')
  const { sound, lines } = await verifyFile(file, key)
  lines.forEach(write)
  if (!sound) process.exitCode = 1
}

export interface MainOptions {
  /** The folder of the web console, which `npm run build` makes. */
  readonly console?: string
  /** The folder of the agents for devices, which `npm run build` fills. */
  readonly agents?: string
}

export async function main(args: string[], options: MainOptions = {}): Promise<void> {
  const [verb, ...rest] = args
  // New files are for this user alone, whatever the mode of the folder is.
  process.umask(0o077)
  // The reader of a pipe may close it early; the command still runs to its end.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exitCode = 1
  })
  try {
    if (verb === 'serve') await serve(rest, options)
    else if (verb === 'recording') await recording(rest)
    else if (verb === 'import') await imported(rest)
    else await admin(rest)
  } catch (error) {
    if (error instanceof ConfigError || error instanceof Failure) complain(sentence(error))
    else complain(explain(error))
    process.exitCode = verb === 'serve' && error instanceof ConfigError ? exit_config : 1
  }
}

/** A sentence that a person can act on for usual mistakes; any other error in full. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, stack } = error
  const damage = damagedDatabase(error, dataFolder(environment()))
  if (damage !== undefined) return damage
  const code = 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE')
    return `${message}: another program listens there. Stop it, or set HAWSER_HTTP, HAWSER_HTTPS or HAWSER_SSH to another address.`
  if (code === 'EACCES')
    return `${message}: choose a port above 1023 in HAWSER_HTTP, HAWSER_HTTPS or HAWSER_SSH, another HAWSER_DATA, or give this user the right to it.`
  // The first list is from the network. The codes below come from PostgreSQL: wrong password, no such
  // database.
  if (['ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT', 'ECONNREFUSED'].includes(String(code)))
    return `${message}: the database does not answer; see HAWSER_DATABASE.`
  if (['28P01', '28000', '3D000'].includes(String(code)))
    return `${message}: the database refuses; see HAWSER_DATABASE.`
  return stack ?? message
}
