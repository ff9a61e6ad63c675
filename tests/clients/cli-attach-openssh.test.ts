// `hawser attach` and `hawser ssh --resume`: whoever is signed in comes back to a session of theirs, also to
// one that they opened in a browser.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { freePort, keygen } from '../../ssh/test/programs.ts'
import { eventually, sharedWay } from './way.ts'
import { dial } from './web.ts'

const port = await freePort()
const way = sharedWay({
  HAWSER_URL: '',
  HAWSER_SSH: `127.0.0.1:${port}`,
  HAWSER_SSH_PUBLIC_PORT: String(port),
})

let desk: Desk
beforeAll(async () => {
  desk = openDesk({ HAWSER_SERVER: way.service.url })
  const { username, password } = sample.owner
  await keygen(way.where, 'owned', '-t', 'ed25519')
  await way.register('owned', { owner: username })
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => desk[Symbol.dispose]())

/** A shell of the owner's in a browser, which is then lost. */
async function leaveBehind(): Promise<string> {
  const { body } = await way.owner.terminals.open({
    body: { device: way.agent.uid, username: way.user.name, password: way.user.password },
  })
  using shell = await dial(way.service, body.token)
  const uid = await shell.hear('session')
  shell.type('unset HISTFILE; PS1="> "; stty -echo; VALUE=kept; echo rea""dy\r')
  await shell.until('ready\r\n')
  shell[Symbol.dispose]()
  await eventually(async () =>
    expect((await way.owner.sessions.get({ params: { uid } })).body.held).toBe(true),
  )
  return uid
}

test.each([
  ['attach', () => ['attach', ...way.args()]],
  [
    'attach with an id',
    (uid: string) => ['attach', '--scrollback', ...way.args({ key: 'owned' }), uid.slice(0, 10)],
  ],
  ['ssh --resume', () => ['ssh', '--resume', ...way.args(), `${way.user.name}@${way.agent.name}`]],
])('hawser %s brings a browser’s session into the terminal', async (_, words) => {
  const uid = await leaveBehind()
  using back = desk.terminal(words(uid))
  await back.until(/ready\r\n>/)
  back.type('echo "value $VALUE"; exit 3\n')
  await back.until(/value kept/)
  expect(await back.ended).toBe(3)
})

test('without a held session it says so', async () => {
  const { code, stderr } = await desk.hawser(['attach'])
  expect(code).not.toBe(0)
  expect(stderr).toContain('You have no held session')
})
