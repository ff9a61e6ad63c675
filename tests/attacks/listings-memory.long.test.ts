// A device that answers its owner's browser with more than there is: names of 65,000 characters, folders without
// an end, folders in folders, paths and files that are longer than was asked for. One listing held 2 GB, and
// eight at once ended the server for everybody. The test looks at the memory of the real program.
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import type { FileNews } from '@hawser/contract/terminals'
import { Sftp, Status } from '../../ssh/src/sftp/protocol.ts'
import { dial, type Dialled } from '../clients/web.ts'
import { setUp, startProgram, temporaryFolder, type Program } from '../failures/program.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { lyingSftp, names, reply, status, type Lie } from './lying-sftp.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Of all that the device sends at once in a test; one listing was worth ten times as much before. */
const most_mib = 128
const atOnce = 8

let lie: Lie = () => undefined
/** What was asked of the device, by type. */
const asked: number[] = []
const sftp = lyingSftp((type, id, fields) => {
  asked.push(type)
  return lie(type, id, fields)
})

const folder = temporaryFolder()
let server: Program
let device: OldAgent
let api: Client
beforeAll(async () => {
  server = await startProgram({ folder: folder.path })
  const owner = await setUp(server)
  api = owner.api
  device = await startOldAgent(server, { version: 2, tenant_id: owner.tenant, sftp })
  await api.devices.accept({ params: { uid: device.uid } })
  // Once before anything is measured, so that what is loaded at the first time does not count.
  await lyingTo({ kind: 'list', path: '' }, () => undefined)
})
afterAll(async () => {
  await device[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** The uid of the session of a new terminal. */
async function opened(): Promise<[Dialled, string]> {
  const body = { device: device.uid, username: 'pilot', password: 'pilot' }
  const shell = await dial(server, (await api.terminals.open({ body })).body.token)
  return [shell, await shell.hear('session')]
}

/** The first news after a wish on a connection of its own, with the length of its message. */
async function told(session: string, wish: object): Promise<FileNews & { length: number }> {
  const { token } = (await api.terminals.files({ body: { session } })).body
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws/ssh?token=${token}`, {
    headers: { origin: server.url },
  })
  try {
    return await new Promise((resolve, reject) => {
      socket.addEventListener('open', () => socket.send(JSON.stringify(wish)))
      socket.addEventListener('message', ({ data }) => {
        if (typeof data === 'string') resolve({ ...(JSON.parse(data) as FileNews), length: data.length })
      })
      socket.addEventListener('close', () => reject(new Error('The server closed without an answer.')))
    })
  } finally {
    socket.close()
  }
}

const sizeOf = (name: 'VmRSS' | 'VmHWM'): number =>
  Number(
    new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))![1],
  ) / 1024

/** Lies to connections, all at once. Answers what they got, and how much the memory had grown at most. */
async function lyingTo(wish: object, answer: Lie, connections = atOnce) {
  lie = answer
  const [shell, session] = await opened()
  using _ = shell
  const before_mib = sizeOf('VmRSS')
  // Forgets the peak so far (proc(5)).
  writeFileSync(`/proc/${server.child.pid}/clear_refs`, '5')
  const answers = await Promise.all(Array.from({ length: connections }, () => told(session, wish)))
  const grown_mib = sizeOf('VmHWM') - before_mib
  expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200)
  return { answers, grown_mib }
}

const crowded = 'Too many folders of this namespace are being listed; try again in a moment.'

test.each([
  ['long names without an end', '⚓'.padEnd(1_000, 'x'), 200],
  ['names that grow when they are sent', '\u0001'.repeat(1_000), 200],
  ['folders that are full of themselves', '.', 1_000],
])('%s are cut, and the person is told', async (_, name, count) => {
  const listing: Lie = (type, id) =>
    type === Sftp.readdir ? names(id, Array<string>(count).fill(name)) : undefined
  const { answers, grown_mib } = await lyingTo({ kind: 'list', path: '' }, listing)
  expect(grown_mib).toBeLessThan(most_mib)
  for (const said of answers) {
    expect(said.length).toBeLessThan(4 * 1024 * 1024)
    expect(said).toMatchObject(said.kind === 'error' ? { message: crowded } : { kind: 'folder', more: true })
  }
  // What was held is free again.
  const [alone] = (await lyingTo({ kind: 'list', path: '' }, listing, 1)).answers
  expect(alone).toMatchObject({ kind: 'folder', more: true })
})

test('names of 65,000 characters are refused', async () => {
  const name = '⚓'.padEnd(65_000, 'x')
  const { answers, grown_mib } = await lyingTo({ kind: 'list', path: '' }, (type, id) =>
    type === Sftp.readdir ? names(id, [name, name, name]) : undefined,
  )
  expect(grown_mib).toBeLessThan(most_mib)
  const message = 'The answer of the device cannot be used: A name has more than 1024 bytes.'
  for (const said of answers) expect(said).toMatchObject({ kind: 'error', message })
})

test('answers without names end the listing', async () => {
  const { answers } = await lyingTo({ kind: 'list', path: '' }, (type, id) =>
    type === Sftp.readdir ? names(id, []) : undefined,
  )
  for (const said of answers) expect(said).toMatchObject({ kind: 'error' })
})

test('a home with an endless name is refused', async () => {
  const { answers } = await lyingTo({ kind: 'list', path: '' }, (type, id) =>
    type === Sftp.realpath ? names(id, ['/'.padEnd(60_000, 'x')]) : undefined,
  )
  for (const said of answers) expect(said).toMatchObject({ kind: 'error' })
})

test.each([
  ['are too deep', ['x'.repeat(1_000)]],
  ['have too many names', Array.from({ length: 200 }, (__, at) => `${at}`.padEnd(1_000, 'x'))],
])('folders in folders that %s stay as they are', async (_, all) => {
  const read = new Set<string>()
  let opened = 0
  const tree: Lie = (type, id, fields) => {
    if (type === Sftp.opendir) return reply(Sftp.handle, id).string(`${(opened += 1)}`)
    if (type !== Sftp.readdir) return undefined
    const handle = fields.text()
    if (read.has(handle)) return undefined
    read.add(handle)
    return names(id, all, 0o040_755)
  }
  const { answers, grown_mib } = await lyingTo({ kind: 'remove', path: '/top' }, tree)
  expect(grown_mib).toBeLessThan(most_mib)
  const refused = 'The folder is too large or too deep to be removed here: remove it in the terminal.'
  for (const said of answers) expect([refused, crowded]).toContain((said as { message: string }).message)
  const [alone] = (await lyingTo({ kind: 'remove', path: '/top' }, tree, 1)).answers
  expect(alone).toMatchObject({ kind: 'error', message: refused })
  expect(asked.filter((type) => type === Sftp.remove || type === Sftp.rmdir)).toEqual([])
})

test.each([
  ['longer than was asked for', (size: number) => ({ data: size * 4, after: 0 })],
  ['with more behind them', () => ({ data: 1, after: 200_000 })],
])('pieces of a file %s end the download', async (_, shape) => {
  const { answers, grown_mib } = await lyingTo({ kind: 'get', path: '/file' }, (type, id, fields) => {
    if (type !== Sftp.read) return undefined
    fields.string()
    fields.uint64()
    const { data, after } = shape(fields.uint32())
    return reply(Sftp.data, id).string(Buffer.alloc(data)).raw(Buffer.alloc(after))
  })
  expect(grown_mib).toBeLessThan(most_mib)
  for (const said of answers) expect(said).toMatchObject({ kind: 'file' })
})

test('a sentence of the device is cut', async () => {
  const { answers } = await lyingTo({ kind: 'list', path: '' }, (type, id) =>
    type === Sftp.opendir ? status(id, Status.failure, 'no '.repeat(20_000)) : undefined,
  )
  for (const said of answers) {
    expect(said).toMatchObject({
      kind: 'error',
      message: expect.stringMatching(/^The device reports: no/) as string,
    })
    expect(said.length).toBeLessThan(1_000)
  }
})
