// Serves one SSH session channel: reads its requests, starts the program, and joins the two. Clients rely on
// the order at the end: all output, then the exit status or signal, then EOF and CLOSE. When the channel
// closes first, the program is hung up.
import {
  clientVariable,
  detachVariable,
  attachSubsystem,
  personVariable,
  readDetachRequest,
  readPersonText,
  type DetachRequest,
} from '@hawser/contract/tunnel'
import {
  receiveSession,
  type Channel,
  type Exit,
  type Program,
  type Session,
  type SessionRequest,
} from '@hawser/ssh'
import { deviceVariables, environmentOf, mayPass, readEndpoint, type Endpoint } from './environment.ts'
import { compileCache } from './folders.ts'
import type { GatewayLeg, DetachedPlace, DetachedTerminals } from './detached-terminals.ts'
import { passOutput, type OutputReader } from './outputs.ts'
import { startOnPipes } from './piped.ts'
import type { RunningProgram } from './program.ts'
import { startOnPty } from './pty.ts'
import { credentialsFor } from './privileges.ts'
import { passEvents, passInput } from './session-input.ts'
import { serveFiles, sftpCommand } from './sftp.ts'
import { commandOf } from './shell.ts'
import type { Account } from './users.ts'
import { recordLogin, type LoginFiles } from './utmp.ts'

export interface SessionOptions {
  readonly account: Account
  readonly deviceName: string
  /** The source of the connection, unless the gateway names the client itself. */
  readonly client: Endpoint
  readonly server: Endpoint
  /** Undefined: unknown. */
  readonly person?: string | undefined
  /** Absent: in the usual files. */
  readonly records?: LoginFiles | undefined
  agentSocket(): Promise<string | undefined>
  /** Absent: no terminal outlives the gateway. */
  readonly detached?: DetachedTerminals | undefined
  readonly leg: GatewayLeg
  /** A detached terminal is open until this is disposed. */
  readonly detaching?: (() => Disposable) | undefined
  log(event: Record<string, unknown>): void
}

const notStarted: Exit = { type: 'exit-status', status: 255 }

export async function serveSession(channel: Channel, options: SessionOptions): Promise<void> {
  const { account, log } = options
  let client: Endpoint | undefined
  let person: string | undefined
  let detach: DetachRequest | undefined
  let place: DetachedPlace | undefined
  let terminal = false
  using places = new DisposableStack()
  const found = () => detach && options.detached?.find(detach, account.name)
  const session = await receiveSession(channel, (request) => {
    // The gateway sends its variables before the client's, so the first of each counts.
    if (request.type === 'env' && request.name === clientVariable) client ??= readEndpoint(request.value)
    if (request.type === 'env' && request.name === personVariable) person ??= readPersonText(request.value)
    if (request.type === 'env' && request.name === detachVariable) {
      detach ??= options.detached && readDetachRequest(request.value)
      if (detach) place ??= places.use(options.detached?.reserve(detach))
      // A terminal that is continued needs no place. A second session on its connection gets none.
      return place !== undefined || found()?.isOn(options.leg) === false
    }
    if (request.type === 'subsystem' && request.name === attachSubsystem) return found() !== undefined
    const allowed = isAllowed(request) && !(request.type === 'pty-req' && terminal)
    terminal ||= allowed && request.type === 'pty-req'
    return allowed
  })
  if (!session?.pty) places.dispose()
  if (!session) return
  const began_ms = performance.now()
  const { type } = session.program
  log({ event: 'session.started', user: account.name, type, terminal, person })
  const isContinued = session.program.type === 'subsystem' && session.program.name === attachSubsystem
  const exit = isContinued
    ? await found()?.join(session, options.leg, false)
    : await run(session, { ...options, client: client ?? options.client, person, place })
  log({
    event: 'session.ended',
    user: account.name,
    type,
    exit,
    lasted_ms: Math.round(performance.now() - began_ms),
  })
}

/** X11 is missing because there is no display to forward to, and signals because nothing runs yet. */
const wanted = new Set<SessionRequest['type']>([
  'shell',
  'exec',
  'pty-req',
  'window-change',
  'auth-agent-req@openssh.com',
])

function isAllowed(request: SessionRequest): boolean {
  if (request.type === 'env')
    return (
      request.name === clientVariable ||
      request.name === personVariable ||
      mayPass(request.name, request.value)
    )
  if (request.type === 'subsystem') return request.name === 'sftp'
  return wanted.has(request.type)
}

interface RunOptions extends SessionOptions {
  /** For a terminal that outlives the gateway; undefined: it does not. */
  readonly place: DetachedPlace | undefined
}

async function run(session: Session, options: RunOptions): Promise<Exit | undefined> {
  const { account, place, log } = options
  const { channel, program } = session
  if (program.type === 'subsystem' && !credentialsFor(account)) {
    await serveFiles(session, account.home).catch(() => channel.close('now'))
    return undefined
  }
  let running: RunningProgram
  try {
    running = await startProgram(session, program, options)
  } catch (error) {
    log({ event: 'program.failed', user: account.name, error: (error as Error).message })
    await channel.write(Buffer.from('hawser: the program could not be started\r\n'), 1).catch(() => undefined)
    await session.exit(notStarted)
    return notStarted
  }
  const recorded = isShellOnTerminal(session, running) ? record(running, options) : undefined
  const terminal = session.pty && place?.add(account.name, running, session.pty)
  if (terminal) {
    const open = options.detaching?.()
    void terminal.over.then(() => {
      open?.[Symbol.dispose]()
      recorded?.()
    })
    return terminal.join(session, options.leg, true)
  }
  try {
    return await follow(session, running)
  } finally {
    recorded?.()
  }
}

async function startProgram(
  session: Session,
  program: Program,
  options: SessionOptions,
): Promise<RunningProgram> {
  const { account, deviceName, client, person, server } = options
  const { pty } = session
  if (program.type === 'subsystem') return startOnPipes(sftpCommand(account), compileCache(), undefined)
  const env = environmentOf({
    account,
    deviceName,
    client,
    person,
    server,
    sent: session.env,
    terminal: pty?.terminal,
    agentSocket: session.agent ? await options.agentSocket() : undefined,
    device: await deviceVariables(),
  })
  const command = commandOf(program, account, pty !== undefined)
  return pty ? startOnPty(command, env, account, pty) : startOnPipes(command, env, account)
}

function isShellOnTerminal({ program }: Session, { terminal }: RunningProgram): boolean {
  return process.getuid?.() === 0 && program.type === 'shell' && terminal !== undefined
}

function record(
  { pid, terminal }: RunningProgram,
  { account, client, person, records = {} }: SessionOptions,
): () => void {
  return recordLogin(
    { user: account.name, terminal: terminal!, pid, address: client.address, person },
    { files: records },
  )
}

async function follow(session: Session, running: RunningProgram): Promise<Exit> {
  const { channel } = session
  void channel.closed.then(() => running.hangUp())
  const inputs = passInput(channel, running).then(() => running.endInput())
  const events = passEvents(session, running)
  const outputs = [
    passOutput(running.stdout, running.ended, readerOf(channel, 0)),
    ...(running.stderr ? [passOutput(running.stderr, running.ended, readerOf(channel, 1))] : []),
  ]
  // A lost reader is no failure; the channel reports it.
  await Promise.all(outputs.map(async (output) => output.catch(() => undefined)))
  const exit = await running.ended
  await session.exit(exit)
  await Promise.all([inputs, events])
  return exit
}

const readerOf = (channel: Channel, stream: number): OutputReader => ({
  takeNow: (bytes) => channel.sendNow(bytes, stream),
  take: (bytes) => channel.write(bytes, stream),
})
