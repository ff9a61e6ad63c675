// What an administrator is told about a login that somebody else cannot make: the same verdict as the login gets,
// for rules and keys of all kinds, and the rule that refuses. Nobody else is told.
import { sign } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { loginClients, type LoginStep, type LoginClient } from '@hawser/contract/logins'
import {
  fingerprintMd5,
  fingerprintSha256,
  generatePrivateKey,
  publicKeyLine,
  withCertificate,
  type PrivateKey,
} from '@hawser/ssh'
import { openDesk } from '../../cli/test/program.ts'
import { startDoor, type Door } from '../attacks/door.ts'
import { eventually } from '../harness/eventually.ts'
import { times } from '../harness/tier.ts'
import { dial } from './web.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const olga = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')
const authority = generatePrivateKey('ed25519')
let door: Door
let administrator: Client

beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '1000/600' })
  administrator = door.service.api({ token: await door.world.token('administrator') })
  await door.register(olga, { name: 'olga' })
  await door.register(authority, { name: 'office', username: '^pilot$', certificate_authority: true })
})
afterAll(async () => door[Symbol.asyncDispose]())

type Asked = Partial<Parameters<Client['logins']['explain']>[0]['body']>
const ask = async (asked: Asked = {}) =>
  (
    await administrator.logins.explain({
      body: { device: 'crane-9', username: 'pilot', source: '192.0.2.7', key: 'olga', ...asked },
    })
  ).body
const about = (steps: readonly LoginStep[], check: LoginStep['check']) =>
  steps.filter((step) => step.check === check)
const deny = {
  action: 'deny',
  active: true,
  priority: 3,
  source_ip: '.*',
  username: '.*',
  filter: { hostname: '.*' },
} as const

/** Adds a firewall rule until it is disposed of. */
async function rule(change: Partial<Parameters<Client['firewall']['create']>[0]['body']>) {
  const { body } = await administrator.firewall.create({ body: { ...deny, ...change } })
  const { id } = body
  return {
    id,
    [Symbol.asyncDispose]: async () => void (await administrator.firewall.remove({ params: { id } })),
  }
}

describe('each step says what it found', () => {
  test('a login that nothing refuses', async () => {
    const answer = await ask()
    expect(answer).toMatchObject({ verdict: 'allowed', source: '192.0.2.7' })
    expect(answer.steps.map(({ check, verdict }) => `${check} ${verdict}`)).toEqual([
      'device passed',
      'connection passed',
      'firewall passed',
      'device-limit passed',
      'key passed',
      'account unknown',
      'policy passed',
    ])
    expect(answer.steps[4]).toMatchObject({
      sentence: 'The key “olga” is good for pilot on crane-9.',
      rule: { kind: 'public-key', id: fingerprintMd5(olga.blob), name: 'olga' },
    })
  })

  test('the firewall, rule by rule until one decides', async () => {
    await using other = await rule({ priority: 0, source_ip: '^198\\.51\\.100\\.' })
    await using tagged = await rule({ priority: 0, filter: { tags: [sample.tag] } })
    await using decides = await rule({ priority: 0, username: '^pi' })
    await using _ = await rule({ priority: 0 })
    const { verdict, sentence, steps } = await ask()
    expect(about(steps, 'firewall')).toEqual([
      {
        check: 'firewall',
        verdict: 'ignored',
        sentence: `Rule ${other.id} (deny, priority 0) does not apply: the address 192.0.2.7 does not match ^198\\.51\\.100\\..`,
        parts: [
          {
            name: 'rule-ignored',
            values: { rule: other.id, action: 'deny', priority: 0 },
            list: [{ name: 'other-source', values: { source: '192.0.2.7', pattern: '^198\\.51\\.100\\.' } }],
          },
        ],
        rule: expect.objectContaining({ path: `/api/firewall/rules/${other.id}` }) as unknown,
      },
      expect.objectContaining({
        verdict: 'ignored',
        sentence: `Rule ${tagged.id} (deny, priority 0) does not apply: the device has none of the tags ${sample.tag}.`,
      }),
      expect.objectContaining({
        verdict: 'refused',
        sentence: `Rule ${decides.id} (deny, priority 0) applies and denies the login.`,
      }),
    ])
    expect({ verdict, sentence }).toEqual({
      verdict: 'refused',
      sentence: about(steps, 'firewall')[2]?.sentence,
    })
  })

  test.each([
    ['its name', 'olga'],
    ['its SHA-256', fingerprintSha256(olga.blob)],
    ['its MD5', fingerprintMd5(olga.blob)],
  ])('a key by %s', async (_, key) => {
    expect((await ask({ key })).verdict).toBe('allowed')
  })

  test('a key that is unknown, for another user, or an authority', async () => {
    expect(about((await ask({ key: fingerprintSha256(mallory.blob) })).steps, 'key')).toEqual([
      {
        check: 'key',
        verdict: 'refused',
        sentence: 'The namespace does not know the key.',
        parts: [{ name: 'key-refused', values: { because: 'The namespace does not know the key.' } }],
      },
    ])
    expect(about((await ask({ key: 'office', username: 'root' })).steps, 'key')).toMatchObject([
      {
        verdict: 'refused',
        sentence: 'The key “office” is not for this login: the user root does not match ^pilot$.',
        rule: { kind: 'public-key', name: 'office' },
      },
    ])
    expect(about((await ask({ key: 'office' })).steps, 'key')).toMatchObject([{ verdict: 'unknown' }])
    // A browser has plain keys only.
    expect(about((await ask({ key: 'office', via: 'browser' })).steps, 'key')).toMatchObject([
      { verdict: 'refused' },
    ])
    await expect(ask({ key: 'laptop' })).rejects.toMatchObject({ status: 409 })
  })

  test.each([
    ['buoy', 'buoy is pending: it must be accepted before people can reach it.'],
    [sample.pendingDevice, 'buoy is pending: it must be accepted before people can reach it.'],
    ['nobody', `The namespace ${sample.namespace} has no device nobody.`],
    ['f'.repeat(64), `The namespace ${sample.namespace} has no device ${'f'.repeat(64)}.`],
  ])('the device %s', async (device, sentence) => {
    expect(await ask({ device })).toMatchObject({ verdict: 'refused', sentence })
  })

  test('a device that is offline is refused, and the steps after it are given all the same', async () => {
    const { sentence, steps } = await ask({ device: `${sample.namespace}.crane-1` })
    expect(sentence).toMatch(/^crane-1 is offline\./)
    expect(about(steps, 'key')).toMatchObject([{ verdict: 'passed' }])
  })

  test('an agent that is too old for logins by key', async () => {
    const here = door.service.rooms.stores.of(sample.tenant).devices
    await here.save(door.agent.uid, { info_version: 'v0.5.9' })
    try {
      expect((await ask()).sentence).toContain('too old to check logins by key')
    } finally {
      await here.save(door.agent.uid, { info_version: 'v0.16.4' })
    }
  })

  test('a namespace that only allows identified users', async () => {
    const { namespaces } = door.service.rooms.stores
    await namespaces.save(sample.tenant, { require_person: 1 })
    try {
      expect(about((await ask()).steps, 'person')).toMatchObject([{ verdict: 'refused' }])
      expect((await ask()).sentence).toContain('has no owner')
      const byPassword = { device: 'crane-9', username: 'pilot', source: '192.0.2.7' }
      const { body: ssh } = await administrator.logins.explain({ body: byPassword })
      expect(ssh.sentence).toContain('a password identifies nobody')
      // The browser and hawser ssh say who is signed in, whatever the key or the password says.
      const { username: person } = sample.operator
      for (const via of ['browser', 'cli'] as const)
        for (const asked of [{ key: 'olga' }, { key: 'olga', person }, {}, { person }]) {
          const { body } = await administrator.logins.explain({ body: { ...byPassword, via, ...asked } })
          expect(body.verdict).toBe('allowed')
          expect(about(body.steps, 'person')).toMatchObject([{ verdict: 'passed' }])
        }
      // Of somebody else hawser ssh says nothing.
      const stranger = await ask({ via: 'cli', person: 'stan' })
      expect(about(stranger.steps, 'membership')).toMatchObject([{ verdict: 'ignored' }])
      expect(stranger.sentence).toContain('has no owner')
    } finally {
      await namespaces.save(sample.tenant, { require_person: 0 })
    }
  })

  test('members and others', async () => {
    expect(about((await ask({ person: sample.operator.username })).steps, 'membership')).toMatchObject([
      { verdict: 'passed', sentence: 'oskar is a member of the namespace: operator.' },
    ])
    expect(about((await ask({ person: 'stan' })).steps, 'membership')).toMatchObject([{ verdict: 'ignored' }])
    for (const via of loginClients) {
      const { steps } = await ask({ person: sample.observer.username, via })
      expect(
        steps.slice(0, via === 'ssh' ? 2 : 3).map(({ check, verdict }) => `${check} ${verdict}`),
      ).toEqual([...(via === 'ssh' ? [] : ['sign-in unknown']), 'membership passed', 'role passed'])
      expect(about(steps, 'role')).toMatchObject([{ sentence: 'The role observer may open sessions.' }])
    }
    // An account that exists and one that does not get the same answer.
    for (const person of ['stan', 'nobody'])
      expect(await ask({ person, via: 'browser' })).toMatchObject({
        verdict: 'refused',
        sentence: `${person} is not a member of the namespace, and only members open terminals here.`,
      })
  })

  test('too many wrong passwords from an address', async () => {
    const source = '203.0.113.9'
    const asked = { device: 'crane-9', username: 'pilot', source }
    const first = (await administrator.logins.explain({ body: asked })).body
    // What an address did elsewhere on the server is not told; what one's own did is.
    expect(about(first.steps, 'attempts')).toMatchObject([{ verdict: 'unknown' }])
    const own = (await administrator.logins.explain({ body: { device: 'crane-9', username: 'pilot' } })).body
    expect(about(own.steps, 'attempts')).toMatchObject([{ verdict: 'passed' }])
    await using strict = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '1/600' })
    const client = await strict.knock({ from: source })
    await client.attempt(`pilot@${sample.namespace}.crane-9`, { method: 'password', password: 'wrong' })
    const api = strict.service.api({ token: await strict.world.token('administrator') })
    // A refusal is told when the connection is over.
    strict.leave()
    await eventually(async () => {
      const { body } = await api.logins.explain({ body: asked })
      expect(about(body.steps, 'attempts')).toMatchObject([{ verdict: 'refused' }])
    })
  })
})

/** Logs in this way, as the administrator where the way names somebody. Whether that was accepted. */
async function logsIn(via: LoginClient, username: string, source: string, key: PrivateKey): Promise<boolean> {
  if (via === 'browser') {
    const { body } = await administrator.terminals.open({
      body: { device: door.agent.uid, username, fingerprint: fingerprintMd5(key.blob) },
    })
    using shell = await dial(door.service, body.token, { headers: { 'x-forwarded-for': source } })
    const next = (...kinds: string[]) =>
      eventually(() => shell.news.find(({ kind }) => kinds.includes(kind)) ?? expect.unreachable())
    const asked = await next('sign', 'end')
    if (asked.kind !== 'sign') return false
    const signature = sign(null, Buffer.from(asked.challenge, 'base64'), key.object)
    shell.say({ kind: 'signature', signature: signature.toString('base64') })
    return (await next('session', 'end')).kind === 'session'
  }
  const client = await door.knock({ from: source })
  const target = `${username}@${sample.namespace}.crane-9`
  if (via === 'cli') {
    const own = generatePrivateKey('ed25519')
    const { body } = await administrator.identityCertificates.create({
      body: { public_key: publicKeyLine(own.type, own.blob) },
    })
    const named = await client.attempt(target, {
      method: 'publickey',
      key: withCertificate(own, body.certificate),
    })
    expect(named).toMatchObject({ partial: true })
  }
  const answer = await client.attempt(target, { method: 'publickey', key }).catch(() => ({ accepted: false }))
  return answer.accepted
}

test('the verdict is the one that the login gets, whatever the rules, the key and the way', async () => {
  const pattern = fc.constantFrom('.*', '^pilot$', '^drunk$', 'ilo')
  const filter = fc.constantFrom<{ hostname: string } | { tags: string[] }>(
    { hostname: '.*' },
    { hostname: '^crane' },
    { hostname: '^winch' },
    { tags: [sample.tag] },
  )
  const rules = fc.array(
    fc.record({
      action: fc.constantFrom('allow' as const, 'deny' as const),
      active: fc.boolean(),
      priority: fc.nat(3),
      source_ip: fc.constantFrom('.*', '^192\\.0\\.2\\.', '^198\\.'),
      username: pattern,
      filter,
    }),
    { maxLength: 4 },
  )
  const key = { username: pattern, filter, owner: fc.constantFrom('', sample.operator.username) }
  const login = fc.record({
    username: fc.constantFrom('pilot', 'drunk'),
    network: fc.constantFrom('192.0.2', '198.51.100'),
    via: fc.constantFrom(...loginClients),
    require_person: fc.constantFrom(0 as const, 1 as const),
  })
  const example = <const All extends unknown[]>(...all: All): All => all
  const { namespaces } = door.service.rooms.stores
  // Each login comes from an address of its own: a source that is refused again and again is not listened to.
  let visitors = 0
  await fc.assert(
    fc.asyncProperty(rules, fc.record(key), login, async (wanted, scope, asked) => {
      const { username, network, via, require_person } = asked
      const source = `${network}.${(visitors += 1) % 256}`
      const fresh = generatePrivateKey('ed25519')
      await door.register(fresh, { name: 'fresh', ...scope })
      const fingerprint = fingerprintMd5(fresh.blob)
      const made = await Promise.all(wanted.map(rule))
      await namespaces.save(sample.tenant, { require_person })
      try {
        const person = via === 'ssh' ? {} : { person: sample.administrator.username }
        const { verdict } = await ask({ username, source, key: fingerprint, via, ...person })
        const accepted = await logsIn(via, username, source, fresh)
        // The device of this test lets in only the pilot.
        if (username === 'pilot') expect(accepted).toBe(verdict === 'allowed')
        else expect(accepted && verdict === 'refused').toBe(false)
      } finally {
        await namespaces.save(sample.tenant, { require_person: 0 })
        door.leave()
        for (const one of made) await one[Symbol.asyncDispose]()
        await administrator.publicKeys.remove({ params: { fingerprint } })
      }
    }),
    {
      numRuns: times(15, 150),
      // An ownerless key where people must be known: refused to SSH clients only.
      examples: loginClients.map((via) =>
        example(
          [] as never[],
          { username: '.*', filter: { hostname: '.*' }, owner: '' },
          {
            username: 'pilot',
            network: '192.0.2',
            via,
            require_person: 1,
          },
        ),
      ),
    },
  )
})

describe('who asks', () => {
  test.each(['operator', 'observer'] as const)('an %s is not told', async (person) => {
    const api = door.service.api({ token: await door.world.token(person) })
    await expect(
      api.logins.explain({ body: { device: 'crane-9', username: 'pilot' } }),
    ).rejects.toMatchObject({ status: 403 })
  })

  test('another namespace learns nothing of this one, by a name, a uid or a key', async () => {
    const stranger = door.service.api({ token: await door.world.token('stranger') })
    for (const device of ['crane-9', `${sample.namespace}.crane-9`, door.agent.uid]) {
      const { body } = await stranger.logins.explain({ body: { device, username: 'pilot', key: 'olga' } })
      expect(body.steps).toHaveLength(1)
      expect(body.sentence).toMatch(/^The namespace elsewhere has no device /)
    }
  })

  test.each([
    { source: 'localhost' },
    { source: '192.0.2.7; drop table devices' },
    { username: '' },
    { username: 'x'.repeat(129) },
    { device: '' },
    { key: '' },
    { via: 'telnet' },
  ])('%j is refused', async (change) => {
    await expect(ask(change as Asked)).rejects.toMatchObject({ status: 400 })
  })

  test('asking changes nothing: no session, no line, no count', async () => {
    const before = door.service.log().length
    const failed = [...door.service.reach.logins.refused]
    await ask({ key: 'SHA256:nothing', username: 'drunk' })
    expect(door.service.log().slice(before)).not.toContain('login.refused')
    expect([...door.service.reach.logins.refused]).toEqual(failed)
  })
})

test('hawser why: a line for each step, and a code for scripts', async () => {
  using desk = openDesk({ HAWSER_SERVER: door.service.url, HAWSER_API_KEY: sample.apiKey })
  const allowed = await desk.hawser(['why', `pilot@${sample.namespace}.crane-9`, '--key', 'olga'])
  expect(allowed.code, allowed.stderr).toBe(0)
  expect(allowed.stdout).toMatch(/^ok +device +crane-9 is an accepted device of harbour\.$/m)
  expect(allowed.stderr).toBe(
    'Allowed: Nothing here refuses the login; the device itself decides the rest.\n',
  )
  await using denies = await rule({ priority: 0, source_ip: '^203\\.0\\.113\\.' })
  const refused = await desk.hawser(['why', 'pilot@crane-9', '--key', 'olga', '--from', '203.0.113.5'])
  expect(refused.code).toBe(1)
  expect(refused.stdout).toContain(`REFUSED  firewall`)
  expect(refused.stderr).toBe(`Refused: Rule ${denies.id} (deny, priority 0) applies and denies the login.\n`)
  const json = await desk.hawser(['why', 'pilot@crane-9', '--from', '203.0.113.5', '-o', 'json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ verdict: 'refused', source: '203.0.113.5' })
  const { username } = sample.operator
  const named = await desk.hawser(['why', 'pilot@crane-9', '--key', 'olga', '--cli', '--person', username])
  expect(named.stdout).toMatch(
    /^\? +sign-in .*\nok +membership .*\nok +role +The role operator may open sessions\.$/m,
  )
})
