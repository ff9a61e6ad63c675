// Dropping root's privileges: an agent that runs as root starts programs as the user who logged in, with that
// user's id, group and supplementary groups. Node's own `spawn` sets the first two but always drops the
// groups (libuv calls setgroups(0)), so that members of `docker` or `dialout` would lose access. The program
// is therefore started by `setpriv` of util-linux where the device has it (4 ms), else by a Node that becomes
// the user and then replaces itself by the program (60 ms, but it needs nothing of the device).
import { writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { ownProgram } from './own-programs.ts'
import type { Command } from './program.ts'
import { runTool, tool } from './tools.ts'
import type { Account } from './users.ts'

export type Credentials = Pick<Account, 'uid' | 'gid' | 'groups'>

/** Undefined: there are no privileges to drop, because we are that user, or not root. */
export function credentialsFor(account: Account): Credentials | undefined {
  return process.getuid?.() === 0 && account.uid !== 0 ? account : undefined
}

export function formatCredentials({ uid, gid, groups }: Credentials): [string, string, string] {
  return [String(uid), String(gid), groups.join(',')]
}

export function parseCredentials([uid, gid, groups]: readonly string[]): Credentials {
  const credentials = {
    uid: Number(uid),
    gid: Number(gid),
    groups: (groups ?? '').split(',').filter(Boolean).map(Number),
  }
  // A missing number would become 0, which is root.
  if (
    ![credentials.uid, credentials.gid, ...credentials.groups].every((number) =>
      Number.isSafeInteger(number),
    ) ||
    !uid ||
    !gid
  ) {
    throw new TypeError('The credentials are invalid.')
  }
  return credentials
}

/** Makes this process the user's, for good. Our child programs call it when all their code is loaded. */
export function dropPrivileges({ uid, gid, groups }: Credentials): void {
  // The user may not write to the cache (folders.ts).
  flushCompileCache()
  try {
    writeFileSync(loginUid, String(uid))
  } catch {
    // A kernel without audit, or a container that may not set it.
  }
  process.setgroups!([...groups])
  process.setgid!(gid)
  process.setuid!(uid)
  if (process.getuid!() !== uid || process.geteuid!() !== uid || process.getgid!() !== gid)
    throw new Error('The privileges of root could not be dropped.')
}

/**
 * The login uid, by which audit logs name the user of a process whatever it becomes later (sudo, su). A
 * process sets its own, once, while it is root.
 */
const loginUid = '/proc/self/loginuid'

export function asLogin(uid: number, { file, args, ...rest }: Command): Command {
  return {
    ...rest,
    file: '/bin/sh',
    args: ['-c', `{ echo "$0" >${loginUid}; } 2>/dev/null; exec "$@"`, String(uid), file, ...args],
  }
}

let setpriv: Promise<string | null> | undefined

/** In the same process. */
export async function commandAs(
  credentials: Credentials,
  command: Command,
  by?: 'setpriv' | 'node',
): Promise<Command> {
  const program = by === 'node' ? null : await (setpriv ??= findSetpriv())
  if (program !== null) {
    const [uid, gid, groups] = formatCredentials(credentials)
    return {
      file: program,
      args: ['--reuid', uid, '--regid', gid, '--groups', groups, '--', command.file, ...command.args],
    }
  }
  return ownProgram('privileges-child', [...formatCredentials(credentials), command.file, ...command.args])
}

/** Busybox has a setpriv without these options. */
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
