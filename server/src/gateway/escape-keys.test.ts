// Ctrl-] and a key are commands only when a person types them while others are there; everything else reaches
// the device, byte for byte.
import { expect, test } from 'vitest'
import { escapeKeys } from './escape-keys.ts'

function keyboard({ isShared = true } = {}) {
  const commands: string[] = []
  let question: string | undefined = 'may vera type?'
  let typed = 0
  const pass = escapeKeys<string>({
    isShared: () => isShared,
    question: () => question,
    command(key, about) {
      if (!'yn'.includes(key)) return false
      commands.push(`${key}: ${about}`)
      return true
    },
    typed: () => (typed += 1),
  })
  return {
    commands,
    typed: () => typed,
    ask: (other: string) => (question = other),
    /** What the device gets; undefined: nothing. */
    type: (text: string) => pass({ bytes: Buffer.from(text, 'latin1'), stream: 0 })?.bytes.toString('latin1'),
  }
}

test('Ctrl-] and a key are a command, typed one after the other or at once', () => {
  const one = keyboard()
  expect([one.type('\x1d'), one.type('y'), one.type('\x1dN')]).toEqual([undefined, undefined, undefined])
  expect(one.commands).toEqual(['y: may vera type?', 'n: may vera type?'])
  expect(one.typed()).toBe(0)
})

test('an answer is for the question that stood when Ctrl-] was typed', () => {
  const one = keyboard()
  one.type('\x1d')
  one.ask('may stan type?')
  one.type('y')
  expect(one.commands).toEqual(['y: may vera type?'])
})

test('a key that means nothing goes on with its Ctrl-], and Ctrl-] typed twice goes on once', () => {
  const one = keyboard()
  expect([one.type('\x1d'), one.type('q')]).toEqual([undefined, '\x1dq'])
  expect([one.type('\x1d'), one.type('\x1d')]).toEqual([undefined, '\x1d'])
  expect([one.type('\x1d'), one.type('rm -r x\r')]).toEqual([undefined, '\x1drm -r x\r'])
  expect(one.commands).toEqual([])
  // The person has typed each of them.
  expect(one.typed()).toBe(3)
})

test('what is pasted is no command, nor is anything while nobody else is there', () => {
  const one = keyboard()
  const paste = 'x'.repeat(256)
  expect([one.type(paste), one.type('\x1dy')]).toEqual([paste, '\x1dy'])
  const alone = keyboard({ isShared: false })
  expect([alone.type('\x1d'), alone.type('y')]).toEqual(['\x1d', 'y'])
  expect([...one.commands, ...alone.commands]).toEqual([])
})

test('reports of the terminal reach the device and are not typed by anybody', () => {
  const one = keyboard()
  for (const report of ['\x1b[24;80R', '\x1b[I', '\x1b[<0;10;5M', '\x1b]11;rgb:0/0/0\x07'])
    expect(one.type(report)).toBe(report)
  expect(one.typed()).toBe(0)
  expect(one.type('ls')).toBe('ls')
  expect(one.typed()).toBe(1)
})
