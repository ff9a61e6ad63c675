// Recordings in a real browser, of real sessions on a real agent: what is replayed is what the client saw,
// seeking, searching and skipping lead to the right places, whoever watches sees what another types, and
// nothing that a device writes can act in the page of whoever looks at it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openBrowser, visit, type Visit } from '../harness/browser.ts'
import { field, goTo, heading, press, seen, signIn, told } from './console.ts'
import { openTerminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())
// A machine may do other things too: only a step that never happens is to fail.
vi.setConfig({ testTimeout: 180_000 })

const pause_ms = 3_600_000
const openShell = () =>
  openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], { columns: 80, rows: 24 })
const screen = (page: Page) => page.getByRole('region', { name: /^What the terminal show/ })
const shows = (page: Page, text: string | RegExp) => screen(page).getByText(text).first().waitFor()
const text = (page: Page) => screen(page).innerText()
const over = (uid: string) =>
  eventually(async () =>
    expect((await way.owner.sessions.get({ params: { uid } })).body).toMatchObject({
      active: false,
      recorded: true,
    }),
  )

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ' ' + failureSummary)))`)
}

/** A session with an hour of silence in it, for which nobody has to wait. */
async function recorded(): Promise<string> {
  using terminal = openShell()
  terminal.type('unset HISTFILE; PS1="ready> "; clear; echo fi"rst" wor"ds"\n')
  await terminal.until(/first words/)
  await eventually(async () => expect((await way.newest()).recorded).toBe(true))
  const { uid } = await way.newest()
  // What was shown must be in the journal before its hour passes.
  await eventually(async () =>
    expect(
      (await way.owner.recordings.window({ params: { uid, channel: '0' } })).body.events.length,
    ).toBeGreaterThan(0),
  )
  way.service.clock.forward(pause_ms)
  terminal.type('printf "\\033[1;32mla""ter\\033[0m wor""ds\\n"; exit\n')
  await terminal.ended
  await over(uid)
  return uid
}

async function signedIn(options: Parameters<typeof visit>[2] = {}): Promise<Visit> {
  const person = await visit(browser, way.service, options)
  await person.page.goto('/login')
  await person.page.evaluate(
    `sessionStorage.setItem('hawser.token', '${await way.world.token('administrator')}')`,
  )
  await person.page.goto('/')
  await heading(person.page, sample.namespace)
  return person
}

test('a session is found among those that are over and replayed: seek, search, pauses, speed, keys', async () => {
  const uid = await recorded()
  await using person = await signedIn()
  const { page } = person
  await goTo(page, 'Sessions')
  await seen(page, 'root')
  await page.getByRole('link', { name: 'Past' }).click()
  await page
    .getByRole('link', { name: `Replay the session of ${way.user.name} on gantry` })
    .first()
    .click()
  await heading(page, `${way.user.name} on gantry`)

  // It stands at its beginning; the end is where the bar ends.
  const bar = page.getByRole('slider', { name: 'Place in the recording' })
  await bar.waitFor()
  expect(Number(await bar.getAttribute('max'))).toBeGreaterThanOrEqual(pause_ms)
  await bar.press('End')
  await shows(page, 'later words')
  expect(await text(page)).toContain('first words')
  // As it was shown: bold and green.
  expect(await screen(page).locator('span.bold', { hasText: 'later' }).count()).toBe(1)
  await bar.press('Home')
  await eventually(async () => expect(await text(page)).not.toContain('later words'))

  // An hour of silence is not waited for.
  await page.getByLabel('Skip pauses').check()
  await press(page, 'Play')
  await shows(page, 'later words')
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor()

  // By a text one comes to its moment, in the middle of the silence on neither side of it.
  await page.getByLabel('Text in the recording').fill('LATER words')
  await page.getByLabel('Text in the recording').press('Enter')
  const finds = page.getByRole('list', { name: 'Places in the recording' }).getByRole('button')
  await finds.first().waitFor()
  await bar.press('Home')
  await eventually(async () => expect(await text(page)).not.toContain('later words'))
  await finds.last().click()
  await shows(page, 'later words')
  await page.getByLabel('Text in the recording').fill('never shown')
  await press(page, 'Search')
  await seen(page, 'It was not shown.')

  // The keyboard alone.
  await screen(page).focus()
  await page.keyboard.press('Home')
  await eventually(async () => expect(await text(page)).not.toContain('later words'))
  await page.keyboard.press('>')
  await page.keyboard.press('>')
  expect(await field(page, 'Speed').inputValue()).toBe('4')
  await page.keyboard.press('i')
  expect(await page.getByLabel('Skip pauses').isChecked()).toBe(false)
  await page.keyboard.press('PageDown')
  await eventually(async () => expect(await page.getByTestId('time').textContent()).toMatch(/^0:3\d$/))
  await page.keyboard.press('/')
  await page.keyboard.type('> ')
  expect(await page.getByLabel('Text in the recording').inputValue()).toBe('never shown> ')
  expect(await field(page, 'Speed').inputValue(), 'what is typed is text').toBe('4')
  expect(await violations(page)).toEqual([])

  // Downloaded it is the cast that the server has.
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')])
  expect(download.suggestedFilename()).toBe(`${uid.slice(0, 12)}.cast`)
  expect(readFileSync(await download.path(), 'utf8')).toBe(
    (await way.owner.sessions.cast({ params: { uid } })).body,
  )

  await press(page, 'Delete the recording')
  await press(page, 'Delete it for good')
  await told(page, 'The recording is deleted.')
  await seen(page, 'Nothing of it was recorded.')
  expect((await way.owner.recordings.list({ params: { uid } })).body).toEqual([])
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an administrator watches what another types, and sees the recording when it is over', async () => {
  using terminal = openShell()
  terminal.type('unset HISTFILE; PS1="ready> "; clear; echo ear"lier"\n')
  await terminal.until(/earlier/)
  await using person = await signedIn()
  const { page } = person
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: `Watch the session of ${way.user.name} on gantry` }).click()
  await shows(page, 'earlier')
  // Key by key, before the line is sent.
  for (const key of 'echo ty"ped"') terminal.type(key)
  await shows(page, 'echo ty"ped"')
  terminal.type('\n')
  await shows(page, /^typed/)
  expect(await violations(page)).toEqual([])
  // Whoever watches cannot type.
  await screen(page).focus()
  await page.keyboard.type('touch this')
  terminal.resize(100, 20)
  terminal.type('until [ "$(stty size)" = "20 100" ]; do sleep 0.05; done; echo "now $(stty size)"\n')
  await shows(page, 'now 20 100')
  expect(await text(page)).not.toContain('touch this')
  terminal.type('exit\n')
  await terminal.ended
  await page.getByRole('slider', { name: 'Place in the recording' }).waitFor()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('what a device writes acts on nobody who looks: no title, no clipboard, no link, no answer', async () => {
  const attack = [
    '\\033]0;taken\\007',
    '\\033]52;c;dGFrZW4=\\007',
    '\\033]8;;https://elsewhere.invalid/\\033\\\\link\\033]8;;\\033\\\\',
    '\\033[c\\033[6n\\033[>q\\033[?25$p\\033]10;?\\007\\033P$qm\\033\\\\\\005',
    '<img src=x onerror=alert(1)>',
  ].join(' ')
  using terminal = openShell()
  terminal.type(`unset HISTFILE; clear; printf '${attack} do''ne\\n'\n`)
  await terminal.until(/done/)
  const { uid } = await way.newest()
  await using person = await signedIn({ permissions: ['clipboard-read', 'clipboard-write'] })
  const { page } = person
  const sent: unknown[] = []
  page.on('websocket', (socket) => socket.on('framesent', (frame) => sent.push(frame.payload)))
  await page.evaluate(`navigator.clipboard.writeText('mine')`)
  const harmless = async () => {
    await shows(page, '<img src=x onerror=alert(1)>')
    expect(await page.title()).toBe(`${way.user.name} on gantry · Hawser`)
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('mine')
    expect(await screen(page).locator('a, img').count()).toBe(0)
    expect(await text(page)).toContain('link')
  }
  await page.goto(`/sessions/${uid}`)
  await harmless()
  expect(sent).toEqual([])
  terminal.type('exit\n')
  await terminal.ended
  await over(uid)
  await page.goto(`/sessions/${uid}`)
  await page.getByRole('slider', { name: 'Place in the recording' }).press('End')
  await harmless()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an observer sees that a session was there, but not what it showed', async () => {
  const { uid } = await way.newest()
  await using person = await visit(browser, way.service)
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.observer)
  await heading(page, sample.namespace)
  await page.goto(`/sessions/${uid}`)
  await seen(page, 'Administrators of the namespace may see what it showed.')
  expect(await screen(page).count()).toBe(0)
  expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an administrator lets sessions go on that cannot be recorded, and a session that did says so', async () => {
  await using person = await signedIn()
  const { page } = person
  await goTo(page, 'Settings and members')
  const tick = page.getByLabel('Let sessions go on when they cannot be recorded')
  expect(await tick.isChecked()).toBe(false)
  await tick.check()
  await press(page, 'Save the settings')
  await told(page, 'The settings are saved.')
  const params = { tenant: sample.tenant }
  expect((await way.owner.namespaces.get({ params })).body.settings).toMatchObject({
    session_record: true,
    continue_unrecorded: true,
  })
  await way.owner.namespaces.edit({ params, body: { settings: { continue_unrecorded: false } } })
  const { uid } = await way.newest()
  await way.service.rooms.stores.of(sample.tenant).sessions.save(uid, { unrecorded: 1 })
  await page.goto(`/sessions/${uid}`)
  await seen(page, 'went on unrecorded')
  await seen(page, 'It could not be recorded to its end and went on')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['light', 1280],
  ['dark', 360],
] as const)(
  'the player passes axe and fits its screen, %s and %d pixels wide',
  async (colorScheme, width) => {
    const uid = await recorded()
    await using person = await signedIn({
      viewport: { width, height: 800 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const { page } = person
    await page.goto(`/sessions/${uid}`)
    await page.getByRole('slider', { name: 'Place in the recording' }).press('End')
    await shows(page, 'later words')
    await page.getByLabel('Text in the recording').fill('words')
    await page.getByLabel('Text in the recording').press('Enter')
    await page.getByRole('list', { name: 'Places in the recording' }).waitFor()
    expect(
      await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth'),
    ).toBe(false)
    expect(await violations(page)).toEqual([])
    expect(person.refusals).toEqual([])
    expect(person.troubles).toEqual([])
  },
)
