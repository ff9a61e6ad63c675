// A change that must not follow a link: it changes what has the name, or fails, and never what the link leads
// to.
import { chmodSync, lstatSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { localFiles } from '../../ssh/src/sftp/files.ts'
import { packetsOf, Sftp, Status, writeAttributes, type Attributes } from '../../ssh/src/sftp/protocol.ts'
import { serveSftp } from '../../ssh/src/sftp/server.ts'
import { Reader, Writer } from '../../ssh/src/wire.ts'
import { pair } from '../../ssh/test/pairs.ts'

let home: string
beforeAll(() => void (home = mkdtempSync(path.join(tmpdir(), 'hawser-links-'))))
afterAll(() => rmSync(home, { recursive: true, force: true }))
const at = (name: string): string => path.join(home, name)
beforeEach(() => {
  for (const name of ['target', 'link']) rmSync(at(name), { force: true })
  writeFileSync(at('target'), 'all of it')
  chmodSync(at('target'), 0o600)
  symlinkSync('target', at('link'))
})

/** The status of one lsetstat. */
async function lsetstat(name: string, attributes: Attributes): Promise<number> {
  await using two = await pair()
  const opening = two.client.open('session')
  const served = serveSftp((await two.server.channels.next())!.accept(), localFiles(home)).catch(
    () => undefined,
  )
  const channel = await opening
  const packets = packetsOf(channel)
  await channel.write(new Writer().uint32(5).byte(Sftp.init).uint32(3).bytes())
  await packets.next()
  const written = new Writer()
    .uint32(0)
    .byte(Sftp.extended)
    .uint32(1)
    .string('lsetstat@openssh.com')
    .string(name)
  const packet = writeAttributes(written, attributes).bytes()
  packet.writeUInt32BE(packet.length - 4, 0)
  await channel.write(packet)
  const { value } = (await packets.next()) as { value: Buffer }
  await channel.end()
  await served
  return new Reader(value, 5).uint32()
}

test('what a link leads to is not cut', async () => {
  expect(await lsetstat('link', { size: 0 })).toBe(Status.badMessage)
  expect(statSync(at('target')).size).toBe(9)
})

test('what a link leads to keeps its mode, and it is said that the link has none', async () => {
  expect(await lsetstat('link', { mode: 0o777 })).toBe(Status.failure)
  expect(statSync(at('target')).mode & 0o777).toBe(0o600)
})

test('a file without a link gets its mode, also one that nobody may read', async () => {
  expect(await lsetstat('target', { mode: 0o000 })).toBe(Status.ok)
  expect(await lsetstat('target', { mode: 0o640 })).toBe(Status.ok)
  expect(statSync(at('target')).mode & 0o777).toBe(0o640)
})

test('times are the link’s own', async () => {
  const before = statSync(at('target')).mtimeMs
  expect(await lsetstat('link', { atime: 1_000, mtime: 1_000 })).toBe(Status.ok)
  expect(lstatSync(at('link')).mtimeMs).toBe(1_000_000)
  expect(statSync(at('target')).mtimeMs).toBe(before)
})
