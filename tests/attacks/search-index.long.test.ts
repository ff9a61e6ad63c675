// Attacks on the search over recordings: a flood of recordings that would keep those of others waiting,
// sessions whose output is made to be expensive, damaged recordings, words that should be gone, cursors of
// others, and more questions than a namespace may ask at a time.
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { matcher, parseQuery } from '../../server/src/search/query.ts'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const ask = async (text: string) => (await place.owner.recordings.find({ query: { text, limit: 100 } })).body
const indexedSessions = (): string[] =>
  place
    .log()
    .split('\n')
    .filter((line) => line.includes('"search.indexed"'))
    .map((line) => (JSON.parse(line) as { session: string }).session)

/** A device of the stranger's namespace, where sample.device is not. */
async function theirDevice(): Promise<string> {
  const device = await place.enrol({ tenant_id: sample.otherTenant, hostname: 'buoy' })
  await place.stranger.devices.accept({ params: { uid: device.uid } })
  return device.uid
}

test('a namespace with many recordings does not keep another one waiting', async () => {
  const flood = Array.from({ length: 3_000 }, (_, line) => `flood ${line} ${'x'.repeat(60)}\r\n`)
  const floods: string[] = []
  for (let count = 0; count < 12; count++)
    floods.push(await recordSession(place.rooms, { lines: [flood.join('')] }))
  const device = await theirDevice()
  const other = await recordSession(place.rooms, {
    tenant: sample.otherTenant,
    device,
    lines: ['gannet\r\n'],
  })
  await eventually(async () => expect(indexedSessions()).toContain(other))
  await eventually(async () => expect(floods.filter((uid) => !indexedSessions().includes(uid))).toEqual([]))
  const order = indexedSessions()
  expect(order.indexOf(other)).toBeLessThan(order.indexOf(floods.at(-1) ?? ''))
})

test('output that is made to be expensive is indexed all the same', async () => {
  const bombs = [
    '\u001b[2147483647S\u001b[2147483647b\u001b[2147483647L'.repeat(500),
    `\u001b[?1049h${'\u001b[2J\u001b[Hflash\u001b[?1049l\u001b[?1049h'.repeat(2_000)}\u001b[?1049l`,
    `${'\u001b]133;A\u0007$ \u001b]133;B\u0007x\u001b]133;C\u0007'.repeat(5_000)}\r\n`,
    `\u001b]0;${'t'.repeat(200_000)}\u0007`,
    'w'.repeat(300_000),
    '\u001b[8mhidden\u001b[0m\r\n'.repeat(2_000),
  ]
  await recordSession(place.rooms, { lines: [...bombs, '\u001bc\r\nafter the bombs: cormorant\r\n'] })
  await eventually(async () => expect((await ask('cormorant')).hits).toHaveLength(1))
  expect((await ask('hidden')).hits).toEqual([])
})

test('a damaged recording is indexed up to the damage, and those after it as ever', async () => {
  const { administrator, rooms } = place
  await administrator.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { search: false } },
  })
  await rooms.background.settled()
  const uid = await recordSession(rooms, { lines: ['puffin\r\n', 'x'.repeat(400_000), 'y'.repeat(400_000)] })
  const folder = path.join(place.folder, 'recordings', sample.tenant, uid.slice(0, 2), uid)
  const [name = ''] = readdirSync(folder)
  const bytes = readFileSync(path.join(folder, name))
  bytes.fill(0xff, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 100)
  writeFileSync(path.join(folder, name), bytes)
  await administrator.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { search: true } },
  })
  await recordSession(rooms, { lines: ['razorbill\r\n'] })
  await eventually(async () => expect((await ask('razorbill')).hits).toHaveLength(1))
  await eventually(async () => expect(indexedSessions()).toContain(uid))
  await rooms.search.round()
  expect((await ask('razorbill')).waiting).toBe(0)
})

test('a recording that was deleted leaves nothing in the files of the index', async () => {
  const secret = 'kittiwakesecretword'
  const typist = { type: 'typist', by: 'kittiwakename', id: 'kittiwakeid' } as const
  const uid = await recordSession(place.rooms, { lines: [typist, `the ${secret} was shown\r\n`] })
  await eventually(async () => expect((await ask(secret)).hits).toHaveLength(1))
  await place.owner.sessions.removeRecording({ params: { uid } })
  expect((await ask(secret)).hits).toEqual([])
  // The last pages are in the log of the database until its next checkpoint.
  await place.rooms.search[Symbol.asyncDispose]()
  const id = Buffer.from(typist.id).toString('hex')
  for (const file of readdirSync(place.folder).filter((name) => name.startsWith('search.db')))
    for (const text of [secret.slice(4), id.slice(4), typist.by.slice(4)])
      expect(readFileSync(path.join(place.folder, file)).includes(text)).toBe(false)
  expect(statSync(path.join(place.folder, 'search.db')).mode & 0o077).toBe(0)
})

test('a query that was made to be expensive for the matcher costs no more than its length', () => {
  const words = Array(32).fill('a').join(' ')
  const line = 'a '.repeat(2_048)
  const matches = matcher(parseQuery(`"${words.slice(0, -1)}b"`))
  for (let turn = 0; turn < 200; turn++) expect(matches(line)).toBeUndefined()
  expect(matcher(parseQuery('aa*'))('a'.repeat(4_096))).toHaveLength(1)
})
