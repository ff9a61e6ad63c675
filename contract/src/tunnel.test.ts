// How two ends of a tunnel read each other's headers, and the texts about people.
import { expect, test } from 'vitest'
import { features, personText, readPersonText, sharedFeatures } from './tunnel.ts'

test('an end without the header shares nothing, and names nobody knows are ignored', () => {
  expect([...sharedFeatures(undefined)]).toEqual([])
  expect([...sharedFeatures(['resume'])]).toEqual([])
  expect([...sharedFeatures('constructor, telepathy,,')]).toEqual([])
})

test('both ends of this version share all that it supports', () => {
  expect([...sharedFeatures(features.join(', '))]).toEqual(features)
  expect([...sharedFeatures(`${'x, '.repeat(1_000)}${features.join(',')}`)]).toEqual([])
})

test.each([
  [{ kind: 'user', name: 'olga@example.com' }, 'olga@example.com'],
  [{ kind: 'api-key', name: 'back$(up)' }, 'key:back??up?'],
  [{ kind: 'certificate', name: 'olga' }, 'certificate:olga'],
  [{ kind: 'certificate', name: 'Петра\n\u001b[2J' }, 'certificate:????????2J'],
  [{ kind: 'unknown', name: 'olga' }, ''],
])('%j is told to a device as %j', (person, text) => {
  expect(personText(person)).toBe(text)
  expect(readPersonText(text)).toBe(text === '' ? undefined : text)
})

test('a person is told in at most 128 characters, and an agent takes no others', () => {
  expect(personText({ kind: 'user', name: 'o'.repeat(300) })).toHaveLength(128)
  for (const value of ['', 'o'.repeat(129), 'olga\nLD_PRELOAD=x', '() { :; }', '$HOME', 'ol\u001bga'])
    expect(readPersonText(value), value).toBeUndefined()
})
