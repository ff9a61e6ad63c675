// Idents as they come over a wire: late, early, in pieces, with packets right behind them or with chatter
// before.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { identOf, identReader } from './ident.ts'

const read = (from: 'client' | 'server', ...pieces: string[]) => {
  const reader = identReader(from)
  for (const piece of pieces) {
    const found = reader.push(Buffer.from(piece))
    if (found) return { ident: found.ident, rest: found.rest.toString() }
  }
  return undefined
}

test('what follows the line is kept', () => {
  expect(read('client', 'SSH-2.0-Some thing\r\nrest')).toEqual({ ident: 'SSH-2.0-Some thing', rest: 'rest' })
  expect(read('client', 'SSH-2.0-bare\nrest')).toEqual({ ident: 'SSH-2.0-bare', rest: 'rest' })
  expect(read('client', 'SSH-2.0-late')).toBeUndefined()
})

test('a server may say other lines before, a client may not', () => {
  const chatter = 'welcome\r\nto the quay\r\n'
  expect(read('server', `${chatter}SSH-2.0-Quay\r\n`)).toEqual({ ident: 'SSH-2.0-Quay', rest: '' })
  expect(read('server', `${'long '.repeat(100)}\r\nSSH-1.99-Quay\r\n`)).toEqual({
    ident: 'SSH-1.99-Quay',
    rest: '',
  })
  expect(() => read('client', chatter)).toThrow('This is not SSH.')
  expect(() => read('server', 'noise\r\n'.repeat(2_000))).toThrow('This is not SSH.')
})

test('another version, or a line without end, is refused', () => {
  expect(() => read('server', 'SSH-1.5-Old\r\n')).toThrow('Only version 2')
  expect(() => read('server', `SSH-2.0-${'x'.repeat(260)}`)).toThrow('too long')
})

test('any way to cut it gives the same', () => {
  const whole = 'hello\r\nSSH-2.0-Quay\r\nrest of it'
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: whole.length - 1 }), { maxLength: 6 }), (cuts) => {
      const reader = identReader('server')
      const edges = [0, ...cuts.toSorted((a, b) => a - b), whole.length]
      let found: ReturnType<typeof reader.push>
      let after = ''
      for (let at = 1; at < edges.length; at += 1) {
        const piece = Buffer.from(whole.slice(edges[at - 1], edges[at]))
        if (found) after += piece.toString()
        else found = reader.push(piece)
      }
      expect(found?.ident).toBe('SSH-2.0-Quay')
      expect(found!.rest.toString() + after).toBe('rest of it')
    }),
  )
})

test('our own ident is checked', () => {
  expect(identOf('Hawser_1.2')).toBe('SSH-2.0-Hawser_1.2')
  for (const bad of ['', 'a-b', 'a\r\nb', 'x'.repeat(300)]) expect(() => identOf(bad)).toThrow(TypeError)
})
