// Files over SFTP: a server on a folder of this machine, and a client. And somebody between them, who says
// what became of which file and lets nobody write.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import {
  localFiles,
  localPair,
  Open,
  openSftp,
  pipe,
  receiveSession,
  serveSftp,
  SftpFailure,
  sftpInspector,
  Status,
} from '@hawser/ssh'
import { connected } from './loopback.ts'

const home = mkdtempSync(path.join(os.tmpdir(), 'ssh-example-'))
await using both = await connected()
const { client, server } = both

const serving = (async (): Promise<void> => {
  const opening = await server.channels.next()
  const session = opening && (await receiveSession(opening.accept(), () => true))
  if (session?.program.type !== 'subsystem' || session.program.name !== 'sftp') return
  await serveSftp(session.channel, localFiles(home))
  await session.exit(0)
})()

{
  await using sftp = await openSftp(client)
  await sftp.write('hello.txt', [Buffer.from('Hello.\n')])
  assert.equal((await buffer(sftp.read('hello.txt'))).toString(), 'Hello.\n')
  assert.equal((await sftp.stat('hello.txt')).size, 7)
  await assert.rejects(
    sftp.remove('missing.txt'),
    (error) => error instanceof SftpFailure && error.code === Status.noSuchFile,
  )
}
await serving

// The files themselves, as a server of your own would use or wrap them.
const file = await localFiles(home).open(path.join(home, 'hello.txt'), Open.read, 0o600)
assert.equal((await file.stat()).size, 7)
await file.close()

// A gateway: what it reads of the files that pass, and what it refuses.
const [reader, near] = localPair()
const [far, served] = localPair()
const read: string[] = []
const inspector = sftpInspector({
  restrictions: { writes: 'Files here are for reading.' },
  done: ({ kind, path: name, bytes, refused }) => void read.push(`${kind} ${name}: ${refused ?? bytes}`),
})
void pipe(near, far, {
  channel: () => ({ allow: true, tap: { filter: (from, { bytes }) => inspector.pass(from, bytes) } }),
})
void (async (): Promise<void> => {
  const opening = await served.channels.next()
  const session = opening && (await receiveSession(opening.accept(), () => true))
  if (session) await serveSftp(session.channel, localFiles(home))
})()
{
  await using sftp = await openSftp(reader)
  assert.equal((await buffer(sftp.read('hello.txt'))).toString(), 'Hello.\n')
  await assert.rejects(sftp.remove('hello.txt'), { message: 'Files here are for reading.' })
}
inspector.end()
assert.deepEqual(read, ['read hello.txt: 7', 'remove hello.txt: Files here are for reading.'])
await reader.end()
rmSync(home, { recursive: true })
