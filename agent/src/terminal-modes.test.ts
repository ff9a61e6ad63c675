// Modes as RFC 4254 section 8 numbers them, in words of `stty`.
import { expect, test } from 'vitest'
import { sttyWords } from './terminal-modes.ts'

const words = (...modes: [number, number][]): string => sttyWords(new Map(modes))[0].join(' ')

test.each([
  [1, 3, 'intr ^C'],
  [3, 127, 'erase ^?'],
  [3, 8, 'erase ^H'],
  [5, 4, 'eof ^D'],
  [2, 255, 'quit undef'],
  [10, 0, 'susp ^@'],
  [4, 64, 'kill @'],
  [4, 200, 'kill 200'],
  [36, 1, 'icrnl'],
  [37, 0, '-iuclc'],
  [38, 0, '-ixon'],
  [50, 1, 'isig'],
  [51, 0, '-icanon'],
  [53, 0, '-echo'],
  [70, 1, 'opost'],
  [72, 0, '-onlcr'],
])('%i %i is %s', (opcode, value, expected) => {
  expect(words([opcode, value])).toBe(expected)
})

test('what means nothing here or makes no sense is left out', () => {
  expect(
    words(
      [128, 38_400],
      [129, 38_400],
      [91, 1],
      [92, 0],
      [30, 1],
      [52, 1],
      [99, 1],
      [1, 32],
      [1, 4_000_000_000],
    ),
  ).toBe('')
})

test('UTF-8 is on unless a client does not want it', () => {
  expect(sttyWords(new Map())[1]).toEqual(['iutf8'])
  expect(sttyWords(new Map([[42, 1]]))[1]).toEqual(['iutf8'])
  expect(sttyWords(new Map([[42, 0]]))[1]).toEqual(['-iutf8'])
})
