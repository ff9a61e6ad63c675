// The offers of the palette for what was typed: a verb leaves what it fits, a thing brings its verbs, and an
// action that cannot be done says why.
import { expect, test, vi } from 'vitest'
import type { Device } from '@hawser/contract/devices'
import type { Session } from '@hawser/contract/sessions'

// The theme asks the browser which colours the system has.
vi.stubGlobal('matchMedia', () => ({ matches: false }))
const { foundEntries, ownEntries, soughtIn } = await import('./palette-entries.ts')

const device = (name: string, more: Partial<Device> = {}) =>
  ({ uid: `uid-${name}`, name, status: 'accepted', online: true, ...more }) as Device
const session = (username: string, on: Device, more: Partial<Session> = {}) =>
  ({
    uid: `session-${username}`,
    username,
    device: on,
    device_uid: on.uid,
    active: true,
    recorded: true,
    held: false,
    started_at: '2026-11-17T10:00:00Z',
    person: { kind: 'user', id: 'u1', name: 'olga' },
    ...more,
  }) as Session

const gate = device('quay-gate', { status: 'pending', online: false })
const lamp = device('quay-lamp', { online: false })
const crane = device('crane')
const things = {
  devices: [crane, gate, lamp],
  sessions: [
    session('root', crane),
    session('deploy', crane, { held: true }),
    session('old', lamp, { active: false }),
  ],
  members: [{ id: 'u2', username: 'oskar', role: 'operator' }],
  namespaces: [
    { tenant_id: 'here', name: 'harbour' },
    { tenant_id: 'there', name: 'elsewhere' },
  ],
}
const as = (role: string, id = 'u1') => ({ id, role, tenant: 'here' })
const texts = (typed: string, role = 'owner', id = 'u1') =>
  foundEntries(typed, things, as(role, id)).map(({ text, why }) => (why ? `${text}: ${why}` : text))

test('a verb leaves the things that it fits', () => {
  expect(texts('accept ')).toEqual(['Accept quay-gate'])
  expect(texts('Accept QUAY')).toEqual(['Accept quay-gate'])
  expect(texts('accept crane')).toEqual([])
  expect(texts('terminal on ')).toEqual(['Terminal on crane', 'Terminal on quay-lamp: it is offline'])
  expect(texts('close session ')).toEqual([
    'Close the session root on crane …',
    'Close the session deploy on crane …',
  ])
  expect(texts('watch root')).toEqual(['Watch root on crane'])
  expect(texts('replay ')).toEqual(['Replay old on quay-lamp'])
  expect(texts('continue ')).toEqual(['Continue deploy on crane'])
  expect(texts('continue ', 'owner', 'u9')).toEqual([])
  expect(texts('switch namespace ')).toEqual(['Switch to elsewhere'])
  expect(texts('switch to harb')).toEqual([])
})

test('sessions of one person on one device differ by when they began', () => {
  const sessions = ['16', '17'].map((day) =>
    session('root', crane, { uid: `session-${day}`, started_at: `2026-11-${day}T10:00:00Z` }),
  )
  const found = foundEntries('root on', { ...things, sessions }, as('owner')).filter(({ about }) => about)
  expect(found.map(({ about }) => about)).toEqual([
    expect.stringMatching(/^live session, olga, .*16/),
    expect.stringMatching(/^live session, olga, .*17/),
  ])
})

test('a thing comes with its verbs, and with the search for its name', () => {
  expect(texts('quay-gate')).toEqual([
    'quay-gate',
    'Accept quay-gate',
    'Reject quay-gate',
    'Rename quay-gate …',
    'Delete quay-gate …',
    'Search recordings for “quay-gate”',
  ])
  expect(texts('oskar')).toEqual(['Sessions of oskar', 'Search recordings for “oskar”'])
  expect(texts('elsewhere')).toEqual(['Switch to elsewhere', 'Search recordings for “elsewhere”'])
  expect(texts('search recordings for rm -rf /')).toEqual(['Search recordings for “rm -rf /”'])
})

test('what the role does not allow is there, with the reason', () => {
  expect(texts('accept ', 'observer')).toEqual(['Accept quay-gate: needs the role operator'])
  expect(texts('delete quay-gate', 'operator')).toEqual(['Delete quay-gate …: needs the role administrator'])
  expect(texts('close root', '')).toEqual(['Close the session root on crane …: needs the role administrator'])
})

test('only what leads to a question or changes nothing is done with a press', () => {
  const every = [
    'accept ',
    'reject ',
    'delete ',
    'close ',
    'watch ',
    'rename ',
    'tag ',
    'quay',
    'crane',
    'root',
  ]
  const acts = every.flatMap((typed) => foundEntries(typed, things, as('owner')).map(({ act }) => act))
  // Each of these is done by the actions of its page, which ask first where it matters.
  expect(new Set(acts.map(({ what }) => what))).toEqual(new Set(['device', 'close', 'go']))
})

test('pages, beginnings of sentences and acts on the console need no server', () => {
  const places = [
    { to: '/settings', text: 'Settings and members' },
    { to: '/add-device', text: 'Add a device' },
  ]
  const own = (typed: string, role = 'owner') =>
    ownEntries(typed, places, as(role)).map(({ text, why }) => (why ? `${text}: ${why}` : text))
  expect(own('')).toEqual(['Settings and members', 'Add a device'])
  expect(own('acc')).toEqual(['Accept …'])
  expect(own('acc', 'observer')).toEqual(['Accept …: needs the role operator'])
  expect(own('theme dark')).toEqual(['Dark theme'])
  expect(own('sign out')).toEqual(['Sign out'])
  expect(own('invite', 'operator')).toEqual(['Invite someone …: needs the role administrator'])
  expect(own('add d')).toEqual(['Add a device'])
  expect(own('search rec')).toEqual(['Search recordings for …'])
})

test('devices are asked for by the name behind the verb, and by what the verb fits', () => {
  expect(soughtIn('accept quay')).toEqual({ name: 'quay', statuses: ['pending', 'rejected'] })
  expect(soughtIn('  crane ')).toEqual({ name: 'crane' })
  expect(soughtIn('accept')).toEqual({ name: 'accept' })
})
