// The text typed above the list of devices: which filters it has, which words are left, and what is offered.
import { expect, test } from 'vitest'
import { readDevicesSearch } from '../device-list.ts'
import {
  filtersOf,
  filterWords,
  isFiltered,
  noFilters,
  readTyped,
  suggestionsFor,
  withFilters,
  withoutFilter,
  withSuggestion,
} from './device-filters.ts'

const tag = (value: string) => ({ name: 'tag', value }) as const

test.each([
  ['pump', [], 'pump', 'pump'],
  ['pump tag:pi', [], 'pump tag:pi', 'pump'],
  ['tag:pier ', [tag('pier')], '', ''],
  ['pump TAG:pier ', [tag('pier')], 'pump ', 'pump'],
  ['tag:pier is:Online pum', [tag('pier'), { name: 'is', value: 'online' }], 'pum', 'pum'],
  ['os:"Debian GNU" ', [{ name: 'os', value: 'Debian GNU' }], '', ''],
  [
    'unseen:7d added:24h ',
    [
      { name: 'unseen', value: '7d' },
      { name: 'added', value: '24h' },
    ],
    '',
    '',
  ],
  // An address has colons, too, and a filter with a value that it does not take is a word.
  ['02:00:5e ', [], '02:00:5e ', '02:00:5e'],
  ['is:blue unseen:soon ', [], 'is:blue unseen:soon ', 'is:blue unseen:soon'],
  // People write a blank after a colon; what has no value yet is not searched for.
  ['pump tag: ', [], 'pump tag:', 'pump'],
  ['tag: pier ', [tag('pier')], '', ''],
])('typed: %j', (typed, filters, text, find) => {
  expect(readTyped(typed)).toEqual({ filters, text, find })
})

test('a text that is finished has no half words', () => {
  expect(readTyped('pump tag:pier', true)).toEqual({ filters: [tag('pier')], text: 'pump', find: 'pump' })
  expect(readTyped('tag:', true)).toEqual({ filters: [], text: 'tag:', find: '' })
})

test('the same filters are the same address, in whichever order they came', () => {
  const chosen = [
    tag('pier'),
    { name: 'is', value: 'offline' },
    tag('crane'),
    { name: 'mac', value: '02:' },
  ] as const
  const one = readDevicesSearch(withFilters({}, chosen))
  const other = readDevicesSearch(withFilters({ tag: 'crane' }, chosen.toReversed()))
  expect(JSON.stringify(one)).toBe(JSON.stringify(other))
  expect(one).toEqual({ tag: ['crane', 'pier'], online: false, mac: '02:' })
  expect(filtersOf(one).map(filterWords)).toEqual(['Offline', 'Tag: crane', 'Tag: pier', 'MAC address: 02:'])
  expect(readDevicesSearch({ ...one, ...withoutFilter(one, tag('pier')) })).toMatchObject({ tag: 'crane' })
  expect(readDevicesSearch({ ...one, find: 'x', sort: 'seen', ...noFilters })).toEqual({ sort: 'seen' })
  expect([isFiltered({ find: 'x' }), isFiltered(readDevicesSearch({ sort: 'seen' }))]).toEqual([true, false])
})

test('addresses of before have the same filters', () => {
  expect(filtersOf(readDevicesSearch({ find: 'pump', tag: 7, online: true, unseen: 'soon' }))).toEqual([
    { name: 'is', value: 'online' },
    tag('7'),
  ])
})

const known = {
  tags: ['north', 'pier', 'old-pier'],
  systems: ['Debian GNU/Linux 12 (bookworm)', 'Debian GNU/Linux 11 (bullseye)'],
  arches: ['amd64', 'arm64'],
  agents: ['v0.16.4'],
}
const offered = (typed: string, search = {}) => suggestionsFor(typed, known, search).map(({ text }) => text)

test('names are offered, then their values; those that begin so first, and none that is set', () => {
  expect(offered('').slice(0, 4)).toEqual(['is:online', 'is:offline', 'tag:', 'os:'])
  expect(offered('ta')).toEqual(['tag:'])
  expect(offered('tag:')).toEqual(['tag:north', 'tag:pier', 'tag:old-pier'])
  expect(offered('pump tag:PI', { tag: 'old-pier' })).toEqual(['tag:pier'])
  expect(offered('tag:nowhere')).toEqual([])
  expect(offered('os:deb')).toEqual([
    'os:Debian',
    'os:"Debian GNU/Linux 12 (bookworm)"',
    'os:"Debian GNU/Linux 11 (bullseye)"',
  ])
  expect(offered('os:linux')).toEqual([
    'os:"Debian GNU/Linux 12 (bookworm)"',
    'os:"Debian GNU/Linux 11 (bullseye)"',
    'os:linux',
  ])
  // A value is found without its name.
  expect(offered('pier')).toEqual(['tag:pier', 'tag:old-pier'])
  expect(offered('onl', { online: true })).toEqual(['is:'])
  expect(offered('unseen:3')).toEqual(['unseen:30d'])
  expect(offered('unseen:3d')).toEqual(['unseen:3d'])
  expect(offered('agent:')).toEqual(['agent:old', 'agent:v0.16.4'])
  expect(offered('ip:10.')).toEqual(['ip:10.'])
})

test('what is taken replaces the half word', () => {
  const [first] = suggestionsFor('pump tag:pi', known, {})
  expect(withSuggestion('pump tag:pi', first!)).toBe('pump tag:pier ')
  const [name] = suggestionsFor('pump ta', known, {})
  expect(withSuggestion('pump ta', name!)).toBe('pump tag:')
  expect(filterWords({ name: 'agent', value: 'old' })).toBe('Old agent')
  expect(filterWords({ name: 'unseen', value: '1d' })).toBe('Not seen for 1 day')
  expect(filterWords({ name: 'added', value: '12h' })).toBe('Added in the last 12 hours')
})
