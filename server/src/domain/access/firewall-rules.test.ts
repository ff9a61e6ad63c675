// The firewall's decision and the fit of public keys, by tables of examples. Order of priority and the answer
// when nothing matches are what an administrator relies on, so each has a test of its own.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide, keyFits, type Connection, type Rule } from './firewall-rules.ts'

const connection: Connection = {
  source_ip: '192.0.2.7',
  username: 'root',
  device: { name: 'crane-1', tags: ['pier', 'north'] },
}
const rule = (changes: Partial<Rule> = {}): Rule => ({
  id: '1',
  priority: 1,
  action: 'deny',
  active: true,
  source_ip: '.*',
  username: '.*',
  filter: { hostname: '.*' },
  ...changes,
})
const open = { allowed: true, rule: null, unrunnable: [] }
const denied = { allowed: false, rule: '1', unrunnable: [] }

describe('one rule', () => {
  test('without rules a connection is allowed', async () =>
    expect(await decide([], connection)).toEqual(open))

  test.each<[string, Partial<Rule>, typeof open | typeof denied]>([
    ['that fits everything', {}, denied],
    ['that is not active', { active: false }, open],
    ['for the address', { source_ip: '^192\\.0\\.2\\.' }, denied],
    ['for part of the address', { source_ip: '2\\.7' }, denied],
    ['for another address', { source_ip: '^198\\.51\\.100\\.' }, open],
    ['for the login name', { username: '^root$' }, denied],
    ['for part of the login name', { username: 'oo' }, denied],
    ['for another login name', { username: '^deploy$' }, open],
    ['for a login name in capitals', { username: 'ROOT' }, open],
    ['for the device name', { filter: { hostname: '^crane' } }, denied],
    ['for another device name', { filter: { hostname: '^winch' } }, open],
    ['for one of the device’s tags', { filter: { tags: ['south', 'north'] } }, denied],
    ['for other tags', { filter: { tags: ['south'] } }, open],
    ['for part of a tag', { filter: { tags: ['nor'] } }, open],
    ['for no tag at all', { filter: { tags: [] } }, open],
    [
      'that fits in all but the address',
      { source_ip: '^10\\.', username: '^root$', filter: { tags: ['pier'] } },
      open,
    ],
  ])('%s', async (_, changes, decision) =>
    expect(await decide([rule(changes)], connection)).toEqual(decision),
  )

  test('one that allows names itself', async () =>
    expect(await decide([rule({ action: 'allow' })], connection)).toEqual({ ...open, rule: '1' }))

  test('an IPv4 address seen through an IPv6 socket is still that address', async () => {
    const mapped = { ...connection, source_ip: '::ffff:192.0.2.7' }
    expect(await decide([rule({ source_ip: '^192\\.0\\.2\\.' })], mapped)).toEqual(denied)
    expect(
      await decide([rule({ source_ip: '^2001:db8::' })], { ...connection, source_ip: '2001:db8::ffff:7' }),
    ).toEqual(denied)
  })

  test('a pattern that cannot be run denies everybody or allows nobody, unless the rest of the rule does not fit', async () => {
    for (const username of ['(', 'a{1000}'.repeat(100), String.raw`\p{L}{0,450}`]) {
      expect(await decide([rule({ username })], connection)).toEqual({ ...denied, unrunnable: ['1'] })
      expect(await decide([rule({ username, action: 'allow' })], connection)).toEqual({
        ...open,
        unrunnable: ['1'],
      })
      expect(await decide([rule({ username, filter: { hostname: '^winch' } })], connection)).toEqual(open)
      expect(await decide([rule({ username, filter: { tags: ['south'] } })], connection)).toEqual(open)
    }
  })
})

describe('several rules', () => {
  test('the lowest priority number is asked first', async () => {
    const rules = [
      rule({ id: '1', priority: 9 }),
      rule({ id: '2', priority: 2, action: 'allow' }),
      rule({ id: '3', priority: 5 }),
    ]
    expect(await decide(rules, connection)).toEqual({ allowed: true, rule: '2', unrunnable: [] })
  })

  test('among equal priorities the lowest id, as a number', async () => {
    const rules = [rule({ id: '10' }), rule({ id: '9', action: 'allow' })]
    expect(await decide(rules, connection)).toEqual({ allowed: true, rule: '9', unrunnable: [] })
  })

  test('a rule that is inactive or does not match leaves the decision to the next', async () => {
    const rules = [
      rule({ id: '1', priority: 1, active: false, action: 'allow' }),
      rule({ id: '2', priority: 2, username: '^deploy$', action: 'allow' }),
      rule({ id: '3', priority: 3 }),
      rule({ id: '4', priority: 4, action: 'allow' }),
    ]
    expect(await decide(rules, connection)).toEqual({ allowed: false, rule: '3', unrunnable: [] })
  })

  test('the order in which they are given does not matter, and is left as it was', async () => {
    const some = fc.uniqueArray(
      fc.record({
        id: fc.integer({ min: 1, max: 200 }).map(String),
        priority: fc.integer({ min: 0, max: 5 }),
        action: fc.constantFrom('allow' as const, 'deny' as const),
        active: fc.boolean(),
        username: fc.constantFrom('.*', '^root$', '^deploy$'),
      }),
      { selector: (each) => each.id, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(some, async (changes) => {
        const rules = Object.freeze(changes.map(rule))
        expect(await decide(rules.toReversed(), connection)).toEqual(await decide(rules, connection))
      }),
    )
  })
})

describe('public keys', () => {
  const login = { username: 'deploy', device: connection.device }

  test.each([
    ['^(root|deploy)$', { hostname: '^crane' }, true],
    ['^root$', { hostname: '^crane' }, false],
    ['.*', { hostname: '^winch' }, false],
    ['dep', { tags: ['pier'] }, true],
    ['.*', { tags: ['south'] }, false],
  ])('for login names %s and devices %j: %s', async (username, filter, fits) =>
    expect((await keyFits({ username, filter }, login)).applies).toBe(fits),
  )

  test('a device without tags fits no list of tags', async () => {
    const key = { username: '.*', filter: { tags: ['pier'] } }
    expect(await keyFits(key, { username: 'deploy', device: { name: 'crane-1', tags: [] } })).toEqual({
      applies: false,
      differs: 'tags',
    })
  })

  test('a pattern that cannot be run fits nobody', async () => {
    expect((await keyFits({ username: '(', filter: { hostname: '.*' } }, login)).applies).toBeUndefined()
  })
})
