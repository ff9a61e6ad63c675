// The words of a timeline, by examples: what is found by comparing connections, and why a device is offline.
import { expect, test } from 'vitest'
import { durationText } from '@hawser/contract/sentences'
import { present, whyOffline, type PastHappening } from './timeline-view.ts'

const at = (minute: number): string => new Date(Date.UTC(2026, 10, 17, 10, minute)).toISOString()
const up = { kind: 'up', source: '192.0.2.1', version: 'hawser-1', at: at(0) } as const
const down = (reason: string, more: object = {}): PastHappening => ({
  kind: 'down',
  reason,
  lasted_s: 60,
  at: at(1),
  ...more,
})
const moment = '2026-11-17 10:01:00 UTC'

test.each<[string, PastHappening[], string | undefined]>([
  ['nothing is known', [], undefined],
  [
    'the server was killed',
    [up],
    'The server ended without closing the connection of 2026-11-17 10:00:00 UTC, and the device has not come back.',
  ],
  [
    'it fell silent',
    [down('lost', { heard_at: new Date(Date.parse(at(1)) - 50_000).toISOString() }), up],
    'Its network has been gone since 2026-11-17 10:00:10 UTC; the server noticed after 50 s.',
  ],
  [
    'it was cut',
    [down('lost'), up],
    `Its connection broke at ${moment}: its network was cut, or its agent was killed.`,
  ],
  [
    'it was stopped',
    [down('closed'), { kind: 'leaving', why: 'stopped', at: at(1) }, up],
    `Its agent was stopped at ${moment}.`,
  ],
  [
    'the machine was shut down, which was read after the end',
    [{ kind: 'leaving', why: 'shutdown', at: at(1) }, down('closed'), up],
    `The machine was shut down or restarted at ${moment}.`,
  ],
  [
    'it said goodbye in an earlier connection, and was cut in this one',
    [down('lost'), up, { kind: 'leaving', why: 'stopped', at: at(0) }, up],
    `Its connection broke at ${moment}: its network was cut, or its agent was killed.`,
  ],
  [
    'another tunnel was displaced after the last one had ended',
    [down('replaced'), down('stopping'), up],
    `The server stopped at ${moment}, and the device has not come back.`,
  ],
  [
    'it broke a rule',
    [down('broken', { detail: 'Too long.' }), up],
    `Its agent broke the protocol at ${moment}: Too long.`,
  ],
  ['a reason of a newer server', [down('eclipse'), up], `Its connection ended at ${moment}.`],
])('%s', (_, happenings, sentence) => {
  expect(whyOffline(happenings)?.sentence).toBe(sentence)
})

test('changes of address, version, boot and clock are found, and what stays the same is not told', () => {
  const oldest: PastHappening[] = [
    up,
    { kind: 'said', boot_id: 'a', ahead_s: 1, at: at(0) },
    { ...up, at: at(2) },
    { kind: 'said', boot_id: 'a', ahead_s: -2, at: at(2) },
    { kind: 'up', source: '192.0.2.2', version: 'hawser-2', at: at(4) },
    { kind: 'said', boot_id: 'b', started_at: at(3), ahead_s: -7_500, at: at(4) },
    { kind: 'up', at: at(5) },
  ]
  expect(present(oldest.toReversed()).map(({ sentence }) => sentence)).toEqual([
    'It connected.',
    'Its clock is 2 h 5 min behind.',
    'The machine was started again at 2026-11-17 10:03:00 UTC.',
    'Its agent changed from hawser-1 to hawser-2.',
    'Its address changed from 192.0.2.1 to 192.0.2.2.',
    'It connected from 192.0.2.2.',
    'It connected from 192.0.2.1.',
    'It connected from 192.0.2.1.',
  ])
})

test('a version with control characters, or such that turn the direction of a line, is told without them', () => {
  const rogue = '\u202e1\u001b[2J\n{before}'
  const change = present([{ ...up, version: rogue, at: at(1) }, up]).find(({ kind }) => kind === 'version')
  expect(change).toMatchObject({
    sentence: 'Its agent changed from hawser-1 to ?1?[2J?{before}.',
    parts: [{ values: { before: 'hawser-1', after: '?1?[2J?{before}' } }],
    after: '?1?[2J?{before}',
  })
})

test('an event of a kind that this server does not know is left out', () => {
  expect(present([{ kind: 'eclipse', at: at(0) } as unknown as PastHappening])).toEqual([])
})

test.each([
  [0, '0 s'],
  [119, '119 s'],
  [120, '2 min'],
  [7_200, '2 h 0 min'],
  [200_000, '2 days'],
])('%i seconds are %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text)
})
