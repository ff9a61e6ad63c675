// The whole story in one piece, in a real browser, from a server on which there is nobody: somebody
// registers, confirms the account, creates a namespace, switches the second factor on and signs in with it,
// adds a device (the real agent), lets it in, opens a terminal, works in it, uploads a file, leaves, and
// replays what was done.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { expect, test } from 'vitest'
import { makePerson } from '../../agent/test/person.ts'
import { startAgent } from '../harness/agent.ts'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startService } from '../harness/service.ts'
import {
  choose,
  field,
  fill,
  goTo,
  heading,
  linkTo,
  press,
  seen,
  signIn,
  signOut,
  tokenOf,
  told,
} from './console.ts'

const browser = sharedBrowser()

test('from an empty server to the replay of the first session', async () => {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-story-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const service = opened.use(await startService())
  const made = process.getuid?.() === 0 ? opened.use(await makePerson()) : undefined
  const pilot = made ?? { name: os.userInfo().username, password: 'pilot', home: os.homedir() }
  await using person = await visit(browser, service, { viewport: { width: 1280, height: 800 } })
  const { page } = person

  // An account, confirmed by the link of an e-mail.
  await page.goto('/sign-up')
  await fill(page, {
    'Your name': 'Nora',
    Username: 'nora',
    'E-mail': 'nora@example.com',
    Password: 'lighthouse',
  })
  await press(page, 'Create the account')
  await heading(page, 'Your account is waiting for confirmation')
  await page.goto(await linkTo(service, 'nora@example.com'))
  await press(page, 'Confirm the account')
  await heading(page, 'Your account is confirmed')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await signIn(page, { username: 'nora', password: 'lighthouse' })
  await fill(page, { Name: 'boathouse' })
  await press(page, 'Create the namespace')
  await heading(page, 'boathouse')

  // The second factor.
  await choose(page, /: profile and more$/, 'Profile and second factor')
  await fill(page, { 'Recovery e-mail': 'nora@example.org' })
  await press(page, 'Save the profile')
  await told(page, 'Your profile was saved.')
  await press(page, 'Turn it on')
  const secret = (await page.locator('pre').first().textContent()) ?? ''
  const code = () =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: service.clock.now() })
  await fill(page, { Code: code() })
  await press(page, 'Turn it on')
  await told(page, 'The second factor was turned on.')
  await signOut(page)
  await signIn(page, { username: 'nora', password: 'lighthouse' })
  service.clock.forward(60_000)
  await fill(page, { Code: code() })
  await press(page, 'Continue')
  await heading(page, 'boathouse')

  // A device arrives while its page is looked at.
  const { tenant } = (await service.api({ token: await tokenOf(page) }).users.refresh({})).body
  await goTo(page, 'Add a device')
  await seen(page, 'Waiting for the device to connect')
  await page.waitForLoadState('networkidle')
  const agent = opened.use(
    await startAgent(
      { url: service.url, tenant_id: tenant, accept: () => Promise.resolve() },
      { hostname: 'launch', pending: true },
    ),
  )
  await seen(page, 'The device has connected.')
  await press(page, 'Accept launch')
  await told(page, 'launch was accepted.')

  // A terminal on it.
  await page.getByRole('link', { name: 'launch', exact: true }).click()
  await page.getByRole('link', { name: 'Terminal', exact: true }).click()
  await page.getByRole('form', { name: 'Log in on the device' }).waitFor()
  await fill(page, { 'User on the device': pilot.name, Password: pilot.password })
  await press(page, 'Open the terminal')
  const shown = async (): Promise<string> =>
    (await page.locator('.xterm-rows > div').allTextContents()).join('\n')
  const showing = (pattern: RegExp) => eventually(async () => expect(await shown()).toMatch(pattern), 60_000)
  await showing(/[$#]/)
  await page.locator('.xterm-screen').click()
  await page.keyboard.type('echo all-$((40+2))-aboard\n')
  await showing(/all-42-aboard/)
  const chart = path.join(folder, 'chart-of-the-bay.txt')
  writeFileSync(chart, 'shallow here\n')
  await press(page, 'Files')
  await page.getByRole('list', { name: 'Folder contents' }).waitFor()
  await page.getByLabel('Files to upload').setInputFiles(chart)
  await told(page, 'chart-of-the-bay.txt was uploaded.')
  opened.defer(() => rmSync(path.join(pilot.home, 'chart-of-the-bay.txt'), { force: true }))
  expect(readFileSync(path.join(pilot.home, 'chart-of-the-bay.txt'), 'utf8')).toBe('shallow here\n')
  await press(page, 'Files')
  await page.locator('.xterm-screen').click()
  await page.keyboard.type('exit\n')
  await seen(page, 'The session has ended.')

  // And what was done, once more.
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: 'Past' }).click()
  await page.getByRole('link', { name: `Replay the session of ${pilot.name} on launch` }).click()
  await page.getByRole('slider', { name: 'Position in the recording' }).press('End')
  await page
    .getByRole('region', { name: /terminal output$/i })
    .getByText('all-42-aboard')
    .first()
    .waitFor()
  expect(await field(page, 'Speed').count()).toBe(1)
  expect(agent.name).toBe('launch')
  expect(person.refusals).toEqual(['401 /api/login'])
  expect(person.troubles).toEqual([])
})
