// Recordings in a real browser, of real sessions on a real agent: what is replayed is what the client saw,
// seeking, searching and skipping lead to the right places, whoever watches sees what another types, and
// nothing that a device writes can act in the page of whoever looks at it.
import { readFileSync, writeFileSync } from 'node:fs'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations, type Visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { field, goTo, heading, press, seen, told, visitAs } from './console.ts'
import { openTerminal } from './terminal.ts'
import { sharedWay } from './way.ts'

const way = sharedWay()
const browser = sharedBrowser()
const pause_ms = 3_600_000
const openShell = () =>
  openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], { columns: 80, rows: 24 })
const screen = (page: Page) => page.getByRole('region', { name: /terminal output$/i })
const shows = (page: Page, text: string | RegExp) => screen(page).getByText(text).first().waitFor()
const text = (page: Page) => screen(page).innerText()
const over = (uid: string) =>
  eventually(async () =>
    expect((await way.owner.sessions.get({ params: { uid } })).body).toMatchObject({
      active: false,
      recorded: true,
    }),
  )

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

const visitAsAdministrator = (options?: BrowserContextOptions): Promise<Visit> =>
  visitAs(sample.administrator, browser, way.service, options)

test('a session is found among those that are over and replayed: seek, search, pauses, speed, keys', async () => {
  const uid = await recorded()
  await using person = await visitAsAdministrator()
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
  const bar = page.getByRole('slider', { name: 'Position in the recording' })
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
  const finds = page.getByRole('list', { name: 'Matches in the recording' }).getByRole('button')
  await finds.first().waitFor()
  await bar.press('Home')
  await eventually(async () => expect(await text(page)).not.toContain('later words'))
  await finds.last().click()
  await shows(page, 'later words')
  await page.getByLabel('Text in the recording').fill('never shown')
  await press(page, 'Search')
  await seen(page, 'Nothing was shown.')

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
  await told(page, 'The recording was deleted.')
  await seen(page, 'This session was not recorded.')
  expect((await way.owner.recordings.list({ params: { uid } })).body).toEqual([])
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

/** A session that lost its client for two hours, in the middle of which it wrote something. */
async function interrupted(): Promise<string> {
  const file = way.there(`go-on-${Date.now()}`)
  using terminal = openShell()
  terminal.type(`unset HISTFILE; set +m; PS1="ready> "; clear; echo fi"rst" wor"ds"\n`)
  terminal.type(`(until [ -e ${file} ]; do sleep 0.1; done; echo un"seen" wor"ds") &\n`)
  await terminal.until(/first words/)
  await eventually(async () => expect((await way.newest()).recorded).toBe(true))
  const { uid } = await way.newest()
  const window = async () => (await way.owner.recordings.window({ params: { uid, channel: '0' } })).body
  const facts = async () => (await way.owner.recordings.list({ params: { uid } })).body[0]!
  terminal.kill('SIGKILL')
  await terminal.ended
  await eventually(async () => expect((await facts()).interruptions).toHaveLength(1))
  way.service.clock.forward(pause_ms)
  writeFileSync(file, '')
  await eventually(async () =>
    expect(
      (await window()).events.map(({ bytes = '' }) => Buffer.from(bytes, 'base64').toString()).join(''),
    ).toContain('unseen words'),
  )
  way.service.clock.forward(pause_ms)
  using back = openTerminal('ssh', [...way.args(), '-t', `${way.sshid()}@127.0.0.1`, 'hawser-attach'], {
    columns: 80,
    rows: 24,
  })
  await back.until(/unseen words/)
  back.type('echo la"ter" wor"ds"; exit\n')
  await back.ended
  await over(uid)
  return uid
}

test('interruptions of a recording are marked and listed, and skipped unless somebody wants to see them', async () => {
  const uid = await interrupted()
  await using person = await visitAsAdministrator()
  const { page } = person
  await page.goto(`/sessions/${uid}`)
  const bar = page.getByRole('slider', { name: 'Position in the recording' })
  await bar.waitFor()
  expect(Number(await bar.getAttribute('max'))).toBeGreaterThanOrEqual(2 * pause_ms)
  const skips = page.getByLabel('Skip interruptions')
  expect(await skips.isChecked()).toBe(true)
  // Two hours are not waited for.
  await press(page, 'Play')
  await shows(page, 'later words')
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
  // On the bar the mark covers nearly all of it.
  const mark = (await page.locator('.player-gaps span').boundingBox())!
  const whole = (await page.locator('.player-gaps').boundingBox())!
  expect(mark.width / whole.width).toBeGreaterThan(0.9)
  // The list leads into it: then it is played.
  await page.getByText('1 interruption', { exact: true }).click()
  const list = page.getByRole('list', { name: 'Interruptions' })
  await list.getByText('The client disconnected until someone reattached by ssh.').waitFor()
  expect(await violations(page)).toEqual([])
  await list.getByRole('button').click()
  // The screen is empty for a moment before it is drawn.
  await shows(page, 'first words')
  await eventually(async () => expect(await text(page)).not.toContain('later words'))
  await shows(page, 'first words')
  expect(await text(page)).not.toContain('unseen words')
  await page.getByLabel('Skip pauses').check()
  await press(page, 'Play')
  await shows(page, 'unseen words')
  await shows(page, 'later words')
  // Without skipping, playing stays in it.
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
  await page.getByLabel('Skip pauses').uncheck()
  await skips.uncheck()
  await list.getByRole('button').click()
  await bar.press('ArrowLeft')
  await press(page, 'Play')
  await eventually(async () => {
    const at = Number(await bar.inputValue())
    const from = (await way.owner.recordings.list({ params: { uid } })).body[0]!.interruptions[0]!.from_ms
    expect(at).toBeGreaterThan(from)
    expect(at).toBeLessThan(pause_ms)
  })
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an administrator watches what another types, and sees the recording when it is over', async () => {
  using terminal = openShell()
  terminal.type('unset HISTFILE; PS1="ready> "; clear; echo ear"lier"\n')
  await terminal.until(/earlier/)
  await using person = await visitAsAdministrator()
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
  await page.getByRole('slider', { name: 'Position in the recording' }).waitFor()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an operator asks to type on the page of a session, types, hands over, and goes back', async () => {
  using terminal = openShell()
  terminal.type('unset HISTFILE; PS1="ready> "; clear; echo for two"" people\n')
  await terminal.until(/for two people/)
  await eventually(async () => expect((await way.newest()).recorded).toBe(true))
  const { uid } = await way.newest()
  await using operator = await visitAs(sample.operator, browser, way.service)
  const { page } = operator
  await page.goto(`/sessions/${uid}`)
  await press(page, 'Request to type')
  await terminal.until(/oskar asks to type here/)
  await page.getByText('Waiting for the session’s owner to allow it').waitFor()
  expect(await page.locator('.screen').innerText()).not.toContain('for two people')
  terminal.type('\u001dy')
  const shared = page.getByRole('region', { name: /^The terminal; what you type/ })
  await shared.getByText('for two people').first().waitFor()
  await shared.click()
  await page.keyboard.type('echo from the bro""wsex')
  await page.keyboard.press('Backspace')
  await page.keyboard.type('r')
  await page.keyboard.press('Enter')
  await terminal.until(/from the browser\r\n/)
  await shared
    .getByText(/^from the browser/)
    .first()
    .waitFor()
  const people = page.getByRole('list', { name: 'Participants' })
  await people.getByText(/oskar \(you\): types/).waitFor()
  expect(await violations(page)).toEqual([])
  await press(page, 'Take over')
  await terminal.until(/\[only oskar types now\]/)
  await press(page, `Hand over to ${way.user.name}`)
  await people.getByText(/oskar \(you\): can type, read-only for now/).waitFor()
  await press(page, 'Watch only')
  await page.getByText('You watch only.').waitFor()
  await terminal.until(/oskar only watches now/)
  expect(operator.refusals).toEqual([])
  expect(operator.troubles).toEqual([])
  terminal.type('exit\n')
  await terminal.ended
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
  await using person = await visitAsAdministrator({ permissions: ['clipboard-read', 'clipboard-write'] })
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
  await page.getByRole('slider', { name: 'Position in the recording' }).press('End')
  await harmless()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('coloured screens can be read: every colour on every ground, dim and inverse', async () => {
  using terminal = openShell()
  const script =
    'for g in 0 1 2 3 4 5 6 7; do for c in 0 1 2 3 4 5 6 7; do ' +
    'printf "\\033[4${g};3${c}mx\\033[10${g};9${c}mx\\033[2mx\\033[7mx\\033[0m"; done; ' +
    'printf "\\033[38;5;$((g*29+16))mx\\033[48;2;$((g*30));99;9m\\033[38;2;9;$((g*30));9mx\\033[0m\\n"; done; echo all-col""ours'
  terminal.type(`unset HISTFILE; clear; ${script}\n`)
  await terminal.until(/all-colours/)
  const { uid } = await way.newest()
  terminal.type('exit\n')
  await terminal.ended
  await over(uid)
  await using person = await visitAsAdministrator()
  const { page } = person
  await page.goto(`/sessions/${uid}`)
  await page.getByRole('slider', { name: 'Position in the recording' }).press('End')
  await shows(page, 'all-colours')
  const pairs = await page.evaluate<[number, string, string][]>(`(() => {
    const parts = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number)
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      return 0.2126 * x + 0.7152 * y + 0.0722 * z
    }
    const room = getComputedStyle(document.querySelector('.screen-room')).backgroundColor
    return [...document.querySelectorAll('.screen span:not(.cursor)')].map((span) => {
      const { color, backgroundColor, opacity } = getComputedStyle(span)
      const ground = parts(backgroundColor)[3] === 0 ? room : backgroundColor
      const [a, b] = [light(parts(color)), light(parts(ground))].sort((x, y) => x - y)
      return [opacity === '1' ? (b + 0.05) / (a + 0.05) : 0, color, ground]
    })
  })()`)
  expect(pairs.length).toBeGreaterThan(200)
  expect(pairs.filter(([ratio]) => ratio < 4.5)).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an observer sees that a session was there, but not what it showed', async () => {
  const { uid } = await way.newest()
  await using person = await visitAs(sample.observer, browser, way.service)
  const { page } = person
  await page.goto(`/sessions/${uid}`)
  await seen(page, 'Only administrators of the namespace can see the recording.')
  expect(await screen(page).count()).toBe(0)
  expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an administrator lets sessions go on that cannot be recorded, and a session that did says so', async () => {
  await using person = await visitAsAdministrator()
  const { page } = person
  await goTo(page, 'Settings and members')
  const tick = page.getByLabel('Continue sessions that cannot be recorded')
  expect(await tick.isChecked()).toBe(false)
  await tick.check()
  await press(page, 'Save the settings')
  await told(page, 'The settings were saved.')
  const params = { tenant: sample.tenant }
  expect((await way.owner.namespaces.get({ params })).body.settings).toMatchObject({
    session_record: true,
    continue_unrecorded: true,
  })
  await way.owner.namespaces.edit({ params, body: { settings: { continue_unrecorded: false } } })
  const { uid } = await way.newest()
  await way.service.rooms.stores.of(sample.tenant).sessions.save(uid, { unrecorded: 1 })
  await page.goto(`/sessions/${uid}`)
  await seen(page, 'continued unrecorded')
  await seen(page, 'Recording stopped before the session ended. The session continued')
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
    await using person = await visitAsAdministrator({
      viewport: { width, height: 800 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const { page } = person
    await page.goto(`/sessions/${uid}`)
    await page.getByRole('slider', { name: 'Position in the recording' }).press('End')
    await shows(page, 'later words')
    await page.getByLabel('Text in the recording').fill('words')
    await page.getByLabel('Text in the recording').press('Enter')
    await page.getByRole('list', { name: 'Matches in the recording' }).waitFor()
    expect(
      await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth'),
    ).toBe(false)
    expect(await violations(page)).toEqual([])
    expect(person.refusals).toEqual([])
    expect(person.troubles).toEqual([])
  },
)
