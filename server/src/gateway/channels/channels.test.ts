import { expect, test } from 'vitest'
import { announcementFor } from './channels.ts'

test.each([
  ['', ''],
  ['  \n\n', ''],
  ['Welcome aboard.', 'Welcome aboard.\r\n'],
  ['High tide\nat noon.\n', 'High tide\r\nat noon.\r\n'],
  ['a\r\nb\rc', 'a\r\nb\r\nc\r\n'],
  ['tab\tstays, ünicode too', 'tab\tstays, ünicode too\r\n'],
])('%j is shown as %j', (text, shown) => {
  expect(announcementFor(text)).toBe(shown)
})

test('what a terminal would obey is not shown: titles, the clipboard, colours, C1 controls', () => {
  const shown = announcementFor(
    '\u001b]0;owned\u0007 \u001b]52;c;cm0gLXJm\u0007 \u001b[31mred\u001b[0m \u009b2J \u0000\u007f',
  )
  expect(shown).toBe(']0;owned ]52;c;cm0gLXJm [31mred[0m 2J\r\n')
})
