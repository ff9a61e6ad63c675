// Presence with a clock that the test moves and a real database: who counts as online, what is written when,
// and that nothing is lost on the way. Turns of writing come once a second by a real timer, so tests await
// what they bring.
import { localBus } from '../../bus/local.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { eventually } from '../../../../tests/harness/eventually.ts'
import { iso } from '../../kit/clock.ts'
import { openDatabase } from '../../storage/database.ts'
import { stores as openStores } from '../../storage/stores.ts'
import { online_ms, presence as startPresence } from './presence.ts'

const tenant_id = '00000000-0000-4000-8000-000000000001'
const uidOf = (number: number): string => number.toString(16).padStart(64, '0')

/** A database with some devices that were last seen long ago, and presence over it. */
async function start(devices = 1) {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(tmpdir(), 'hawser-presence-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  let ms = Date.parse('2026-03-01T12:00:00Z')
  const clock = { now: () => ms, forward: (by: number) => void (ms += by) }
  const errors: unknown[] = []
  const opened = stack.use(
    await openDatabase({
      url: '',
      folder,
      now: () => iso(clock.now()),
      onError: (error) => void errors.push(error),
    }),
  )
  const stores = openStores(opened)
  const long_ago = '2026-01-01T00:00:00.000Z'
  await stores.users.insert({
    id: 'u'.repeat(24),
    username: 'olga',
    email: 'olga@example.com',
    name: 'Olga',
    recovery_email: null,
    password: '',
    confirmed: 1,
    epoch: 1,
    email_marketing: 0,
    max_namespaces: -1,
    preferred_tenant: null,
    mfa_secret: null,
    mfa_step: 0,
    created_at: long_ago,
    last_login_at: null,
  })
  await stores.namespaces.insert({
    tenant_id,
    name: 'harbour',
    owner: 'u'.repeat(24),
    session_record: 1,
    connection_announcement: '',
    max_devices: -1,
    billing: null,
    created_at: long_ago,
  })
  const mine = stores.of(tenant_id).devices
  await stores.transaction(async (inside) => {
    for (let number = 0; number < devices; number++)
      await inside.of(tenant_id).devices.insert({
        uid: uidOf(number),
        name: `crane-${number}`,
        mac: '',
        public_key: 'key',
        info_id: '',
        info_pretty_name: '',
        info_version: '',
        info_arch: '',
        info_platform: '',
        status: 'accepted',
        status_update_at: long_ago,
        created_at: long_ago,
        remote_addr: '',
        position: '{}',
        public_url: 0,
        public_url_address: '',
        tags: '[]',
        last_seen: long_ago,
        online: 0,
      })
  })
  const presence = startPresence({
    stores,
    clock,
    bus: localBus(),
    node: '',
    onError: (error) => void errors.push(error),
  })
  const stop = stack.move()
  return {
    clock,
    errors,
    opened,
    stores,
    presence,
    /** The presence that an answer would have now. */
    now: async (number = 0) => presence.of((await mine.find(uidOf(number)))!),
    /** The presence in the database. */
    async written(number = 0) {
      const { last_seen, online } = (await mine.find(uidOf(number)))!
      return { last_seen, online: online === 1 }
    },
    counted: async () => (await mine.tallies()).get('online.accepted') ?? 0,
    async [Symbol.asyncDispose]() {
      await presence[Symbol.asyncDispose]()
      await stop[Symbol.asyncDispose]()
    },
  }
}

test('a sign makes a device online at once, and settling writes it', async () => {
  await using here = await start()
  expect((await here.now()).online).toBe(false)
  here.presence.seen(uidOf(0))
  const seen = { last_seen: iso(here.clock.now()), online: true }
  expect(await here.now()).toEqual(seen)
  await here.presence.settle()
  expect(await here.written()).toEqual(seen)
  expect(await here.counted()).toBe(1)
})

test('a sign is written within a turn without anyone asking', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  await eventually(async () => expect((await here.written()).online).toBe(true))
})

test('a device is online for two minutes after its last sign, and then it is not', async () => {
  await using here = await start(2)
  here.presence.seen(uidOf(0))
  const last_seen = iso(here.clock.now())
  here.clock.forward(online_ms - 1)
  // The other one's sign is written by a turn that came after the clock was moved, so a turn has looked at
  // both.
  here.presence.seen(uidOf(1))
  await eventually(async () => expect((await here.written(1)).online).toBe(true))
  expect((await here.now()).online).toBe(true)
  here.clock.forward(1)
  await eventually(async () => expect(await here.written()).toEqual({ last_seen, online: false }))
  expect(await here.now()).toEqual({ last_seen, online: false })
  expect((await here.now(1)).online).toBe(true)
  expect(await here.counted()).toBe(1)
})

test('a device that keeps giving signs stays online', async () => {
  await using here = await start(2)
  here.presence.seen(uidOf(1))
  await here.presence.settle()
  for (let beat = 0; beat < 10; beat++) {
    here.presence.seen(uidOf(0))
    here.clock.forward(30_000)
  }
  here.presence.seen(uidOf(0))
  // The other one gave no more signs; when its end is written, a turn has looked at both.
  await eventually(async () => expect((await here.written(1)).online).toBe(false))
  expect(await here.now()).toEqual({ last_seen: iso(here.clock.now()), online: true })
})

test('a device with a tunnel is online as long as it has it, however seldom it pings', async () => {
  await using here = await start(2)
  here.presence.up(uidOf(0), 0)
  const heard = iso(here.clock.now())
  for (let minutes = 0; minutes < 10; minutes += 2) {
    here.clock.forward(online_ms)
    // The other one's sign is written by a turn that has looked at both.
    here.presence.seen(uidOf(1))
    await eventually(async () =>
      expect(await here.written()).toEqual({ last_seen: iso(here.clock.now()), online: true }),
    )
  }
  // When its tunnel is lost, the time of its last ping counts.
  await here.presence.down(uidOf(0), 0)
  expect(await here.now()).toEqual({ last_seen: heard, online: false })
  expect(await here.written()).toEqual({ last_seen: heard, online: false })
})

test('a device with a tunnel that was said to be offline is so until its next ping', async () => {
  await using here = await start(2)
  here.presence.up(uidOf(0), 0)
  await here.presence.offline(uidOf(0))
  here.clock.forward(online_ms - 1)
  here.presence.seen(uidOf(1))
  await eventually(async () => expect((await here.written(1)).online).toBe(true))
  expect((await here.now()).online).toBe(false)
  here.presence.up(uidOf(0), 0)
  expect((await here.now()).online).toBe(true)
})

test('a device that comes back after its time ran out is online again', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  here.clock.forward(online_ms)
  await eventually(async () => expect((await here.now()).online).toBe(false))
  here.clock.forward(online_ms * 10)
  here.presence.seen(uidOf(0))
  await here.presence.settle()
  expect(await here.written()).toEqual({ last_seen: iso(here.clock.now()), online: true })
})

test('offline holds at once and is written, and the time of the last sign stays', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  const last_seen = iso(here.clock.now())
  here.clock.forward(5000)
  await here.presence.offline(uidOf(0))
  expect(await here.now()).toEqual({ last_seen, online: false })
  expect(await here.written()).toEqual({ last_seen, online: false })
  expect(await here.counted()).toBe(0)
})

test('offline is not undone by the sign before it, only by the next one', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  const gone = here.presence.offline(uidOf(0))
  await Promise.all([gone, here.presence.settle()])
  expect((await here.written()).online).toBe(false)
  here.presence.seen(uidOf(0))
  await here.presence.settle()
  expect((await here.written()).online).toBe(true)
})

test('a sign that comes while offline is being written counts', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  await here.presence.settle()
  const gone = here.presence.offline(uidOf(0))
  here.presence.seen(uidOf(0))
  await gone
  await here.presence.settle()
  expect((await here.now()).online).toBe(true)
  expect((await here.written()).online).toBe(true)
})

test('offline works for a device of which only the database knows', async () => {
  await using here = await start()
  await here.stores.presence.write([{ uid: uidOf(0), last_seen: iso(here.clock.now()), online: true }])
  expect((await here.now()).online).toBe(true)
  await here.presence.offline(uidOf(0))
  expect((await here.now()).online).toBe(false)
  expect(await here.counted()).toBe(0)
})

test('of a device that only the database knows, an old sign does not count', async () => {
  await using here = await start()
  await here.stores.presence.write([{ uid: uidOf(0), last_seen: iso(here.clock.now()), online: true }])
  here.clock.forward(online_ms)
  expect((await here.now()).online).toBe(false)
})

test('what was written before a restart is adopted and runs out like any other', async () => {
  await using here = await start(3)
  const before = here.clock.now()
  await here.stores.presence.write([
    { uid: uidOf(1), last_seen: iso(before - 1000), online: true },
    { uid: uidOf(0), last_seen: iso(before - 60_000), online: true },
    { uid: uidOf(2), last_seen: iso(before - 500), online: true },
  ])
  here.presence.adopt(await here.stores.presence.online())
  expect(await here.now()).toEqual({ last_seen: iso(before - 60_000), online: true })
  here.clock.forward(online_ms - 60_000)
  await eventually(async () => expect((await here.written(0)).online).toBe(false))
  expect([(await here.now(1)).online, (await here.now(2)).online]).toEqual([true, true])
  here.presence.seen(uidOf(2))
  here.clock.forward(60_000)
  await eventually(async () => expect((await here.written(1)).online).toBe(false))
  expect((await here.now(2)).online).toBe(true)
})

test('adopting does not overwrite a newer sign', async () => {
  await using here = await start()
  const rows = [{ uid: uidOf(0), last_seen: iso(here.clock.now() - 60_000) }]
  here.presence.seen(uidOf(0))
  here.presence.adopt(rows)
  expect((await here.now()).last_seen).toBe(iso(here.clock.now()))
})

test('a deleted device is forgotten, and its last sign is not written to its successor', async () => {
  await using here = await start()
  here.presence.seen(uidOf(0))
  here.presence.forget(uidOf(0))
  await here.presence.settle()
  expect((await here.now()).online).toBe(false)
  expect((await here.written()).online).toBe(false)
})

test('what waits is written when presence ends, however much it is', async () => {
  const many = 2500
  const here = await start(many)
  for (let number = 0; number < many; number++) here.presence.seen(uidOf(number))
  await here.presence.settle()
  expect(await here.counted()).toBe(many)
  here.clock.forward(10_000)
  for (let number = 0; number < many; number++) here.presence.seen(uidOf(number))
  await here.presence[Symbol.asyncDispose]()
  const online = await here.stores.presence.online()
  expect(new Set(online.map((row) => row.last_seen))).toEqual(new Set([iso(here.clock.now())]))
  expect(online).toHaveLength(many)
  await here[Symbol.asyncDispose]()
})

test('a failed write is reported and made up for by a later turn', async () => {
  await using here = await start()
  const rename = (from: string, to: string) =>
    sql.raw(`alter table ${from} rename to ${to}`).execute(here.opened.db)
  await rename('devices', 'elsewhere')
  here.presence.seen(uidOf(0))
  await here.presence.settle()
  expect(here.errors).not.toEqual([])
  await rename('elsewhere', 'devices')
  await eventually(async () => expect((await here.written()).online).toBe(true))
})

test('a device whose tunnel closes while the database is away is written as offline when it is back', async () => {
  await using here = await start()
  const rename = (from: string, to: string) =>
    sql.raw(`alter table ${from} rename to ${to}`).execute(here.opened.db)
  here.presence.up(uidOf(0), 0)
  await here.presence.settle()
  await rename('devices', 'elsewhere')
  await here.presence.down(uidOf(0), 0)
  // The answers must not depend on what was written before, however long it takes.
  here.clock.forward(2 * online_ms)
  await here.presence.settle()
  expect(here.errors).toHaveLength(1)
  await rename('elsewhere', 'devices')
  await eventually(async () => expect((await here.written()).online).toBe(false))
  expect((await here.now()).online).toBe(false)
  expect(await here.counted()).toBe(0)
})
