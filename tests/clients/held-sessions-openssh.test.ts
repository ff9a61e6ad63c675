// Sessions that outlive their client: OpenSSH on a terminal of its own is killed, stopped or cut off; the shell on
// the device goes on, and its person comes back to the same screen.
import { existsSync } from 'node:fs'
import xterm from '@xterm/headless'
import { afterEach, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { keygen, run } from '../../ssh/test/programs.ts'
import { startLink, type Link } from '../harness/link.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import { eventually, sharedWay, type How } from './way.ts'

const way = sharedWay({ HAWSER_SSH_KEEPALIVE: '1' })
const settings = async (change: { hold_sessions?: number; hold_unknown?: boolean }) =>
  way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: change } })

/** The client in front of somebody. */
const sit = (command: string[] = [], how: How = {}, options: TerminalOptions = {}): Terminal =>
  openTerminal('ssh', [...way.args(how), `${way.sshid(how)}@127.0.0.1`, ...command], options)
const ready = async (terminal: Terminal): Promise<void> => {
  terminal.type('unset HISTFILE; stty -echo; PS1="> "; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
}
const list = async (): Promise<Session[]> =>
  (await way.owner.sessions.list({ query: { active: true, device_uid: way.agent.uid } })).body
const held = async (): Promise<Session[]> => (await list()).filter((session) => session.held)
const isHeld = async (): Promise<Session> =>
  eventually(async () => {
    const [one] = await held()
    expect(one).toBeDefined()
    return one!
  })
const gone = async () => eventually(async () => expect(await list()).toEqual([]))
const close = async ({ uid, device_uid }: Session) =>
  way.owner.sessions.close({ params: { uid }, body: { device: device_uid } })
const question = /Your session of \d\d:\d\d UTC is still there: Enter\s+continues\s+it/
/** A shell with a variable, whose client is then killed. */
async function leaveBehind(value: string, how: How = {}, options: TerminalOptions = {}): Promise<Session> {
  using terminal = sit([], how, options)
  await ready(terminal)
  terminal.type(`VALUE=${value}; echo set "$VALUE"\n`)
  await terminal.until(new RegExp(`set ${value}\r\n`))
  terminal.kill('SIGKILL')
  await terminal.ended
  return await isHeld()
}

afterEach(async () => {
  for (const session of await list()) await close(session)
  await gone()
  await settings({ hold_sessions: 1_800, hold_unknown: false })
})

describe('a client that is lost', () => {
  test('by SIGKILL leaves its shell held, and Enter continues it', async () => {
    const session = await leaveBehind('first')
    expect(Date.parse(session.held_until!)).toBeGreaterThan(Date.now() + 1_700_000)
    using back = sit()
    await back.until(question)
    back.type('\r')
    // The screen that was there, and the shell that knows what it knew.
    await back.until(/ready\r\n[^]*set first\r\n>/)
    back.type('echo "still $VALUE"\n')
    await back.until(/still first\r\n/)
    expect((await held()).length).toBe(0)
    back.type('exit 7\n')
    expect(await back.ended).toBe(7)
    await eventually(async () => expect(await list()).toEqual([]))
  })

  test('leaves one recording, which lists the interruption', async () => {
    const { uid } = await leaveBehind('recorded')
    using back = sit(['hawser-attach'], { flags: ['-t'] })
    await back.until(/set recorded\r\n>/)
    back.type('echo "after"; exit\n')
    await back.until(/after\r\n/)
    expect(await back.ended).toBe(0)
    await gone()
    const { body } = await way.owner.recordings.list({ params: { uid } })
    expect(body).toHaveLength(1)
    const { interruptions, duration_ms } = body[0]!
    expect(interruptions).toMatchObject([{ why: 'client lost', via: 'ssh' }])
    const { from_ms, until_ms } = interruptions[0]!
    const inOrder = [0, from_ms, until_ms, duration_ms]
    expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b))
    // As a file it has markers in their order, which players of asciicasts show.
    const { body: cast } = await way.owner.sessions.cast({ params: { uid } })
    const markers = cast
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line) as [number, string, string])
      .filter(([, kind]) => kind === 'm')
    expect(markers.map(([, , label]) => label)).toEqual(
      expect.arrayContaining(['held', 'resumed by ssh']) as string[],
    )
    expect(markers.find(([, , label]) => label === 'held')![0]).toBe(from_ms / 1000)
  })

  test.each([80, 40])(
    'is asked in lines that fit into %s columns, also about many sessions',
    async (columns) => {
      const options = { columns }
      const asked = async (): Promise<void> => {
        using back = sit([], {}, options)
        await back.until(/n\s+begins\s+a\s+new\s+one\. /)
        const lines = back.shown().split('\r\n')
        expect(lines.filter((line) => line.length >= columns)).toEqual([])
        back.type('n')
        await ready(back)
        back.kill('SIGKILL')
        await back.ended
      }
      await leaveBehind('first')
      for (let count = 1; count < 9; count += 1) {
        await asked()
        await eventually(async () => expect(await held()).toHaveLength(count + 1))
      }
      await asked()
    },
  )

  test('n begins a new shell, and the other one stays held', async () => {
    await leaveBehind('older')
    using other = sit()
    await other.until(question)
    other.type('n')
    await ready(other)
    other.type('echo "value ${VALUE:-none}"; exit\n')
    await other.until(/value none\r\n/)
    expect(await other.ended).toBe(0)
    expect(await held()).toHaveLength(1)
  })

  test('a command without a terminal is not asked', async () => {
    await leaveBehind('older')
    expect(String((await way.ssh('echo plain')).stdout)).toBe('plain\n')
    expect(await held()).toHaveLength(1)
  })

  // Each begins with what would be an answer, if it were all.
  test.each([
    'set -u; echo "value ${VALUE:-none}"; exit\n',
    'yes | head -n 1; echo "value ${VALUE:-none}"; exit\n',
    '\necho "value ${VALUE:-none}"; exit\n',
    '1=2; echo "value ${VALUE:-none}"; exit\n',
    'nice echo "value ${VALUE:-none}"; exit\n',
    'echo "value ${VALUE:-none}"; exit\n',
  ])('a script that is piped into a terminal runs in a new shell, once: %j', async (input) => {
    await leaveBehind('older')
    const { stdout, status } = await way.ssh(undefined, { flags: ['-tt'], input })
    expect(String(stdout).match(/^value none\r$/gm)).toHaveLength(1)
    expect([status, await held()]).toEqual([0, [expect.anything()]])
  })

  test('what was typed before the question, and what a terminal reports by itself, are no answers', async () => {
    await leaveBehind('older')
    using ahead = sit()
    ahead.type('s=typed; echo "$s ahead ${VALUE:-none}"\r')
    await ahead.until(/typed ahead none\r\n/)
    ahead.type('exit\r')
    await ahead.ended
    using reporting = sit()
    await reporting.until(question)
    reporting.type('\u001b[24;80R')
    await reporting.until(/one\. \r\n[^]/)
    reporting.type('\u0015echo "report""ed ${VALUE:-none}"\r')
    await reporting.until(/reported none\r\n/)
    expect(await held()).toHaveLength(1)
  })

  test('the end of the input at the question begins a new shell, as where nothing is held', async () => {
    const { uid } = await leaveBehind('older')
    await using back = way.start(undefined, { flags: ['-tt'] })
    back.child.stdin.end()
    await back.until(question)
    await eventually(async () =>
      expect(await list()).toMatchObject([
        { type: 'shell', held: false },
        { uid, held: true },
      ]),
    )
  })

  test('by SIGSTOP, like a laptop that sleeps, does not answer, and is told nothing twice when it wakes', async () => {
    using asleep = sit()
    await ready(asleep)
    asleep.type('VALUE=awake; echo be""fore\n')
    await asleep.until(/before\r\n/)
    asleep.kill('SIGSTOP')
    await isHeld()
    using back = sit()
    await back.until(question)
    back.type('\r')
    await back.until(/before\r\n>/)
    back.type('echo "now $VALUE"\n')
    await back.until(/now awake\r\n/)
    asleep.kill('SIGCONT')
    expect(await asleep.ended).toBe(255)
    expect(asleep.shown()).not.toContain('now awake')
    back.type('exit\n')
    expect(await back.ended).toBe(0)
  })

  test('by a link that is cut leaves vim as it was, with wide characters, and nothing typed arrives twice', async () => {
    await using link = await startLink({ port: way.service.sshPort })
    using cut = onLink(link)
    await ready(cut)
    cut.type(`vim -u NONE -N -i NONE ${way.there('text')}\n`)
    await cut.until(/\[New\]/)
    cut.type('ione\r漢字と仮名\r三\u001b')
    await eventually(async () =>
      expect(await screenOf(cut)).toMatchObject({ rows: { 1: '漢字と仮名', 2: '三', 23: '' } }),
    )
    const before = await screenOf(cut)
    link.cut()
    await isHeld()
    using back = sit()
    await back.until(question)
    back.type('\r')
    await eventually(async () => expect(await screenOf(back)).toEqual(before))
    back.type('ofour\u001b:wq\r')
    await back.until(/written[^]*> $/)
    back.type(`cat ${way.there('text')}; exit\n`)
    // After vim the shell's own screen is there again.
    await back.until(/one\r\n漢字と仮名\r\n三\r\nfour\r\n/)
    expect(await back.ended).toBe(0)
  })

  test('another window gets the screen at its own size, and the program hears of it', async () => {
    await leaveBehind('sized', {}, { columns: 100, rows: 40 })
    using back = sit([], {}, { columns: 60, rows: 15 })
    await back.until(question)
    back.type('s')
    await back.until(/set sized\r\n>/)
    back.type('stty size\n')
    await back.until(/15 60\r\n/)
  })
})

describe('the time of a held session', () => {
  test('is over: its programs are hung up, its record is closed', async () => {
    await settings({ hold_sessions: 1 })
    using terminal = sit()
    await ready(terminal)
    const file = way.there('hung-up')
    terminal.type(`trap 'echo hung up > ${file}; exit' HUP; echo pid $$; while :; do sleep 0.1; done\n`)
    await terminal.until(/pid \d+\r\n/)
    terminal.kill('SIGKILL')
    await eventually(() => expect(existsSync(file)).toBe(true))
    await eventually(async () => expect(await list()).toEqual([]))
    const { body } = await way.owner.audit.list({ query: {} })
    expect(body.entries.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['session.held', 'session.closed']),
    )
  })

  test('of 0 holds nothing, and neither is anything held for a clean goodbye, a command or a transfer', async () => {
    await settings({ hold_sessions: 0 })
    using killed = sit()
    await ready(killed)
    killed.kill('SIGKILL')
    await eventually(async () => expect(await list()).toEqual([]))
    await settings({ hold_sessions: 1_800 })
    using left = sit()
    await ready(left)
    left.type('\r~.')
    await left.ended
    await eventually(async () => expect(await list()).toEqual([]))
    const command = way.start('echo begun; sleep 600')
    await command.until(/begun/)
    await command[Symbol.asyncDispose]()
    await eventually(async () => expect(await list()).toEqual([]))
  })
})

describe('only the same person comes back', () => {
  test('with another key of nobody in particular there is no question, and hawser-attach finds nothing', async () => {
    const { uid } = await leaveBehind('mine')
    await keygen(way.where, 'other', '-t', 'ed25519')
    await way.register('other')
    const attach = await way.ssh(`hawser-attach ${uid}`, { key: 'other', flags: ['-tt'] })
    expect(String(attach.stdout)).toContain('You have no such session to continue here.')
    expect(attach.status).toBe(1)
    expect(await held()).toHaveLength(1)
  })

  test('a name in a certificate is one person with one key and one authority', async () => {
    for (const name of ['first-authority', 'second-authority']) {
      await keygen(way.where, name, '-t', 'ed25519')
      await way.register(name, { certificate_authority: true })
    }
    const certify = async (key: string, authority: string): Promise<void> => {
      const words = ['-q', '-s', way.where.file(authority), '-I', 'crew', '-n', way.user.name]
      expect((await run('ssh-keygen', [...words, way.where.file(`${key}.pub`)])).status).toBe(0)
    }
    for (const key of ['petra', 'stranger']) {
      await keygen(way.where, key, '-t', 'ed25519')
      await certify(key, 'first-authority')
    }
    const { uid, person } = await leaveBehind('petra', { key: 'petra' })
    expect(person).toMatchObject({ kind: 'certificate', name: 'crew' })
    const isRefused = async (key: string): Promise<void> => {
      using other = sit([`hawser-attach ${uid}`], { key, flags: ['-t'] })
      await other.until(/You have no such session/)
    }
    await isRefused('stranger')
    await certify('petra', 'second-authority')
    await isRefused('petra')
    await certify('petra', 'first-authority')
    // Renewed by the same authority, it is the same person.
    using back = sit(['hawser-attach'], { key: 'petra', flags: ['-t'] })
    await back.until(/set petra\r\n>/)
  })

  test('nothing is held for an unknown person with a password, unless the namespace wants that', async () => {
    const how = way.saying(way.user.password)
    using killed = sit([], { key: null }, { env: how.env })
    await ready(killed)
    killed.kill('SIGKILL')
    await eventually(async () => expect(await list()).toEqual([]))
    await settings({ hold_unknown: true })
    using other = sit([], { key: null }, { env: how.env })
    await ready(other)
    other.kill('SIGKILL')
    await isHeld()
  })

  test('a key that is removed, or is for others now, takes its held sessions along', async () => {
    await keygen(way.where, 'lost', '-t', 'ed25519')
    await way.register('lost')
    await leaveBehind('lost', { key: 'lost' })
    const { body } = await way.owner.publicKeys.list({ query: {} })
    const { fingerprint } = body.find(({ name }) => name === 'lost')!
    const forUser = async (username: string) =>
      way.owner.publicKeys.update({
        params: { fingerprint },
        body: { name: 'lost', username, filter: { hostname: '.*' } },
      })
    await forUser('nobody')
    await eventually(async () => expect(await list()).toEqual([]))
    await forUser('.*')
    await leaveBehind('again', { key: 'lost' })
    await way.owner.publicKeys.remove({ params: { fingerprint } })
    await eventually(async () => expect(await list()).toEqual([]))
  })

  test('a member who is removed loses what is held, and what is lost after that is not held', async () => {
    await keygen(way.where, 'paul', '-t', 'ed25519')
    await way.register('paul', { owner: sample.operator.username })
    const mine = await leaveBehind('paul', { key: 'paul' })
    expect(mine.person).toMatchObject({ kind: 'user', name: sample.operator.username })
    await way.owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.operator.id } })
    await eventually(async () => expect(await list()).toEqual([]))
  })

  test('an administrator closes a held session', async () => {
    const session = await leaveBehind('closed')
    await close(session)
    await eventually(async () => expect(await list()).toEqual([]))
    using back = sit()
    await ready(back)
    expect(back.shown()).not.toMatch(question)
  })
})

describe('hawser-attach', () => {
  test('takes a live session from another client, which is told and let go', async () => {
    using first = sit()
    await ready(first)
    first.type('VALUE=moved; echo he""re\n')
    await first.until(/here\r\n/)
    using second = sit(['hawser-attach'], { flags: ['-t'] })
    await second.until(/here\r\n>/)
    await first.until(/The session continues elsewhere: ssh from 127\.0\.0\.1\./)
    expect(await first.ended).toBe(0)
    second.type('echo "value $VALUE"\n')
    await second.until(/value moved\r\n/)
    // And when the second is lost the session is held again.
    second.kill('SIGKILL')
    const session = await isHeld()
    expect(session.type).toBe('shell')
    using third = sit(['hawser-attach', '-s', session.uid.slice(0, 12)], { flags: ['-t'] })
    await third.until(/value moved\r\n>/)
    third.type('exit\n')
    expect(await third.ended).toBe(0)
  })

  test('ends as a lost connection does when the session that it continues is closed', async () => {
    const session = await leaveBehind('closed')
    using back = sit(['hawser-attach'], { flags: ['-t'] })
    await back.until(/set closed\r\n>/)
    await close(session)
    expect(await back.ended).toBe(255)
  })

  test('needs a terminal, and something to continue', async () => {
    const without = await way.ssh('hawser-attach')
    expect(without.status).toBe(1)
    expect(without.stderr).toContain('hawser-attach needs a terminal: use `ssh -t`.')
    const nothing = await way.ssh('hawser-attach', { flags: ['-tt'] })
    expect(String(nothing.stdout)).toContain('You have no such session to continue here.')
    expect(nothing.status).toBe(1)
  })
})

function onLink(link: Link): Terminal {
  return openTerminal('ssh', ['-p', String(link.port), ...way.args(), `${way.sshid()}@127.0.0.1`])
}

/** What somebody in front of the terminal sees. */
async function screenOf(terminal: Terminal, columns = 80, rows = 24) {
  const one = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  await new Promise<void>((resolve) => one.write(terminal.shown(), resolve))
  const { active } = one.buffer
  const lines = Array.from(
    { length: rows },
    (_, y) => active.getLine(active.baseY + y)?.translateToString(true) ?? '',
  )
  return { rows: lines, cursor: [active.cursorX, active.cursorY], type: active.type, modes: one.modes }
}
