// A message between nodes counts once, for five minutes, on its own subject, from a node with the same master
// key.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { longest_ms, Refused, seal } from './sealed.ts'

const key = randomBytes(32)

function pair() {
  const clock = { here: 1_700_000_000_000, there: 1_700_000_000_000 }
  return { clock, one: seal(key, () => clock.there), other: seal(key, () => clock.here) }
}

function reasonOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof Refused) return error.reason
    throw error
  }
  return 'none'
}

describe('a message', () => {
  test('is read by another node, and answered', () => {
    const { one, other } = pair()
    const question = one.seal('held.device', 'which one? ⚓')
    const heard = other.open('held.device', question.bytes)
    expect(heard).toEqual({ text: 'which one? ⚓', id: question.id })
    expect(one.openAnswer(question.id, other.sealAnswer(heard.id, ''))).toBe('')
  })

  test('says nothing to whoever has no key', () => {
    const { one } = pair()
    const { bytes } = one.seal('held.device', 'the password is rope')
    expect(bytes.toString('latin1')).not.toContain('rope')
    expect(reasonOf(() => seal(randomBytes(32)).open('held.device', bytes))).toBe('unreadable')
  })

  test('counts once', () => {
    const { one, other } = pair()
    const { bytes } = one.seal('news', 'a')
    other.open('news', bytes)
    expect(reasonOf(() => other.open('news', bytes))).toBe('repeated')
  })

  test('may be overtaken, and is not heard twice then either', () => {
    const { one, other } = pair()
    const all = Array.from({ length: 3_000 }, (_, number) => one.seal('news', String(number)).bytes)
    const late = all.splice(2_500, 1)[0]!
    for (const bytes of all) other.open('news', bytes)
    expect(other.open('news', late).text).toBe('2500')
    for (const bytes of [late, ...all]) expect(reasonOf(() => other.open('news', bytes))).toBe('repeated')
  })

  test.each([-1, 1])(
    'counts while the clocks differ by five minutes at most, whichever is ahead: %i',
    (sign) => {
      const { clock, one, other } = pair()
      const [first, second] = [one.seal('news', 'a').bytes, one.seal('news', 'b').bytes]
      clock.here += sign * longest_ms
      expect(other.open('news', first).text).toBe('a')
      clock.here += sign
      expect(reasonOf(() => other.open('news', second))).toBe('stale')
    },
  )

  test('is not heard again after its sender was forgotten', () => {
    const { clock, one, other } = pair()
    const { bytes } = one.seal('news', 'a')
    other.open('news', bytes)
    clock.here += 3 * longest_ms
    const third = seal(key, () => clock.here)
    other.open('news', third.seal('news', 'b').bytes)
    expect(reasonOf(() => other.open('news', bytes))).toBe('stale')
  })

  test('counts on its own subject only, is no answer, and is not for whoever said it', () => {
    const { one, other } = pair()
    const said = one.seal('held.a', 'x')
    expect(reasonOf(() => other.open('held.b', said.bytes))).toBe('unreadable')
    expect(reasonOf(() => one.openAnswer(said.id, other.seal('held.a', 'x').bytes))).toBe('unreadable')
    expect(reasonOf(() => one.open('held.a', said.bytes))).toBe('own')
  })

  test('an answer to one question is none to another', () => {
    const { one, other } = pair()
    const [first, second] = [one.seal('held.a', ''), one.seal('held.a', '')]
    expect(reasonOf(() => one.openAnswer(second.id, other.sealAnswer(first.id, 'x')))).toBe('unreadable')
  })

  test('with any bit changed, or cut anywhere, is refused', () => {
    const { one, other } = pair()
    const { bytes } = one.seal('news', 'cargo')
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(reasonOf(() => other.open('news', changed))).toBe('unreadable')
    }
    for (let end = 0; end < bytes.length; end += 1)
      expect(reasonOf(() => other.open('news', bytes.subarray(0, end)))).toBe('unreadable')
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        (junk) => reasonOf(() => other.open('news', junk)) === 'unreadable',
      ),
    )
    expect(other.open('news', bytes).text).toBe('cargo')
  })
})
