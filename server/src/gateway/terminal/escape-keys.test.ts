// Ctrl-] and y or n are an answer only when a person types them while a question stands; everything else
// reaches the device, byte for byte.
import { expect, test } from 'vitest'
import { escapeKeys } from './escape-keys.ts'

function keyboard() {
  const answers: string[] = []
  let question: string | undefined = 'may vera type?'
  let [typed, calls] = [0, 0]
  const pass = escapeKeys<string>({
    question: () => question,
    answer: (yes, about) => void answers.push(`${yes ? 'y' : 'n'}: ${about}`),
    called: () => (calls += 1),
    typed: () => (typed += 1),
  })
  return {
    answers,
    typed: () => typed,
    calls: () => calls,
    ask: (other: string | undefined) => (question = other),
    /** What the device gets; undefined: nothing. */
    type: (text: string) => pass({ bytes: Buffer.from(text, 'latin1'), stream: 0 })?.bytes.toString('latin1'),
  }
}

function unasked() {
  const one = keyboard()
  one.ask(undefined)
  return one
}

test('Ctrl-] and y or n are an answer, typed one after the other or at once', () => {
  const one = keyboard()
  expect([one.type('\x1d'), one.type('y'), one.type('\x1dN')]).toEqual([undefined, undefined, undefined])
  expect(one.answers).toEqual(['y: may vera type?', 'n: may vera type?'])
  expect(one.typed()).toBe(0)
})

test('an answer is for the question that stood when Ctrl-] was typed', () => {
  const one = keyboard()
  one.type('\x1d')
  one.ask('may stan type?')
  one.type('y')
  expect(one.answers).toEqual(['y: may vera type?'])
})

test('any other key goes on with its Ctrl-]', () => {
  const one = keyboard()
  for (const key of ['q', 't', 'e', 'r', '1', '\r'])
    expect([one.type('\x1d'), one.type(key)]).toEqual([undefined, `\x1d${key}`])
  expect([one.type('\x1d'), one.type('rm -r x\r')]).toEqual([undefined, '\x1drm -r x\r'])
  expect(one.answers).toEqual([])
  // The person has typed each of them.
  expect(one.typed()).toBe(7)
})

test('of two Ctrl-] the first goes on, and the second may begin an answer', () => {
  const one = keyboard()
  expect([one.type('\x1d'), one.type('\x1d'), one.type('y')]).toEqual([undefined, '\x1d', undefined])
  expect([one.type('\x1d'), one.type('\x1d'), one.type('x')]).toEqual([undefined, '\x1d', '\x1dx'])
  expect(one.type('\x1d')).toBe(undefined)
  one.ask(undefined)
  expect([one.type('\x1d'), one.type('y')]).toEqual(['\x1d\x1d', 'y'])
  expect(one.answers).toEqual(['y: may vera type?'])
})

test('what is pasted is no answer, nor is anything while no question stands', () => {
  const one = keyboard()
  const paste = 'x'.repeat(256)
  expect([one.type(paste), one.type('\x1dy')]).toEqual([paste, '\x1dy'])
  const alone = unasked()
  expect([alone.type('\x1d'), alone.type('y'), alone.type('\x1dn')]).toEqual(['\x1d', 'y', '\x1dn'])
  expect([...one.answers, ...alone.answers]).toEqual([])
})

test('Ctrl-] three times in a row calls for a question, and all three reach the device', () => {
  const one = unasked()
  for (const key of ['\x1d', '\x1d', 'x', '\x1d', '\x1d']) expect(one.type(key)).toBe(key)
  expect(one.calls()).toBe(0)
  expect(one.type('\x1d')).toBe('\x1d')
  expect(one.calls()).toBe(1)
  expect(one.type('\x1d\x1d\x1d')).toBe('\x1d\x1d\x1d')
  expect(one.calls()).toBe(2)
  expect(one.type('x'.repeat(256))).toHaveLength(256)
  expect(one.type('\x1d\x1d\x1d')).toBe('\x1d\x1d\x1d')
  expect(one.calls()).toBe(2)
})

test('reports of the terminal reach the device and are not typed by anybody', () => {
  const one = keyboard()
  for (const report of ['\x1b[24;80R', '\x1b[I', '\x1b[<0;10;5M', '\x1b]11;rgb:0/0/0\x07'])
    expect(one.type(report)).toBe(report)
  expect(one.typed()).toBe(0)
  expect(one.type('ls')).toBe('ls')
  expect(one.typed()).toBe(1)
})
