// Sharing a session in a real browser: a link that invites somebody, from the button that makes it to the sentence
// that ends it, and the person of a session who lets others type in it with buttons.
import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { logInOn, showing, type } from './browser-terminal.ts'
import { field, fill, heading, press, seen, signedInTo, signIn } from './console.ts'
import { openGuest } from './shared.ts'
import { apiOf, sharedQuarters, terminal, type Dialled, type DialOptions } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()
/** A shell of vera, an observer, that is recorded. */
async function begin(options?: DialOptions): Promise<{ shell: Dialled; uid: string }> {
  const [shell, uid] = await terminal(quarters(), options)
  shell.type('PS1="> "; stty -echo; echo rea$((1+1))dy\r')
  await shell.until('rea2dy')
  const { recordings } = quarters().service.rooms
  await eventually(() => expect(recordings.live(sample.tenant, uid)).toHaveLength(1))
  return { shell, uid }
}

test('a link invites somebody who is no member: it is made, copied, opened signed out, used and revoked', async () => {
  const owner = await apiOf(quarters(), 'owner')
  await owner.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { invite_outsiders: true } },
  })
  const { shell, uid } = await begin()
  using _ = shell
  await using vera = await visit(browser, quarters().service)
  await signedInTo(vera.page, quarters().service, sample.observer)
  await vera.page.goto(`/sessions/${uid}`)
  await press(vera.page, 'Invite someone')
  await fill(vera.page, { 'Person to invite': sample.stranger.email })
  await field(vera.page, 'Permission').selectOption('join')
  expect(await violations(vera.page)).toEqual([])
  await press(vera.page, 'Create a link')
  await seen(vera.page, `For ${sample.stranger.email}, until`)
  const link = await vera.page.getByRole('dialog').locator('pre code').innerText()
  expect(link).toMatch(/\/join#hwi_[a-z2-7]{32}$/)
  expect(await violations(vera.page)).toEqual([])

  await using stan = await visit(browser, quarters().service)
  const asked: string[] = []
  stan.page.on('request', (request) => asked.push(`${request.url()} ${JSON.stringify(request.headers())}`))
  const { page } = stan
  await page.goto(link)
  // Signed out, the way leads over the sign-in page and back.
  await heading(page, 'Sign in')
  await signIn(page, sample.stranger)
  await heading(page, 'You are invited to a session')
  expect(page.url()).toBe(`${quarters().service.url}/join`)
  await seen(page, 'You are signed in as stan')
  expect(await violations(page)).toEqual([])
  expect((await owner.sessions.invitations({ params: { uid } })).body).toMatchObject([{ used_by: null }])
  await press(page, 'Open the session')
  await seen(page, 'rea2dy')
  await shell.until('[stan, invited by vera, watches]')
  await seen(page, 'stan, invited by vera (you): watching')
  await press(page, 'Ask to type')
  await shell.until('[stan, invited by vera, asks to type here')
  shell.type('\u001dy')
  const shared = page.getByRole('region', { name: /^The terminal; what you type/ })
  await shared.click()
  await page.keyboard.type('echo by$((1+1))guest\n')
  await shell.until('by2guest')
  await page.getByLabel('Size follows').selectOption('driver')
  await eventually(async () => expect(await page.getByLabel('Size follows').inputValue()).toBe('driver'))
  expect(await violations(page)).toEqual([])
  // After a reload, the same person is in again.
  await page.reload()
  await press(page, 'Open the session')
  await seen(page, 'by2guest')
  // The link was in no address that the server, or anybody between, has seen.
  expect(asked.join('\n')).not.toContain(link.split('#')[1])

  await press(vera.page, 'Invite someone else')
  await vera.page.getByText(/^Accepted by stan: watch, and ask to type, until/).waitFor()
  await press(vera.page, 'Revoke')
  await seen(page, 'You may no longer watch this session.')
  await page.reload()
  await press(page, 'Open the session')
  await seen(page, 'There is no such invitation')
  expect([stan.troubles, vera.troubles]).toEqual([[], []])
})

test.each([
  [1280, 800],
  [390, 844],
])('whoever watches on %s × %s has all buttons before them, without scrolling', async (width, height) => {
  // Higher than the window.
  const { shell, uid } = await begin({ rows: 50 })
  using _ = shell
  await using olga = await visit(browser, quarters().service, { viewport: { width, height } })
  const { page } = olga
  await signedInTo(page, quarters().service, sample.owner)
  await page.goto(`/sessions/${uid}`)
  await seen(page, 'rea2dy')
  const shownWhole = async (what: Locator): Promise<void> => {
    await what.waitFor()
    const box = (await what.boundingBox())!
    expect(box.y).toBeGreaterThan(0)
    expect(box.y + box.height).toBeLessThan(height)
  }
  const people = page.getByRole('list', { name: 'Participants' })
  await shownWhole(page.getByRole('button', { name: 'Ask to type' }))
  await shownWhole(people)
  await press(page, 'Ask to type')
  await shell.until('asks to type here')
  shell.type('\u001dy')
  await page.getByRole('button', { name: 'Watch only' }).waitFor()
  for (const button of await page.locator('.player').getByRole('button').all()) await shownWhole(button)
  await shownWhole(page.getByLabel('Size follows'))
  await shownWhole(people)
  expect(await page.evaluate('scrollY')).toBe(0)
  expect(await violations(page)).toEqual([])
})

test('a guest of a session that is not recorded, or is over, is told so, and the page stops trying', async () => {
  const owner = await apiOf(quarters(), 'owner')
  const edit = async (session_record: boolean) =>
    owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { session_record } } })
  await edit(false)
  const [shell, uid] = await terminal(quarters())
  using _ = shell
  await shell.until(/[$#] $/)
  const { body } = await owner.sessions.invite({
    params: { uid },
    body: { to: sample.administrator.username, mode: 'watch' },
  })
  await using adam = await visit(browser, quarters().service)
  const { page } = adam
  let sockets = 0
  page.on('websocket', () => (sockets += 1))
  await page.clock.install()
  await signedInTo(page, quarters().service, sample.administrator)
  await page.goto(`/join#${body.token}`)
  await press(page, 'Open the session')
  await page.getByRole('status').getByText('Nothing of this session is being recorded now.').waitFor()
  await page.clock.runFor(120_000)
  expect(sockets).toBe(1)
  expect(await page.getByText('retrying').count()).toBe(0)
  shell.type('exit\r')
  await shell.closed
  await page.reload()
  await eventually(async () => {
    await press(page, 'Open the session')
    await page.getByRole('alert').getByText('The session is over.').waitFor({ timeout: 5_000 })
  })
  await edit(true)
  expect(adam.troubles).toEqual([])
})

test('the person of a session in a browser lets somebody type, and takes it back, with buttons', async () => {
  await using vera = await visit(browser, quarters().service, { viewport: { width: 1280, height: 800 } })
  const { page } = vera
  await signedInTo(page, quarters().service, sample.observer)
  await page.goto(`/devices/${quarters().agent.uid}/terminal`)
  await logInOn(page, quarters())
  await type(page, 'echo rea$((1+1))dy')
  await showing(page, /rea2dy/)
  const owner = await apiOf(quarters(), 'owner')
  const { body } = await owner.sessions.list({ query: { active: true, device_uid: quarters().agent.uid } })
  const { uid } = body.find(({ person }) => person.name === 'vera')!
  const { recordings } = quarters().service.rooms
  await eventually(() => expect(recordings.live(sample.tenant, uid)).toHaveLength(1))
  const as = async (who: 'operator' | 'administrator', query: string) =>
    openGuest(quarters().service.url, uid, {
      headers: { authorization: `Bearer ${await quarters().world.token(who)}` },
      query,
    })
  // Who only watches makes nothing of the terminal smaller.
  const tall = async () => (await page.locator('.xterm-screen').first().boundingBox())!.height
  const before = await tall()
  using adam = await as('administrator', '')
  await page.getByText('1 watches').click()
  await page.getByText('adam: watching').waitFor()
  expect(await violations(page)).toEqual([])
  expect(await tall()).toBe(before)

  using oskar = await as('operator', '?join')
  await page.getByRole('alert').getByText('oskar wants to type here.').waitFor()
  expect(await violations(page)).toEqual([])
  // The question takes nothing of what is being typed.
  await type(page, 'echo still$((1+1))here')
  await showing(page, /still2here/)
  await press(page, 'Allow oskar to type')
  await oskar.until(/rea2dy/)
  // Nor does the answer: what is typed next goes to the terminal again.
  await page.keyboard.type('echo after$((1+1))allowing\n')
  await showing(page, /after2allowing/)
  oskar.type('echo by$((1+1))oskar\r')
  await showing(page, /by2oskar/)
  await press(page, 'Hand over to oskar')
  await oskar.present({ driver: 2 })
  await press(page, 'Take over')
  await oskar.present({ driver: 0 })
  await press(page, 'Let everyone type')
  await oskar.present({ driver: null })
  await page.getByLabel('Size follows').selectOption('driver')
  await oskar.present({ size: 'driver' })
  expect(await violations(page)).toEqual([])
  await press(page, 'Make oskar read-only')
  expect(await oskar.ended).toBe('vera sent you back to watching.')
  await page.getByText('1 watches').waitFor()

  adam.say({ kind: 'ask' })
  await page.getByRole('alert').getByText('adam wants to type here.').waitFor()
  await press(page, 'Refuse')
  await eventually(() => expect(adam.said).toContainEqual({ kind: 'note', message: 'vera refused.' }))
  expect(vera.troubles).toEqual([])
})
