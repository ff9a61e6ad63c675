// Serves one SSH session channel in a container: starts the program by the engine's exec API and joins it to
// the channel until it ends. Clients rely on the order at the end: all output, then the exit status, then EOF
// and CLOSE. When the channel closes first, the program is hung up; the engine alone would let it run on.
// Each program gets an environment variable with a unique value, by which we find it and its children again
// in the container to send them signals.
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { readNamed } from '@hawser/contract/environment'
import { clientVariable, personVariable, readPersonText } from '@hawser/contract/tunnel'
import {
  receiveSession,
  sendableSignals,
  serveSftp,
  type Channel,
  type Program,
  type Session,
  type SessionRequest,
} from '@hawser/ssh'
import type { ContainerAccount } from './accounts.ts'
import { EngineFailure, type EngineClient } from './client.ts'
import { startExec, type Exec, type Output } from './exec.ts'
import { containerFiles } from './files.ts'
import { readScp, serveScp, type ScpRequest } from './scp.ts'
import { newMark, quoted, containerShell, shellLoop } from './container-shell.ts'

export interface ContainerSession {
  readonly client: EngineClient
  readonly container: string
  readonly account: ContainerAccount
  /** A variable of programs. */
  readonly deviceName: string
  readonly signal: AbortSignal
  /** The engine is lost, and the exit of the program with it. */
  lost(error: unknown): void
  log(event: Record<string, unknown>): void
}

const passedOn = /^(?:LANG|LC_[A-Z]{1,32}|COLORTERM|TERM_PROGRAM|TERM_PROGRAM_VERSION)$/
const harmless = /^[\w .,:;@+=~-]{0,128}$/
const terminalName = /^[\w.+-]{1,64}$/
const markVariable = 'HAWSER_EXEC'
/** Between SIGHUP and SIGKILL. */
const patience_ms = 5_000
/** For the small program that sends a signal. */
const signal_ms = 10_000

/** In the home, with the user's shell if the container has it: images often name a missing one. */
const enter = 'cd "$HOME" 2>/dev/null || cd /; [ -x "$0" ] && exec "$0" "$@"; exec /bin/sh "$@"'
const servers = [
  '/usr/lib/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
]
/** The container's own file server if it has one, else our shell; its first line says which. */
const enterFiles = `for s in ${servers.join(' ')}; do [ -x "$s" ] && { echo own; exec "$s"; }; done
echo shell
${shellLoop}`
/** `$1`: the mark, `$2`: the signal. The group's leader started the program. */
const kill = `for d in /proc/[0-9]*; do p=\${d#/proc/}
grep -q "${markVariable}=$1" "$d/environ" 2>/dev/null || continue
s=$(cat "$d/stat" 2>/dev/null); s=\${s##*) }; set -- "$1" "$2" $s
[ "$6" = "$p" ] && kill -"$2" -"$p" 2>/dev/null; done; :`

export async function serveContainerSession(channel: Channel, options: ContainerSession): Promise<void> {
  const { account, log } = options
  let client: string | undefined
  let terminal = false
  const session = await receiveSession(channel, (request) => {
    // The gateway's variables come before the client's, so the first value counts.
    if (request.type === 'env' && request.name === clientVariable) client ??= request.value
    const allowed = isAllowed(request) && !(request.type === 'pty-req' && terminal)
    terminal ||= allowed && request.type === 'pty-req'
    return allowed
  })
  if (!session) return
  const { type } = session.program
  const began_ms = performance.now()
  log({ event: 'session.started', user: account.name, type, terminal })
  const exit = await serveProgram(session, options, client)
  log({
    event: 'session.ended',
    user: account.name,
    type,
    exit,
    lasted_ms: Math.round(performance.now() - began_ms),
  })
}

async function serveProgram(
  session: Session,
  options: ContainerSession,
  client: string | undefined,
): Promise<number | undefined> {
  if (session.program.type === 'subsystem') return serveFiles(session, options)
  const request =
    session.program.type === 'exec' && !session.pty ? readScp(session.program.command) : undefined
  return request ? serveCopy(session, options, request, client) : run(session, options, client)
}

function isAllowed(request: SessionRequest): boolean {
  if (request.type === 'env') {
    const { name, value } = request
    return (
      name === clientVariable ||
      (name === personVariable && readPersonText(value) !== undefined) ||
      (passedOn.test(name) && harmless.test(value)) ||
      readNamed(name, value) !== undefined
    )
  }
  if (request.type === 'subsystem') return request.name === 'sftp'
  return ['shell', 'exec', 'pty-req', 'window-change'].includes(request.type)
}

function environmentOf(
  session: Session,
  { account, deviceName }: ContainerSession,
  mark: string,
  client: string,
): Record<string, string> {
  const [address = '', port = ''] = client.split(' ')
  const known = isIP(address) !== 0 && /^\d{1,5}$/.test(port)
  return {
    ...Object.fromEntries(
      [...session.env]
        .filter(([name]) => name !== clientVariable)
        .map(([name, value]) => [readNamed(name, value) ?? name, value]),
    ),
    ...accountVariables(account),
    ...(known
      ? { SSH_CLIENT: `${address} ${port} 22`, SSH_CONNECTION: `${address} ${port} 127.0.0.1 22` }
      : {}),
    ...(session.pty
      ? { TERM: terminalName.test(session.pty.terminal) ? session.pty.terminal : 'xterm' }
      : {}),
    SHELLHUB_HOST: deviceName,
    HAWSER_DEVICE: deviceName,
    [markVariable]: mark,
  }
}

function accountVariables({ name, home, shell }: ContainerAccount): Record<string, string> {
  return { HOME: home, USER: name, LOGNAME: name, SHELL: shell }
}

async function run(session: Session, options: ContainerSession, client = ''): Promise<number | undefined> {
  const { client: engine, container, account, signal } = options
  const { channel, pty } = session
  const mark = randomBytes(16).toString('hex')
  const program = session.program as Exclude<Program, { type: 'subsystem' }>
  const words = program.type === 'exec' ? ['-c', program.command] : []
  let exec: Exec
  try {
    exec = await startExec(
      engine,
      {
        container,
        command: ['/bin/sh', '-c', enter, account.shell, ...words],
        user: account.execUser,
        env: environmentOf(session, options, mark, client),
        terminal: pty && { columns: pty.columns, rows: pty.rows },
      },
      signal,
    )
  } catch (error) {
    return notStarted(session, options, error)
  }
  const send = async (name: string): Promise<void> => {
    const helper = await startExec(
      engine,
      { container, command: ['/bin/sh', '-c', kill, 'kill', mark, name], user: account.execUser },
      AbortSignal.timeout(signal_ms),
    )
    for await (const _ of helper.output);
  }
  let over = false
  void channel.closed.then(async () => {
    if (over) return
    exec.close()
    try {
      await send('HUP')
      await send('CONT')
      await new Promise((resolve) => setTimeout(resolve, patience_ms).unref())
      await send('KILL')
    } catch (error) {
      options.log({ event: 'hangup.failed', error: (error as Error).message })
    }
  })
  const input = passInput(channel, exec, pty !== undefined)
  const events = passEvents(session, exec, send)
  try {
    for await (const { bytes, stream } of exec.output) await channel.write(bytes, stream)
  } catch {
    // The reader is gone, and so is the channel.
    await channel.closed
    return undefined
  }
  let status: number
  try {
    status = await exec.exit()
  } catch (error) {
    if (!signal.aborted) options.lost(error)
    return undefined
  } finally {
    over = true
    exec.close()
  }
  await session.exit(status)
  await Promise.all([input, events])
  return status
}

async function notStarted(
  session: Session,
  options: ContainerSession,
  error: unknown,
): Promise<number | undefined> {
  options.log({
    event: 'program.failed',
    user: options.account.name,
    error: (error as Error).message,
    ...detailOf(error),
  })
  // Without a status the engine could not be reached; with one it has refused the program.
  if (!(error instanceof EngineFailure) || error.status === 0) {
    options.lost(error)
    return undefined
  }
  await session.channel
    .write(Buffer.from('hawser: the program could not be started in the container\r\n'), 1)
    .catch(() => undefined)
  await session.exit(255)
  return 255
}

function detailOf(error: unknown): { detail?: string } {
  return error instanceof EngineFailure && error.detail !== '' ? { detail: error.detail.slice(0, 500) } : {}
}

async function passInput(channel: Channel, exec: Exec, terminal: boolean): Promise<void> {
  let wanted = true
  try {
    // Input that the program does not read is dropped, or the client would wait for ever.
    for await (const { bytes, stream } of channel)
      if (stream === 0 && wanted) wanted = await exec.write(bytes)
    // On a terminal a character ends the input.
    if (!terminal) exec.endInput()
  } catch {
    // The connection broke off; the program is being hung up.
  }
}

async function passEvents(
  session: Session,
  exec: Exec,
  send: (signal: string) => Promise<void>,
): Promise<void> {
  for await (const event of session.events) {
    if (event.type === 'window-change') void exec.resize(event.size)
    else if (event.type === 'signal' && sendableSignals.has(event.signal))
      await send(event.signal).catch(() => undefined)
    else if (event.type === 'break' && session.pty) await exec.write(Buffer.of(3))
  }
}

/** Programs of ours in the user's home, for files; they end with the channel. */
function helpers({ channel }: Session, { client, container, account, signal }: ContainerSession) {
  const started = new Set<Exec>()
  const stop = (): void => started.forEach((each) => each.close())
  void channel.closed.then(stop)
  return {
    stop,
    async start(script: string, ...words: string[]): Promise<Exec> {
      const whole = `cd "$HOME" 2>/dev/null || cd /; LC_ALL=C; export LC_ALL; umask 022; NL='\n'; ${script}`
      const request = {
        container,
        command: ['/bin/sh', '-c', whole, 'files', ...words],
        user: account.execUser,
        env: accountVariables(account),
      }
      const exec = await startExec(client, request, signal)
      started.add(exec)
      return {
        ...exec,
        close() {
          started.delete(exec)
          exec.close()
        },
      }
    },
  }
}

/** For old clients of scp, by the container's own scp if it has one. */
async function serveCopy(
  session: Session,
  options: ContainerSession,
  request: ScpRequest,
  client: string | undefined,
): Promise<number | undefined> {
  const mark = newMark()
  const { start, stop } = helpers(session, options)
  let status: number
  try {
    const exec = await start(shellLoop, mark)
    const shell = containerShell(exec, exec.output[Symbol.asyncIterator](), mark)
    if ((await shell.run('command -v scp >/dev/null')).status === 0) {
      stop()
      return await run(session, options, client)
    }
    // The shell expands wildcards and the like, as it would for the program.
    const { output } = await shell.run(
      `eval ${quoted(`set -- ${request.words}`)}; for word in "$@"; do printf '%s\\0' "$word"; done`,
    )
    const paths = output.toString('utf8').split('\0').slice(0, -1)
    status = await serveScp(session.channel, containerFiles(shell, mark, start), request, paths)
  } catch (error) {
    options.log({ event: 'files.failed', user: options.account.name, error: (error as Error).message })
    await session.channel.close('now')
    return undefined
  } finally {
    stop()
  }
  await session.exit(status)
  return status
}

/** Served by the container's own server, or by ours over its shell. */
async function serveFiles(session: Session, options: ContainerSession): Promise<number | undefined> {
  const { account } = options
  const { channel } = session
  const mark = newMark()
  const { start, stop } = helpers(session, options)
  let exec: Exec
  try {
    exec = await start(enterFiles, mark)
  } catch (error) {
    return notStarted(session, options, error)
  }
  const output = exec.output[Symbol.asyncIterator]()
  try {
    const { kind, rest } = await greeting(output)
    if (kind === 'shell')
      await serveSftp(channel, containerFiles(containerShell(exec, output, mark), mark, start))
    else if (kind === 'own') {
      const input = passInput(channel, exec, false)
      if (rest.length > 0) await channel.write(rest)
      for (let next = await output.next(); !next.done; next = await output.next()) {
        if (next.value.stream === 0) await channel.write(next.value.bytes)
      }
      await input
    } else {
      await channel.write(Buffer.from('hawser: files need a shell in the container\r\n'), 1)
      await session.exit(255)
      return 255
    }
  } catch (error) {
    options.log({ event: 'files.failed', user: account.name, error: (error as Error).message })
    await channel.close('now')
    return undefined
  } finally {
    stop()
  }
  await session.exit(0)
  return 0
}

/** The first line, which names the server. */
async function greeting(output: AsyncIterator<Output>): Promise<{ kind: string; rest: Buffer }> {
  let said = Buffer.alloc(0)
  while (said.length < 1_024) {
    const next = await output.next()
    if (next.done) break
    if (next.value.stream === 0) said = Buffer.concat([said, next.value.bytes])
    const end = said.indexOf(0x0a)
    if (end >= 0) return { kind: said.toString('utf8', 0, end), rest: said.subarray(end + 1) }
  }
  return { kind: '', rest: said }
}
