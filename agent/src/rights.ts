// How a program comes to run as the user who logged in when the agent is root: with the user's id, group and
// all of the user's other groups, and with nothing left of root. Node's own `spawn` can change the first two
// but always drops the rest (libuv calls setgroups(0)), so that members of `docker` or `dialout` would lose
// what they may do. So the program is started by `setpriv` of util-linux where it is there (4 ms), else by a
// Node that takes the rights and then replaces itself by the program (60 ms, but it needs nothing of the
// device).
import { writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { ownProgram } from './own-programs.ts'
import type { Command } from './program.ts'
import { runTool, tool } from './tools.ts'
import type { Account } from './users.ts'

export type Rights = Pick<Account, 'uid' | 'gid' | 'groups'>

/** Undefined when there is nothing to give up: we are that user, or not root and can be nobody else. */
export function rightsToTake(account: Account): Rights | undefined {
  return process.getuid?.() === 0 && account.uid !== 0 ? account : undefined
}

/** Rights as arguments of a program of ours. */
export function writeRights({ uid, gid, groups }: Rights): [string, string, string] {
  return [String(uid), String(gid), groups.join(',')]
}

export function readRights([uid, gid, groups]: readonly string[]): Rights {
  const rights = {
    uid: Number(uid),
    gid: Number(gid),
    groups: (groups ?? '').split(',').filter(Boolean).map(Number),
  }
  // A number that is missing would be root's.
  if (
    ![rights.uid, rights.gid, ...rights.groups].every((number) => Number.isSafeInteger(number)) ||
    !uid ||
    !gid
  ) {
    throw new TypeError('These are no rights.')
  }
  return rights
}

/** Takes the rights in this process, for good. Called by children of ours when all their code is loaded. */
export function takeRights({ uid, gid, groups }: Rights): void {
  // The user could not write there any more (folders.ts).
  flushCompileCache()
  try {
    writeFileSync(loginUid, String(uid))
  } catch {
    // A kernel without audit, or a container that may not.
  }
  process.setgroups!([...groups])
  process.setgid!(gid)
  process.setuid!(uid)
  if (process.getuid!() !== uid || process.geteuid!() !== uid || process.getgid!() !== gid)
    throw new Error('Root could not be left.')
}

/**
 * What audit logs call a process's user, whatever it becomes later (sudo, su): set once, at the login, by the
 * process itself and while it is root.
 */
const loginUid = '/proc/self/loginuid'

/** The command with that noted before it. */
export function asLogin(uid: number, { file, args, ...rest }: Command): Command {
  return {
    ...rest,
    file: '/bin/sh',
    args: ['-c', `{ echo "$0" >${loginUid}; } 2>/dev/null; exec "$@"`, String(uid), file, ...args],
  }
}

let setpriv: Promise<string | null> | undefined

/** The command that runs another one with these rights, in the same process. */
export async function commandWith(
  rights: Rights,
  command: Command,
  way?: 'setpriv' | 'node',
): Promise<Command> {
  const program = way === 'node' ? null : await (setpriv ??= findSetpriv())
  if (program !== null) {
    const [uid, gid, groups] = writeRights(rights)
    return {
      file: program,
      args: ['--reuid', uid, '--regid', gid, '--groups', groups, '--', command.file, ...command.args],
    }
  }
  return ownProgram('rights-child', [...writeRights(rights), command.file, ...command.args])
}

/** Busybox has a program of that name which can do none of this. */
async function findSetpriv(): Promise<string | null> {
  const program = tool('setpriv')
  if (program === undefined) return null
  const works = await runTool(program, [
    '--reuid',
    '65534',
    '--regid',
    '65534',
    '--groups',
    '65534',
    '--',
    '/bin/sh',
    '-c',
    'exit 42',
  ])
  return works.status === 42 ? program : null
}
