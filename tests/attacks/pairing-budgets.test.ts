// Two ways around the five wrong pairing codes. Wrong codes of an API key counted against the person who made
// the key, so that a leaked key locked its maker out. And a right code gave back all five tries: a guesser
// with a device of his own never ran out of them.
import { generateKeyPairSync } from 'node:crypto'
import type { Client } from '@hawser/contract/client'
import { expect, test } from 'vitest'
import { startPlace, type Place } from '../harness/place.ts'

const newCode = async (place: Place): Promise<string> => {
  const { publicKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ type: 'spki', format: 'pem' })
  return (await place.nobody.pairings.create({ body: { info: {}, hostname: 'pi', public_key } })).body.code
}
/** Names wrong codes, and returns the status of each answer. */
async function guess(client: Client, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let n = 0; n < times; n += 1)
    statuses.push(
      await client.pairings.get({ query: { code: `2222-222${'23456789'[n % 8]}` } }).then(
        ({ status }) => status,
        (error: { status: number }) => error.status,
      ),
    )
  return statuses
}
const wrong = (times: number) => Array.from({ length: times }, () => 404)
const locked = { status: 429, kind: 'locked' }

test('the wrong codes of an API key lock that key, neither its maker nor another key', async () => {
  await using place = await startPlace()
  const code = await newCode(place)
  const { id } = (await place.administrator.apiKeys.create({ body: { name: 'other', expires_at: 30 } })).body
  const other = place.api({ apiKey: id })
  expect(await guess(place.key, 5)).toEqual(wrong(5))
  await expect(place.key.pairings.get({ query: { code } })).rejects.toMatchObject(locked)
  expect((await place.administrator.pairings.get({ query: { code } })).status).toBe(200)
  expect((await other.pairings.get({ query: { code } })).status).toBe(200)
})

test('the wrong codes of a person do not lock their API keys', async () => {
  await using place = await startPlace()
  const code = await newCode(place)
  expect(await guess(place.administrator, 5)).toEqual(wrong(5))
  await expect(place.administrator.pairings.get({ query: { code } })).rejects.toMatchObject(locked)
  expect((await place.key.pairings.get({ query: { code } })).status).toBe(200)
})

test('a right code gives nobody their tries back', async () => {
  await using place = await startPlace()
  const [looked, confirmed, refused] = [await newCode(place), await newCode(place), await newCode(place)]
  for (const client of [place.operator, place.key]) {
    expect(await guess(client, 4)).toEqual(wrong(4))
    await client.pairings.get({ query: { code: looked } })
    if (client === place.operator) await client.pairings.confirm({ body: { code: confirmed } })
    else await client.pairings.refuse({ body: { code: refused } })
    expect(await guess(client, 2)).toEqual([404, 429])
  }
  // A person who mistyped a few codes starts anew after a quarter of an hour.
  place.clock.forward(15 * 60_000 + 1)
  expect(await guess(place.operator, 1)).toEqual(wrong(1))
})

test('more keys of one maker, or new names for a key, buy thirty wrong codes and no more', async () => {
  await using place = await startPlace({ env: { HAWSER_TRUSTED_PROXIES: '127.0.0.1' } })
  const statuses: number[] = []
  for (let n = 0; n < 7; n += 1) {
    const body = { name: `guesser-${n}`, expires_at: 30 } as const
    const { id } = (await place.administrator.apiKeys.create({ body })).body
    // Each guesses from an address of its own.
    const headers = { 'x-api-key': id, 'x-forwarded-for': `198.51.100.${n}` }
    for (let code = 0; code < 5; code += 1)
      statuses.push(
        (await fetch(`${place.url}/api/pairings?code=2222-222${'23456789'[code]}`, { headers })).status,
      )
  }
  expect(statuses).toEqual([...wrong(30), ...Array.from({ length: 5 }, () => 429)])
  // The maker is not locked with them.
  const code = await newCode(place)
  expect((await place.administrator.pairings.get({ query: { code } })).status).toBe(200)
})
