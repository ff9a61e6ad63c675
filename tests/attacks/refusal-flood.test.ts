// Strangers filled the server with refusals: other names, addresses and namespaces with each attempt. A
// source gets a few references a minute, and all sources a few hundred; the others share one, under
// which they are counted. A namespace keeps the newest thousand, and nothing is written for namespaces
// that do not exist.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { references } from '../../server/src/domain/access/refusals.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
  await buildWorld(service)
})
afterAll(() => service[Symbol.asyncDispose]())

const rows = () => service.rooms.stores.of(sample.tenant).refusals.list()
const refusal = (reference: string, sshid: string) =>
  ({
    reference,
    sshid,
    reason: 'password',
    source: '192.0.2.1',
    via: 'ssh',
    attempts: 1,
    tenant_id: undefined,
  }) as const

test('a source has twenty-one references a minute, all sources have few hundred, and the next minute is new', () => {
  const { clock } = service
  const book = references(clock)
  const mine = new Set(Array.from({ length: 1_000 }, (_, n) => book('192.0.2.1', `u${n}@a.b`)))
  expect(mine.size).toBe(21)
  const all = new Set(Array.from({ length: 5_000 }, (_, n) => book(`10.${n >> 8}.${n & 255}.1`, `u${n}@a.b`)))
  expect(all.size).toBeLessThanOrEqual(300)
  const before = book('192.0.2.1', 'u0@a.b')
  expect(book('192.0.2.1', 'u0@a.b')).toBe(before)
  clock.forward(60_001)
  expect(book('192.0.2.1', 'u0@a.b')).not.toBe(before)
})

test('all addresses of an IPv6 network are one source', () => {
  const book = references(service.clock)
  const mine = new Set(
    Array.from({ length: 1_000 }, (_, n) => book(`2001:db8::${n.toString(16)}`, `u${n}@a.b`)),
  )
  expect(mine.size).toBe(21)
  expect(mine).not.toContain(book('2001:db8:0:1::1', 'u0@a.b'))
})

test('the name of a user who knows how references are kept gets no other’s', () => {
  const book = references(service.clock)
  const others = Array.from({ length: 25 }, (_, n) => book('192.0.2.1', `u${n}@a.b`))
  for (const sshid of ['', ' ', '192.0.2.1', 'u0@a.b'])
    expect(others.slice(0, 20)).not.toContain(book('192.0.2.2', sshid))
})

test('many attempts under one reference are one row with a count', async () => {
  const before = (await rows()).length
  for (let time = 0; time < 10_000; time += 1)
    service.rooms.refusals.note(refusal('AAAA-AAAA', `u${time}@${sample.namespace}.crane-1`))
  await service.rooms.refusals.flush()
  const written = await rows()
  expect(written.length).toBe(before + 1)
  expect(written.find(({ reference }) => reference === 'AAAA-AAAA')?.times).toBe(10_000)
})

test('a namespace keeps the newest thousand', async () => {
  for (let time = 0; time < 1_500; time += 1) {
    service.rooms.refusals.note(refusal(`B${time}`, `root@${sample.namespace}.crane-1`))
    if (time % 500 !== 499) continue
    await service.rooms.refusals.flush()
    service.clock.forward(1_000)
  }
  expect((await rows()).length).toBeLessThanOrEqual(1_000)
})

test('namespaces that do not exist, and names of any kind, leave nothing', async () => {
  const { db } = service.rooms.database
  const count = async () => (await db.selectFrom('login_refusals').select('reference').execute()).length
  const before = await count()
  for (const sshid of [
    '',
    '@',
    'root',
    'root@nowhere.crane',
    `root@${'x'.repeat(5_000)}`,
    `root@${'0'.repeat(64)}`,
  ])
    service.rooms.refusals.note(refusal('CCCC-CCCC', sshid))
  await service.rooms.refusals.flush()
  expect(await count()).toBe(before)
})

test('more than are held at once are counted as dropped', async () => {
  for (let time = 0; time < 3_000; time += 1)
    service.rooms.refusals.note(refusal(`D${time}`, `root@${sample.namespace}.crane-1`))
  await service.rooms.refusals.flush()
  expect(service.log()).toMatch(/"event":"refusals\.dropped".*"refusals":1000/)
})

test('after thirty days they are gone', async () => {
  const { stores } = service.rooms
  await stores.oldRefusals.sweep('2999-01-01T00:00:00.000Z')
  expect(await rows()).toEqual([])
})
