// Hole 32: what was recorded on a device, or named by one, must not reach the terminal of the person who
// looks at it.
import { expect, test } from 'vitest'
import fc from 'fast-check'
import { entersAlternateScreen, safeJson, safeText, screenFilter } from '../src/safe-text.ts'

const shown = (text: string) => screenFilter()(text)

test.each([
  ['a title', '\u001b]0;pwned\u0007after'],
  ['a title in one character', '\u009d0;pwned\u009cafter'],
  ['the clipboard', '\u001b]52;c;cm0gLXJm\u001b\\after'],
  ['a link', '\u001b]8;;http://evil.example\u001b\\after'],
  ['a question for the cursor, whose answer would be typed', '\u001b[6nafter'],
  ['a question for the kind of terminal', '\u001b[cafter'],
  ['the same with a mark', '\u001b[>0qafter'],
  ['a change of the window', '\u001b[8;1;1tafter'],
  ['a device control string', '\u001bP+q544e\u001b\\after'],
  ['an application command', '\u001b_Gf=100\u001b\\after'],
  ['a reset', '\u001bcafter'],
  ['the mouse', '\u001b[?1000;1006hafter'],
  ['pasted text', '\u001b[?2004hafter'],
  ['a mode among harmless ones', '\u001b[?25;1000hafter'],
  ['the history', '\u001b[3Jafter'],
  ['a repetition without end', '\u001b[999999999bafter'],
  ['a bell', '\u0007after'],
  ['an answerback', '\u0005after'],
  ['another coding', '\u001b%Gafter'],
  ['a very long sequence', `\u001b[${'1;'.repeat(60)}mafter`],
])('%s is dropped, and nothing of it is shown', (_, text) => {
  expect(shown(text)).toBe('after')
})

test.each([
  ['colours', '\u001b[1;38;5;196mred\u001b[0m'],
  ['moves', '\u001b[2J\u001b[H\u001b[10;20Hx\u001b[3A\u001b[K'],
  ['the second screen', '\u001b[?1049h\u001b[?25l~\u001b[?25h\u001b[?1049l'],
  ['line drawing', '\u001b(0lqk\u001b(B'],
  ['letters of every kind', 'é ⛵ 船 \t|\r\n'],
])('%s are drawn as they are', (_, text) => {
  expect(shown(text)).toBe(text)
})

test('where a sequence is cut makes no difference', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          '\u001b',
          '[',
          ']',
          '?',
          '5',
          '2',
          ';',
          'm',
          'h',
          'n',
          '\u0007',
          '\\',
          'P',
          '\u009b',
          'x',
          '(',
        ),
      ),
      (characters) => {
        const filter = screenFilter()
        expect(characters.map((character) => filter(character)).join('')).toBe(shown(characters.join('')))
      },
    ),
  )
})

test('whatever comes, only sequences that draw pass', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          '\u001b',
          '[',
          ']',
          '?',
          '6',
          '2',
          ';',
          'm',
          'h',
          'n',
          'c',
          't',
          '\u0007',
          '\u0090',
          '\u009b',
          '\u009d',
          'x',
        ),
      ),
      (characters) => {
        // oxlint-disable-next-line no-control-regex
        const left = shown(characters.join('')).replaceAll(/\u001b\[(\??[\d;]*)[mh]/g, '')
        // oxlint-disable-next-line no-control-regex
        expect(left).not.toMatch(/[\u001b\u0007\u0080-\u009f]/)
      },
    ),
  )
})

test('a player knows on which screen it ends', () => {
  expect(entersAlternateScreen('x')).toBeUndefined()
  expect(entersAlternateScreen('\u001b[?1049hx')).toBe(true)
  expect(entersAlternateScreen('\u001b[?1049hx\u001b[?1049l')).toBe(false)
})

test('a name is one line that nothing obeys', () => {
  expect(safeText('a\u001b]0;b\u0007\n\u202ec\u009b')).toBe('a\u{fffd}]0;b\u{fffd} \u{fffd}c\u{fffd}')
})

test('JSON stays the same value and holds nothing that a terminal obeys', () => {
  const value = { name: 'a\u001b\u009b\u202e' }
  expect(safeJson(value)).toBe('{\n  "name": "a\\u001b\\u009b\\u202e"\n}')
  expect(JSON.parse(safeJson(value))).toEqual(value)
})
