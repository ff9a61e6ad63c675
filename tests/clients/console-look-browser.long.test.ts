// How the console looks and reads, in a real browser: every page, light on a desk and dark on a phone, passes
// axe (names, roles, contrast), fits its screen and has one heading of the first level; dialogs and menus
// too. And the policy of the pages really stops what is not ours.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { sharedPlace } from '../harness/place.ts'
import { choose, press, signedInTo } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

const outside = [
  '/login',
  '/login#forgot-password',
  '/login#recovery-code',
  '/login#lost-codes',
  '/sign-up',
  '/setup',
  '/confirm-account',
  '/validation-account?email=a@b.c&token=x',
  '/update-password?id=1&token=x',
  '/reset-mfa?id=1',
  '/confirm-email?token=x',
  '/undo-change?token=x',
  '/invitation',
]
const inside = [
  '/',
  '/devices',
  '/devices?status=pending&find=none',
  '/devices?status=pending&cols=state%2Cmac%2Cseen%2Ccreated&sort=seen&desc=true',
  '/devices?map=true',
  `/devices/${sample.device}`,
  `/devices/${'f'.repeat(64)}`,
  '/services',
  `/open/${'0'.repeat(32)}?state=${'x'.repeat(32)}`,
  '/add-device',
  '/sessions',
  '/sessions?past=true',
  `/sessions/${sample.session}`,
  '/search',
  '/public-keys',
  '/firewall',
  '/api-keys',
  '/connectors',
  '/settings',
  '/roles',
  '/enrolment',
  '/pair',
  '/audit',
  '/announcements',
  '/billing',
  '/profile',
]

interface Facts {
  tooWide: boolean
  headings: number
  ground: string
  titled: boolean
}

const facts = (page: Page) =>
  page.evaluate<Facts>(`({
    tooWide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    headings: document.querySelectorAll('h1').length,
    ground: getComputedStyle(document.body).backgroundColor,
    titled: / · Hawser$/.test(document.title),
  })`)

test.each([
  ['light', 1280],
  ['dark', 360],
] as const)(
  'every page passes axe and fits its screen, %s and %d pixels wide',
  async (colorScheme, width) => {
    await using person = await visit(browser, place, {
      viewport: { width, height: 740 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const { page } = person
    const grounds = new Set<string>()
    for (const address of [...outside, ...inside]) {
      if (address === '/') await signedInTo(page, place)
      await page.goto(address)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      const { ground, ...seen } = await facts(page)
      expect({ address, ...seen }).toEqual({ address, tooWide: false, headings: 1, titled: true })
      expect({ address, wrong: await violations(page) }).toEqual({ address, wrong: [] })
      grounds.add(ground)
    }
    expect([...grounds]).toEqual([colorScheme === 'light' ? 'rgb(245, 247, 248)' : 'rgb(12, 21, 25)'])
    expect(new Set(person.refusals)).toEqual(
      new Set([`404 /api/devices/${'f'.repeat(64)}`, '404 /api/services/open', '424 /api/billing/customer']),
    )
    expect(person.troubles).toEqual([])
  },
)

test.each(['light', 'dark'] as const)('the invitation to a session passes axe, %s', async (colorScheme) => {
  await using person = await visit(browser, place, {
    viewport: { width: 360, height: 740 },
    colorScheme,
    reducedMotion: 'reduce',
  })
  const { page } = person
  await signedInTo(page, place)
  for (const [address, heading] of [
    ['/join', 'This link is not complete'],
    ['/join#hwi_x', 'You are invited to a session'],
  ] as const) {
    await page.goto(address)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    expect({ address, wrong: await violations(page) }).toEqual({ address, wrong: [] })
  }
})

test('dialogs, menus and the palette pass axe and fit a phone, and Escape closes them', async () => {
  await using person = await visit(browser, place, {
    viewport: { width: 360, height: 740 },
    reducedMotion: 'reduce',
  })
  const { page } = person
  await signedInTo(page, place)
  const layers: [string, () => Promise<void>][] = [
    ['/', () => press(page, 'Navigation')],
    ['/', () => page.keyboard.press('Control+k')],
    ['/', () => press(page, /: profile and more$/)],
    ['/devices', () => choose(page, 'More for crane-1', 'Delete …')],
    ['/devices', () => choose(page, 'More for crane-1', 'Tags …')],
    ['/devices', () => press(page, 'Columns')],
    ['/devices', () => press(page, 'Views')],
    ['/public-keys', () => press(page, 'Add a public key')],
    ['/firewall', () => press(page, 'Add a rule')],
    ['/api-keys', () => press(page, 'Create an API key')],
    ['/settings', () => press(page, 'Add a member')],
    ['/connectors', () => press(page, 'Add a connector')],
    ['/services', () => choose(page, 'More for members dashboard', 'Edit …')],
    ['/services', () => choose(page, 'More for link dashboard', 'Delete …')],
    ['/audit', () => press(page, 'Add a stream')],
    ['/audit', () => choose(page, 'More for siem', 'Delete …')],
  ]
  for (const [address, open] of layers) {
    await page.goto(address)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await open()
    const layer = page.locator('[role=dialog], [role=alertdialog], [role=menu]').last()
    await layer.waitFor()
    const name =
      (await layer.getAttribute('aria-label')) ?? (await layer.getByRole('heading').first().textContent())
    expect({ address, name, tooWide: (await facts(page)).tooWide }).toEqual({ address, name, tooWide: false })
    expect({ address, name, wrong: await violations(page) }).toEqual({ address, name, wrong: [] })
    await page.keyboard.press('Escape')
    await layer.waitFor({ state: 'detached' })
  }
  expect(person.troubles).toEqual([])
})

test('colours are chosen in the menu, and the choice outlasts the visit', async () => {
  await using person = await visit(browser, place, { colorScheme: 'light' })
  const { page } = person
  await signedInTo(page, place)
  await page.goto('/')
  await choose(page, /: profile and more$/, 'Dark theme')
  expect((await facts(page)).ground).toBe('rgb(12, 21, 25)')
  await page.reload()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect((await facts(page)).ground).toBe('rgb(12, 21, 25)')
  await choose(page, /: profile and more$/, 'System theme')
  expect((await facts(page)).ground).toBe('rgb(245, 247, 248)')
  expect(person.troubles).toEqual([])
})

test('who asked to stay signed in is still so in a new window, and signing out there ends it everywhere', async () => {
  await using person = await visit(browser, place)
  const { page } = person
  await page.goto('/login')
  await page.getByLabel('Username or e-mail').fill(sample.observer.username)
  await page.getByLabel('Password', { exact: true }).fill(sample.observer.password)
  await page.getByLabel('Keep me signed in on this device').check()
  await press(page, 'Sign in')
  await page.getByRole('heading', { name: sample.namespace }).waitFor()
  const other = await page.context().newPage()
  await other.goto('/sessions')
  await other.getByRole('heading', { name: 'Sessions' }).waitFor()
  await choose(other, /: profile and more$/, 'Sign out')
  await other.waitForURL('**/login')
  await page.waitForURL('**/login')
  expect(await page.evaluate('localStorage.length')).toBe(0)
  expect(person.troubles).toEqual([])
})

test('the sign-in page is less than 90 KB, and every other page comes when it is needed', async () => {
  await using person = await visit(browser, place)
  const { page } = person
  const loaded = new Map<string, number>()
  page.on('response', (response) => {
    const { pathname } = new URL(response.url())
    const bytes = Number(response.headers()['content-length'] ?? 0)
    if (!pathname.startsWith('/api/')) loaded.set(pathname, bytes)
  })
  const total = () => [...loaded.values()].reduce((sum, bytes) => sum + bytes, 0)
  await page.goto('/')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.waitForLoadState('networkidle')
  expect(page.url()).toBe(`${place.url}/login`)
  expect(total()).toBeGreaterThan(40_000)
  expect(total()).toBeLessThan(90_000)

  await page.getByLabel('Username or e-mail').fill(sample.observer.username)
  await page.getByLabel('Password', { exact: true }).fill(sample.observer.password)
  await press(page, 'Sign in')
  await page.getByRole('heading', { name: sample.namespace }).waitFor()
  await page.waitForLoadState('networkidle')
  expect(total()).toBeLessThan(300_000)
  expect([...loaded.keys()].some((file) => file.includes('firewall'))).toBe(false)
  // A link under the pointer is enough for its page.
  const link = page.getByRole('link', { name: 'Firewall rules' })
  await Promise.all([page.waitForResponse(/\/assets\/firewall-/), link.hover()])
  await link.click()
  await page.getByRole('heading', { name: 'Firewall rules' }).waitFor()
  expect(person.troubles).toEqual([])
})

test('the policy stops a script that is not a file of ours, and the tests notice', async () => {
  await using person = await visit(browser, place)
  const { page } = person
  await page.goto('/login')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.evaluate(`{
    const script = document.createElement('script')
    script.textContent = 'document.title = "taken"'
    document.head.append(script)
  }`)
  await page.evaluate(`fetch('http://elsewhere.invalid/').catch(() => undefined)`)
  expect(await page.title()).toBe('Sign in · Hawser')
  expect(person.troubles).toContain('error: stopped by the policy: script-src-elem')
  expect(person.troubles).toContain('error: stopped by the policy: connect-src')
})
