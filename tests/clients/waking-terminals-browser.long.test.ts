// A laptop that sleeps with a terminal open, in a real browser on a link that breaks: when it wakes up the page
// continues the session by itself, with the same screen, and types nothing twice. A session that its person has
// continued elsewhere meanwhile stays there, until they press *Continue here*.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startLink } from '../harness/link.ts'
import { enterTerminal, showing, shown, type } from './browser-terminal.ts'
import { press, signedInTo } from './console.ts'
import { apiOf, sharedQuarters } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()

const linkToService = async () => startLink({ port: Number(new URL(quarters().service.url).port) })
const live = async () => {
  const api = await apiOf(quarters(), 'owner')
  const query = { active: true, device_uid: quarters().agent.uid }
  return (await api.sessions.list({ query })).body
}
const alert = (page: Page, text: string) => page.getByRole('alert').getByText(text)

test('the page of a link that was cut shows the same screen again, and types nothing twice', async () => {
  await using link = await linkToService()
  await using person = await visit(browser, { url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await type(page, 'cat > typed')
  const typed = () => readFileSync(path.join(quarters().user.home, 'typed'), 'utf8')
  // From then on the terminal echoes, and not the shell.
  await eventually(() => expect(typed()).toBe(''))
  await page.keyboard.type('before\n')
  await showing(page, /cat > typed\nbefore\n/)
  await eventually(() => expect(typed()).toBe('before\n'))
  const screen = await shown(page)

  // It leaves the page, and never arrives.
  link.stall()
  await page.keyboard.type('on its way\n')
  await page.context().setOffline(true)
  link.cut()
  await alert(page, 'Continuing the session …').waitFor()
  await page.keyboard.type('while away\n')
  link.resume()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Disconnect' }).waitFor()
  await eventually(async () => expect(await shown(page)).toBe(screen))
  await page.keyboard.type('after\n')
  await eventually(() => expect(typed()).toBe('before\nafter\n'))
  await page.keyboard.press('Control+D')
  await type(page, 'exit')
  await alert(page, 'The session has ended.').waitFor()
  await eventually(async () => expect(await live()).toEqual([]))
})

test('a page that wakes up leaves the session to who has continued it, until its person presses', async () => {
  const { service, agent } = quarters()
  await using link = await linkToService()
  await using laptop = await visit(browser, { url: `http://${link.host}:${link.port}` })
  const { page } = laptop
  await enterTerminal(page, quarters())
  await type(page, 'berth=seven; echo berth-$berth')
  await showing(page, /berth-seven/)
  const [session] = await live()
  // It sleeps, and hears nothing of what follows.
  link.silence()

  await using phone = await visit(browser, service)
  await signedInTo(phone.page, service)
  await phone.page.goto(`/devices/${agent.uid}/terminal?continue=${session!.uid}`)
  await showing(phone.page, /berth-seven/)
  link.resume()
  link.cut()
  await alert(page, 'The session continues elsewhere.').waitFor()
  await type(phone.page, 'echo phone-$berth')
  await showing(phone.page, /phone-seven/)
  expect(await alert(phone.page, 'The session continues elsewhere.').count()).toBe(0)
  expect(await violations(page)).toEqual([])

  await press(page, 'Continue here')
  await showing(page, /phone-seven/)
  await alert(phone.page, 'The session continues elsewhere.').waitFor()
  await type(page, 'echo laptop-$berth')
  await showing(page, /laptop-seven/)
  // The phone heard that it moved, and can have it back in the same way.
  await press(phone.page, 'Continue here')
  await showing(phone.page, /laptop-seven/)
  await alert(page, 'The session continues elsewhere.').waitFor()
  expect((await live()).map(({ uid }) => uid)).toEqual([session!.uid])
  await type(phone.page, 'exit')
  await alert(phone.page, 'The session has ended.').waitFor()
  expect(phone.troubles).toEqual([])
})
