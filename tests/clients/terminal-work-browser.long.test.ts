// The terminal of the console as a place to work, in a real browser: tabs and panes that need no second
// login, keys that phones do not have, letters that are shown before a slow link has echoed them, and a flood
// of output that the page survives without standing still.
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startLink } from '../harness/link.ts'
import { enterTerminal, showing, shown, type } from './browser-terminal.ts'
import { choose, field, press, signedInTo, signOut } from './console.ts'
import { apiOf, sharedQuarters } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()
const pane = (page: Page, number: number) =>
  page.getByRole('group', { name: new RegExp(`^Pane ${number}`) }).filter({ visible: true })
const paneShows = async (page: Page, number: number, text: RegExp): Promise<void> =>
  eventually(async () =>
    expect((await pane(page, number).locator('.xterm-rows').innerText()).replaceAll('\u00a0', ' ')).toMatch(
      text,
    ),
  )

test('tabs and panes open without a second login, are resized by keys, and end with the sign-in', async () => {
  const { user } = quarters()
  await using person = await visit(browser, quarters().service, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await enterTerminal(page, quarters())
  await choose(page, 'Split', 'To the right')
  await paneShows(page, 2, /[$#] /)
  await choose(page, 'Split', 'Below')
  await paneShows(page, 3, /[$#] /)
  await page.keyboard.type('echo third-$((1+1))\n')
  await paneShows(page, 3, /third-2/)
  await pane(page, 1).locator('.xterm-screen').click()
  await page.keyboard.type('echo first-$((1+1))\n')
  await paneShows(page, 1, /first-2/)
  const width = async (): Promise<number> => (await pane(page, 1).boundingBox())!.width
  const before = await width()
  await page.getByRole('separator', { name: 'Border between panes' }).first().focus()
  for (let times = 0; times < 5; times += 1) await page.keyboard.press('ArrowRight')
  expect(await width()).toBeGreaterThan(before)
  expect(await violations(page)).toEqual([])

  await pane(page, 1).locator('.xterm-screen').click()
  await press(page, 'Duplicate')
  await page.getByRole('tab', { name: `2: ${user.name}` }).waitFor()
  await showing(page, /[$#] /)
  const api = await apiOf(quarters(), 'owner')
  const live = async (): Promise<number> =>
    (await api.sessions.list({ query: {} })).body.filter(
      ({ active, device_uid }) => active && device_uid === quarters().agent.uid,
    ).length
  expect(await live()).toBe(4)
  await page.getByRole('tab', { name: /^2: / }).focus()
  await page.keyboard.press('ArrowLeft')
  await paneShows(page, 1, /first-2/)
  await page.keyboard.press('End')
  await eventually(async () => expect(await pane(page, 2).count()).toBe(0))
  // What a pane knows is gone with it, and all of it with the sign-in.
  await press(page, 'Disconnect')
  await press(page, 'Close')
  await eventually(async () => expect(await page.getByRole('tab').count()).toBe(1))
  page.on('dialog', (dialog) => void dialog.accept())
  await signOut(page)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await eventually(async () => expect(await live()).toBe(0))
  await page.goBack()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  expect(person.troubles).toEqual([])
})

test('a terminal fills the screen with its menus, copies what is selected when that is wished, and comes back', async () => {
  await using person = await visit(browser, quarters().service, {
    viewport: { width: 1000, height: 700 },
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Full screen')
  const box = async () => (await page.locator('.workplace').boundingBox())!
  await eventually(async () => expect((await box()).y).toBe(0))
  await choose(page, 'Split', 'To the right')
  await paneShows(page, 2, /[$#] /)
  await press(page, 'Full screen')
  await eventually(async () => expect((await box()).y).toBeGreaterThan(0))

  await press(page, 'Settings')
  await page.getByLabel('Copy selection').check()
  await pane(page, 2).locator('.xterm-screen').click()
  await page.keyboard.type('clear; echo bow""line\n')
  await paneShows(page, 2, /^bowline/)
  await pane(page, 2)
    .locator('.xterm-screen')
    .dblclick({ position: { x: 20, y: 8 } })
  await eventually(async () => expect(await page.evaluate('navigator.clipboard.readText()')).toBe('bowline'))
  expect(person.troubles).toEqual([])
})

test('the keyboard comes in and out of a terminal, and a terminal is dark by itself', async () => {
  await using person = await visit(browser, quarters().service, { colorScheme: 'light' })
  const { page } = person
  await enterTerminal(page, quarters())
  const focused = () => page.evaluate<string>('document.activeElement.getAttribute("aria-label")')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.className')).toContain('xterm')
  await page.keyboard.press('Control+Shift+X')
  expect(await focused()).toBe('Copy')
  expect(await page.getByLabel('Terminal input').getAttribute('aria-description')).toContain('Ctrl+Shift+X')
  const ground = () =>
    page.evaluate<string>(`getComputedStyle(document.querySelector('.terminal-place')).backgroundColor`)
  expect(await ground()).toBe('rgb(10, 21, 26)')
  await press(page, 'Settings')
  await field(page, 'Colours').selectOption('Day')
  expect(await ground()).toBe('rgb(251, 253, 253)')
  expect(await violations(page)).toEqual([])
  page.on('dialog', (dialog) => void dialog.accept())
  await page.reload()
  await showing(page, /[$#] /)
  expect(await ground(), 'it is remembered').toBe('rgb(251, 253, 253)')
  expect(person.troubles).toEqual([])
})

const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
}

test('a phone has the keys that its keyboard lacks, and the prompt stays above that keyboard', async () => {
  await using person = await visit(browser, quarters().service, phone)
  const { page } = person
  // Headless there is no keyboard: what its coming tells a page is told by the test.
  await page.addInitScript(`(() => {
    const seen = new EventTarget()
    Object.assign(seen, { height: innerHeight, offsetTop: 0, scale: 1 })
    Object.defineProperty(window, 'visualViewport', { value: seen })
    window.coverFrom = (height) => {
      Object.assign(seen, { height })
      seen.dispatchEvent(new Event('resize'))
    }
  })()`)
  await enterTerminal(person.page, quarters())
  const keys = page.getByRole('toolbar', { name: 'Keys' })
  const key = (name: string) => keys.getByRole('button', { name, exact: true }).tap()
  await type(page, 'seq 1 100; PS1="prompt> "; cat -v')
  await showing(page, /100\n/)
  await key('Esc')
  await key('Up')
  await page.keyboard.type('x')
  await key('Tab')
  await page.keyboard.type('y\n')
  await showing(page, /\^\[\^\[\[Ax {1,8}y/)
  await key('Ctrl')
  await page.keyboard.type('c')
  await showing(page, /\^C\n/)
  expect(await keys.getByRole('button', { name: 'Ctrl' }).getAttribute('aria-pressed')).toBe('false')
  // Keys that are pressed leave the focus where it is, and with it the phone's keyboard.
  expect(await page.evaluate('document.activeElement.className')).toContain('xterm')
  const bottoms = () =>
    page.evaluate<{ prompt: number; keys: number }>(`(() => {
      const rows = [...document.querySelectorAll('.xterm-rows > div')]
      const prompt = rows.findLast((row) => row.textContent.startsWith('prompt>'))
      const bottom = (found) => found.getBoundingClientRect().bottom
      return { prompt: bottom(prompt), keys: bottom(document.querySelector('.key-bar')) }
    })()`)
  await page.evaluate('coverFrom(420)')
  await eventually(async () => {
    const { prompt, keys: last } = await bottoms()
    expect(last).toBeLessThanOrEqual(421)
    expect(prompt).toBeLessThan(last)
  })
  expect(await violations(page)).toEqual([])
  await page.evaluate('coverFrom(innerHeight)')
  await eventually(async () => expect((await bottoms()).keys).toBeGreaterThan(700))
  expect(person.troubles).toEqual([])
})

test('on a slow link letters are seen before they are echoed, passwords never, and it can be switched off', async () => {
  const { service } = quarters()
  await using link = await startLink({ port: Number(new URL(service.url).port) })
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await type(page, 'PS1="slow> "; clear')
  await showing(page, /^slow> +$/m)
  link.shape({ delay_ms: 400 })
  const guess = page.locator('.terminal-guess')
  const guessed = async (): Promise<string> =>
    (await guess.isVisible()) ? ((await guess.textContent()) ?? '').replaceAll('\u00a0', ' ').trim() : ''
  // Echoes are awaited, and the time they take is learnt and shown.
  await page.keyboard.type('echo')
  await showing(page, /slow> echo/)
  await eventually(async () =>
    expect(Number(/(\d+) ms/.exec(await page.locator('.terminal-latency').innerText())![1])).toBeGreaterThan(
      150,
    ),
  )
  link.stall()
  await page.keyboard.type(' harbour')
  expect(await guessed()).toBe('harbour')
  expect(await shown(page)).not.toContain('harbour')
  await page.keyboard.press('Backspace')
  expect(await guessed()).toBe('harbou')
  link.resume()
  await showing(page, /slow> echo harbou *$/m)
  await eventually(async () => expect(await guessed()).toBe(''))
  await page.keyboard.type('\n')
  await showing(page, /\nharbou *\n/)

  // What is not echoed is never shown, whatever time passes.
  await page.keyboard.type('read -s secret; echo got-$secret\n')
  await showing(page, /read -s secret; echo got-\$secret\n/)
  const seen: string[] = []
  for (const letter of 'pass1word') {
    await page.keyboard.type(letter)
    seen.push(await guessed())
  }
  await page.keyboard.type('\n')
  await showing(page, /got-pass1word/)
  expect(seen.join('')).toBe('')

  // Nor is anything on the screen of a program that fills it.
  await showing(page, /slow> +$/m)
  await page.keyboard.type('printf "\\033[?1049h"; cat\n')
  await eventually(async () => expect(await shown(page)).not.toContain('slow>'))
  await page.keyboard.type('abcd')
  await showing(page, /abcd/)
  await page.keyboard.type('efgh')
  expect(await guessed()).toBe('')
  await showing(page, /abcdefgh/)
  await page.keyboard.press('Control+C')
  await page.keyboard.type('printf "\\033[?1049l"\n')
  await showing(page, /slow> +$/m)

  link.shape({ delay_ms: 0 })
  await press(page, 'Settings')
  await page.getByLabel('Show typed characters immediately on slow connections').uncheck()
  await page.locator('.xterm-screen').click()
  link.shape({ delay_ms: 400 })
  await page.keyboard.type('echo')
  await showing(page, /slow> echo/)
  link.stall()
  await page.keyboard.type(' quay')
  expect(await guessed()).toBe('')
  link.resume()
  await showing(page, /slow> echo quay/)
  expect(person.troubles).toEqual([])
})

test('a flood of output leaves the page usable, is stopped by Ctrl+C, and a million lines are shown to their end', async () => {
  await using person = await visit(browser, quarters().service, { viewport: { width: 1280, height: 900 } })
  const { page } = person
  await enterTerminal(page, quarters())
  await type(page, 'PS1="done> "; yes harbour')
  await showing(page, /(harbour\n){10}/)
  // It has no end, and yet buttons act and keys arrive.
  await press(page, 'Settings')
  await field(page, 'Colours').selectOption('Dusk')
  await page.locator('.xterm-screen').click()
  await page.keyboard.press('Control+C')
  await showing(page, /done> +$/m)
  await type(page, 'seq 1 1000000; echo al"l of it"')
  await showing(page, /1000000\nall of it/)
  expect(person.troubles).toEqual([])
})

test('a terminal goes on by itself after its connection was cut and after a reload, in the same shell', async () => {
  const { service, user } = quarters()
  await using link = await startLink({ port: Number(new URL(service.url).port) })
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await type(page, 'berth=seven; echo berth-$berth')
  await showing(page, /berth-seven/)
  link.refuse(true)
  link.cut()
  await page.getByRole('alert').getByText('Continuing the session …').waitFor()
  link.refuse(false)
  await page.getByRole('button', { name: 'Disconnect' }).waitFor()
  await type(page, 'echo still-$berth')
  await showing(page, /still-seven/)
  expect(await shown(page), 'what was shown before is drawn again').toContain('berth-seven')

  page.on('dialog', (dialog) => void dialog.accept())
  await page.reload()
  await page.getByRole('tab', { name: `1: ${user.name}` }).waitFor()
  await showing(page, /still-seven/)
  await type(page, 'echo again-$berth')
  await showing(page, /again-seven/)

  // By its address it comes to another window of the same person, and the first is told.
  const api = await apiOf(quarters(), 'owner')
  const { uid } = (await api.sessions.list({ query: {} })).body.find(
    ({ active, device_uid }) => active && device_uid === quarters().agent.uid,
  )!
  await using other = await visit(browser, service)
  await signedInTo(other.page, quarters().service)
  await other.page.goto(`/devices/${quarters().agent.uid}/terminal?continue=${uid}`)
  await showing(other.page, /again-seven/)
  await page.getByRole('alert').getByText('The session continues elsewhere.').waitFor()
  await type(other.page, 'exit')
  await other.page.getByRole('alert').getByText('The session has ended.').waitFor()
  await page.reload()
  await page.getByRole('form', { name: 'Log in on the device' }).waitFor()
})

test('after a reload panes are where they were, each with its own shell', async () => {
  await using person = await visit(browser, quarters().service, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await enterTerminal(page, quarters())
  await page.keyboard.type('berth=one; echo here-$berth\n')
  await paneShows(page, 1, /here-one/)
  await choose(page, 'Split', 'To the right')
  await paneShows(page, 2, /[$#] /)
  await page.keyboard.type('berth=two; echo here-$berth\n')
  await paneShows(page, 2, /here-two/)
  await page.getByRole('separator', { name: 'Border between panes' }).focus()
  for (let times = 0; times < 5; times += 1) await page.keyboard.press('ArrowRight')
  const box = async (number: number) => (await pane(page, number).boundingBox())!
  const before = [await box(1), await box(2)]
  page.on('dialog', (dialog) => void dialog.accept())
  await page.reload()
  await paneShows(page, 1, /here-one/)
  await paneShows(page, 2, /here-two/)
  expect(await page.getByRole('tab').count()).toBe(1)
  for (const [index, { x, width }] of before.entries()) {
    const after = await box(index + 1)
    expect(Math.abs(after.x - x)).toBeLessThan(3)
    expect(Math.abs(after.width - width)).toBeLessThan(3)
  }
  await pane(page, 2).locator('.xterm-screen').click()
  await page.keyboard.type('echo still-$berth\n')
  await paneShows(page, 2, /still-two/)
  expect(await violations(page)).toEqual([])
})
