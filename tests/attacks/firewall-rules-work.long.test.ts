// Whoever owns a namespace, which anybody may, writes firewall rules that are dear to compile and to run, and
// then knocks: 60 rules such as `\p{L}{0,450}` were compiled anew for every attempt and held the server for
// 23 s. What rules cost is known when they are written and bounded for the namespace, each pattern is
// compiled once, and rules that were stored before there was a bound refuse the connection instead of being
// run. Compilations are counted where the engine makes them.
import { RE2Set } from 're2js'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'

type Rule = Parameters<Client['firewall']['create']>[0]['body']
const dear = String.raw`\p{L}{0,450}`
const rule = (changes: Partial<Rule> = {}): Rule => ({
  action: 'deny',
  active: true,
  filter: { hostname: '^crane' },
  priority: 5,
  source_ip: '.*',
  username: '^root$',
  ...changes,
})

const spies = () => ({
  compile: vi.spyOn(RE2Set.prototype, 'compile'),
  match: vi.spyOn(RE2Set.prototype, 'match'),
})
let engine: ReturnType<typeof spies>
beforeEach(() => {
  engine = spies()
})
afterEach(() => void vi.restoreAllMocks())

/** What the engine was made to compile, written out, where that is long. */
const compiledLong = (): string[] =>
  engine.compile.mock.contexts
    .flatMap((set) => (set as RE2Set).regexps.map(String))
    .filter((source) => source.length > 100)

/** What an SSH attempt asks before anything else. */
async function knock(place: Place, username: string): Promise<boolean> {
  const to = await place.rooms.logins.find(`${sample.namespace}.crane-1`)
  if (!to) throw new Error('there is no such device')
  return (await place.rooms.logins.firewall(to, username, '192.0.2.7')).allowed
}

/** A place whose namespace has no rules yet. */
async function withoutRules(): Promise<Place> {
  const place = await startPlace()
  await place.rooms.database.db.deleteFrom('firewall_rules').execute()
  return place
}

/** As rules were before there was a bound. */
const store = async (place: Place, rules: readonly Rule[]): Promise<void> => {
  for (const { filter, active, ...more } of rules)
    await place.rooms.stores
      .of(sample.tenant)
      .firewall.insert({ ...more, active: active ? 1 : 0, filter: JSON.stringify(filter) })
}

describe('a rule that is written', () => {
  const place = sharedPlace()

  test.each([
    dear,
    String.raw`\p{L}{450}`,
    String.raw`[\p{L}\p{N}_-]{0,100}`,
    String.raw`(\PL\pN){30}`,
    String.raw`\pL`.repeat(300),
    String.raw`[^\pL]`.repeat(170),
  ])('with the pattern %s is refused, with a sentence, and not even compiled', async (pattern) => {
    for (const changes of [{ username: pattern }, { source_ip: pattern }, { filter: { hostname: pattern } }])
      await expect(place.administrator.firewall.create({ body: rule(changes) })).rejects.toMatchObject({
        status: 400,
        body: {
          message: expect.stringContaining(
            'the regular expression is too large once its repetitions are written out',
          ) as unknown,
        },
      })
    expect(compiledLong()).toEqual([])
  })

  test('is refused when all of the namespace together are too large', async () => {
    const body = rule({ username: 'x{900}', source_ip: 'x{900}', filter: { hostname: 'x{900}' } })
    const written = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) await place.administrator.firewall.create({ body })
    }
    await expect(written(60)).rejects.toMatchObject({
      status: 403,
      body: {
        message:
          'The firewall rules of the namespace are too large together; make them simpler or remove some.',
      },
    })
    const { items } = await place.rooms.stores.of(sample.tenant).firewall.list({ page: 1, per_page: 100 })
    expect(items.length).toBeLessThan(10)
    // Neither can a small one be made large.
    const { body: small } = await place.owner.firewall.create({ body: rule({ priority: 9 }) })
    await expect(place.owner.firewall.update({ params: { id: small.id }, body })).rejects.toMatchObject({
      status: 403,
    })
  })
})

test('a namespace has so many rules and no more', async () => {
  await using place = await withoutRules()
  const write = () => place.administrator.firewall.create({ body: rule() })
  for (let i = 0; i < 200; i += 1) await write()
  await expect(write()).rejects.toMatchObject({
    status: 403,
    body: { message: 'The namespace has as many firewall rules as it may have.' },
  })
})

describe('rules that are stored', () => {
  test('are compiled once, however often somebody knocks', async () => {
    await using place = await withoutRules()
    for (let i = 0; i < 100; i += 1)
      await place.administrator.firewall.create({
        body: rule({
          username: `^user-${i}$`,
          source_ip: `^10\\.0\\.${i}\\.`,
          filter: { hostname: `^x${i}` },
        }),
      })
    await place.administrator.firewall.create({ body: rule({ username: '^intruder$', priority: 99 }) })
    await knock(place, 'someone')
    engine.compile.mockClear()
    for (let i = 0; i < 20; i += 1)
      expect(await knock(place, i === 7 ? 'intruder' : `someone-${i}`)).toBe(i !== 7)
    expect(engine.compile).not.toHaveBeenCalled()
  })

  test('and are too dear are not compiled: one that denies denies everybody, one that allows allows nobody', async () => {
    await using place = await withoutRules()
    await store(
      place,
      Array.from({ length: 60 }, (_, i) =>
        rule({ action: 'allow', username: dear, source_ip: dear, priority: i }),
      ),
    )
    expect(await knock(place, 'deploy')).toBe(true)
    await store(place, [rule({ username: dear, source_ip: dear, filter: { hostname: dear }, priority: 3 })])
    expect(await knock(place, 'deploy')).toBe(false)
    expect(compiledLong()).toEqual([])
    expect(place.log()).toContain('firewall.unrunnable')
    // Whatever comes before is asked as ever.
    await store(place, [rule({ action: 'allow', username: '^olga$', priority: 1 })])
    expect(await knock(place, 'olga')).toBe(true)
  })

  test('and are too many are asked up to a bound, and then nobody is let through', async () => {
    await using place = await withoutRules()
    await store(
      place,
      Array.from({ length: 1100 }, (_, i) => rule({ username: '^nobody$', priority: i })),
    )
    engine.match.mockClear()
    expect(await knock(place, 'deploy')).toBe(false)
    expect(engine.match.mock.calls.length).toBeLessThan(3500)
  })

  test('and are too many are why a login is refused, also if none of them denies', async () => {
    await using place = await withoutRules()
    await store(
      place,
      Array.from({ length: 1100 }, (_, i) => rule({ action: 'allow', username: '^nobody$', priority: i })),
    )
    expect(await knock(place, 'deploy')).toBe(false)
    const { body } = await place.administrator.logins.explain({
      body: { device: 'crane-1', username: 'deploy', source: '192.0.2.7' },
    })
    expect(
      body.steps.filter(({ check, verdict }) => check === 'firewall' && verdict !== 'ignored'),
    ).toMatchObject([{ verdict: 'refused', parts: [{ name: 'rules-too-slow' }] }])
  })

  test('and are dear only together take turns with everybody else, and end', async () => {
    await using place = await withoutRules()
    // Each of them alone may be written.
    await store(
      place,
      Array.from({ length: 900 }, (_, i) => rule({ username: `.{0,450}${i}$`, priority: i, action: 'deny' })),
    )
    let turns = 0
    let over = false
    const counting = (): void => {
      turns += 1
      if (!over) setImmediate(counting)
    }
    counting()
    // Not within the bound, so refused.
    expect(await knock(place, 'a'.repeat(128))).toBe(false)
    over = true
    expect(turns).toBeGreaterThan(5)
    expect(engine.match.mock.calls.length).toBeLessThan(100)
  })
})
