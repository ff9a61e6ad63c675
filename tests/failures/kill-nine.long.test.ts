// kill -9 in the middle of writing. Whatever was answered with 200 is there after the next start, whatever
// was not is there whole or not at all, the file is sound, and the counters that triggers keep equal a
// recount.
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { setUp, startProgram, temporaryFolder, type Program } from './program.ts'

const rounds = 4
const writers = 4

/**
 * What must be true after the crash. A thing whose last change was not answered may be in either state: it is
 * left out.
 */
interface Expected {
  readonly keys: Map<string, boolean>
  readonly devices: Map<string, { status: string; tags: string[] }>
  readonly namespaces: Set<string>
}

interface Writer {
  readonly name: string
  readonly program: Program
  readonly token: string
  readonly tenant_id: string
  readonly expected: Expected
  answered(): void
}

/** Writes until the server is gone. Each writer has things of its own, so it knows what became of them. */
async function write({ name, program, token, tenant_id, expected, answered }: Writer): Promise<void> {
  const [api, anonymous] = [program.api({ token }), program.api()]
  const own: string[] = []
  for (let turn = 0; ; turn++) {
    try {
      const key = `${name}-${turn}`
      expected.keys.set(key, false)
      await sure(expected.keys, key, () => api.apiKeys.create({ body: { name: key, expires_at: 30 } }), true)
      own.push(key)
      if (turn % 3 === 2) {
        const gone = own.shift()!
        await sure(expected.keys, gone, () => api.apiKeys.remove({ params: { key: gone } }), false)
      }
      const agent = { info: { id: 'debian' }, public_key: key, tenant_id, hostname: key }
      const { body: device } = await anonymous.devices.auth({ body: agent })
      const { uid } = device
      await sure(expected.devices, uid, () => api.devices.accept({ params: { uid } }), {
        status: 'accepted',
        tags: [],
      })
      const tags = [`tag-${turn % 7}`, `tag-${name}`]
      await sure(expected.devices, uid, () => api.devices.setTags({ params: { uid }, body: { tags } }), {
        status: 'accepted',
        tags,
      })
      if (turn % 4 === 3) {
        await api.namespaces.create({ body: { name: key } })
        expected.namespaces.add(key)
      }
      answered()
    } catch (error) {
      // Cut off, as was to be expected. A refusal never is.
      if (program.child.killed && !(error instanceof ApiError)) return
      throw error
    }
  }
}

/** Makes a change and notes the new state; while it is under way neither state is certain. */
async function sure<T>(
  states: Map<string, T>,
  name: string,
  change: () => Promise<unknown>,
  state: T,
): Promise<void> {
  states.delete(name)
  await change()
  states.set(name, state)
}

test(`what was answered survives ${rounds} kills`, { timeout: 240_000 }, async () => {
  using folder = temporaryFolder()
  const file = path.join(folder.path, 'hawser.db')
  const expected: Expected = { keys: new Map(), devices: new Map(), namespaces: new Set() }
  let token = ''
  let tenant = ''
  for (let round = 0; round < rounds; round++) {
    await using program = await startProgram({ folder: folder.path })
    if (round === 0) ({ token, tenant } = await setUp(program))
    // How far they get is left to chance, within bounds.
    let remaining = 3 + Math.floor(Math.random() * 40)
    const enough = Promise.withResolvers<void>()
    const answered = (): void => void (--remaining === 0 && enough.resolve())
    const work = Array.from({ length: writers }, (_, index) =>
      write({ name: `r${round}w${index}`, program, token, tenant_id: tenant, expected, answered }),
    )
    await Promise.race([enough.promise, Promise.all(work)])
    await pause(Math.random() * 20)
    await program.kill()
    await Promise.all(work)
    checkFile(file)
  }

  await using program = await startProgram({ folder: folder.path })
  const api = program.api({ token })
  const keys = new Set(
    (await every((page) => api.apiKeys.list({ query: { page, per_page: 100 } }))).map((key) => key.name),
  )
  for (const [name, there] of expected.keys) expect([name, keys.has(name)]).toEqual([name, there])
  const devices = new Map(
    (await every((page) => api.devices.list({ query: { page, per_page: 100 } }))).map((device) => [
      device.uid,
      device,
    ]),
  )
  for (const [uid, state] of expected.devices) expect(devices.get(uid), uid).toMatchObject(state)
  const namespaces = new Set(
    (await every((page) => api.namespaces.list({ query: { page, per_page: 100 } }))).map((one) => one.name),
  )
  for (const name of expected.namespaces) expect([name, namespaces.has(name)]).toEqual([name, true])
  expect(expected.keys.size).toBeGreaterThan(rounds)
  expect(expected.devices.size).toBeGreaterThan(rounds)
})

/** All pages of a list. */
async function every<T>(list: (page: number) => Promise<{ body: T[]; total: number }>): Promise<T[]> {
  const items: T[] = []
  for (let page = 1; ; page++) {
    const { body, total } = await list(page)
    items.push(...body)
    if (items.length >= total || body.length === 0) return items
  }
}

/** Looks at the file itself, as the crash has left it: opening it is what rolls half-written changes back. */
function checkFile(file: string): void {
  using database = new DatabaseSync(file)
  const read = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map((row) => Object.values(row))
  expect(read('pragma integrity_check')).toEqual([['ok']])
  expect(read('pragma foreign_key_check')).toEqual([])
  const kept = read(
    `select tenant_id, subject, n from tallies where n <> 0 and subject not like 'sessions%' order by 1, 2`,
  )
  const recount = read(`
    select tenant_id, 'devices.' || status, count(*) from devices group by 1, 2
    union all select tenant_id, 'online.' || status, sum(online) from devices group by 1, 2 having sum(online) <> 0
    union all select tenant_id, 'tag.' || status || '.' || value, count(*) from devices, json_each(devices.tags) group by 1, 2
    order by 1, 2`)
  expect(kept).toEqual(recount)
  const tags = read('select tag, device_id from device_tags order by 1, 2')
  expect(tags).toEqual(read('select value, devices.id from devices, json_each(devices.tags) order by 1, 2'))
}
