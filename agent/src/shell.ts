// What is run for a session: the user's shell, as a login shell or with a command. A few words of `sh`, run
// as the user already, come before it and then are replaced by it:
//   - a terminal is opened by its name, which makes it the controlling one;
//   - the limit on open files is brought back to what logins have, because Node raises it for itself and its
//     children, and so is the mask of new files, which whoever started the agent may have changed;
//   - the folder becomes the user's home, or `/` if there is none: with the user's rights, since root may
//     have none in it.
import type { Program } from '@hawser/ssh'
import path from 'node:path'
import type { Command } from './program.ts'
import type { Account } from './users.ts'

/**
 * Shells that are told with `-l` that this is a login; others (menus, tunnels, `git-shell`) get no argument.
 */
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

/**
 * The command for a shell or a command, on a terminal or not; home and terminal are those of the variables
 * HOME and SSH_TTY.
 */
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
