// Strangers of a few networks keep sending wrong passwords, so that the queue of passwords to be checked is full and
// nobody else can sign in. Each network has a queue of its own, and networks take turns: somebody of another network
// waits for one password of each. The passwords of callers who have left are not checked.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { waitingPasswords } from '../../server/src/domain/people/credentials.ts'
import { from } from '../contract/people.ts'
import { until } from '../harness/eventually.ts'
import { startPlace } from '../harness/place.ts'

const networks = Array.from({ length: 6 }, (_, i) => `203.0.113.${i + 1}`)
const ofEach = 45

test('wrong passwords of six networks delay somebody of another by a turn of each, and end with their callers', async () => {
  await using place = await startPlace()
  const leave = new AbortController()
  let answered = 0
  const strangers = networks.flatMap((source, network) =>
    Array.from({ length: ofEach }, async (_, i) => {
      const call = fetch(`${place.url}/api/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...from(source).headers },
        body: JSON.stringify({ username: `nobody-${network}-${i}`, password: 'wrong-wrong' }),
        signal: leave.signal,
      })
      await call.then(
        () => (answered += 1),
        () => undefined,
      )
    }),
  )
  await until(() => waitingPasswords() > 190)
  const before = answered
  const { username, password } = sample.owner
  const { status } = await place.api(from('198.51.100.77')).users.login({ body: { username, password } })
  expect(status).toBe(200)
  // One turn of each network, and room for answers that were under way.
  expect(answered - before).toBeLessThanOrEqual(3 * networks.length)

  leave.abort()
  await Promise.all(strangers)
  await until(() => waitingPasswords() === 0)
  const { refused } = place.rooms.signIns
  await until(() => refused.of('unknown-user') + refused.of('busy') === networks.length * ofEach)
  expect(refused.of('busy')).toBeGreaterThan(100)
})
