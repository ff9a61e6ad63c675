// A program on a pseudo-terminal. Of node-pty we use only the addon's functions that open and resize a
// terminal. The rest has defects: it discards output that nobody has read 200 ms after the program's end, a
// write blocks the whole process while the program does not read, it drops the user's groups or keeps root's,
// and its children inherit the masters of all other terminals (children.ts). The program starts like any
// other and opens the terminal itself (shell.ts), which makes it the controlling terminal.
import { chmodSync, chownSync, closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import { requireBinary, type NativePty } from '@lydell/node-pty/requireBinary.js'
import type { Pty, Size } from '@hawser/ssh'
import { hideFromChildren, start } from './children.ts'
import { Output } from './outputs.ts'
import { signalsFor, type Command, type RunningProgram } from './program.ts'
import { credentialsFor } from './privileges.ts'
import { sttyWords } from './terminal-modes.ts'
import { runTool, tool } from './tools.ts'
import type { Account } from './users.ts'

/** Delays before a write is tried again on a terminal whose buffer is full. */
const shortestWait_ms = 4
const longestWait_ms = 200

let loaded: NativePty | undefined

interface Terminal {
  readonly device: string
  readonly master: number
  readonly slave: number
  readonly native: NativePty
  /** Forgets the master, which has been closed. */
  forget(): void
}

/** Throws if it cannot be started. The command has to open the terminal that the variable SSH_TTY names. */
export async function startOnPty(
  command: Command,
  env: Record<string, string>,
  account: Account,
  pty: Pty,
): Promise<RunningProgram> {
  const { device, master, slave, native, forget } = openTerminal(pty, account)
  let open = true
  const stdout = new Output((onread) =>
    new ReadStream(master, { onread }).once('close', () => {
      open = false
      forget()
    }),
  )
  try {
    await setModes(device, pty.modes)
    const { pid, ended } = await start(command, { ...env, SSH_TTY: device }, account, () => [
      slave,
      slave,
      slave,
    ])
    const { signal, hangUp } = signalsFor(pid, ended)
    return {
      pid,
      terminal: device,
      stdout,
      stderr: undefined,
      ended,
      async write(bytes) {
        let wait_ms = shortestWait_ms
        for (let at = 0; at < bytes.length;) {
          if (!open) return false
          try {
            at += writeSync(master, bytes, at)
            wait_ms = shortestWait_ms
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false
            await sleep(wait_ms)
            wait_ms = Math.min(wait_ms * 2, longestWait_ms)
          }
        }
        return true
      },
      endInput: () => undefined,
      resize(size) {
        const { columns, rows } = bounded(size)
        if (open) native.resize(master, columns, rows)
      },
      signal,
      interrupt() {
        const group = foregroundOf(pid)
        if (open && group > 1) process.kill(-group, 'SIGINT')
      },
      hangUp() {
        hangUp()
        // Closing the master makes the kernel hang up the terminal for all who use it.
        stdout.close()
      },
    }
  } catch (error) {
    stdout.close()
    throw error
  } finally {
    closeSync(slave)
  }
}

/** Synchronous, so that no child can be started in between. */
function openTerminal(size: Size, account: Account): Terminal {
  const native = (loaded ??= requireBinary('pty.node'))
  const { columns, rows } = bounded(size)
  const { master, slave: theirs, pty: device } = native.open(columns, rows)
  const forget = hideFromChildren(master)
  try {
    const credentials = credentialsFor(account)
    if (credentials) giveTo(device, credentials.uid)
    // Ours in place of theirs: children inherit it only if they are to, and it waits, as programs expect.
    return { device, master, slave: openSync(device, constants.O_RDWR | constants.O_NOCTTY), native, forget }
  } catch (error) {
    closeSync(master)
    forget()
    throw error
  } finally {
    closeSync(theirs)
  }
}

/** The kernel has 16 bits for each, and pixels cannot be set. */
function bounded({ columns, rows }: Size): { columns: number; rows: number } {
  return { columns: Math.min(columns, 65_535), rows: Math.min(rows, 65_535) }
}

async function setModes(device: string, modes: ReadonlyMap<number, number>): Promise<void> {
  const stty = tool('stty')
  if (stty === undefined) return
  for (const words of sttyWords(modes)) if (words.length > 0) await runTool(stty, ['-F', device, ...words])
}

/** The user's, and writable for the group of `write` and `wall`, as for logins. */
function giveTo(device: string, uid: number): void {
  const group = groupOfTerminals()
  chownSync(device, uid, group ?? 0)
  chmodSync(device, group === undefined ? 0o600 : 0o620)
}

function groupOfTerminals(): number | undefined {
  try {
    const line = /^tty:[^:]*:(\d+):/m.exec(readFileSync('/etc/group', 'utf8'))
    return line ? Number(line[1]) : undefined
  } catch {
    return undefined
  }
}

/**
 * The group of processes that has the terminal: the eighth field of /proc/PID/stat, counted behind the name.
 */
function foregroundOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/s, '').trim().split(' ')
    return Number(fields[5])
  } catch {
    return 0
  }
}
