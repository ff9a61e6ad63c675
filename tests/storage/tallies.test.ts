// What the triggers keep (counters, the index of tags, the index of substrings) equals a recount, whatever
// was done in whatever order and in however few statements, on both databases. The commands are drawn at
// random; a failing sequence is shrunk to the shortest one that fails.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import {
  databases,
  device,
  later,
  namespace,
  now,
  openFresh,
  page,
  session,
  unique,
  type Storage,
} from './databases.ts'
import { times } from '../harness/tier.ts'

// Real databases and processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

type Flag = 0 | 1
/** `at` picks one of what is there: the remainder counts. */
type Command =
  | { do: 'insert'; status: DeviceStatus; online: Flag; tags: string[] }
  | { do: 'remove' | 'rename' | 'session' | 'removeSessions' | 'closeSessions'; at: number }
  | { do: 'status'; at: number; status: DeviceStatus }
  | { do: 'online'; at: number; online: Flag }
  | { do: 'tags'; at: number; tags: string[] }
  | { do: 'all'; at: number; status: DeviceStatus; online: Flag; tags: string[] }
  | { do: 'presence'; online: Flag }
  | { do: 'keepAccepted'; at: number }
  | { do: 'rollback'; at: number; status: DeviceStatus; tags: string[] }
  | { do: 'removeNamespace' }

const at = fc.nat(20)
const status = fc.constantFrom(...deviceStatuses)
const online = fc.constantFrom<Flag>(0, 1)
// With a dot, a status in it and a quote: tallies are named `tag.<status>.<tag>`.
const tags = fc.uniqueArray(fc.constantFrom('pier', 'a.b', 'accepted.x', 'l’été "1"', "o'clock"), {
  maxLength: 3,
})
const just = <const T extends string>(what: T) => fc.constant(what)

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: just('insert'), status, online, tags }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('remove', 'rename', 'session', 'removeSessions', 'closeSessions'),
      at,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: just('status'), at, status }) },
  { weight: 2, arbitrary: fc.record({ do: just('online'), at, online }) },
  { weight: 3, arbitrary: fc.record({ do: just('tags'), at, tags }) },
  { weight: 3, arbitrary: fc.record({ do: just('all'), at, status, online, tags }) },
  { weight: 1, arbitrary: fc.record({ do: just('presence'), online }) },
  { weight: 1, arbitrary: fc.record({ do: just('keepAccepted'), at }) },
  { weight: 1, arbitrary: fc.record({ do: just('rollback'), at, status, tags }) },
  { weight: 1, arbitrary: fc.record({ do: just('removeNamespace') }) },
)

class Undo extends Error {}

/** Runs the commands in a namespace of their own and gives the one that is there in the end. */
async function run(storage: Storage, commands: readonly Command[]): Promise<string> {
  const { stores } = storage
  let { tenant_id, here } = await namespace(storage)
  let uids: string[] = []
  const pick = (at: number): string => uids[at % uids.length] ?? 'none'
  for (const step of commands) {
    const { devices, sessions } = here
    if (step.do === 'insert') {
      const row = device({ status: step.status, online: step.online, tags: JSON.stringify(step.tags) })
      await devices.insert(row)
      uids.push(row.uid)
    } else if (step.do === 'remove') {
      const gone = pick(step.at)
      await devices.remove(gone)
      uids = uids.filter((uid) => uid !== gone)
    } else if (step.do === 'rename') await devices.save(pick(step.at), { name: unique('renamed') })
    else if (step.do === 'session') await sessions.insert(session(pick(step.at)))
    else if (step.do === 'removeSessions') await sessions.removeOfDevice(pick(step.at))
    else if (step.do === 'closeSessions') await sessions.closeOfDevice(pick(step.at))
    else if (step.do === 'status') await devices.save(pick(step.at), { status: step.status })
    else if (step.do === 'online') await devices.save(pick(step.at), { online: step.online })
    else if (step.do === 'tags') await devices.save(pick(step.at), { tags: JSON.stringify(step.tags) })
    else if (step.do === 'all')
      await devices.save(pick(step.at), {
        status: step.status,
        online: step.online,
        tags: JSON.stringify(step.tags),
      })
    else if (step.do === 'presence')
      await stores.presence.write(uids.map((uid) => ({ uid, last_seen: later, online: step.online === 1 })))
    else if (step.do === 'keepAccepted') await devices.keepAccepted(uids.slice(0, step.at), now)
    else if (step.do === 'rollback')
      await stores
        .transaction(async (inside) => {
          await inside
            .of(tenant_id)
            .devices.save(pick(step.at), { status: step.status, tags: JSON.stringify(step.tags) })
          throw new Undo()
        })
        .catch((error: unknown) => expect(error).toBeInstanceOf(Undo))
    else {
      const gone = tenant_id
      await stores.transaction((inside) => inside.namespaces.remove(gone))
      expect(await kept(storage, gone)).toEqual({ tallies: [], tags: [] })
      ;({ tenant_id, here } = await namespace(storage))
      uids = []
    }
  }
  return tenant_id
}

/** What the triggers kept, without the counters that have come back to nothing. */
async function kept({ opened: { db } }: Storage, tenant_id: string) {
  const tallies = await db
    .selectFrom('tallies')
    .select(['subject', 'n'])
    .where('tenant_id', '=', tenant_id)
    .execute()
  const tags = await db
    .selectFrom('device_tags')
    .select(['tag', 'device_id'])
    .where('tenant_id', '=', tenant_id)
    .execute()
  return {
    tallies: tallies
      .filter((row) => row.n !== 0)
      .map((row) => `${row.subject} ${row.n}`)
      .toSorted(),
    tags: tags.map((row) => `${row.tag} ${row.device_id}`).toSorted(),
  }
}

async function recounted({ opened: { db } }: Storage, tenant_id: string) {
  const counts = new Map<string, number>()
  const count = (subject: string, by = 1) => counts.set(subject, (counts.get(subject) ?? 0) + by)
  const tags: string[] = []
  for (const row of await db.selectFrom('devices').selectAll().where('tenant_id', '=', tenant_id).execute()) {
    count(`devices.${row.status}`)
    count(`online.${row.status}`, row.online)
    for (const tag of JSON.parse(row.tags) as string[]) {
      count(`tag.${row.status}.${tag}`)
      tags.push(`${tag} ${row.id}`)
    }
  }
  for (const row of await db
    .selectFrom('sessions')
    .selectAll()
    .where('tenant_id', '=', tenant_id)
    .execute()) {
    count('sessions')
    count('sessions.active', row.active)
  }
  const tallies = [...counts].filter(([, n]) => n !== 0).map(([subject, n]) => `${subject} ${n}`)
  return { tallies: tallies.toSorted(), tags: tags.toSorted() }
}

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('counters and tags equal a recount after any sequence of changes', async () => {
    const property = fc.asyncProperty(
      fc.array(command, { minLength: 1, maxLength: 40 }),
      async (commands) => {
        const tenant_id = await run(storage, commands)
        expect(await kept(storage, tenant_id)).toEqual(await recounted(storage, tenant_id))
      },
    )
    await fc.assert(property, { numRuns: times(10, 40) })
  }, 120_000)

  test('every device is found by a part of its present name, and by no earlier one', async () => {
    const { here } = await namespace(storage)
    const byName = async (value: string) => {
      const groups = [
        { join: 'and', conditions: [{ property: 'name', operator: 'contains', value }] },
      ] as const
      return (await here.devices.list({ groups, sort: 'name', order: 'asc', ...page() })).items.map(
        (row) => row.name,
      )
    }
    const [one, other] = [device({ name: 'north-pier' }), device({ name: 'south-pier' })]
    await here.devices.insert(one)
    await here.devices.insert(other)
    expect(await byName('-PIER')).toEqual(['north-pier', 'south-pier'])
    await here.devices.save(one.uid, { name: 'lighthouse' })
    expect([await byName('pier'), await byName('house'), await byName('north')]).toEqual([
      ['south-pier'],
      ['lighthouse'],
      [],
    ])
    await here.devices.remove(other.uid)
    expect(await byName('pier')).toEqual([])
  })

  test('counters are right after changes that ran side by side', async () => {
    const { tenant_id, here } = await namespace(storage)
    const rows = Array.from({ length: 12 }, () => device({ tags: '["pier"]', online: 1 }))
    await Promise.all(rows.map((row) => here.devices.insert(row)))
    // Opposite directions at once: each change takes counters that another one holds.
    const turns = Array.from({ length: 96 }, (_, turn) =>
      here.devices.save(rows[turn % rows.length]!.uid, {
        status: deviceStatuses[(turn * 7 + (turn % 5)) % deviceStatuses.length]!,
        tags: turn % 3 === 0 ? '["quay"]' : '["pier","quay"]',
        online: (turn % 2) as Flag,
      }),
    )
    await Promise.all(turns)
    expect(await kept(storage, tenant_id)).toEqual(await recounted(storage, tenant_id))
  })
})
