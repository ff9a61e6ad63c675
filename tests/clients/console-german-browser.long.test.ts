// The console in German, in a real browser: as the browser says, or as the person chose; every page in the words
// of the catalogue and with German dates, on a desk and on a phone.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { de } from '../../console/src/language/de/index.ts'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { sharedPlace } from '../harness/place.ts'
import { choose, press, signedInTo } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

const german = { locale: 'de-DE', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' } as const

/** Everything that the page says: its texts, and the attributes that are read out or shown. */
const textsOf = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const found = []
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walk.nextNode())
      if (!walk.currentNode.parentElement.closest('body [lang=en], code, pre, kbd, script')) found.push(walk.currentNode.data)
    for (const element of document.querySelectorAll('body *'))
      for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-description'])
        if (element.hasAttribute(name)) found.push(element.getAttribute(name))
    return [document.title, ...found].map((text) => text.trim()).filter(Boolean)
  })()`)

/** A text that the catalogue translates, with any values; words alone that German has, too, do not count. */
const english = Object.entries(de)
  .filter(([text, other]) => text !== other && !Object.values(de).includes(text))
  .map(([text]) => {
    const parts = text.split(/\{\w+\}|<\/?\w+>/).filter((part) => /\p{L}{3}/u.test(part))
    return { text, parts: parts.map((part) => part.trim()) }
  })
  .filter(({ parts }) => parts.length > 0)

/** Of names that the sample has, `crane-1` and the like, none is a text of the catalogue. */
const leftIn = (texts: readonly string[]): string[] =>
  texts.filter((shown) =>
    english.some(({ text, parts }) =>
      /[{<]/.test(text) && parts.join('').length > 10
        ? parts.every((part) => shown.includes(part))
        : shown === text,
    ),
  )

const pages: readonly (readonly [address: string, heading: string])[] = [
  ['/', sample.namespace],
  ['/devices', 'Geräte'],
  [`/devices/${sample.device}`, 'crane-1'],
  ['/add-device', 'Gerät hinzufügen'],
  ['/sessions', 'Sitzungen'],
  [`/sessions/${sample.session}`, ''],
  ['/search', 'Suchen'],
  ['/public-keys', 'Öffentliche Schlüssel'],
  ['/firewall', 'Firewall-Regeln'],
  ['/api-keys', 'API-Schlüssel'],
  ['/enrolment', 'Geräteregistrierung'],
  ['/connectors', 'Konnektoren'],
  ['/settings', 'Einstellungen'],
  ['/roles', 'Rollen'],
  ['/audit', 'Audit-Protokoll'],
  ['/announcements', 'Ankündigungen'],
  ['/billing', 'Abrechnung'],
  ['/profile', 'Profil'],
]

test('a German browser is met in German, and the choice of a person counts more', async () => {
  await using person = await visit(browser, place, german)
  const { page } = person
  const catalogues: string[] = []
  page.on('request', (request) => {
    if (/assets\/de-/.test(request.url())) catalogues.push(request.url())
  })
  await page.goto('/login')
  await page.getByRole('heading', { name: 'Anmelden' }).waitFor()
  expect(await page.title()).toBe('Anmelden · Hawser')
  expect(await page.getAttribute('html', 'lang')).toBe('de')
  expect(catalogues.length).toBe(1)
  expect(await violations(page)).toEqual([])

  await page.getByLabel('Benutzername oder E-Mail').fill('nobody')
  await page.getByLabel('Passwort', { exact: true }).fill('not-the-one')
  await press(page, 'Anmelden')
  // The server's own sentence, which the catalogue knows.
  await page.getByText('Der Benutzername oder das Passwort ist falsch.').waitFor()

  await press(page, 'English')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.getAttribute('html', 'lang')).toBe('en')
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(catalogues.length).toBe(1)
  expect(leftIn(await textsOf(page)).length).toBeGreaterThan(5)
  await press(page, 'Deutsch')
  await page.getByRole('heading', { name: 'Anmelden' }).waitFor()
  expect(leftIn(await textsOf(page))).toEqual([])
  expect(person.troubles).toEqual([])
})

test('without its catalogue the console is English', async () => {
  await using person = await visit(browser, place, { locale: 'de-AT' })
  const { page } = person
  await page.route(/assets\/de-/, (route) => route.abort())
  await page.goto('/login')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.getAttribute('html', 'lang')).toBe('en')
})

test.each([
  ['a desk', 1280, 'light'],
  ['a phone', 360, 'dark'],
] as const)('every page is German on %s, passes axe and fits', async (_, width, colorScheme) => {
  await using person = await visit(browser, place, {
    ...german,
    viewport: { width, height: 740 },
    colorScheme,
  })
  const { page } = person
  await signedInTo(page, place)
  for (const [address, heading] of pages) {
    await page.goto(address)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await page.waitForLoadState('networkidle')
    const tooWide = await page.evaluate<boolean>(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth',
    )
    expect({ address, tooWide, left: leftIn(await textsOf(page)) }).toEqual({
      address,
      tooWide: false,
      left: [],
    })
    expect({ address, wrong: await violations(page) }).toEqual({ address, wrong: [] })
  }
  expect(person.troubles).toEqual([])
})

test('the table of roles is German, and is searched in German', async () => {
  await using person = await visit(browser, place, german)
  const { page } = person
  await signedInTo(page, place)
  await page.goto('/roles')
  await page.getByLabel('Nach einer Aktion suchen').fill('widerruft ein aufnahme')
  await page.getByRole('rowheader', { name: 'Aufnahme-Token löschen' }).waitFor()
  expect(await page.getByRole('rowheader').count()).toBe(1)
  await page.getByLabel('Nach einer Aktion suchen').fill('revokes an enrolment')
  await page.getByText('Keine Aktionen entsprechen Ihrer Suche.').waitFor()
})

test.each([1280, 390])(
  'own sign-ins and the choices of filters are German and whole, %i wide',
  async (width) => {
    await using person = await visit(browser, place, { ...german, viewport: { width, height: 800 } })
    const { page } = person
    await page.goto('/login')
    await page.getByLabel('Benutzername oder E-Mail').fill(sample.operator.username)
    await page.getByLabel('Passwort', { exact: true }).fill(sample.operator.password)
    await press(page, 'Anmelden')
    await page.getByRole('heading', { level: 1, name: sample.namespace }).waitFor()
    await page.goto('/sessions')
    await page.getByLabel('Aufzeichnung', { exact: true }).waitFor()
    const cut = await page.evaluate<
      string[]
    >(`[...document.querySelectorAll('.filters select')].filter((select) => {
    const whole = select.cloneNode(true)
    whole.style.cssText = 'position: absolute; width: max-content'
    select.after(whole)
    const isCut = whole.offsetWidth > select.offsetWidth
    whole.remove()
    return isCut
  }).map((select) => select.getAttribute('aria-label'))`)
    expect(cut).toEqual([])
    await page.goto('/profile')
    await page.getByText('Chrome unter Linux').first().waitFor()
    expect(person.troubles).toEqual([])
  },
)

test('dates, numbers and times are German, with their zone', async () => {
  await using person = await visit(browser, place, german)
  const { page } = person
  await signedInTo(page, place)
  await page.goto(`/devices/${sample.device}`)
  await page.getByText('Zuerst gesehen').waitFor()
  await page
    .getByText(/^\d\d\.\d\d\.\d{4}, \d\d:\d\d (MEZ|MESZ)$/)
    .first()
    .waitFor()
  await page.goto('/devices')
  await page.getByRole('heading', { name: 'Geräte' }).waitFor()
  expect(person.troubles).toEqual([])
})

test('the language is chosen in the menu, and the menu says which it is', async () => {
  await using person = await visit(browser, place, { reducedMotion: 'reduce' })
  const { page } = person
  await signedInTo(page, place)
  await page.goto('/')
  await choose(page, /: profile and more$/, 'Deutsch')
  await press(page, /: Profil und mehr$/)
  await page.locator('[role=menuitem]:has(.chosen)', { hasText: 'Deutsch' }).waitFor()
  await page.getByRole('menuitem', { name: 'Sprache des Browsers' }).click()
  await page.getByRole('button', { name: /: profile and more$/ }).waitFor()
  expect(await page.evaluate('localStorage.length')).toBe(0)
  expect(person.troubles).toEqual([])
})
