// Files: the real sftp and scp with our server, our client with the real sshd, and our own two with each
// other.
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { connect } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { generatePrivateKey, parsePrivateKey } from '../src/keys/private-key.ts'
import { openSftp } from '../src/sftp/client.ts'
import { localFiles } from '../src/sftp/files.ts'
import { SftpFailure, Status } from '../src/sftp/protocol.ts'
import { serveSftp } from '../src/sftp/server.ts'
import { folder, keygen, quietArgs, run, startSshd, type Sshd } from './programs.ts'
import { runProgram, startServer, type TestServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const where = folder()
let server: TestServer
let sshd: Sshd
beforeAll(async () => {
  await keygen(where, 'olga', '-t', 'ed25519')
  sshd = await startSshd(where, where.read('olga.pub'))
  mkdirSync(where.file('home'))
  server = await startServer({
    hostKeys: [generatePrivateKey()],
    async onSession(session) {
      if (session.program.type !== 'subsystem') return runProgram(session)
      await serveSftp(session.channel, localFiles(where.file('home')))
      return session.exit(0)
    },
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await sshd[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const bytes = randomBytes(5_000_003)
const args = (): string[] => quietArgs(server.port).map((arg) => (arg === '-p' ? '-P' : arg))
const sftp = async (...lines: string[]) =>
  run('sftp', [...args(), '-b', '-', 'olga@127.0.0.1'], `${lines.join('\n')}\n`)

describe('the real sftp with our server', () => {
  test('copies up and down, and leaves the same bytes', async () => {
    where.write('up', bytes)
    const { status, stderr } = await sftp(`put ${where.file('up')} file`, `get file ${where.file('down')}`)
    expect([status, stderr]).toEqual([0, ''])
    expect(readFileSync(where.file('home/file')).equals(bytes)).toBe(true)
    expect(readFileSync(where.file('down')).equals(bytes)).toBe(true)
  })

  test('makes, lists, renames, links, changes and removes', async () => {
    where.write('home/one', 'one')
    const { status, stdout, stderr } = await sftp(
      'mkdir folder',
      'rename one folder/two',
      'ln folder/two folder/hard',
      'ln -s two folder/soft',
      'chmod 640 folder/two',
      'ls -l folder',
      'df',
      'pwd',
      'rm folder/hard',
      'rm folder/soft',
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout.toString()).toMatch(/-rw-r----- .* 3 .* (?:folder\/)?two/)
    expect(stdout.toString()).toContain(`Remote working directory: ${where.file('home')}`)
    expect(readdirSync(where.file('home/folder'))).toEqual(['two'])
    expect(statSync(where.file('home/folder/two')).mode & 0o777).toBe(0o640)
  })

  test('a folder with five hundred files is listed whole', async () => {
    mkdirSync(where.file('home/many'))
    for (let n = 0; n < 500; n += 1) where.write(`home/many/f${n}`, '')
    const { stdout } = await sftp('ls -1 many')
    expect(stdout.toString().match(/many\/f\d+/g)?.length).toBe(500)
  })

  test('what does not exist, exists or is forbidden is said', async () => {
    expect((await sftp('get nothing')).stderr).toContain('not found')
    expect((await sftp('ls nothing')).stderr).toContain('not found')
    expect((await sftp('mkdir folder')).stderr).toContain('Failure')
    expect((await sftp('rm folder')).status).toBe(1)
  })

  test('scp in its new way, with times and modes', async () => {
    where.write('script', 'x')
    await run('touch', ['-d', '2001-02-03 04:05:06 UTC', where.file('script')])
    const { status, stderr } = await run('scp', [
      ...args(),
      '-p',
      where.file('script'),
      `olga@127.0.0.1:script`,
    ])
    expect([status, stderr]).toEqual([0, ''])
    expect(statSync(where.file('home/script')).mtime.toISOString()).toBe('2001-02-03T04:05:06.000Z')
  })
})

const sum = async (parts: AsyncIterable<Uint8Array>): Promise<string> => {
  const hash = createHash('sha256')
  for await (const part of parts) hash.update(part)
  return hash.digest('hex')
}
const expected = createHash('sha256').update(bytes).digest('hex')

describe.each<[string, () => Promise<Connection>, string]>([
  [
    'our client with the real sshd',
    async () =>
      connect(sshd.connect(), {
        user: sshd.user,
        proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
        checkHostKey: () => true,
      }),
    'there',
  ],
  [
    'our client with our server',
    async () =>
      connect(net.connect(server.port, '127.0.0.1'), {
        user: 'olga',
        proofs: [{ method: 'none' }],
        checkHostKey: () => true,
      }),
    'ours',
  ],
])('%s', (_, open, name) => {
  test('writes and reads a file, pipelined', async () => {
    await using connection = await open()
    const client = await openSftp(connection)
    const file = where.file(`${name}-file`)
    // Pieces of any size, as they come from somewhere.
    await client.write(
      file,
      [bytes.subarray(0, 100_001), bytes.subarray(100_001, 100_002), bytes.subarray(100_002)],
      0o600,
    )
    expect(readFileSync(file).equals(bytes)).toBe(true)
    expect(await sum(client.read(file))).toBe(expected)
    expect(await client.stat(file)).toMatchObject({ size: bytes.length, mode: 0o100_600 })
    await client[Symbol.asyncDispose]()
  })

  test('folders, links, names and failures', async () => {
    await using connection = await open()
    const client = await openSftp(connection)
    const at = (part: string): string => `${where.file(`${name}-folder`)}/${part}`
    await client.makeFolder(at(''), 0o755)
    await client.write(at('a'), [Buffer.from('a')])
    await client.write(at('b'), [Buffer.from('b')])
    await client.rename(at('a'), at('b'))
    await client.link('b', at('c'))
    expect(await client.readLink(at('c'))).toBe('b')
    expect(await client.resolve(at('c'))).toBe(at('b'))
    const names: string[] = []
    for await (const entry of client.list(at(''))) names.push(entry.name)
    expect(names.toSorted()).toEqual(['.', '..', 'b', 'c'])
    await client.change(at('b'), { mode: 0o400, atime: 1_000_000_000, mtime: 1_000_000_000 })
    expect(await client.lstat(at('b'))).toMatchObject({ size: 1, mode: 0o100_400, mtime: 1_000_000_000 })
    await client.remove(at('b'))
    await client.remove(at('c'))
    await client.removeFolder(at(''))
    const failure = await client.stat(at('b')).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(SftpFailure)
    expect((failure as SftpFailure).code).toBe(Status.noSuchFile)
  })

  test('an early end of reading, and a missing file', async () => {
    await using connection = await open()
    const client = await openSftp(connection)
    symlinkSync('nowhere', where.file(`${name}-loose`))
    await expect(sum(client.read(where.file(`${name}-loose`)))).rejects.toMatchObject({
      code: Status.noSuchFile,
    })
    for await (const part of client.read(where.file(`${name}-file`))) {
      expect(part.length).toBe(32_768)
      break
    }
    expect(await sum(client.read(where.file(`${name}-file`)))).toBe(expected)
  })
})
