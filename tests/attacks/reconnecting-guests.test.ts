// A guest of a session connects and leaves every few seconds. Each time wrote two lines into the terminal of
// its person and two entries into the audit log, for as long as the guest liked; so did asking to type and
// taking it back, and taking the keyboard again and again. The first visits are told. Then a visit lasts
// until they stay away.
import { afterEach, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Visitor } from '../../server/src/domain/sessions/sharing.ts'
import { TerminalSeats, type SharingParts } from '../../server/src/gateway/terminal/shared-terminal.ts'
import { openGuest } from '../clients/shared.ts'
import { apiOf, sharedQuarters, terminal } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters()
afterEach(() => void vi.useRealTimers())

test('forty visits of a guest are a handful of entries and lines', async () => {
  const [shell, uid] = await terminal(quarters())
  using _ = shell
  shell.type('PS1="> "; stty -echo; echo rea$((1+1))dy\r')
  await shell.until('rea2dy')
  const { rooms, url, clock } = quarters().service
  await eventually(() => expect(rooms.recordings.live(sample.tenant, uid)).toHaveLength(1))
  const owner = await apiOf(quarters(), 'owner')
  await owner.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { invite_outsiders: true } },
  })
  const [vera, stan] = [await apiOf(quarters()), await apiOf(quarters(), 'stranger')]
  const { token } = (await vera.sessions.invite({ params: { uid }, body: { mode: 'watch' } })).body
  for (let visit = 0; visit < 40; visit += 1) {
    const { token: ticket } = (await stan.sessions.acceptInvitation({ body: { token } })).body
    const guest = await openGuest(url, uid, { query: `?ticket=${ticket}` })
    await guest.until(/rea2dy/)
    guest[Symbol.dispose]()
    // The server has seen them leave.
    await eventually(async () => {
      const { body } = await owner.sessions.get({ params: { uid } })
      expect(body.participants ?? []).toEqual([])
    })
    if (visit % 10 === 9) clock.forward(31_000)
  }
  const { body } = await owner.audit.list({ query: { target: uid, limit: 100 } })
  const watched = body.entries.filter(({ action }) => action.includes('watched'))
  expect(watched.length).toBeGreaterThanOrEqual(11)
  expect(watched.length).toBeLessThan(15)
  expect(shell.text().split('watches]').length - 1).toBeLessThan(5)
})

/** A terminal whose lines and entries are counted. */
function counted(needsNoConsent: boolean) {
  vi.useFakeTimers()
  const [lines, notes]: [string[], unknown[]] = [[], []]
  let driver: number | null = null
  const parts = {
    terminal: {
      closed: new Promise(() => undefined),
      client: {},
      isOver: false,
      drawAnew: () => undefined,
      refit: () => undefined,
      say: (text: string) => void lines.push(text),
    },
    person: 'olga',
    place: () => ({ [Symbol.dispose]: () => undefined }),
    mayReach: async () => true,
    changed(presence: { driver: number | null }, more: readonly unknown[]) {
      driver = presence.driver
      notes.push(...more)
    },
  } as unknown as SharingParts
  const shared = new TerminalSeats(parts)
  const enter = (invitedBy?: string) =>
    shared.enter({
      caller: { kind: 'user', id: 'g', source: '192.0.2.1' },
      name: 'gast',
      ...(invitedBy === undefined ? {} : { invitedBy }),
      needsNoConsent: async () => needsNoConsent,
      present: () => undefined,
      note: () => undefined,
      admitted: () => undefined,
      dismissed: () => undefined,
    } as unknown as Visitor)
  return { lines, notes, enter, decide: shared.decide.bind(shared), driver: () => driver }
}

test('a guest who is back every four seconds for an hour is in a few lines', async () => {
  const { lines, enter } = counted(false)
  for (let visit = 0; visit < 900; visit += 1) {
    enter('olga')[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(4_000)
  }
  expect(lines.length).toBeGreaterThan(2)
  expect(lines.length).toBeLessThan(10)
  // One who really leaves is told of in the end.
  await vi.advanceTimersByTimeAsync(11 * 60_000)
  expect(lines.at(-1)).toContain('has left')
})

test('asking to type and leaving, a hundred times, is a few lines and entries', async () => {
  for (const needsNoConsent of [false, true]) {
    const { lines, notes, enter } = counted(needsNoConsent)
    for (let visit = 0; visit < 100; visit += 1) {
      const seat = enter()
      await seat.ask()
      seat[Symbol.dispose]()
      await vi.advanceTimersByTimeAsync(5_900)
    }
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.length).toBeLessThanOrEqual(40)
    expect(notes.length).toBeLessThanOrEqual(40)
  }
})

test('taking and sharing the keyboard, a thousand times, is a few lines and entries', async () => {
  const { lines, notes, enter } = counted(true)
  const seat = enter()
  await seat.ask()
  for (let turn = 0; turn < 1_000; turn += 1) {
    seat.take()
    seat.share()
  }
  expect(lines.length).toBeLessThanOrEqual(40)
  expect(notes.length).toBeLessThanOrEqual(40)
})

test('the person of a session who takes and shares the keyboard a thousand times is in a few, too', async () => {
  const { lines, notes, enter, decide, driver } = counted(true)
  for (let turn = 0; turn < 1_000; turn += 1) {
    decide({ kind: 'take', channel: 0 })
    decide({ kind: 'share', channel: 0 })
  }
  expect(notes.length).toBeGreaterThan(5)
  expect(notes.length).toBeLessThanOrEqual(40)
  expect(lines.length).toBeLessThanOrEqual(40)
  // Nobody can take the keyboard from them by that.
  const seat = enter()
  await seat.ask()
  seat.take()
  expect(driver()).toBe(1)
  decide({ kind: 'take', channel: 0 })
  expect(driver()).toBe(0)
  // What was not told is told as a number.
  await vi.advanceTimersByTimeAsync(11 * 60_000)
  decide({ kind: 'share', channel: 0 })
  expect(notes.at(-1)).toMatchObject({ action: 'session.control.shared', detail: { untold: 1_971 } })
})
