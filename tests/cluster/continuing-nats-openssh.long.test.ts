// Sessions that are continued by way of another node than the one that has them: OpenSSH and `hawser` reach
// one node, and the shell that their person left behind is on the other.
import { describe, expect, test } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { eventually } from '../clients/way.ts'
import {
  agent,
  args,
  attach,
  desk,
  home,
  isHeld,
  leaveBehind,
  list,
  other,
  owner,
  question,
  ready,
  sit,
  target,
  told,
  user,
} from './continuing.ts'

describe('with ssh at another node', () => {
  test('the question is asked, and Enter continues the shell at the size of the window', async () => {
    const session = await leaveBehind(home, 'far')
    using back = sit(other, { columns: 90, rows: 30 })
    await back.until(question)
    back.type('\r')
    await back.until(/ready\r\n>/)
    back.type('echo "still $VALUE"; stty size\n')
    await back.until(/still far\r\n30 90\r\n/)
    back.resize(70, 20)
    await eventually(async () => {
      back.type('stty size\n')
      expect(back.shown()).toMatch(/20 70\r\n/)
    })
    const { body } = await owner.sessions.list({ query: { active: true } })
    expect(body.find(({ resumes }) => resumes === session.uid)).toMatchObject({ type: 'none' })
    expect(body.find(({ uid }) => uid === session.uid)).toMatchObject({ held: false, type: 'shell' })
    // Many frames.
    back.type('seq 1 50000; echo do""ne\n')
    await eventually(() => expect(back.shown().slice(-200)).toMatch(/49999\r\n50000\r\ndone\r\n/))
    const lines = back.shown().match(/(?<=^|\n)\d+(?=\r\n)/g)!
    expect(lines.slice(-50_000).every((line, at) => line === String(at + 1))).toBe(true)
    back.type('exit 7\n')
    expect(await back.ended).toBe(7)
    await eventually(async () => expect(await list()).toEqual([]))
    const { entries } = (await owner.audit.list({ query: { limit: '50' } as never })).body
    expect(entries.find(({ action }) => action === 'session.resumed')).toMatchObject({
      target: { id: session.uid },
      source: '127.0.0.1',
    })
  })

  test('n begins a new shell there, and the other one stays', async () => {
    await leaveBehind(home, 'far')
    using fresh = sit(other)
    await fresh.until(question)
    fresh.type('n')
    await ready(fresh, 'new')
    fresh.type('exit\n')
    expect(await fresh.ended).toBe(0)
    await isHeld()
  })

  test('hawser-attach takes a live session, there and back; each loser is told one line and let go', async () => {
    using first = sit(home)
    await ready(first, 'moved')
    using second = attach(other)
    await second.until(/ready\r\n>/)
    await first.until(told)
    expect(await first.ended).toBe(0)
    second.type('echo "value $VALUE"\n')
    await second.until(/value moved\r\n/)
    const [session] = (await list()).filter(({ type }) => type === 'shell')
    // Home again, from a client at the other node.
    using third = attach(home, session!.uid.slice(0, 12))
    await third.until(/value moved\r\n>/)
    await second.until(told)
    expect(await second.ended).toBe(0)
    expect(second.shown().match(/continues elsewhere/g)).toHaveLength(1)
    // And between two clients that both are at the other node.
    using fourth = attach(other)
    await fourth.until(/value moved\r\n>/)
    expect(await third.ended).toBe(0)
    using fifth = attach(other)
    await fifth.until(/value moved\r\n>/)
    expect(await fourth.ended).toBe(0)
    fifth.type('echo "last $VALUE"; exit 3\n')
    await fifth.until(/last moved\r\n/)
    expect(await fifth.ended).toBe(3)
  })

  test('a client that is lost there leaves the session held, and one that says goodbye ends it', async () => {
    const { uid } = await leaveBehind(home, 'twice')
    using lost = attach(other)
    await lost.until(/ready\r\n>/)
    lost.kill('SIGKILL')
    await isHeld(uid)
    using left = attach(other)
    await left.until(/ready\r\n>/)
    left.type('\r~.')
    await left.ended
    await eventually(async () => expect(await list()).toEqual([]))
  })

  test('sessions of both nodes are offered, the newest first', async () => {
    await leaveBehind(home, 'older')
    using fresh = sit(other)
    await fresh.until(question)
    fresh.type('n')
    await ready(fresh, 'newer')
    fresh.kill('SIGKILL')
    await eventually(async () => expect((await list()).filter(({ held }) => held)).toHaveLength(2))
    using back = sit(home)
    await back.until(/Your sessions are still there \(1: \d\d:\d\d UTC, 2: \d\d:\d\d UTC\)/)
    back.type('1')
    await back.until(/ready\r\n>/)
    back.type('echo "this is $VALUE"\n')
    await back.until(/this is newer\r\n/)
    using older = sit(home)
    await older.until(question)
    older.type('\r')
    await older.until(/ready\r\n>/)
    older.type('echo "this is $VALUE"\n')
    await older.until(/this is older\r\n/)
  })
})

describe('only the same person', () => {
  test('whoever has another key is not asked, and gets nothing by its id', async () => {
    const { uid } = await leaveBehind(home, 'mine', 'nobody')
    for (const key of ['stranger', 'olga']) {
      const words = [...args(other, key), '-tt', target(), `hawser-attach ${uid}`]
      const { status, stdout } = await run('ssh', words)
      expect([status, String(stdout)]).toEqual([
        1,
        expect.stringContaining('You have no such session to continue here.'),
      ])
      using fresh = sit(other, { key })
      await ready(fresh, 'own')
      expect(fresh.shown()).not.toMatch(question)
      fresh.type('exit\n')
      await fresh.ended
    }
    using back = sit(other, { key: 'nobody' })
    await back.until(question)
  })
})

describe('with hawser', () => {
  test.each([
    ['attach', () => ['attach', ...args(other)]],
    ['attach with an id', (uid: string) => ['attach', '--scrollback', ...args(other), uid.slice(0, 10)]],
    ['ssh --resume', () => ['ssh', '--resume', ...args(other), `${user}@${agent.name}`]],
  ])('%s finds a session of the other node', async (_, words) => {
    const { uid } = await leaveBehind(home, 'kept')
    using back = desk.terminal(words(uid))
    await back.until(/ready\r\n>/)
    back.type('echo "value $VALUE"; exit 3\n')
    await back.until(/value kept/)
    expect(await back.ended).toBe(3)
  })
})
