// Whoever enrols a device describes it, and the token that they get has the description. Strangers made thousands of
// tokens with the longest descriptions and showed each once: the server remembers tokens that it has verified, by
// number, and would have held 330 MB. Such tokens are verified each time.
import { expect, test } from 'vitest'
import { tokens } from '../../server/src/domain/callers/tokens.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

const info = (text: string) => ({ id: text, pretty_name: text, version: text, arch: text, platform: text })

test('a token that carries a long description of a device counts, and is not remembered', async () => {
  const { stores, vault, clock } = place.rooms
  const mine = await tokens({ stores, vault, clock })
  const of = (text: string) =>
    mine.forDevice({ uid: 'd', tenant: 't', said: { info: info(text), agent: {} } })
  const [short, long] = [await of('debian'), await of('é'.repeat(255))]
  expect(await mine.verify(short)).toBe(await mine.verify(short))
  const first = await mine.verify(long)
  const second = await mine.verify(long)
  expect(first).toMatchObject({ uid: 'd', said: { info: { id: 'é'.repeat(255) } } })
  expect(second).toEqual(first)
  expect(second).not.toBe(first)
})
