// Little output of a terminal is stored whole; of much output the end is stored, with the modes from before it.
import { expect, test } from 'vitest'
import { DetachedOutput, tail_bytes } from './detached-output.ts'

const lines = (bytes: number): string => 'a line of text\r\n'.repeat(Math.ceil(bytes / 16))
const stored = (...texts: string[]): string => {
  const output = new DetachedOutput()
  for (const text of texts) output.push(Buffer.from(text))
  return output.read().toString()
}

test('little output is stored unchanged', () => {
  expect(stored('')).toBe('')
  expect(stored('\u001b[31mred', ' 漢字\r\n', lines(40_000))).toBe(`\u001b[31mred 漢字\r\n${lines(40_000)}`)
})

test('of much output the end is stored, from the beginning of a line', () => {
  const all = lines(10 * tail_bytes) + 'the end'
  const end = stored(all)
  expect(end.length).toBeLessThanOrEqual(tail_bytes)
  expect(end.length).toBeGreaterThan(tail_bytes - 64)
  expect(all.endsWith(end)).toBe(true)
  expect(end).toMatch(/^a line/)
  // In pieces of any size.
  const output = new DetachedOutput()
  for (let at = 0; at < all.length; at += 997) output.push(Buffer.from(all.slice(at, at + 997)))
  expect(output.read().toString()).toBe(end)
})

test('modes of long ago are remembered, the last word counts, and a reset forgets them', () => {
  const much = lines(2 * tail_bytes)
  expect(stored('\u001b[?1049h\u001b[?1;2004h\u001b[?25l', much)).toMatch(
    // eslint-disable-next-line no-control-regex
    /^\u001b\[\?1049h\u001b\[\?1h\u001b\[\?2004h\u001b\[\?25la line/,
  )
  // eslint-disable-next-line no-control-regex
  expect(stored('\u001b[?1049h', much, '\u001b[?1049l', much)).toMatch(/^\u001b\[\?1049la line/)
  expect(stored('\u001b[?1049h\u001b[?25l', '\u001bc', much)).toMatch(/^a line/)
})

test('a mode whose sequence is cut by the bound is seen, too', () => {
  const output = new DetachedOutput()
  output.push(Buffer.from(`x\u001b[?1049h${lines(tail_bytes - 10)}`.slice(0, tail_bytes)))
  // Also while one half of the sequence is dropped and the other is not.
  for (let count = 0; count < 20; count++) {
    output.push(Buffer.from('.'))
    expect(output.read().toString()).toContain('\u001b[?1049h')
  }
  // eslint-disable-next-line no-control-regex
  expect(output.read().toString()).toMatch(/^\u001b\[\?1049ha line/)
})

test('what a program makes of numbers does not grow what is remembered', () => {
  const output = new DetachedOutput()
  for (let mode = 0; mode < 100_000; mode++) output.push(Buffer.from(`\u001b[?${mode}h`))
  output.push(Buffer.from(lines(2 * tail_bytes)))
  expect(output.read().length).toBeLessThan(tail_bytes + 1_024)
})
