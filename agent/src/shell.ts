// The command of a session: the user's shell, as a login shell or with a command. A short `sh` script, run as
// the user, prepares the process and then replaces itself by the shell:
//   - it opens the terminal by its name, which makes it the controlling terminal;
//   - it sets the limit on open files to that of logins, because Node raises its own, and the umask, which
//     the parent of the agent may have changed;
//   - it changes to the user's home, or to `/` if there is none. The user may enter the home; root may not,
//     on some network file systems.
import type { Program } from '@hawser/ssh'
import path from 'node:path'
import type { Command } from './program.ts'
import type { Account } from './users.ts'

/** Shells that get `-l` for a login; others (menus, tunnels, `git-shell`) get no argument. */
const knownShells = new Set([
  'sh',
  'bash',
  'rbash',
  'dash',
  'ash',
  'busybox',
  'zsh',
  'ksh',
  'ksh93',
  'mksh',
  'oksh',
  'yash',
  'fish',
  'csh',
  'tcsh',
  'elvish',
  'nu',
])

/** The kernel's and systemd's own number for logins. */
const openFiles = 1_024

const before = `ulimit -S -n ${openFiles} 2>/dev/null; umask 022; cd "$HOME" 2>/dev/null || cd /; unset OLDPWD; exec "$@"`
const onTerminal = 'exec 0<>"$SSH_TTY" 1>&0 2>&0; '

type Wanted = Exclude<Program, { type: 'subsystem' }>

/** For a shell or a command, on a terminal or not. HOME and SSH_TTY are variables of the command. */
export function commandOf(program: Wanted, { shell }: Account, terminal: boolean): Command {
  return {
    file: '/bin/sh',
    args: ['-c', terminal ? onTerminal + before : before, 'sh', shell, ...argumentsOf(program, shell)],
  }
}

function argumentsOf(program: Wanted, shell: string): string[] {
  if (program.type === 'exec') return ['-c', program.command]
  return knownShells.has(path.basename(shell)) ? ['-l'] : []
}
