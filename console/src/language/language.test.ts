import { renderToStaticMarkup } from 'react-dom/server'
import { createElement } from 'react'
import { afterEach, expect, test, vi } from 'vitest'
import { ago, bytesText, calendarDay, inFull, megabytes, number, shortAgo } from './format.ts'
import { isolated, language, locale, rich, setLanguage, t, tn } from './language.ts'

afterEach(() => {
  setLanguage('en', {})
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const german = {
  'Hello {name}': 'Hallo {name}',
  '{count} device': '{count} Gerät',
  '{count} devices': '{count} Geräte',
  'Read <a>the {what}</a>, {code}.': '{code}: <a>{what}</a> lesen.',
}

test('English is the text itself, with its values', () => {
  expect(t('Hello {name}', { name: 'Ada' })).toBe('Hello Ada')
  expect(t('Hello {name}')).toBe('Hello {name}')
  expect(tn(1, '{count} device', '{count} devices')).toBe('1 device')
  expect(tn(0, '{count} device', '{count} devices')).toBe('0 devices')
})

test('another language takes its catalogue, and English where that lacks a text', () => {
  setLanguage('de', german)
  expect(language()).toBe('de')
  expect(t('Hello {name}', { name: 'Ada' })).toBe('Hallo Ada')
  expect(tn(1, '{count} device', '{count} devices')).toBe('1 Gerät')
  expect(tn(1234, '{count} device', '{count} devices')).toBe('1.234 Geräte')
  expect(t('Nobody translated this')).toBe('Nobody translated this')
  expect(t('constructor')).toBe('constructor')
})

test('a value is never read as a placeholder, a mark or markup', () => {
  expect(t('Hello {name}', { name: '{name} <b>$&</b>' })).toBe('Hello {name} <b>$&</b>')
  expect(
    renderToStaticMarkup(rich('Hello {name}', { name: '<a>{code}</a>', code: 'no', a: () => 'no' })),
  ).toBe('Hello &lt;a&gt;{code}&lt;/a&gt;')
})

test('a value cannot turn the direction of what stands around it', () => {
  expect(t('Hello {name}', { name: 'a\u202eb\u2069' })).toBe('Hello \u2068ab\u2069')
  expect(t('Hello {name}', { name: 'שלום' })).toBe('Hello \u2068שלום\u2069')
  expect(renderToStaticMarkup(rich('Hello {name}', { name: 'a\u202eb' }))).toBe('Hello \u2068ab\u2069')
  expect(isolated('Debian 12 “bookworm”, Übung')).toBe('Debian 12 “bookworm”, Übung')
})

test('a sentence with elements keeps them where its language wants them', () => {
  const parts = {
    a: (inside: React.ReactNode) => createElement('a', { href: '/x' }, inside),
    what: 'rules',
    code: createElement('code', null, '42'),
  }
  const shown = () => renderToStaticMarkup(rich('Read <a>the {what}</a>, {code}.', parts))
  expect(shown()).toBe('Read <a href="/x">the rules</a>, <code>42</code>.')
  setLanguage('de', german)
  expect(shown()).toBe('<code>42</code>: <a href="/x">rules</a> lesen.')
})

test('dates and numbers are those of the region that the browser names, and times have their zone', () => {
  const moment = '2026-11-17T10:37:00Z'
  vi.stubEnv('TZ', 'Europe/Berlin')
  vi.stubGlobal('navigator', { languages: ['fr', 'en-GB', 'de-AT', 'en-US'] })
  expect(locale()).toBe('en-GB')
  expect(inFull(moment)).toMatch(/^17 Nov 2026, 11:37.(CET|GMT\+1)$/)
  expect(number(1234.5)).toBe('1,234.5')
  setLanguage('de', german)
  expect(locale()).toBe('de-AT')
  vi.stubGlobal('navigator', { languages: ['en'] })
  expect(locale()).toBe('de')
  expect(inFull(moment)).toBe('17.11.2026, 11:37 MEZ')
  vi.stubEnv('TZ', 'America/New_York')
  expect(calendarDay('2026-11-17')).toBe('17.11.2026')
  expect(number(1234.5)).toBe('1.234,5')
  vi.unstubAllEnvs()
})

test('relative times are words of the language', () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-17T10:37:00Z') })
  expect(ago('2026-11-17T07:37:00Z')).toBe('3 hours ago')
  expect(ago('2026-11-17T10:36:50Z')).toBe('a moment ago')
  expect(shortAgo('2026-11-14T10:37:00Z')).toBe('3 d')
  setLanguage('de', { '{count} d': '{count} T' })
  expect(ago('2026-11-16T10:37:00Z')).toBe('gestern')
  expect(ago('2026-11-17T07:37:00Z')).toBe('vor 3 Stunden')
  expect(shortAgo('2026-11-14T10:37:00Z')).toBe('3 T')
})

test('sizes have one digit, with the sign of the region before it', () => {
  const sizes = () => [bytesText(999), bytesText(1_500_000_000), megabytes(2_540_000)]
  vi.stubGlobal('navigator', { languages: ['en-US'] })
  expect(sizes()).toEqual(['999 bytes', '1.5 GB', '2.5 MB'])
  setLanguage('de', { '{count} bytes': '{count} Byte' })
  expect(sizes()).toEqual(['999 Byte', '1,5 GB', '2,5 MB'])
})
