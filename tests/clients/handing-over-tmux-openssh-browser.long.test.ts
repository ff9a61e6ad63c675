// One shell goes from hand to hand: from OpenSSH in tmux to the console in a real browser, to `hawser` in
// tmux, and back. It stays the same shell with the same screen, and whoever loses it is told one line and let
// go. tmux is the terminal that the clients run in, so it also proves that theirs is left as it was.
import { randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { freePort, keygen, run } from '../../ssh/test/programs.ts'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { showing, shown, type } from './browser-terminal.ts'
import { field, heading, query, seen, signedInTo } from './console.ts'
import { sharedWay } from './way.ts'

const port = await freePort()
const way = sharedWay({
  HAWSER_URL: '',
  HAWSER_SSH: `127.0.0.1:${port}`,
  HAWSER_SSH_PUBLIC_PORT: String(port),
})
const browser = sharedBrowser()
let desk: Desk
beforeAll(async () => {
  desk = openDesk({ HAWSER_SERVER: way.service.url })
  const { username, password } = sample.owner
  await keygen(way.where, 'owned', '-t', 'ed25519')
  await way.register('owned', { owner: username })
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => desk[Symbol.dispose]())

interface Window extends AsyncDisposable {
  type(line: string): Promise<void>
  /** What the window shows, line by line. */
  shown(): Promise<string>
  until(pattern: RegExp): Promise<void>
}

/** A window of a tmux server of its own, with a shell in it in which `hawser` is the command. */
async function openWindow(): Promise<Window> {
  const name = `hawser-${randomBytes(4).toString('hex')}`
  const env = {
    HOME: desk.folder,
    XDG_CONFIG_HOME: `${desk.folder}/config`,
    HAWSER_SERVER: way.service.url,
    PATH: `${desk.bin}:${process.env['PATH']}`,
  }
  const tmux = async (...words: string[]): Promise<string> => {
    const { status, stdout, stderr } = await run('tmux', ['-L', name, ...words], undefined, env)
    expect([status, stderr]).toEqual([0, ''])
    return String(stdout)
  }
  const size = ['-x', '100', '-y', '30']
  await tmux(
    '-f',
    '/dev/null',
    'new-session',
    '-d',
    ...size,
    'HISTFILE= PS1="local$ " exec bash --norc --noprofile',
  )
  const shownThere = async (): Promise<string> => tmux('capture-pane', '-p')
  const until = async (pattern: RegExp): Promise<void> =>
    eventually(async () => expect(await shownThere()).toMatch(pattern))
  await until(/local\$/)
  return {
    shown: shownThere,
    until,
    async type(line) {
      await tmux('send-keys', '-l', line)
      await tmux('send-keys', 'Enter')
    },
    async [Symbol.asyncDispose]() {
      await tmux('kill-server')
    },
  }
}

const live = async (): Promise<Session[]> =>
  (await way.owner.sessions.list({ query: { active: true, device_uid: way.agent.uid } })).body
const options = (): string => way.args({ key: 'owned' }).join(' ')
const ssh = (command = ''): string =>
  `ssh ${options()} -t ${way.sshid()}@127.0.0.1 ${command}; echo "status $?"`
const drawing = ['+--------+', '| gantry |', '+--------+']
/** The drawing and what comes after it, without the lines below. */
const partOf = (screen: string): string => {
  const lines = screen.split('\n').map((line) => line.trimEnd())
  return lines.slice(lines.lastIndexOf(drawing[0]!)).join('\n').trimEnd()
}
const inPage = async (page: Page): Promise<string> => partOf(await shown(page))

test('from ssh to the browser, to hawser, and back', async () => {
  await using plain = await openWindow()
  await plain.type(ssh())
  await plain.until(/[$#]\s*$/)
  await plain.type('unset HISTFILE; PS1="> "; stty -echo; VALUE=first; clear')
  await plain.type(`printf '%s\\n' ${drawing.map((line) => `'${line}'`).join(' ')}; echo pid $$`)
  await plain.until(/pid \d+\n>/)
  const drawn = partOf(await plain.shown())
  const [session] = await live()

  // To the browser, by the page of the device.
  await using person = await visit(browser, way.service, { viewport: { width: 1280, height: 900 } })
  const { page } = person
  await signedInTo(page, way.service)
  await page.goto(`/devices/${way.agent.uid}`)
  const own = page.getByRole('list', { name: 'Your sessions here' })
  await own.getByText(/^open since .*, from 127\.0\.0\.1$/).waitFor()
  expect(await violations(page)).toEqual([])
  await own.getByRole('link', { name: 'Continue here' }).click()
  await eventually(async () => expect(await inPage(page)).toBe(drawn))
  await plain.until(/The session continues elsewhere: in a browser at 127\.0\.0\.1\.\nstatus 0\nlocal\$/)
  await type(page, 'VALUE="$VALUE second"; echo "in the browser: $VALUE"')
  await showing(page, /in the browser: first second/)
  const changed = await inPage(page)

  // To the command line.
  await using command = await openWindow()
  await command.type(`hawser attach ${options()} ${session!.uid.slice(0, 12)}; echo "status $?"`)
  await eventually(async () => expect(partOf(await command.shown())).toBe(changed))
  await seen(page, 'The session continues elsewhere.')
  // The link that brought it was good once: a page that is loaded again leaves the session where it is.
  expect(query(page)).toBe('')
  await page.reload()
  await field(page, 'User on the device').waitFor()
  await command.type('VALUE="$VALUE third"; echo "with hawser: $VALUE"')
  await command.until(/with hawser: first second third\n>/)
  const again = partOf(await command.shown())

  // Back to the browser, by the page of the session.
  await page.goto(`/sessions/${session!.uid}`)
  await page.getByRole('link', { name: 'Continue here' }).click()
  await eventually(async () => expect(await inPage(page)).toBe(again))
  await command.until(/The session continues elsewhere: in a browser at 127\.0\.0\.1\.\nstatus 0\nlocal\$/)

  // And back to where it began. Nobody took it back by themself.
  await plain.type(`clear; ${ssh('hawser-attach')}`)
  await eventually(async () => expect(partOf(await plain.shown())).toBe(again))
  await seen(page, 'The session continues elsewhere.')
  await plain.type('echo "at last: $VALUE"; echo pid $$; exit 5')
  await plain.until(/at last: first second third\npid \d+\n[^]*status 5\nlocal\$/)
  const pid = /pid (\d+)/.exec(drawn)![1]
  expect((await plain.shown()).match(/pid (\d+)/g)!.every((one) => one === `pid ${pid}`)).toBe(true)
  await eventually(async () => expect(await live()).toEqual([]))
  expect(person.troubles).toEqual([])
})

test('a login that continues a session is named so, and others are offered nothing', async () => {
  await using first = await openWindow()
  await first.type(ssh())
  await first.until(/[$#]\s*$/)
  await using second = await openWindow()
  await second.type(ssh('hawser-attach'))
  await first.until(/status 0/)
  const session = (await live()).find(({ type: kind }) => kind === 'shell')
  await using person = await visit(browser, way.service)
  const { page } = person
  await signedInTo(page, way.service)
  await page.goto('/sessions?live=true')
  await page.getByText('continues another session').getByRole('link', { name: 'another session' }).click()
  await page.waitForURL(`**/sessions/${session!.uid}`)
  await page.getByRole('link', { name: 'Continue here' }).waitFor()
  const listed = await desk.hawser(['sessions', '--active'])
  expect(listed.stdout).toMatch(new RegExp(`RESUMES[^]*${session!.uid.slice(0, 12)}`))

  // Closing the login lets its client go and leaves the session.
  const login = (await live()).find(({ resumes }) => resumes === session!.uid)
  await way.owner.sessions.close({ params: { uid: login!.uid }, body: { device: way.agent.uid } })
  await second.until(/status 255/)
  await eventually(async () => expect((await live()).find(({ held }) => held)?.uid).toBe(session!.uid))

  await using other = await visit(browser, way.service)
  await signedInTo(other.page, way.service, sample.administrator)
  await other.page.goto(`/sessions/${session!.uid}`)
  await other.page.getByRole('button', { name: 'Close the session' }).waitFor()
  expect(await other.page.getByRole('link', { name: 'Continue here' }).count()).toBe(0)
  await other.page.goto(`/devices/${way.agent.uid}`)
  await heading(other.page, 'Details')
  expect(await other.page.getByRole('list', { name: 'Your sessions here' }).count()).toBe(0)
})
