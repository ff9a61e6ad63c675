// Search over sessions of the real OpenSSH client with the real agent: what a person saw and typed is found
// soon after the session, by the interface and by the command line, and what was not shown is not.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { openTerminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
let desk: Desk
beforeAll(async () => {
  desk = openDesk({ HAWSER_SERVER: way.service.url })
  const { username, password } = sample.owner
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => desk[Symbol.dispose]())

const find = async (query: { text: string; commands?: boolean }) =>
  (await way.owner.recordings.find({ query })).body.hits

test('a session in a shell is found by its commands and by what it showed, without codes', async () => {
  using terminal = openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], { columns: 60, rows: 20 })
  terminal.type('unset HISTFILE; PS1="deck> "; echo rea"dy"\n')
  await terminal.until(/ready\r\n(.*)deck> /s)
  // A prompt is known by the pause behind it.
  await new Promise((resolve) => setTimeout(resolve, 200))
  terminal.type(`printf '\\033[31mred %s\\033[0m %s\\n' pel'ican' "$(seq -s ' ' 101 130)"\n`)
  await terminal.until(/130\r\n/)
  await new Promise((resolve) => setTimeout(resolve, 200))
  terminal.type(
    `printf '\\033[?1049h\\033[2J\\033[5;7Hin the %s' cormo'rant'; sleep 0.6; printf '\\033[?1049l'\n`,
  )
  await terminal.until(/1049l/)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  terminal.type('read -rsp "the wo""rd: " word; echo than"ks"\n')
  await terminal.until(/the word: /)
  terminal.type('open-sesame\n')
  await terminal.until(/thanks/)
  terminal.type('exit\n')
  await terminal.ended
  const { uid } = await way.newest()

  const [line] = await eventually(async () => {
    const hits = await find({ text: '"red pelican" 101 130' })
    expect(hits).toHaveLength(1)
    return hits
  })
  expect(line).toMatchObject({
    session_uid: uid,
    device_name: way.agent.name,
    username: way.user.name,
    text: `red pelican ${Array.from({ length: 30 }, (_, index) => 101 + index).join(' ')}`,
    command: null,
  })
  const [typed] = await find({ text: 'printf 101 130', commands: true })
  expect(typed?.command).toMatchObject({ source: 'prompt' })
  expect(typed?.command?.text).toMatch(/^printf .*seq -s ' ' 101 130\)"$/)
  // On the other screen, which is gone.
  expect((await find({ text: '"in the cormorant"' })).map(({ text }) => text.trim())).toEqual([
    'in the cormorant',
  ])
  expect(await find({ text: 'sesame' })).toEqual([])

  const { code, stdout } = await desk.hawser(['search', '"red pelican"', '--from', '2h'])
  expect(code).toBe(0)
  expect(stdout).toContain(`${way.user.name} on ${way.agent.name}\n`)
  expect(stdout).toContain('  > red pelican 101')
  expect(stdout).toMatch(new RegExp(`  hawser play ${uid.slice(0, 12)} --skip \\d+\n`))
  const asJson = await desk.hawser(['search', 'pelican', '--commands', '-o', 'json'])
  expect(JSON.parse(asJson.stdout)).toEqual([])
  expect((await desk.hawser(['search', 'nothing-like-that'])).stderr).toContain('Nothing was found.')
})

test('a command that a client asks for is found, and a hostile session writes nothing to the terminal', async () => {
  await way.ssh(`printf 'alba\\033]0;pwned\\007tross \\033[6n\\n'`, { flags: ['-tt'] })
  await eventually(async () => expect(await find({ text: 'albatross' })).toHaveLength(1))
  const [command] = await find({ text: 'printf alba', commands: true })
  expect(command?.command?.source).toBe('exec')
  const { stdout } = await desk.hawser(['search', 'albatross', '--no-context'])
  expect(stdout).toContain('  > albatross')
  // oxlint-disable-next-line no-control-regex
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f]|pwned/)
})
