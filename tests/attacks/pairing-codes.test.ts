// Pairing attacked from both ends. Whoever confirms a code gets the device, so codes cannot be guessed; and
// anyone may ask for one, so nobody fills the database or keeps others from asking.
import { generateKeyPairSync } from 'node:crypto'
import { globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { startPlace, type Place } from '../harness/place.ts'

const public_key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
const body = { info: {}, hostname: 'pi', identity: { mac: '02:55:00:00:00:01' }, public_key }
const ask = async (place: Place) => (await place.nobody.pairings.create({ body })).body
const codes = function* (): Generator<string> {
  for (let n = 0; ; n += 1) yield `2222-22${'23456789'[n % 8]}${'ABCDEFGH'[Math.floor(n / 8) % 8]}`
}

test('a person guesses five times, and then the right code is of no use either', async () => {
  await using place = await startPlace()
  const { code } = await ask(place)
  const guess = codes()
  for (let n = 0; n < 5; n += 1)
    await expect(
      place.operator.pairings.confirm({ body: { code: guess.next().value as string } }),
    ).rejects.toMatchObject({ status: 404 })
  for (const attempt of [
    () => place.operator.pairings.get({ query: { code } }),
    () => place.operator.pairings.confirm({ body: { code } }),
    () => place.operator.pairings.refuse({ body: { code } }),
  ])
    await expect(attempt()).rejects.toMatchObject({ status: 429, kind: 'locked' })
  // Others are not locked with them.
  await place.stranger.pairings.confirm({ body: { code } })
})

test('an address guesses thirty times, with however many accounts and nodes', async () => {
  await using place = await startPlace()
  const guess = codes()
  const { users } = place.rooms
  const people = []
  for (let n = 0; n < 8; n += 1) {
    const login = { username: `guesser-${n}`, password: 'rope-and-anchor' }
    const { id } = await users.create({ ...login, name: 'G', email: `g${n}@example.com` }, true)
    await place.rooms.namespaces.create(id, `of-guesser-${n}`)
    people.push(place.api({ token: (await place.nobody.users.login({ body: login })).body.token }))
  }
  const statuses = []
  for (const person of people)
    for (let n = 0; n < 4; n += 1)
      statuses.push(
        await person.pairings.get({ query: { code: guess.next().value as string } }).then(
          () => 200,
          (error: { status: number }) => error.status,
        ),
      )
  expect(statuses).toEqual([...Array.from({ length: 30 }, () => 404), 429, 429])
})

test('the code is no secret of the agent, and the secret is no code', async () => {
  await using place = await startPlace()
  const { code, secret } = await ask(place)
  const outcome = async (text: string) => place.nobody.pairings.outcome({ body: { secret: text } })
  await expect(outcome(code)).rejects.toMatchObject({ status: 400 })
  await expect(outcome('0'.repeat(64))).rejects.toMatchObject({ status: 401 })
  for (const who of [place.nobody, place.device])
    await expect(who.pairings.get({ query: { code } })).rejects.toMatchObject({
      status: who === place.nobody ? 401 : 403,
    })
  await expect(place.observer.pairings.confirm({ body: { code } })).rejects.toMatchObject({ status: 403 })
  // Neither is written down.
  expect(place.log()).not.toContain(secret)
  expect(place.log()).not.toContain(code)
  for (const file of globSync('**/*', { cwd: place.folder })) {
    const whole = path.join(place.folder, file)
    if (!statSync(whole).isFile()) continue
    for (const text of [secret, code, code.replace('-', '')])
      expect(readFileSync(whole).includes(text), file).toBe(false)
  }
})

test('an address has twenty pairings open, and all together have ten thousand', async () => {
  await using place = await startPlace()
  const { pairings } = place.rooms.stores
  for (let n = 0; n < 20; n += 1) await ask(place)
  const full = { status: 429, message: expect.stringContaining('Too many devices wait') as string }
  await expect(ask(place)).rejects.toMatchObject(full)
  expect((await pairings.count('127.0.0.1')).own).toBe(20)
  // Fifteen minutes later there is room again.
  place.clock.forward(15 * 60_000)
  await ask(place)
  const row = await pairings.findBySecret('', '')
  expect(row).toBeUndefined()
  const now = new Date(place.clock.now()).toISOString()
  const later = new Date(place.clock.now() + 60_000).toISOString()
  await place.rooms.stores.transaction(async (inside) => {
    for (let n = 0; n < 10_000; n += 1)
      await inside.pairings.insert({
        secret: `s${n}`,
        code: `c${n}`,
        source: `198.51.100.${n % 250}`,
        remote_addr: '198.51.100.1',
        hostname: 'x',
        mac: null,
        public_key,
        fingerprint: '',
        info: '{}',
        state: 'waiting',
        namespace: null,
        confirmed_by: null,
        created_at: now,
        expires_at: later,
      })
  })
  await expect(ask(place)).rejects.toMatchObject(full)
})
