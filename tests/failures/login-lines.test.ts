// What whoever runs the server reads about a login that was refused: one line with who, from where, to what,
// with which key, and which rule refused. Whoever was refused learns none of it. A flood of refused logins is
// cut, and counted.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { fingerprintSha256, generatePrivateKey, type PrivateKey } from '@hawser/ssh'
import { onlineDevice, sshid, startDoor, type Door } from '../attacks/door.ts'
import { apiOf, dial, openQuarters, type Quarters } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'
import type { Service } from '../harness/service.ts'
import type { Line } from './program.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const olga = generatePrivateKey('ed25519')
const limited = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')
let door: Door
let rule: string

beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '2/600' })
  await door.register(olga)
  await door.register(limited, { name: 'night watch', username: '^watch$' })
  const owner = door.service.api({ token: await door.world.token('owner') })
  const { body } = await owner.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '.*',
      username: '^drunk$',
      filter: { hostname: '.*' },
    },
  })
  rule = body.id
})
afterAll(async () => door[Symbol.asyncDispose]())

const linesOf = (service: Service, event: string): Line[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes(`"event":"${event}"`))
    .map((line) => JSON.parse(line) as Line)

/** The lines about this source, once there are so many. */
async function refusals(source: string, count = 1): Promise<Line[]> {
  return eventually(() => {
    const found = linesOf(door.service, 'login.refused').filter((line) => line['source'] === source)
    expect(found).toHaveLength(count)
    return found
  })
}

let last = 0
const newSource = (): string => `198.51.100.${(last += 1)}`

/** Tries, leaves, and gives the one line about it. */
async function refusal(user: string, ...attempts: ({ password: string } | { key: PrivateKey })[]) {
  const from = newSource()
  const client = await door.knock({ from })
  for (const attempt of attempts) {
    const method =
      'key' in attempt
        ? ({ method: 'publickey', ...attempt } as const)
        : ({ method: 'password', ...attempt } as const)
    const answer = await client.attempt(user, method).catch(() => ({ accepted: false }))
    expect(answer).toMatchObject({ accepted: false })
  }
  expect(linesOf(door.service, 'login.refused').filter(({ source }) => source === from).length).toBeLessThan(
    2,
  )
  door.leave()
  const [line] = await refusals(from)
  return line
}

describe('a refused login is one line', () => {
  test('with a wrong password: who, from where, to which device', async () => {
    const line = await refusal(sshid, { password: 'wrong' }, { password: 'wronger' })
    expect(line).toMatchObject({
      level: 'info',
      reason: 'password',
      method: 'password',
      username: 'pilot',
      sshid,
      name: onlineDevice,
      device: door.agent.uid,
      tenant_id: sample.tenant,
      via: 'ssh',
      attempts: 2,
    })
    expect(JSON.stringify(line)).not.toContain('wrong')
  })

  test('with several unknown keys: one line, which names the keys by SHA-256', async () => {
    const keys = [mallory, generatePrivateKey('ed25519'), generatePrivateKey('ed25519')]
    const line = await refusal(sshid, ...keys.map((key) => ({ key })))
    expect(line).toMatchObject({
      reason: 'unknown-key',
      method: 'publickey',
      fingerprint: fingerprintSha256(mallory.blob),
      keys_tried: keys.map(({ blob }) => fingerprintSha256(blob)),
    })
  })

  test('with a key that is merely shown', async () => {
    const from = newSource()
    const client = await door.knock({ from })
    const shown = {
      blob: mallory.blob,
      algorithms: mallory.algorithms,
      askFirst: true,
      sign: (): never => {
        throw new Error('not signed')
      },
    }
    expect(await client.attempt(sshid, { method: 'publickey', key: shown })).toMatchObject({
      accepted: false,
    })
    door.leave()
    expect(await refusals(from)).toMatchObject([
      { reason: 'unknown-key', fingerprint: fingerprintSha256(mallory.blob), attempts: 1 },
    ])
  })

  test('with a registered key for another user: the key by its name, though an unknown key came later', async () => {
    const line = await refusal(sshid, { key: limited }, { key: mallory })
    expect(line).toMatchObject({
      reason: 'key-scope',
      rule: 'night watch',
      fingerprint: fingerprintSha256(limited.blob),
    })
  })

  test('with a signature that the key did not make', async () => {
    const line = await refusal(sshid, { key: { ...mallory, blob: olga.blob } })
    expect(line).toMatchObject({ reason: 'signature', fingerprint: fingerprintSha256(olga.blob) })
  })

  test.each([
    ['a stranger', { password: 'pilot' }],
    ['the holder of a key', { key: olga }],
  ])('of %s whom the firewall denies: the rule by its id', async (_, attempt) => {
    expect(await refusal(sshid.replace('pilot', 'drunk'), attempt)).toMatchObject({
      reason: 'firewall',
      rule,
      username: 'drunk',
      device: door.agent.uid,
    })
  })

  test.each([
    ['unknown-device', `pilot@${sample.namespace}.nobody`, undefined],
    ['unknown-device', 'pilot@nowhere.crane-9', undefined],
    ['offline', `pilot@${sample.namespace}.crane-1`, sample.device],
    ['invalid-sshid', 'root', undefined],
  ])('to what cannot be reached, as %s: what was asked for', async (reason, user, device) => {
    const line = await refusal(user, { password: 'pilot' })
    expect(line).toMatchObject({ reason, sshid: user })
    expect(line?.['device']).toBe(device)
  })

  test('of a source that has to wait', async () => {
    const from = newSource()
    const client = await door.knock({ from })
    for (let attempt = 0; attempt < 2; attempt += 1)
      await client.attempt(sshid, { method: 'password', password: `wrong ${attempt}` })
    const late = await door.knock({ from })
    await expect(late.attempt(sshid, { method: 'password', password: 'pilot' })).rejects.toThrow()
    door.leave()
    const lines = await refusals(from, 2)
    expect(lines.map((line) => String(line['reason']))).toEqual(['rate-limited', 'password'])
  })

  test('of a device that joins with an unknown enrolment key', async () => {
    const from = newSource()
    const client = await door.knock({ from })
    await client.attempt(randomUUID(), { method: 'publickey', key: mallory })
    await eventually(() => {
      door.leave()
      expect(
        linesOf(door.service, 'enrolment.refused').filter((line) => line['source'] === from),
      ).toMatchObject([{ reason: 'enrolment-key', fingerprint: fingerprintSha256(mallory.blob) }])
    })
  })
})

test('whoever tries nothing, or logs in after all, leaves no line about a refusal; a session says by which key', async () => {
  const from = newSource()
  const client = await door.knock({ from })
  await client.attempt(sshid, { method: 'none' })
  const right = await door.knock({ from })
  await right.attempt(sshid, { method: 'publickey', key: mallory })
  expect(await right.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
  await right.connection().end()
  door.leave()
  await eventually(() => expect(door.service.reach.ssh.unauthenticated).toBe(0))
  const started = linesOf(door.service, 'session.started').filter((line) => line['source'] === from)
  expect(started).toMatchObject([
    { method: 'publickey', fingerprint: fingerprintSha256(olga.blob), refused: 1, username: 'pilot' },
  ])
  expect(linesOf(door.service, 'login.refused').filter((line) => line['source'] === from)).toEqual([])
})

test('what a stranger sends is short in the log, and no terminal acts on it', async () => {
  const line = await refusal(`a\u009b2J\u202e@${'x'.repeat(200)}\u001b]0;owned\u0007`, { password: 'x' })
  expect(line?.['sshid']).toMatch(/^a\?2J\?@x{194}…$/)
  expect(line?.['username']).toBe('a?2J?')
})

test('a flood of refused logins is cut, told and counted', async () => {
  const from = newSource()
  // Whoever logged in lately may connect as fast as they like.
  const known = await door.knock({ from })
  await known.attempt(sshid, { method: 'publickey', key: olga })
  const before = door.service.reach.logins.refused.of('invalid-sshid')
  for (let round = 0; round < 10; round += 1) {
    const clients = await Promise.all(Array.from({ length: 5 }, () => door.knock({ from })))
    await Promise.all(clients.map((client) => client.attempt('root', { method: 'none' }).catch(() => 0)))
  }
  door.leave()
  await eventually(() => expect(door.service.reach.logins.refused.of('invalid-sshid')).toBe(before + 50))
  expect(await refusals(from, 20)).toHaveLength(20)
})

describe('a terminal of a browser', () => {
  let quarters: Quarters
  beforeAll(async () => void (quarters = await openQuarters()))
  afterAll(async () => quarters[Symbol.asyncDispose]())

  test('that is refused is one line, too, with the person at the browser', async () => {
    const { service, agent, user } = quarters
    const api = await apiOf(quarters)
    const { body } = await api.terminals.openOld({
      body: { device: agent.uid, username: user.name, password: 'wrong' },
    })
    using refused = await dial(service, body.token)
    expect(await refused.closed).toBe(1008)
    expect(linesOf(service, 'login.refused')).toMatchObject([
      {
        via: 'web',
        by: sample.observer.username,
        reason: 'password',
        username: user.name,
        device: agent.uid,
        attempts: 1,
      },
    ])
  })
})
