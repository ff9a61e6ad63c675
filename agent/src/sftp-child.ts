// The child behind sftp.ts: becomes the user, then serves files on its input and output until the input ends.
// Everything that it needs is loaded before, since the user may not be allowed to read our own files.
import { once } from 'node:events'
import { chdir, stdin, stdout, umask } from 'node:process'
import { localFiles, serveSftp } from '@hawser/ssh'
import { parseCredentials, dropPrivileges } from './privileges.ts'

const [uid, gid, groups, home] = process.argv.slice(2) as [string, string, string, string]
dropPrivileges(parseCredentials([uid, gid, groups]))

// As in a shell.
umask(0o022)

function folder(): string {
  try {
    chdir(home)
    return home
  } catch {
    chdir('/')
    return '/'
  }
}

await serveSftp(
  {
    async *[Symbol.asyncIterator]() {
      for await (const bytes of stdin as AsyncIterable<Buffer>) yield { bytes, stream: 0 }
    },
    async write(bytes) {
      if (!stdout.write(bytes)) await once(stdout, 'drain')
    },
  },
  localFiles(folder()),
)
// Only now: the last answer is on its way.
stdout.end()
