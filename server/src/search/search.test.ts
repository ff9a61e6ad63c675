// Words, queries and passages: what the index is given, and which lines a query finds among it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { times } from '../../../tests/harness/tier.ts'
import type { TranscriptLine } from '../recording/transcript.ts'
import { filterWords } from '../storage/search/search-index.ts'
import { linesOf, PassageMaker, wordsOfBody } from './passages.ts'
import { matcher, parseQuery, requiredWords } from './query.ts'
import { indexed, wordsOf } from './words.ts'

const finds = (query: string, line: string): string[] | undefined =>
  matcher(parseQuery(query))(line)?.map(([from, to]) => line.slice(from, to))

describe('words', () => {
  test.each([
    ['ls -la /var/log/syslog.1', ['ls', 'la', 'var', 'log', 'syslog', '1']],
    ['MAX_SIZE=12 Übergröße', ['max_size', '12', 'übergröße']],
    ['港の灯台 harbour灯', ['港', 'の', '灯', '台', 'harbour', '灯']],
    ['e\u0301tat 🚢 --- ', ['e\u0301tat']],
  ])('of %s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })
})

describe('a query', () => {
  test.each([
    ['sudo', 'root# SUDO reboot', ['SUDO']],
    ['sudo', 'pseudonym', undefined],
    ['pass*', 'passwd and password', ['passwd'.slice(0, 4), 'password'.slice(0, 4)]],
    ['reboot sudo', 'sudo reboot', ['sudo', 'reboot']],
    ['sudo shutdown', 'sudo reboot', undefined],
    ['"permission denied"', 'ssh: Permission denied.', ['Permission denied']],
    ['"permission denied"', 'denied permission', undefined],
    ['/etc/passwd', 'cat /etc/passwd', ['etc/passwd']],
    ['/etc/passwd', 'cat /etc/old/passwd', undefined],
    ['10.0.0.7', 'from 10.0.0.7 port', ['10.0.0.7']],
    ['10.0.0.7', 'from 10.0.0.70 port', undefined],
    ['"harbour mas"*', 'the harbour master', ['harbour mas']],
    ['10.0.*', 'from 10.0.1.7 port', ['10.0']],
    ['10.0.1*', 'from 10.0.12.7 port', ['10.0.1']],
    ['灯台', '港の灯台は', ['灯台']],
    ['灯', '港の灯台は', ['灯']],
    ['台灯', '港の灯台は', undefined],
  ])('%s in %s', (query, line, found) => {
    expect(finds(query, line)).toEqual(found)
  })

  test.each(['', '   ', '"', '"open', '*', 'a*', '--- ///', Array(11).fill('word').join(' ')])(
    '%j is refused with a sentence',
    (query) => {
      expect(() => parseQuery(query)).toThrow(Failure)
    },
  )

  test('never misses a line by the words that it requires of a passage', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(), (line, from, length) => {
        const words = wordsOf(line)
        fc.pre(words.length > 0)
        const start = from % words.length
        const phrase = words.slice(start, start + 1 + (length % 4))
        const query = { terms: [{ words: phrase, prefix: false }] }
        const there = new Set(words.map(indexed))
        expect(requiredWords(query).words.filter((word) => !there.has(word))).toEqual([])
      }),
      { numRuns: times(200, 5_000) },
    )
  })
})

describe('passages', () => {
  const lines = (count: number): TranscriptLine[] =>
    Array.from({ length: count }, (_, index) => ({
      time_ms: index % 7 === 3 ? index * 10 - 500 : index * 10,
      text: `line ${index}\twith 灯台 and ${'x'.repeat(index % 90)}`,
      command:
        index % 10 === 0
          ? { at: 5, source: (['marks', 'prompt', 'exec'] as const)[index % 3] ?? 'exec' }
          : undefined,
      ...(index % 50 < 20 ? { typist: { id: `u${Math.floor(index / 100)}`, name: 'oskar ~ o.' } } : {}),
    }))

  test('hold all lines as they were, and know every word', () => {
    const maker = new PassageMaker()
    const all = lines(3_000)
    const passages = [...all.map((line) => maker.add(line)), maker.take()].filter((one) => one !== undefined)
    expect(passages.length).toBeGreaterThan(2)
    expect(passages.flatMap(({ body }) => linesOf(body))).toEqual(all)
    for (const { words, body } of passages)
      expect(wordsOfBody(body).toSorted()).toEqual([...words].toSorted())
    expect(passages[0]!.words).toContain(filterWords.person('u1'))
  })

  test('do not join what is hours apart', () => {
    const maker = new PassageMaker()
    const line = { text: 'a line', command: undefined }
    expect(maker.add({ ...line, time_ms: 0 })).toBeUndefined()
    expect(maker.add({ ...line, time_ms: 60_000 })).toBeUndefined()
    expect(maker.add({ ...line, time_ms: 7_200_000 })?.time_ms).toBe(0)
    expect(maker.take()?.time_ms).toBe(7_200_000)
  })
})
