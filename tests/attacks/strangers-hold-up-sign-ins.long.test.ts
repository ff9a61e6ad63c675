// Strangers of a few networks keep sending wrong passwords, so that the queue of passwords to be checked is full and
// nobody else can sign in. Each network has a queue of its own, and networks take turns: somebody of another network
// waits for one password of each. The passwords of callers who have left are not checked. A stranger with a /48 had
// 65,536 networks, and everybody else waited for all of them; a /48 is one network, and every second turn is for
// networks from which somebody has signed in.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { waitingPasswords } from '../../server/src/domain/people/credentials.ts'
import { from } from '../contract/people.ts'
import { until } from '../harness/eventually.ts'
import { startPlace, type Place } from '../harness/place.ts'

const networks = Array.from({ length: 6 }, (_, i) => `203.0.113.${i + 1}`)
const ofEach = 45

/** Sends a wrong password from each address. */
function strangers(place: Place, sources: readonly string[]) {
  const leave = new AbortController()
  let answered = 0
  const all = sources.map(async (source, i) => {
    const call = fetch(`${place.url}/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...from(source).headers },
      body: JSON.stringify({ username: `nobody-${i}`, password: 'wrong-wrong' }),
      signal: leave.signal,
    })
    await call.then(
      () => (answered += 1),
      () => undefined,
    )
  })
  return { leave, all: Promise.all(all), answered: () => answered }
}

/**
 * A sign-in of the owner whose last byte is still to be sent, so that the way to the server does not count: the answer
 * sends it, and resolves with the status.
 */
async function nearlySent(place: Place, source: string): Promise<() => Promise<number | undefined>> {
  const { username, password } = sample.owner
  const body = JSON.stringify({ username, password })
  const call = request(`${place.url}/api/login`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...from(source).headers,
    },
  })
  await new Promise<void>((resolve) => call.write(body.slice(0, -1), () => resolve()))
  return async () => {
    const answer = once(call, 'response') as Promise<[IncomingMessage]>
    call.end(body.slice(-1))
    const [response] = await answer
    response.resume()
    return response.statusCode
  }
}

test('wrong passwords of six networks delay somebody of another by a turn of each, and end with their callers', async () => {
  await using place = await startPlace()
  const sources = networks.flatMap((source) => Array<string>(ofEach).fill(source))
  const { leave, all, answered } = strangers(place, sources)
  await until(() => waitingPasswords() > 190)
  const signIn = await nearlySent(place, '198.51.100.77')
  const before = answered()
  expect(await signIn()).toBe(200)
  // One turn of each network, and room for answers that were under way.
  expect(answered() - before).toBeLessThanOrEqual(3 * networks.length)

  leave.abort()
  await all
  await until(() => waitingPasswords() === 0)
  const { refused } = place.rooms.signIns
  await until(() => refused.of('unknown-user') + refused.of('busy') === networks.length * ofEach)
  expect(refused.of('busy')).toBeGreaterThan(100)
})

test.each([
  ['a /48', (i: number) => `2001:db8:77:${i.toString(16)}::1`, false],
  ['a hundred networks, for whom somebody is known', (i: number) => `192.0.2.${i}`, true],
])('wrong passwords from %s delay somebody elsewhere by a few', async (_, address, isKnown) => {
  await using place = await startPlace()
  const source = '198.51.100.78'
  const { username, password } = sample.owner
  if (isKnown) await place.api(from(source)).users.login({ body: { username, password } })
  const { leave, all, answered } = strangers(
    place,
    Array.from({ length: 100 }, (_, i) => address(i + 1)),
  )
  await until(() => waitingPasswords() + answered() > 90)
  const signIn = await nearlySent(place, source)
  const before = answered()
  expect(await signIn()).toBe(200)
  expect(answered() - before).toBeLessThan(12)
  leave.abort()
  await all
  await until(() => waitingPasswords() === 0)
})
