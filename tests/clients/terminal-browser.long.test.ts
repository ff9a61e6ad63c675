// Terminals in a real browser, on the real agent of a device: a person logs in with a password or a key,
// types and reads, changes the size, copies files both ways, loses the session and gets it again. And the
// page passes axe with everything on it, light on a desk and dark on a phone. Every test ends without trouble
// in the browser's console.
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { blobOf, privateKeyFile, privateKeyFrom, publicKeyLine } from '@hawser/ssh'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { choose, field, fill, heading, press, row, seen, signedInTo, told } from './console.ts'
import { logInOn, showing, shown, type } from './browser-terminal.ts'
import { apiOf, sharedQuarters } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()
const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-browser-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const logIn = async (page: Page): Promise<void> => logInOn(page, quarters())

test('a person opens a terminal from the list, works in it, copies files both ways, and finds the session listed', async () => {
  const { service, agent, user } = quarters()
  await using person = await visit(browser, service, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await signedInTo(page, service)
  await page.goto('/devices')
  await row(page, agent.name)
    .getByRole('link', { name: `Terminal on ${agent.name}` })
    .click()
  await heading(page, `Terminal on ${agent.name}`)

  await fill(page, { 'User on the device': user.name, Password: 'wrong' })
  await press(page, 'Open the terminal')
  await page.getByRole('alert').getByText('The user name or the password is wrong.').waitFor()
  await logIn(page)
  await type(page, 'echo "über $((40+2))"; stty size')
  await showing(page, /über 42\n\d+ \d+/)
  let turn = 0
  const size = async (): Promise<number[]> => {
    turn += 1
    await type(page, `clear; echo size-${turn}: $(stty size)`)
    await showing(page, new RegExp(`size-${turn}: \\d+ \\d+`))
    return /size-\d+: (\d+) (\d+)/
      .exec(await shown(page))!
      .slice(1)
      .map(Number)
  }
  const [rows, cols] = await size()
  await page.setViewportSize({ width: 1000, height: 640 })
  await eventually(async () => {
    const [fewerRows, fewerCols] = await size()
    expect(fewerRows).toBeLessThan(rows!)
    expect(fewerCols).toBeLessThan(cols!)
  }, 60_000)
  const [, now] = await size()
  await press(page, 'Settings')
  await press(page, 'Larger')
  await eventually(async () => expect((await size())[1]).toBeLessThan(now!), 60_000)

  // Found in what was shown, and copied from it.
  await type(page, 'echo anchor-chain')
  await showing(page, /anchor-chain\n/)
  await press(page, 'Find')
  await field(page, 'Find in the output').fill('anchor-chain')
  await page.keyboard.press('Enter')
  await press(page, 'Copy')
  await told(page, 'Copied.')
  await field(page, 'Find in the output').fill('no such text')
  await page.keyboard.press('Enter')
  await seen(page, 'Not found')
  await press(page, 'Done')

  // Up and down, byte by byte.
  const bytes = Buffer.from(Array.from({ length: 700_001 }, (_, at) => (at * 7 + (at >> 8)) & 255))
  const local = path.join(folder, 'tide table.bin')
  writeFileSync(local, bytes)
  await press(page, 'Files')
  await page.getByRole('list', { name: 'Folder contents' }).waitFor()
  await page.getByLabel('Files to upload').setInputFiles(local)
  await told(page, 'tide table.bin was uploaded.')
  expect(readFileSync(path.join(user.home, 'tide table.bin')).equals(bytes)).toBe(true)
  const download = page.waitForEvent('download')
  await choose(page, 'Actions for tide table.bin', 'Download')
  const saved = path.join(folder, 'again.bin')
  await (await download).saveAs(saved)
  expect(readFileSync(saved).equals(bytes)).toBe(true)
  // A second time it would replace what is there.
  writeFileSync(local, 'short')
  await page.getByLabel('Files to upload').setInputFiles(local)
  await press(page, 'Replace it')
  await eventually(
    () => expect(readFileSync(path.join(user.home, 'tide table.bin'), 'utf8')).toBe('short'),
    60_000,
  )
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  // Whoever leaves is asked.
  await press(page, 'Files')
  await page
    .getByRole('navigation', { name: 'Pages of the console' })
    .getByRole('link', { name: 'Sessions' })
    .click()
  await press(page, 'Stay')
  await type(page, 'exit')
  await seen(page, 'The session has ended.')
  await page
    .getByRole('navigation', { name: 'Pages of the console' })
    .getByRole('link', { name: 'Sessions' })
    .click()
  await heading(page, 'Sessions')
  await page.getByRole('link', { name: 'Past' }).click()
  const listed = row(page, user.name).first()
  await listed.getByText('recorded').waitFor()
  await listed.getByText('from 127.0.0.1 · a shell').waitFor()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an observer logs in with a key from a file, in two tabs, is cut off by an administrator and comes back', async () => {
  const { service, agent, user } = quarters()
  const owner = await apiOf(quarters(), 'owner')
  const { privateKey } = generateKeyPairSync('ed25519')
  const blob = blobOf(privateKey)
  const data = Buffer.from(publicKeyLine('ssh-ed25519', blob)).toString('base64')
  await owner.publicKeys.create({ body: { data, name: 'vera', username: '.*', filter: { hostname: '.*' } } })
  const file = path.join(folder, 'id_ed25519')
  writeFileSync(file, privateKeyFile(privateKeyFrom(privateKey)))
  const locked = path.join(folder, 'id_locked')
  writeFileSync(locked, privateKeyFile(privateKeyFrom(privateKey), 'rope'))

  await using person = await visit(browser, service)
  const { page } = person
  const posted: string[] = []
  page.on('request', (request) => posted.push(request.postData() ?? ''))
  await signedInTo(page, service, sample.observer)
  await page.goto(`/devices/${agent.uid}`)
  await page.getByRole('link', { name: 'Terminal', exact: true }).click()
  // The page of the device asks for a user, too.
  await page.getByRole('form', { name: 'Log in on the device' }).waitFor()
  await fill(page, { 'User on the device': user.name })
  await field(page, 'Log in with').selectOption('A private key')
  await page.getByLabel('Private key file').setInputFiles(locked)
  await eventually(async () => expect(await field(page, 'Private key').inputValue()).toContain('BEGIN'))
  await press(page, 'Open the terminal')
  await page.getByRole('alert').getByText('protected by a passphrase').waitFor()
  await page.getByLabel('Private key file').setInputFiles(file)
  await eventually(async () =>
    expect(await field(page, 'Private key').inputValue()).toBe(readFileSync(file, 'utf8')),
  )
  await press(page, 'Open the terminal')
  await showing(page, /[$#] /)
  await type(page, 'echo first-$((1+1))')
  await showing(page, /first-2/)
  expect(posted.join('\n')).not.toContain(readFileSync(file, 'utf8').split('\n')[2]!)

  await press(page, 'New tab')
  await logIn(page)
  await type(page, 'echo second-$((1+1))')
  await showing(page, /second-2/)
  expect(await shown(page)).not.toContain('first')
  await page.getByRole('tab', { name: `1: ${user.name}` }).click()
  await showing(page, /first-2/)

  const { body } = await owner.sessions.list({ query: {} })
  const live = body.filter(({ active, device_uid }) => active && device_uid === agent.uid)
  expect(live).toHaveLength(2)
  for (const { uid, device_uid } of live)
    await owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  await page
    .getByRole('alert')
    .getByText('The session was closed by an administrator.')
    .filter({ visible: true })
    .waitFor()
  await press(page, 'Reconnect')
  await page.getByRole('button', { name: 'Disconnect' }).filter({ visible: true }).waitFor()
  await type(page, 'clear; echo back-$((1+1))')
  await showing(page, /back-2/)
  await press(page, 'Disconnect')
  await seen(page, 'The session has ended.')
  await press(page, 'Close')
  await page.getByRole('tab', { name: /^1: / }).waitFor()
  expect(await page.getByRole('tab').count()).toBe(1)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['light', 1280],
  ['dark', 360],
] as const)('the page passes axe and fits its screen, %s and %d pixels wide', async (colorScheme, width) => {
  const { service, agent } = quarters()
  await using person = await visit(browser, service, {
    viewport: { width, height: 740 },
    colorScheme,
    reducedMotion: 'reduce',
  })
  const { page } = person
  const check = async (what: string) => {
    const tooWide = await page.evaluate<boolean>(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth',
    )
    expect({ what, tooWide, wrong: await violations(page) }).toEqual({ what, tooWide: false, wrong: [] })
  }
  await signedInTo(page, service)
  await page.goto(`/devices/${agent.uid}/terminal`)
  await heading(page, `Terminal on ${agent.name}`)
  await field(page, 'Log in with').selectOption('A private key')
  await check('login with a key')
  await field(page, 'Log in with').selectOption('A password')
  await logIn(page)
  await type(
    page,
    'for c in 1 2 3 4 5 6; do printf "\\033[3${c}mcolour\\033[0m \\033[38;5;$((c*30))mmany\\033[0m \\033[38;2;9;9;9mtrue\\033[0m\\n"; done',
  )
  await showing(page, /(colour many true\n){6}/)
  await check('a terminal')
  await press(page, 'Find')
  await press(page, 'Files')
  await page.getByRole('list', { name: 'Folder contents' }).waitFor()
  await check('with files')
  await press(page, 'Disconnect')
  await seen(page, 'The session has ended.')
  await check('ended')
  await page.goto(`/devices/${sample.pendingDevice}/terminal`)
  await seen(page, 'You can connect once the device is accepted.')
  await check('not accepted')
  expect(person.troubles).toEqual([])
})
