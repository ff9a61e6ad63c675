// A member writes a link into the notes of a device that looks like a page of the console and leads to a host
// of theirs: `/\host`, which a browser reads as `//host`. The text of an address says little about where it
// leads. Links are judged as a browser resolves them, and so is the page that somebody lands on after the
// sign-in. console/src/components/markdown.test.ts renders them.
import { describe, expect, test } from 'vitest'
import { insideAddress, isPlace, outsideAddress } from '../../console/src/safe-address.ts'

const page = 'https://hawser.test/devices/x'

/** Where a link in a text leads; undefined: it is none. */
const linkOf = (address: string): string | undefined => insideAddress(address) ?? outsideAddress(address)

const outside = [
  String.raw`/\evil.example`,
  String.raw`/\/evil.example`,
  String.raw`\\evil.example`,
  String.raw`/\evil.example/devices/x`,
  '//evil.example',
  '///evil.example',
  '/\u0009/evil.example',
  '/\u000a/evil.example',
  '/\u000d\\evil.example',
  '\u0001//evil.example',
  'https:evil.example',
  'https:/evil.example',
  String.raw`https:\\evil.example`,
]
const dangerous = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'java\u0009script:alert(1)',
  '\u0001javascript:alert(1)',
  'javascript&colon;alert(1)',
  'data:text/html,x',
  'vbscript:x',
  'file:///etc/passwd',
  'blob:https://hawser.test/x',
  'https://hawser.test@evil.example/',
  'https://hawser.test:secret@evil.example/',
  String.raw`https://hawser.test\@evil.example/`,
  'https://',
  'https://[::1',
]

describe('an address in a text', () => {
  test.each([...outside, ...dangerous])('%j is no link', (address) => {
    expect(linkOf(address)).toBeUndefined()
  })

  test.each(['/devices', '/devices/abc?tab=notes#top', '/docs/guides', '/'])(
    '%s is a page of ours',
    (address) => {
      expect(new URL(insideAddress(address)!, page).href).toBe(`https://hawser.test${address}`)
    },
  )

  test.each(['/x/..//evil.example', '/.//evil.example', '/%2e//evil.example', '/%5cevil.example'])(
    '%s stays inside, or is no link',
    (address) => {
      const link = linkOf(address)
      if (link !== undefined) expect(new URL(link, page).origin).toBe('https://hawser.test')
    },
  )

  test.each(['https://wiki.example/runbook?id=7', 'http://wiki.example/', 'HTTPS://wiki.example/x'])(
    '%s leads outside, as it is written',
    (address) => {
      expect([insideAddress(address), outsideAddress(address)]).toEqual([undefined, new URL(address).href])
    },
  )

  test('of somebody by e-mail is a link', () => {
    expect(linkOf('mailto:tara@example.com')).toBe('mailto:tara@example.com')
  })
})

describe('the page after the sign-in', () => {
  test.each([...outside, ...dangerous, '/x/..//evil.example', '', '/login', '/login#code'])(
    'is never %j',
    (address) => {
      expect(isPlace(address)).toBe(false)
    },
  )
  test.each(['/devices', '/sessions?text=%22x%22', '/join'])('is %s', (address) => {
    expect(isPlace(address)).toBe(true)
  })
})
