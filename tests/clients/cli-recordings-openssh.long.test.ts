// Recordings and live sessions in the terminal of whoever looks at them, with sessions of the real OpenSSH
// client: what they show, the keys, who may, and that nothing of a hostile session reaches that terminal.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { openTerminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
let desk: Desk
let low: Desk
beforeAll(async () => {
  const sit = async ({ username, password }: { username: string; password: string }) => {
    const desk = openDesk({ HAWSER_SERVER: way.service.url })
    await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
    return desk
  }
  desk = await sit(sample.owner)
  low = await sit(sample.operator)
})
afterAll(() => {
  desk[Symbol.dispose]()
  low[Symbol.dispose]()
})

const record = async (command: string): Promise<string> => {
  await way.ssh(command, { flags: ['-tt'] })
  const { uid } = await way.newest()
  await eventually(async () =>
    expect((await way.owner.sessions.get({ params: { uid } })).body.active).toBe(false),
  )
  return uid
}
const hostile = `printf 'bef\\033]0;pwned\\007ore \\033[31mred\\033[0m \\033]52;c;cm0gLXJm\\007\\033[6n\\033]8;;http://evil.example\\033\\\\lin\\033]8;;\\033\\\\k \\033[c\\033P+q544e\\033\\\\after\\n'`
const nothingHostile = (shown: string) => {
  expect(shown).not.toMatch(/pwned|cm0gLXJm|evil\.example|544e/)
  // oxlint-disable-next-line no-control-regex
  expect(shown).not.toMatch(/\u001b\]|\u001bP|\u001b\[6n|\u001b\[c/)
}

describe('hawser play', () => {
  test('shows a recording, and of a hostile one only what is drawn', async () => {
    const uid = await record(`${hostile}; echo done`)
    using terminal = desk.terminal(['play', uid.slice(0, 12)])
    expect(await terminal.ended).toBe(0)
    const shown = terminal.shown().replaceAll(/\r+/g, '\r')
    expect(shown).toContain('before \u001b[31mred\u001b[0m link after\r\n')
    expect(shown).toMatch(/done[^]*The recording is over/)
    nothingHostile(shown)
    const piped = await desk.hawser(['play', uid])
    expect([piped.code, piped.stdout.split('\r\n').slice(-3)]).toEqual([
      0,
      ['before \u001b[31mred\u001b[0m link after', 'done', ''],
    ])
  })

  test('is downloaded whole, as a file or as frames, and shown on a terminal only filtered', async () => {
    const uid = await record(`${hostile}; printf 'c1\\302\\2330;31mx\\n'`)
    const cast = await desk.hawser(['sessions', 'cast', uid])
    expect([cast.code, cast.stdout]).toEqual([0, (await way.owner.sessions.cast({ params: { uid } })).body])
    const frames = await desk.hawser(['sessions', 'play', uid, '-o', 'json'])
    expect(JSON.parse(frames.stdout)).toEqual((await way.owner.sessions.play({ params: { uid } })).body)
    using terminal = desk.terminal(['sessions', 'cast', uid])
    expect(await terminal.ended).toBe(0)
    expect(cast.stdout).toContain('\u009b')
    expect(terminal.shown()).not.toContain('\u009b')
    const refused = await low.hawser(['sessions', 'cast', uid])
    expect([refused.code, refused.stdout]).toEqual([4, ''])
  })

  test('goes ahead at a key, pauses, changes its speed and ends at a key', async () => {
    const uid = await record('echo one; sleep 2; echo two; sleep 2; echo three')
    const slowly = ['play', uid, '--speed', '0.01', '--idle', '1000']
    using terminal = desk.terminal(slowly)
    await terminal.until(/one/)
    // At this speed it would take minutes.
    terminal.type(' +-\u001b[C')
    await terminal.until(/two[^]*three/)
    expect(await terminal.ended).toBe(0)
    using left = desk.terminal(slowly)
    await left.until(/one/)
    left.type('q')
    expect(await left.ended).toBe(0)
    expect(left.shown()).not.toMatch(/two|over/)
    using skipped = desk.terminal([...slowly, '--skip', '60'])
    expect(await skipped.ended).toBe(0)
    expect(skipped.shown()).toMatch(/one[^]*two[^]*three/)
  })

  test(
    'skips what came while the session had no client, unless it is asked for',
    { timeout: 240_000 },
    async () => {
      using terminal = openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`])
      terminal.type('unset HISTFILE; stty -echo; echo one; (sleep 1; echo un""seen) &\n')
      await terminal.until(/one\r\n/)
      const { uid } = await way.newest()
      terminal.kill('SIGKILL')
      await terminal.ended
      const shownAlone = async () =>
        expect((await way.owner.sessions.cast({ params: { uid } })).body).toMatch(/"held"[^]*unseen/)
      await eventually(shownAlone)
      using back = openTerminal('ssh', [...way.args(), '-t', `${way.sshid()}@127.0.0.1`, 'hawser-attach'])
      await back.until(/unseen/)
      back.type('exit\n')
      await back.ended
      const slowly = ['play', uid, '--speed', '0.01', '--idle', '1000']
      using skipping = desk.terminal(slowly)
      // At this speed a second takes more than a minute and a half; the first prompt may take half of that.
      await eventually(() => expect(skipping.shown()).toMatch(/unseen/), 80_000)
      skipping.type('q')
      expect(await skipping.ended).toBe(0)
      using all = desk.terminal([...slowly, '--interruptions'])
      await eventually(() => expect(all.shown()).toMatch(/one\r+\n/), 80_000)
      all.type('q')
      expect(await all.ended).toBe(0)
      expect(all.shown()).not.toContain('unseen')
      // Whoever goes to a moment in it sees it from there on.
      using within = desk.terminal([...slowly, '--skip', '1000'])
      await within.until(/unseen[^]*The recording is over/)
      expect(await within.ended).toBe(0)
    },
  )

  test('says why there is nothing to play', async () => {
    await way.ssh('echo no terminal')
    const { uid } = await way.newest()
    expect(await desk.hawser(['play', uid])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/has no recording/) as string,
    })
    expect(await low.hawser(['play', uid])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/Your role/) as string,
    })
    expect(await desk.hawser(['play', uid, '--speed', 'fast'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--speed is a number/) as string,
    })
    expect(await desk.hawser(['play', 'x'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/A session is named by/) as string,
    })
  })
})

describe('hawser watch', () => {
  test('says that there is nothing to watch without a terminal', async () => {
    await using quiet = way.start('echo quiet; cat')
    await quiet.until(/quiet/)
    const { uid } = await way.newest()
    expect(await desk.hawser(['watch', uid])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/nothing to watch/) as string,
    })
  })

  test('shows the screen as it is and what comes, until the session is over', async () => {
    using session = openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`])
    session.type('unset HISTFILE; echo ear"lier"\n')
    await session.until(/earlier/)
    using terminal = desk.terminal(['watch', 'last'])
    await terminal.until(/Watching [^]*earlier/)
    using refused = low.terminal(['watch', 'last'])
    expect(await refused.ended).toBe(4)
    expect(refused.shown()).toMatch(/Your role in this namespace does not allow this[^]*An administrator/)
    session.type(`${hostile}; echo la"ter"\n`)
    await terminal.until(/\nlater/)
    expect(terminal.shown()).toContain('red\u001b[0m link after')
    using left = desk.terminal(['watch', 'last'])
    await left.until(/later/)
    left.type('q')
    expect(await left.ended).toBe(0)
    session.type('exit\n')
    await session.ended
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toMatch(/The session is over\./)
    nothingHostile(terminal.shown().slice(terminal.shown().lastIndexOf('bef')))
    const { uid } = await way.newest()
    await eventually(async () =>
      expect((await way.owner.sessions.get({ params: { uid } })).body.active).toBe(false),
    )
    expect(await desk.hawser(['watch', uid])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has ended. Run `hawser play/) as string,
    })
  })
})
