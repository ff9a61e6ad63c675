// The disk is full, which SQLite is made to believe by a limit on its file: what was under way is undone
// whole and told as what it is, reading goes on, and with room everything goes on. (A full disk of PostgreSQL
// is one of its own refusals.)
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { databases, namespace, openFresh, publicKey, refusal } from '../storage/databases.ts'

test('a full disk undoes what was under way and nothing else', { timeout: 60_000 }, async () => {
  await using storage = await openFresh(databases[0]!)
  const { stores, opened } = storage
  const { tenant_id, here } = await namespace(storage)
  await here.publicKeys.insert(publicKey('before'))
  const limit = async (pages: number) =>
    void (await sql.raw(`pragma max_page_count = ${pages}`).execute(opened.db))
  const [size] = (await sql<{ page_count: number }>`pragma page_count`.execute(opened.db)).rows
  await limit(size!.page_count + 5)

  const large = 'x'.repeat(10_000)
  const full = (error: unknown): void => {
    expect(error).toBeInstanceOf(Failure)
    expect((error as Failure).kind).toBe('unavailable')
    expect((error as Failure).message).toBe('The disk of the server is full.')
  }
  full(
    await refusal(
      stores.transaction(async (inside) => {
        for (let number = 0; number < 100; number++)
          await inside.of(tenant_id).publicKeys.insert(publicKey(`key-${number}`, { data: large }))
      }),
    ),
  )
  full(await refusal(here.publicKeys.insert(publicKey('alone', { data: large.repeat(10) }))))
  expect((await here.publicKeys.all()).map((key) => key.fingerprint)).toEqual(['before'])

  await limit(1_000_000)
  await stores.transaction((inside) =>
    inside.of(tenant_id).publicKeys.insert(publicKey('after', { data: large.repeat(10) })),
  )
  expect((await here.publicKeys.all()).map((key) => key.fingerprint).toSorted()).toEqual(['after', 'before'])
})
