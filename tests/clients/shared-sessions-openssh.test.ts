// Two people in one session: OpenSSH on a terminal of its own, and somebody else who watches and
// types by WebSocket.
import xterm from '@xterm/headless'
import { afterEach, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { openDesk } from '../../cli/test/program.ts'
import { openGuest, type Guest } from './shared.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
const settings = async (change: { join_without_consent?: boolean; session_record?: boolean }) =>
  way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: change } })

type Member = 'owner' | 'administrator' | 'operator' | 'observer'
const headers = async (who: Member) => ({ authorization: `Bearer ${await way.world.token(who)}` })

/** A shell of somebody, and its session. */
async function begin(options: TerminalOptions = {}): Promise<{ terminal: Terminal; uid: string }> {
  const terminal = openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], options)
  terminal.type('unset HISTFILE; stty -echo; PS1="> "; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
  const { uid } = await way.newest()
  await eventually(() => expect(way.service.rooms.recordings.live(sample.tenant, uid)).toHaveLength(1))
  return { terminal, uid }
}
const guest = async (uid: string, who: Member, query = '?join'): Promise<Guest> =>
  openGuest(way.service.url, uid, { headers: await headers(who), query })
const session = async (uid: string): Promise<Session> =>
  (await way.owner.sessions.get({ params: { uid } })).body
/** What the audit log says of a session, oldest first: action and who. */
const audited = async (uid: string): Promise<string[]> => {
  const { body } = await way.owner.audit.list({ query: { target: uid, limit: 100 } })
  return body.entries
    .toReversed()
    .map(({ action, actor }) => `${action} ${actor.name}`)
    .filter((text) => /consent|joined|left|control/.test(text))
}

/** What a terminal of 80 by 24 shows now. */
async function rowsOf(terminal: Terminal): Promise<string[]> {
  const emulator = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true })
  await new Promise<void>((resolve) => emulator.write(terminal.shown(), resolve))
  const { active } = emulator.buffer
  return Array.from(
    { length: 24 },
    (_, row) =>
      active
        .getLine(active.viewportY + row)
        ?.translateToString(true)
        .trimEnd() ?? '',
  )
}

const closeAll = async (): Promise<void> => {
  const list = async () =>
    (await way.owner.sessions.list({ query: { active: true, device_uid: way.agent.uid } })).body
  for (const { uid, device_uid } of await list())
    await way.owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  await eventually(async () => expect(await list()).toEqual([]))
}
afterEach(async () => {
  await closeAll()
  await settings({ join_without_consent: false, session_record: true })
})

describe('somebody who asks to type', () => {
  test('is allowed to by a key of the person, types, and everybody sees who is there', async () => {
    const { terminal, uid } = await begin()
    using _ = terminal
    using other = await guest(uid, 'operator')
    await terminal.until(/\[oskar asks to type here: Ctrl-\] then y allows it/)
    expect(other.shown()).toBe('')
    await eventually(async () =>
      expect((await session(uid)).participants).toEqual([{ id: 1, name: 'oskar', state: 'asking' }]),
    )
    terminal.type('\u001dy')
    await terminal.until(/\[oskar can now type here/)
    await other.until(/ready/)
    const presence = await other.present({ you: 1, driver: null })
    expect(presence.people).toEqual([
      { id: 0, name: expect.any(String) as string, state: 'typing' },
      { id: 1, name: 'oskar', state: 'typing' },
    ])
    other.type('echo gue""st $((40 + 2))\r')
    await terminal.until(/guest 42\r\n/)
    await other.until(/guest 42\r\n/)
    terminal.type('echo per""son\n')
    await other.until(/person\r\n/)
    other.say({ kind: 'watch' })
    expect(await other.ended).toBe('You watch only.')
    await terminal.until(/\[oskar only watches now\]/)
    await eventually(async () => expect((await session(uid)).participants).toBeUndefined())
    terminal.type('exit\n')
    expect(await terminal.ended).toBe(0)
  })

  test('is refused by a key, and not heard again for a while', async () => {
    const { terminal, uid } = await begin()
    using _ = terminal
    using other = await guest(uid, 'operator')
    await terminal.until(/asks to type here/)
    other.type('echo in""trusion\r')
    terminal.type('\u001d')
    terminal.type('n')
    expect(await other.ended).toMatch(/ refused\.$/)
    expect(other.shown()).toBe('')
    using again = await guest(uid, 'operator')
    expect(await again.ended).toMatch(/refused, a moment ago/)
    terminal.type('echo af""ter\n')
    await terminal.until(/after\r\n/)
    expect(terminal.shown()).not.toContain('intrusion')
  })
})

describe('who types', () => {
  /** A session in which adam and oskar type, too. */
  async function three() {
    const { terminal, uid } = await begin({ columns: 100, rows: 30 })
    const oskar = await guest(uid, 'operator')
    await terminal.until(/oskar asks/)
    terminal.type('\u001dy')
    const adam = await guest(uid, 'administrator')
    await adam.until(/ready/)
    adam.say({ kind: 'ask' })
    await terminal.until(/adam asks/)
    terminal.type('\u001dy')
    await terminal.until(/adam can now type here/)
    return {
      terminal,
      uid,
      oskar,
      adam,
      [Symbol.dispose]: () => [oskar, adam, terminal].forEach((one) => one[Symbol.dispose]()),
    }
  }

  test('is handed over, taken and shared; the person takes over by typing; all of it is audited', async () => {
    using all = await three()
    const { terminal, uid, oskar, adam } = all
    adam.say({ kind: 'take' })
    await oskar.present({ driver: 2 })
    await terminal.until(/\[only adam types now\]/)
    oskar.type('echo fro""m oskar\r')
    adam.say({ kind: 'hand', to: 1 })
    await oskar.present({ driver: 1 })
    adam.type('echo fro""m adam\r')
    oskar.type('echo la""ter oskar\r')
    await terminal.until(/later oskar\r\n/)
    expect(terminal.shown()).not.toMatch(/from (oskar|adam)/)
    // What a terminal answers by itself is not typed by anybody.
    terminal.type('\u001b[24;80R')
    terminal.type('\u001b[I')
    terminal.type('\u0015echo per""son\n')
    await terminal.until(/person\r\n/)
    await oskar.present({ driver: 0 })
    adam.say({ kind: 'share' })
    await oskar.present({ driver: null })
    adam.type('echo all""owed\r')
    await terminal.until(/allowed\r\n/)
    oskar.say({ kind: 'hand', to: 2 })
    await adam.present({ driver: 2 })
    // While nobody asks, the key goes to the program.
    terminal.type('cat\n')
    await adam.present({ driver: 0 })
    terminal.type('\u001d')
    terminal.type('r\n\u0004')
    // eslint-disable-next-line no-control-regex
    await terminal.until(/\u001dr\r?\n/)
    for (let press = 0; press < 3; press += 1) terminal.type('\u001d')
    await terminal.until(/sends everybody back to watching/)
    terminal.type('\u001dy')
    expect(await oskar.ended).toMatch(/sent everybody back to watching/)
    await adam.present({ people: [{ id: 0 }, { id: 2, state: 'watching' }], driver: 0 })
    // The shell takes the key after Ctrl-] for what to search for.
    terminal.type('x\u0015exit\n')
    await terminal.ended
    await eventually(async () =>
      expect(await audited(uid)).toEqual([
        'session.consent.given ',
        'session.joined oskar',
        'session.consent.given ',
        'session.joined adam',
        'session.control.taken adam',
        'session.control.handed adam',
        'session.control.taken ',
        'session.control.shared adam',
        'session.control.handed oskar',
        'session.control.taken ',
        'session.left oskar',
        'session.left adam',
      ]),
    )
  })

  test('is in the recording, without what was typed', async () => {
    using all = await three()
    const { terminal, uid, oskar, adam } = all
    oskar.type('read -rs PIN; echo g""ot\r')
    adam.type('4711\n')
    await terminal.until(/got\r\n/)
    terminal.type('echo do""ne; exit\n')
    await terminal.ended
    await eventually(async () => expect((await session(uid)).active).toBe(false))
    const params = { uid, channel: '0' }
    const { body } = await eventually(async () => way.owner.recordings.window({ params, query: { at: 0 } }))
    expect(body.typist).toBe('')
    const typists = body.events.flatMap(({ typist }) => typist ?? [])
    expect(typists).toEqual(['oskar', 'adam', way.user.name])
    const late = body.events.findLast(({ typist }) => typist === way.user.name)!
    const end = (await way.owner.recordings.window({ params, query: { at: late.time_ms + 60_000 } })).body
    expect(end.typist).toBe(way.user.name)
    const cast = (await way.owner.sessions.cast({ params: { uid }, query: {} })).body
    expect(cast).toContain('"m","oskar types"')
    const shown = body.events.map(({ bytes = '' }) => Buffer.from(bytes, 'base64').toString()).join('')
    expect(shown).toContain('got\r\n')
    expect(shown + cast).not.toContain('4711')
    // What was shown while somebody typed is found by their name.
    const query = { text: 'got', person: sample.operator.username }
    await eventually(async () => expect((await way.owner.recordings.find({ query })).body.waiting).toBe(0))
    expect(
      (await way.owner.recordings.find({ query: { ...query, person: 'adam' } })).body.hits,
    ).toMatchObject([{ session_uid: uid, text: expect.stringContaining('got') as string, typist: 'adam' }])
    using desk = openDesk({ HAWSER_SERVER: way.service.url })
    const { username, password } = sample.owner
    await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
    const { stdout } = await desk.hawser(['search', 'got', '--person', 'adam'])
    expect(stdout).toMatch(/^.* on gantry, adam typed\n[^]*> got\n/)
  })

  test('decides the size: the smallest window, or that of the driver', async () => {
    using all = await three()
    const { terminal, oskar, adam } = all
    const sizes = () => [...terminal.shown().matchAll(/size (\d+ \d+)\r\n/g)].map(([, text]) => text)
    // Asked again, because the device may get the size a moment after the question.
    const size = async (expected: string): Promise<void> =>
      eventually(async () => {
        const { length } = sizes()
        terminal.type('echo "size $(stty size)"\n')
        await eventually(() => expect(sizes().length).toBeGreaterThan(length))
        expect(sizes().at(-1)).toBe(expected)
      })
    await size('30 100')
    oskar.say({ kind: 'resize', width: 90, height: 40 })
    adam.say({ kind: 'resize', width: 120, height: 25 })
    await eventually(() => expect(oskar.said).toContainEqual({ kind: 'resize', width: 90, height: 25 }))
    await size('25 90')
    // Nobody can make it useless.
    oskar.say({ kind: 'resize', width: 1, height: 1 })
    await eventually(() => expect(adam.said).toContainEqual({ kind: 'resize', width: 20, height: 5 }))
    adam.say({ kind: 'size', follow: 'driver' })
    await adam.present({ size: 'driver' })
    await size('30 100')
    adam.say({ kind: 'take' })
    await eventually(() => expect(adam.said).toContainEqual({ kind: 'resize', width: 120, height: 25 }))
    terminal.resize(110, 33)
    terminal.type('\n')
    await oskar.present({ driver: 0 })
    await eventually(() => expect(adam.said).toContainEqual({ kind: 'resize', width: 110, height: 33 }))
    await size('33 110')
    adam.say({ kind: 'watch' })
    oskar[Symbol.dispose]()
    await terminal.until(/oskar has left/)
    await size('33 110')
  })
})

test('lines of ours do not stay in a full-screen program', async () => {
  const { terminal, uid } = await begin()
  using _ = terminal
  terminal.type(`vim -u NONE -N -i NONE ${way.there('shared')}\n`)
  await terminal.until(/\[New\]/)
  terminal.type('ifirst line\u001b')
  await terminal.until(/first line/)
  using oskar = await guest(uid, 'operator')
  await terminal.until(/oskar asks/)
  terminal.type('\u001dy')
  await oskar.until(/first line/)
  oskar.type('osecond line\u001b')
  await eventually(async () => {
    const rows = await rowsOf(terminal)
    expect(rows.slice(0, 3)).toEqual(['first line', 'second line', '~'])
    expect(rows.join()).not.toContain('oskar')
  })
  terminal.type(':q!\n')
})

describe('without consent', () => {
  test('administrators type where the namespace says so; operators ask there, too', async () => {
    await settings({ join_without_consent: true })
    const { terminal, uid } = await begin()
    using _ = terminal
    using adam = await guest(uid, 'administrator', '')
    await adam.until(/ready/)
    adam.type('echo be""fore\r')
    adam.say({ kind: 'ask' })
    await terminal.until(/adam can now type here/)
    adam.type('echo un""asked\r')
    await terminal.until(/unasked\r\n/)
    expect(terminal.shown()).not.toMatch(/before\r\n/)
    using oskar = await guest(uid, 'operator')
    await terminal.until(/oskar asks/)
    await settings({ join_without_consent: false })
    adam.say({ kind: 'watch' })
    await terminal.until(/adam only watches/)
    adam.say({ kind: 'ask' })
    terminal.type('\u001dn')
    expect(await oskar.ended).toMatch(/refused/)
    await terminal.until(/adam asks/)
  })

  test('a session whose person is away takes nothing, and asks nobody', async () => {
    const { terminal, uid } = await begin()
    using oskar = await guest(uid, 'operator')
    await terminal.until(/oskar asks/)
    terminal.type('\u001dy')
    await oskar.until(/ready/)
    terminal.kill('SIGKILL')
    await eventually(async () => expect((await session(uid)).held).toBe(true))
    oskar.type('echo a""way\r')
    await eventually(() => expect(oskar.said.at(-1)).toMatchObject({ kind: 'note' }))
    using adam = await guest(uid, 'administrator', '')
    await adam.until(/ready/)
    adam.say({ kind: 'ask' })
    await eventually(() =>
      expect(adam.said).toContainEqual({
        kind: 'note',
        message: 'Nobody is at the session now who could allow it.',
      }),
    )
    expect(adam.shown()).not.toMatch(/away\r\n/)
    const { device_uid } = await session(uid)
    await way.owner.sessions.close({ params: { uid }, body: { device: device_uid } })
    expect(await oskar.ended).toMatch(/over/)
  })
})

describe('hawser join', () => {
  test('asks, types, says who is there, hands over and leaves', async () => {
    const { username, password } = sample.operator
    using desk = openDesk({ HAWSER_SERVER: way.service.url })
    await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
    const { terminal, uid } = await begin()
    using _ = terminal
    const { code, stderr } = await desk.hawser(['join', uid])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/needs a terminal/)])
    using cli = desk.terminal(['join', uid.slice(0, 12)])
    await terminal.until(/oskar asks to type here/)
    terminal.type('\u001dy')
    await cli.until(/ready/)
    cli.type('echo by""cli $((1+1))\r')
    await terminal.until(/bycli 2\r\n/)
    await cli.until(/bycli 2\r+\n/)
    cli.type('\u001dp')
    await cli.until(/\[0: \S+ types, 1: oskar \(you\) types\]/)
    cli.type('\u001dt')
    await terminal.until(/\[only oskar types now\]/)
    cli.type('\u001dp')
    await cli.until(/\[0: \S+ may type, 1: oskar \(you\) alone types\]/)
    cli.type('\u001d0')
    await terminal.until(new RegExp(`\\[only ${way.user.name} types now\\]`))
    cli.type('\u001dp')
    await cli.until(/\[0: \S+ alone types, 1: oskar \(you\) may type\]/)
    cli.type('echo drop""ped\r')
    cli.type('\u001dq')
    expect(await cli.ended).toBe(0)
    await terminal.until(/oskar has left/)
    terminal.type('echo la""st\n')
    await terminal.until(/last\r\n/)
    expect(terminal.shown()).not.toContain('dropped')
  })

  test('takes the link of an invitation, which `hawser sessions invite` makes', async () => {
    const { username, password } = sample.operator
    using desk = openDesk({ HAWSER_SERVER: way.service.url })
    using adam = openDesk({ HAWSER_SERVER: way.service.url })
    await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
    await adam.hawser(['login', '-u', 'adam', '--password-stdin'], { input: sample.administrator.password })
    const { terminal, uid } = await begin()
    using _ = terminal
    for (const words of [
      ['--for', '0m'],
      ['--for', '25h'],
      ['--for', 'soon'],
    ])
      expect((await adam.hawser(['sessions', 'invite', uid, ...words])).code).toBe(2)
    const made = await adam.hawser(['sessions', 'invite', uid, '--join', '--for', '30m', '--to', 'oskar'])
    expect(made.stderr).toMatch(/^For oskar, to watch and ask to type, until /)
    expect(made.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/join#hwi_[a-z2-7]{32}\n$/)
    using cli = desk.terminal(['join', made.stdout.trim()])
    await terminal.until(/\[oskar, invited by adam, watches\]/)
    await cli.until(/ready/)
    cli.type('\u001da')
    await terminal.until(/oskar, invited by adam, asks to type here/)
    terminal.type('\u001dy')
    await terminal.until(/oskar, invited by adam, can now type here/)
    cli.type('echo by""link\r')
    await terminal.until(/bylink\r\n/)
    const listed = await adam.hawser(['sessions', 'invitations', uid, '-o', 'json'])
    const [{ id, used_by }] = JSON.parse(listed.stdout) as [{ id: string; used_by: string }]
    expect(used_by).toBe('oskar')
    await adam.hawser(['sessions', 'uninvite', uid, id])
    expect(await cli.ended).toBe(0)
    expect(cli.shown()).toContain('You may no longer watch this session.')
  })
})
