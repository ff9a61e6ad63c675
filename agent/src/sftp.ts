// SFTP for the user who logged in. An agent that runs as root serves files by a child that runs as the user,
// so that the kernel decides what may be read and written. Another agent is that user already and serves them
// itself.
import { localFiles, serveSftp, type Session } from '@hawser/ssh'
import { ownProgram } from './own-programs.ts'
import type { Command } from './program.ts'
import { formatCredentials } from './privileges.ts'
import type { Account } from './users.ts'

export function sftpCommand(account: Account): Command {
  return ownProgram('sftp-child', [...formatCredentials(account), account.home])
}

export async function serveFiles(session: Session, home: string): Promise<void> {
  await serveSftp(session.channel, localFiles(home))
  await session.exit(0)
}
