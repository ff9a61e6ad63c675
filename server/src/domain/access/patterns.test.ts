// Users' regular expressions: what may be stored, what is refused before it costs anything, and that no
// pattern makes the engine explode. Nothing here measures time; a pattern that exploded would simply never
// end.
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, test, vi } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { checkPattern, runnable } from './patterns.ts'
import { times } from '../../../../tests/harness/tier.ts'

// Thousands of examples may take a while on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const matches = (source: string, text: string): boolean | undefined =>
  runnable(source, () => undefined)?.isIn(text)

function refusal(source: string): string | undefined {
  try {
    checkPattern('username', source)
    return undefined
  } catch (error) {
    if (error instanceof Failure && error.kind === 'invalid') return error.message
    throw error
  }
}

const notRe2 = 'username: this is not a regular expression in RE2 syntax'
const tooLarge = 'username: the regular expression is too large once its repetitions are written out'

describe('what may be stored', () => {
  test.each([
    '.*',
    '^root$',
    '^(root|deploy)$',
    '^192\\.0\\.2\\.',
    '^10\\.(\\d{1,3})\\.\\d{1,3}\\.\\d{1,3}$',
    '(?i)crane-[a-f0-9]{2,12}',
    '[[:alpha:]]+',
    '[]a]',
    '\\pL\\p{Greek}\\x{10FFFF}',
    '\\Qa.b{9999}\\E',
    '(?P<name>a)(?<other>b)',
    'a{2000',
    '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
  ])('%s', (source) => expect(refusal(source)).toBeUndefined())

  test('the longest text, and the longest list of names', () => {
    expect(refusal('x'.repeat(1024))).toBeUndefined()
    const names = Array.from({ length: 127 }, (_, i) => `web-${String(i).padStart(3, '0')}`)
    expect(refusal(`^(${names.join('|')})$`)).toBeUndefined()
  })

  test.each([
    '(',
    ')',
    '[',
    '*',
    'a**',
    '(?=a)',
    '(?<=a)',
    '(?!a)',
    '(a)\\1',
    'a{1001}',
    '\\',
    '(?z)',
    '\\p{NoSuch}',
    'a{2,1}',
  ])('%s is refused', (source) => expect(refusal(source)).toBe(notRe2))

  test('a pattern of more than 1024 characters is refused', () => {
    expect(refusal('x'.repeat(1025))).toBe('username: a regular expression may have at most 1024 characters')
  })

  test.each([
    ['repetitions of repetitions', '(a{1000}){1000}'],
    ['three deep', '((a{100}){100}){100}'],
    ['eleven deep', `${'('.repeat(11)}x${'{2})'.repeat(11)}`],
    ['a long text repeated', `(${'ab'.repeat(500)}){1000}`],
    ['a long text repeated three deep', `(((${'x'.repeat(900)}){10}){10}){10}`],
    ['many repetitions in a row', 'a{1000}'.repeat(146)],
    ['classes and escapes', '(\\pL{1,30}){30,33}[^x]{1000}(?i)\\x{4B}{900}'],
    ['open-ended repetitions', '\\d{1000,}\\w{900,1000}.{2,1000}'],
    ['repetitions behind flags', `(${'x'.repeat(90)}){30}(?i){30}`],
    ['quoted text', '(\\Qabcdefgh\\E){1000}'],
    ['classes with brackets and braces in them', '[]{}]{1000}[^]\\]]{1000}[[:alpha:]]{1000}'],
  ])('%s that would compile to a large program are refused', (_, source) =>
    expect(refusal(source)).toBe(tooLarge),
  )

  test('whatever is written, it is taken or refused by name', () => {
    const pieces = [
      '{3}',
      '{1,}',
      '{40}',
      '\\Q',
      '\\E',
      '\\p',
      '(?',
      'i)',
      'P<n>',
      '🏗',
      '\ud800',
      ...'()[]{}\\*+?|^$.a0,:-',
    ]
    const piece = fc.constantFrom(...pieces)
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(piece, { maxLength: 60 }).map((some) => some.join('')),
        ),
        (source) => {
          const message = refusal(source)
          if (message === undefined)
            expect(matches(source, 'crane')).toBe(RE2JS.compile(source).test('crane'))
          else expect(message).toMatch(/^username: /)
        },
      ),
      { numRuns: times(500, 5_000) },
    )
  })
})

describe('matching', () => {
  test.each([
    ['ran', 'crane', true],
    ['^ran', 'crane', false],
    ['^crane$', 'crane', true],
    ['^crane$', 'crane\n', false],
    ['CRANE', 'crane', false],
    ['(?i)CRANE', 'crane', true],
    ['', 'crane', true],
    ['^$', '', true],
    ['a.c', 'a\nc', false],
    ['^.$', '🏗', true],
  ])('%s against %j: %s', (source, text, found) => expect(matches(source, text)).toBe(found))

  test('patterns that ruin a backtracking engine come to an end', () => {
    const almost = `${'a'.repeat(50_000)}b`
    for (const source of [
      '(a+)+$',
      '(a|aa)+$',
      '(.*a){12}$',
      '^(([a-z])+.)+[A-Z]([a-z])+$',
      '(a*)*c',
      '(x+x+)+y',
      '^(a?){30}a{30}$',
    ]) {
      expect(matches(source, almost)).toBe(false)
    }
    for (const source of ['(a+)+b$', '(a|aa)+b', '(a|a?)+$', '^(a*)*b'])
      expect(matches(source, almost)).toBe(true)
  })

  test('an automaton with more states than it may remember still answers rightly', () => {
    // Fifteen letters back from the end stands an a: 2^15 states, far more than fit.
    const source = '^[ab]*a[ab]{14}$'
    const letters = (seed: number): string => {
      let state = seed
      return Array.from({ length: 3000 }, () =>
        (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? 'a' : 'b',
      ).join('')
    }
    for (let seed = 1; seed <= 20; seed += 1) {
      const text = letters(seed)
      expect(matches(source, text)).toBe(text.at(-15) === 'a')
    }
  })

  test('more patterns than are kept still answer rightly', () => {
    for (let round = 0; round < 2; round += 1) {
      for (let i = 0; i < 1500; i += 1) {
        expect(matches(`^crane-${i}$`, `crane-${i}`)).toBe(true)
        expect(matches(`^crane-${i}$`, `crane-${i + 1}`)).toBe(false)
      }
    }
  })

  test('a stored pattern that cannot be run is told apart from one that does not match', () => {
    expect(matches('(', 'crane')).toBeUndefined()
    expect(matches('a{1000}'.repeat(100), 'crane')).toBeUndefined()
    expect(matches('x'.repeat(1025), 'crane')).toBeUndefined()
  })

  test('compiling is charged once', () => {
    let charged = 0
    const ask = (): void => void runnable('^charged{1,30}$', (steps) => (charged += steps))
    ask()
    expect(charged).toBeGreaterThan(0)
    const once = charged
    ask()
    expect(charged).toBe(once)
  })
})
