// A shell that began with ssh is continued in a real browser by *Continue here*; then the server stops and starts
// again, twice. The page comes back to the same shell by itself, while its person does nothing.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Closing } from '@hawser/contract/terminals'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { showing, shown, type } from './browser-terminal.ts'
import { seen } from './console.ts'
import { begin, openRestarts, restored, type Restarts } from './restarts.ts'
import { dial } from './web.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

const browser = sharedBrowser()
let restarts: Restarts
beforeAll(async () => {
  restarts = await openRestarts()
  await restarts.register('owned', { owner: 'olga' })
})
afterAll(() => restarts[Symbol.asyncDispose]())

test.each([
  ['SIGTERM', 'SIGTERM'],
  ['SIGTERM', 'SIGKILL'],
] as const)('the page comes back to the same shell after %s, and again after %s', async (...signals) => {
  using terminal = restarts.sit([], { key: 'owned' })
  const pid = await begin(terminal)
  const session = (await restarts.list()).find(({ person }) => person.name === 'olga')
  await restarts.isKept(session!.uid)

  await using person = await visit(browser, restarts.program(), { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await page.goto('/login')
  await page.evaluate(`sessionStorage.setItem('hawser.token', '${restarts.owner.token}')`)
  await page.goto(`/devices/${restarts.agent.uid}`)
  await page
    .getByRole('list', { name: 'Your sessions here' })
    .getByRole('link', { name: 'Continue here' })
    .click()
  await showing(page, new RegExp(`shell ${pid}`))
  await type(page, 'VALUE=kept; echo "it is $VALUE"')
  await showing(page, /it is kept/)
  expect(await terminal.ended).toBe(0)

  for (const [turn, signal] of signals.entries()) {
    await restarts.stop(signal)
    await seen(page, 'Continuing the session …')
    // What is told stands below the screen that was there.
    if (signal === 'SIGTERM')
      expect(await shown(page)).toMatch(/it is kept\s+>[^]*\nThe server is stopping\./)
    await restarts.start()
    await restored(restarts)
    await page.getByText('Continuing the session …').waitFor({ state: 'detached' })
    // The focus is where it was: nobody has clicked.
    await page.keyboard.type(`echo "turn ${turn} of $$: $VALUE"\n`)
    await showing(page, new RegExp(`turn ${turn} of ${pid}: kept`))
    expect((await shown(page)).match(/it is kept/g)).toHaveLength(1)
  }
  expect((await restarts.list()).map(({ uid }) => uid)).toEqual([session!.uid])
  await page.keyboard.type('exit\n')
  await seen(page, 'The session has ended.')
  await eventually(async () => expect(await restarts.list()).toEqual([]))
})

test('a page that comes back to a server that stops is told to try again, and not that it is over', async () => {
  await using draining = await openRestarts({ HAWSER_DRAIN: '30' })
  await draining.register('owned', { owner: 'olga' })
  using terminal = draining.sit([], { key: 'owned' })
  await begin(terminal)
  const [session] = await draining.list()
  const { token } = (await draining.api().terminals.attach({ body: { session: session!.uid } })).body
  draining.program().child.kill('SIGTERM')
  await draining.program().logged('server.stopping')
  using page = await dial(draining.program(), token)
  expect(await page.closed).toBe(Closing.leaving)
  expect(page.news).toEqual([])
  terminal.type('exit\n')
  expect(await terminal.ended).toBe(0)
})
