// Links of Markdown lead where safe-address.ts allows, and tell the page there nothing; of all others only
// the words are shown.
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Markdown } from './markdown.tsx'

const shown = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }))

test('a link inside and one outside are links that give the other page no hold of this one', () => {
  expect(shown('see [all](/devices) and [wiki](https://wiki.example/x?a=1&b=2)')).toBe(
    '<div class="prose"><p>see <a href="/devices" rel="noopener noreferrer">all</a> and ' +
      '<a href="https://wiki.example/x?a=1&amp;b=2" rel="noopener noreferrer">wiki</a></p></div>',
  )
})

test.each([
  String.raw`/\evil.example`,
  '//evil.example',
  'javascript:alert(1',
  'https://hawser.test@evil.example/',
  '/\u0001/evil.example',
  'devices',
])('of a link to %j the words are shown', (address) => {
  expect(shown(`[words](${address})`)).toContain('words')
  expect(shown(`[words](${address})`)).not.toContain('<a')
})
