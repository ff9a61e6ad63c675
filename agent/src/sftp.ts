// Files for the user who logged in. When the agent is root they are served by a child that has taken the
// user's rights, so that the kernel decides what may be read and written; else by us, who are that user.
import { localFiles, serveSftp, type Session } from '@hawser/ssh'
import { ownProgram } from './own-programs.ts'
import type { Command } from './program.ts'
import { writeRights } from './rights.ts'
import type { Account } from './users.ts'

/** Our own program, for a user whose rights it will take. */
export function sftpCommand(account: Account): Command {
  return ownProgram('sftp-child', [...writeRights(account), account.home])
}

/** The same here. */
export async function serveFiles(session: Session, home: string): Promise<void> {
  await serveSftp(session.channel, localFiles(home))
  await session.exit(0)
}
