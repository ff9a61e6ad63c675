// An account may own thousands of namespaces, and anybody may make anybody a member of more. A request of
// such an account that needs one membership must not read them all: a few hundred of them at once filled the
// heap and held the event loop for most of a minute. And a page of namespaces is read in a few statements,
// not in some for each namespace. Rows and statements are counted where the database answers.
import { DefaultQueryExecutor } from 'kysely'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { iso } from '../../server/src/kit/clock.ts'
import { bothDatabases, sharedPlace } from '../harness/place.ts'

const crowd = 3_000
/** Far below the crowd, with room for what the server does in the background. */
const few = 200
/** Namespaces whose log has an entry of a refused sign-in, at most; the log of the server comes on top. */
const mostLogs = 50

const tenantOf = (n: number): string => `cccccccc-0000-4000-8000-${String(n).padStart(12, '0')}`

/** Whether the user has had a token for this one. */
const isKnown = (n: number): boolean => n === 0 || n >= crowd - 1_000

/** Counts the statements that the work runs on all connections, and the rows that they bring. */
async function costOf(work: () => Promise<unknown>) {
  const spy = vi.spyOn(DefaultQueryExecutor.prototype, 'executeQuery')
  try {
    await work()
    const rows = spy.mock.settledResults.map((one) => (one.type === 'fulfilled' ? one.value.rows.length : 0))
    return { statements: rows.length, rows: rows.reduce((sum, n) => sum + n, 0), largest: Math.max(...rows) }
  } finally {
    spy.mockRestore()
  }
}

describe.each(bothDatabases)('an account of thousands of namespaces, on %s', (_, options) => {
  const place = sharedPlace(options)
  const { id: user_id, username } = sample.stranger
  const prefer = (preferred_tenant: string | null) =>
    place.rooms.stores.users.save(user_id, { preferred_tenant })

  beforeAll(async () => {
    const { db } = place.rooms.database
    const start = place.clock.now()
    for (let first = 0; first < crowd; first += 500) {
      const numbers = Array.from({ length: 500 }, (_unused, n) => first + n)
      await db
        .insertInto('namespaces')
        .values(
          numbers.map((n) => ({
            tenant_id: tenantOf(n),
            name: `crowd-${n}`,
            owner: user_id,
            session_record: 1,
            connection_announcement: '',
            max_devices: -1,
            billing: null,
            created_at: iso(start + n),
          })),
        )
        .execute()
      await db
        .insertInto('members')
        .values(
          numbers.map((n) => ({
            tenant_id: tenantOf(n),
            user_id,
            role: 'owner' as const,
            epoch: 'first',
            created_at: iso(start - crowd + n),
            signed_in: isKnown(n) ? (1 as const) : (0 as const),
          })),
        )
        .execute()
    }
  })

  test('a fresh token reads the membership that it is for', async () => {
    const last = tenantOf(crowd - 1)
    await prefer(last)
    const refresh = async (tenant: string) => {
      const { body } = await place.stranger.users.refresh({ query: {} })
      expect(body).toMatchObject({ tenant, role: 'owner' })
    }
    expect((await costOf(() => refresh(last))).rows).toBeLessThan(few)
    // Without a preferred namespace, and with one that is gone, the oldest membership counts.
    for (const preferred of [null, 'gone']) {
      await prefer(preferred)
      expect((await costOf(() => refresh(tenantOf(0)))).rows).toBeLessThan(few)
    }
    const keep = async () => {
      const { body } = await place.stranger.users.refresh({ query: { keep_namespace: true } })
      expect(body.tenant).toBe(sample.otherTenant)
    }
    expect((await costOf(keep)).rows).toBeLessThan(few)
  })

  test('a token of another namespace reads that membership, and none for a stranger there', async () => {
    const tenant = tenantOf(crowd - 7)
    const cost = await costOf(async () => {
      const { body } = await place.stranger.users.namespaceToken({ params: { tenant } })
      expect(body).toMatchObject({ tenant, role: 'owner' })
    })
    expect(cost.rows).toBeLessThan(few)
    const refused = await costOf(() =>
      expect(
        place.stranger.users.namespaceToken({ params: { tenant: sample.tenant } }),
      ).rejects.toMatchObject({ status: 404 }),
    )
    expect(refused.rows).toBeLessThan(few)
  })

  test('a refused sign-in reads no more namespaces than it is written to, the oldest first', async () => {
    const cost = await costOf(async () => {
      await expect(
        place.nobody.users.login({ body: { username, password: 'not-the-password' } }),
      ).rejects.toMatchObject({ status: 401 })
      await place.rooms.auditedRefusals.settled()
    })
    // An entry reads the head of its log.
    expect(cost.rows).toBeLessThan(few + 4 * mostLogs)
    const written = await place.rooms.database.db
      .selectFrom('audit_entries')
      .select('tenant_id')
      .where('action', '=', 'user.sign-in.refused')
      .orderBy('tenant_id')
      .execute()
    const known = Array.from({ length: crowd }, (_unused, n) => n)
      .filter(isKnown)
      .slice(0, mostLogs)
      .map(tenantOf)
    expect(written.map(({ tenant_id }) => tenant_id)).toEqual(['', ...known])
  })

  test('a page of a hundred namespaces costs as many statements as a page of two', async () => {
    const list = (per_page: number) => place.stranger.namespaces.list({ query: { per_page } })
    const small = await costOf(() => list(2))
    const large = await costOf(() => list(100))
    expect(large.statements).toBeLessThan(small.statements + 20)
    const { body, total } = await list(100)
    expect([body.length, total]).toEqual([100, crowd + 1])
    // One namespace alone is shown as it is in the list.
    for (const shown of [body[0], body[99]]) {
      if (!shown) throw new Error('the page is not full')
      const { body: alone } = await place.stranger.namespaces.get({ params: { tenant: shown.tenant_id } })
      expect(JSON.stringify(shown)).toBe(JSON.stringify(alone))
      expect(alone.members).toEqual([{ id: user_id, username, role: 'owner' }])
    }
  })

  test('a limit on namespaces is checked without reading more of them than the limit', async () => {
    await place.rooms.stores.users.save(user_id, { max_namespaces: 3 })
    const cost = await costOf(() =>
      expect(place.stranger.namespaces.create({ body: { name: 'one-more' } })).rejects.toMatchObject({
        status: 403,
      }),
    )
    expect(cost.rows).toBeLessThan(few)
  })
  test('a deleted user leaves all namespaces, which are read a hundred at a time', async () => {
    const { id, username: leaving } = sample.observer
    const { db } = place.rooms.database
    const joined = Array.from({ length: 230 }, (_unused, n) => ({
      tenant_id: tenantOf(n),
      user_id: id,
      role: 'observer' as const,
      epoch: 'first',
      created_at: iso(place.clock.now()),
    }))
    await db.insertInto('members').values(joined).execute()
    const cost = await costOf(() => runCommand(place.rooms, { words: 'user delete', given: [leaving] }))
    expect(cost.largest).toBeLessThanOrEqual(100)
    const left = await db
      .selectFrom('audit_entries')
      .select('tenant_id')
      .where('action', '=', 'member.removed')
      .where('tenant_id', 'like', 'cccccccc-%')
      .execute()
    expect(left).toHaveLength(joined.length)
    expect(await place.rooms.stores.users.find(id)).toBeUndefined()
  })
})
