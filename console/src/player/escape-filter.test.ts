// The sieve in front of every terminal that shows what a device wrote: what draws passes untouched, what asks
// or acts does not, and how the bytes are cut changes nothing.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { times } from '../../../tests/harness/tier.ts'
import { escapeFilter } from './escape-filter.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const sieved = (text: string) => escapeFilter()(bytes(text))

test.each([
  ['text and line feeds', 'één\r\n\ttwo\b漢字 🚢'],
  ['colours', '\x1b[1;31mred\x1b[38;5;208mamber\x1b[48;2;1;2;3mrgb\x1b[0m\x1b[m\x1b[4:3m'],
  ['the cursor', '\x1b[2;3H\x1b[5A\x1b[K\x1b[2J\x1b7\x1b8\x1b[s\x1b[u\x1b[?25l\x1b[2 q'],
  ['scrolling and lines', '\x1b[2;20r\x1bM\x1bD\x1b[3L\x1b[2M\x1b[4P\x1b[3@\x1b[2S\x1b[T'],
  ['the other screen', '\x1b[?1049h\x1b[?7l\x1b[?1049l\x1b[4h'],
  ['line drawing', '\x1b(0lqk\x1b(B\x0e\x0f'],
])('%s passes as it is', (_, text) => {
  expect(sieved(text)).toBe(text)
})

test.each([
  [
    'what would be repeated for hours',
    '\x1b[2147483647S',
    '\x1b[99999T',
    '\x1b[2147483647L',
    '\x1b[10000I',
    '\x1b[2147483647b',
  ],
  ['the title', '\x1b]0;evil\x07', '\x1b]2;evil\x1b\\', '\u009d0;evil\u009c'],
  ['the clipboard', '\x1b]52;c;ZXZpbA==\x07', '\x1b]52;c;?\x1b\\', '\u009d52;c;?\x07'],
  ['a link', '\x1b]8;;https://evil.example/\x1b\\', '\x1b]8;id=1;javascript:alert(1)\x07'],
  ['colours of the terminal itself', '\x1b]4;1;?\x07', '\x1b]10;?\x07', '\x1b]11;#000000\x07'],
  [
    'a picture or a file',
    '\x1b]1337;File=name=eA==;inline=1:AAAA\x07',
    '\x1bPq#0;2;0;0;0~\x1b\\',
    '\x1b_Gf=24;AAAA\x1b\\',
  ],
  ['who are you', '\x1b[c', '\x1b[>c', '\x1b[=c', '\x1bZ', '\x1b[>q', '\x05', '\u009bc'],
  [
    'where are you',
    '\x1b[6n',
    '\x1b[5n',
    '\x1b[?6n',
    '\x1b[?25$p',
    '\x1b[4$p',
    '\x1b[x',
    '\x1bP$qm\x1b\\',
    '\x1bP+q544e\x1b\\',
  ],
  ['the window', '\x1b[8;50;100t', '\x1b[14t', '\x1b[21t', '\x1b[22;0t', '\x1b[3;0;0t'],
  ['mouse, focus and paste', '\x1b[?1000h', '\x1b[?1003;1006h', '\x1b[?1004h', '\x1b[?2004h', '\x1b[?9h'],
  ['printing and keys', '\x1b[5i', '\x1b[?4i', '\x1b[>4;2m', '\x1b[?1h', '\x1b[13q'],
  [
    'what nobody knows',
    '\x1b[>0;1;2~',
    '\x1b^private\x1b\\',
    '\x1bXstart\x1b\\',
    '\x1b%G',
    '\x1b[<1u',
    '\x07',
    '\x7f',
  ],
])('%s does not pass', (_, ...attempts) => {
  for (const attempt of attempts) expect(sieved(`a${attempt}b`)).toBe('ab')
})

describe('a sequence that others hide in', () => {
  test('is cut down to what may pass', () => {
    expect(sieved('\x1b[?25;1000;1049h')).toBe('\x1b[?25;1049h')
    // A control character in the middle of a sequence counts at once.
    expect(sieved('\x1b[3\n1mx')).toBe('\n\x1b[31mx')
    expect(sieved('\x1b[3\x1b[31mx')).toBe('\x1b[31mx')
    expect(sieved('\x1b]0;a\x18b')).toBe('b')
    expect(sieved(`\x1b[${'1;'.repeat(5_000)}mx`)).toBe('x')
    // A string without an end takes what follows, as in a terminal; the rest is harmless.
    expect(sieved('\x1b]52;c;ZXZ\x1b[31mx')).toBe('\x1b[31mx')
  })

  test('lets nothing through that is not drawing, whatever the bytes are and however they are cut', () => {
    const part = fc.oneof(
      fc.constantFrom(
        '\x1b',
        '\x1b[',
        '\x1b]',
        '\x1bP',
        '\u009b',
        '\u009d',
        '\u0090',
        '?',
        ';',
        '52;c;',
        '8;;x',
        '6n',
        'c',
        't',
        'h',
        '1000',
        'm',
      ),
      fc.constantFrom('\x07', '\x1b\\', '\u009c', '\x18', '\x05', '\n', 'text', 'é', '$', ' ', 'q', '>', '='),
      fc.string({ unit: 'binary', maxLength: 4 }),
    )
    const drawing =
      // oxlint-disable-next-line no-control-regex -- the very thing that is looked for
      /\x1b(\[[\d;:]*[@A-MPSTXZ`abdefghlmrsu]|\[\?[\d;]*[hlJK]|\[\d* q|\[!p|[78DEHMc=>]|[()*+\-./][0-9A-Z=<>%f])/g
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 40 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (parts, cuts) => {
          const all = bytes(parts.join(''))
          const whole = escapeFilter()(all)
          const piecewise = escapeFilter()
          let joined = ''
          let at = 0
          for (const end of [...cuts.toSorted((a, b) => a - b), all.length]) {
            joined += piecewise(all.subarray(at, Math.max(at, end)))
            at = Math.max(at, end)
          }
          expect(joined).toBe(whole)
          // oxlint-disable-next-line no-control-regex -- the very thing that is looked for
          expect(whole.replaceAll(drawing, '')).not.toMatch(/[\x00-\x07\x10-\x1f\x7f-\x9f]/)
        },
      ),
      { numRuns: times(200, 2_000) },
    )
  })
})
