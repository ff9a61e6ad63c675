// The changes of a device, by tables: every state, every wish and everything that can stand in the way.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deviceStatuses, statusChanges, type DeviceStatus, type StatusChange } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { hasRoom, isOver, roomFor } from '../billing/device-limit.ts'
import { change, type Outcome, type StatusContext } from './device-status.ts'

const alone: StatusContext = { sameMac: undefined, sameName: undefined, accepted: 0, max_devices: -1 }
const device = (status: DeviceStatus) => ({ uid: 'this', status })
const other = { uid: 'other', name: 'crane', connected: false }
const third = { uid: 'third' }

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof Failure) return error.kind
    throw error
  }
  return 'none'
}

describe('a device that nothing stands in the way of', () => {
  const wishes = Object.keys(statusChanges) as StatusChange[]
  const pairs = deviceStatuses.flatMap((from) => wishes.map((wish) => [from, wish] as const))

  test.each(pairs)('%s: %s works', (from, wish) => {
    expect(change(device(from), wish, alone)).toMatchObject({ kind: 'change', status: statusChanges[wish] })
  })

  test.each(pairs)('%s: %s ends live sessions only when accepted is left', (from, wish) => {
    const outcome = change(device(from), wish, alone) as Extract<Outcome, { kind: 'change' }>
    expect(outcome.endsSessions).toBe(from === 'accepted' && wish !== 'accept')
  })
})

describe('accepting', () => {
  const waiting = deviceStatuses.filter((status) => status !== 'accepted')

  test.each(waiting)('a %s device is refused while another accepted device has its name', (status) => {
    expect(refusal(() => change(device(status), 'accept', { ...alone, sameName: other }))).toBe('conflict')
  })

  test.each(waiting)('a %s device takes the place of the accepted one with its MAC', (status) => {
    expect(change(device(status), 'accept', { ...alone, sameMac: other })).toEqual({
      kind: 'replace',
      status: 'accepted',
      replaces: 'other',
    })
  })

  test('one that is connected is not replaced, and is named', () => {
    const around = { ...alone, sameMac: { ...other, connected: true } }
    expect(() => change(device('pending'), 'accept', around)).toThrow(
      /^crane has the same MAC address and is connected/,
    )
    expect(change(device('accepted'), 'accept', around)).toMatchObject({ kind: 'change' })
  })

  test('the one it replaces may have its name', () => {
    expect(change(device('pending'), 'accept', { ...alone, sameMac: other, sameName: other })).toMatchObject({
      replaces: 'other',
    })
  })

  test('a third one may not', () => {
    expect(
      refusal(() => change(device('pending'), 'accept', { ...alone, sameMac: other, sameName: third })),
    ).toBe('conflict')
  })

  test('a full namespace refuses', () => {
    expect(
      refusal(() => change(device('pending'), 'accept', { ...alone, accepted: 3, max_devices: 3 })),
    ).toBe('deviceLimit')
    expect(change(device('pending'), 'accept', { ...alone, accepted: 2, max_devices: 3 })).toMatchObject({
      status: 'accepted',
    })
  })

  test('where more can be paid for, a full namespace asks for that, and says so when deleted devices keep the places', () => {
    const billed = { ...alone, accepted: 3, max_devices: 3, billed: true }
    expect(refusal(() => change(device('pending'), 'accept', billed))).toBe('paymentRequired')
    expect(() => change(device('pending'), 'accept', billed)).toThrow(
      /^Without a subscription a namespace has 3 devices\.$/,
    )
    expect(() => change(device('pending'), 'accept', { ...billed, accepted: 2, kept: 1 })).toThrow(
      'keep their place for 30 days',
    )
    expect(change(device('pending'), 'accept', { ...billed, accepted: 2, kept: 0 })).toMatchObject({
      status: 'accepted',
    })
    expect(change(device('pending'), 'accept', { ...billed, kept: 9, max_devices: -1 })).toMatchObject({
      status: 'accepted',
    })
  })

  test('a taken name is said before a full namespace', () => {
    expect(
      refusal(() =>
        change(device('pending'), 'accept', {
          sameMac: undefined,
          sameName: other,
          accepted: 3,
          max_devices: 3,
        }),
      ),
    ).toBe('conflict')
  })

  test('replacing needs no room, because the number stays the same', () => {
    expect(
      change(device('pending'), 'accept', { ...alone, sameMac: other, accepted: 3, max_devices: 3 }),
    ).toMatchObject({
      kind: 'replace',
    })
  })

  test('an accepted device stays accepted, whatever its surroundings', () => {
    const around = { sameMac: other, sameName: third, accepted: 9, max_devices: 3 }
    expect(change(device('accepted'), 'accept', around)).toEqual({
      kind: 'change',
      status: 'accepted',
      endsSessions: false,
    })
  })

  test.each(['reject', 'pending', 'unused'] as const)('%s asks for neither name nor room', (wish) => {
    const around = { sameMac: other, sameName: third, accepted: 9, max_devices: 3 }
    for (const status of deviceStatuses)
      expect(change(device(status), wish, around)).toMatchObject({
        kind: 'change',
        status: statusChanges[wish],
      })
  })
})

describe('room', () => {
  test.each([
    [0, -1, true],
    [1_000_000, -1, true],
    [5, 0, true],
    [0, 1, true],
    [1, 1, false],
    [2, 1, false],
  ])('%i accepted of %i allowed: %s', (accepted, max_devices, room) =>
    expect(hasRoom({ accepted, max_devices })).toBe(room),
  )

  test.each([
    [3, 3, false],
    [4, 3, true],
    [9, -1, false],
    [9, 0, false],
  ])('%i accepted of %i allowed are too many: %s', (accepted, max_devices, over) =>
    expect(isOver({ accepted, max_devices })).toBe(over),
  )

  test.each([
    ['is there for all', 1, ['gone'], 3, 'all'],
    ['is there for all without a limit', 9, ['gone'], -1, 'all'],
    ['is left for those alone who keep a place', 2, ['gone'], 3, ['gone']],
    ['is left for each of several who keep one', 1, ['one', 'two'], 3, ['one', 'two']],
    ['is there for nobody when all places are taken', 3, [], 3, []],
    ['is there for nobody, not even for one who keeps a place, above the limit', 3, ['gone'], 3, []],
  ] as const)('%s', (_, accepted, kept, max_devices, room) =>
    expect(roomFor({ accepted, kept, max_devices })).toEqual(room),
  )

  test('devices that are accepted one after the other end exactly at the limit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), (max_devices) => {
        let accepted = 0
        while (
          refusal(() => change(device('pending'), 'accept', { ...alone, accepted, max_devices })) === 'none'
        )
          accepted += 1
        expect(accepted).toBe(max_devices)
      }),
    )
  })
})
