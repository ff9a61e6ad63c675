// The parts of the devices' pages that compute: names by a pattern, cells of a file, days,
// stretches of a connection.
import { expect, test } from 'vitest'
import type { Device } from '@hawser/contract/devices'
import { readDevicesSearch } from '../device-list.ts'
import { countsByDay } from './bar-chart.tsx'
import { nameBy } from './name-pattern.ts'
import { stretchesOf } from './online-history.tsx'

const at = (hour: number) => new Date(Date.UTC(2026, 10, 17, hour)).toISOString()
const hour = (n: number) => Date.UTC(2026, 10, 17, n)

test('the address of the devices takes what it knows and drops the rest', () => {
  expect(
    readDevicesSearch({
      status: 'pending',
      sort: 'seen',
      desc: true,
      find: 42,
      tag: 'north',
      online: false,
      cols: 'tags,nonsense,mac',
      map: true,
      page: 99,
    }),
  ).toEqual({
    status: 'pending',
    sort: 'seen',
    desc: true,
    find: '42',
    tag: 'north',
    online: false,
    cols: 'tags,mac',
    map: true,
  })
  expect(readDevicesSearch({ status: 'lost', sort: 'uid', desc: 'yes', find: '', online: 'true' })).toEqual(
    {},
  )
  expect(readDevicesSearch({ cols: 'state,tags,system,agent,address' }), 'the usual ones').toEqual({})
})

test('a day counts what began on it, and days without anything are there too', () => {
  const today = new Date().toISOString()
  const long = new Date(Date.now() - 40 * 86_400_000).toISOString()
  const counted = countsByDay([today, today, long], 14)
  expect(counted).toHaveLength(14)
  expect(counted.at(-1)?.count).toBe(2)
  expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(2)
})

test('the stretches of a connection end now, begin with what is known, and are cut at the first day', () => {
  const events = [
    { at: at(8), kind: 'connected' },
    { at: at(7), kind: 'address' },
    { at: at(6), kind: 'disconnected' },
    { at: at(2), kind: 'connected' },
  ] as const
  expect(stretchesOf(events, true, hour(0), hour(10))).toEqual([
    { from: hour(2), to: hour(6), on: true },
    { from: hour(6), to: hour(8), on: false },
    { from: hour(8), to: hour(10), on: true },
  ])
  expect(stretchesOf(events, true, hour(4), hour(10))[0]).toEqual({ from: hour(4), to: hour(6), on: true })
  expect(stretchesOf([], false, hour(0), hour(10)), 'nothing is known').toEqual([])
})

test('a device is renamed by its name, a number as wide as the last one, and its address', () => {
  const device = { name: 'pump', identity: { mac: '02:00:5e:00:53:01' } } as Device
  expect(nameBy('{name}-{n}', device, 7, 120)).toBe('pump-007')
  expect(nameBy('d-{mac}', device, 1, 1)).toBe('d-02-00-5e-00-53-01')
})
