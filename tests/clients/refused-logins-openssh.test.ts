// A person whom OpenSSH tells that they cannot get in reads a reference to an administrator, who finds the
// reason by it. The reference is there for everybody, looks the same whatever the reason, and is in the log.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { fingerprintSha256, generatePrivateKey } from '@hawser/ssh'
import { openDesk } from '../../cli/test/program.ts'
import { sshid, startDoor, type Door } from '../attacks/door.ts'
import { eventually, sharedWay } from './way.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const way = sharedWay()
const shape = /\(reference ([2-9A-HJKMNP-Z]{4}-[2-9A-HJKMNP-Z]{4})\)/
const referenceIn = (text: string): string => {
  const [, reference = ''] = shape.exec(text) ?? []
  expect(reference, text).not.toBe('')
  return reference
}

test('OpenSSH shows the reference, and an administrator finds the firewall rule by it', async () => {
  const { body: rule } = await way.owner.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '.*',
      username: '^drunk$',
      filter: { hostname: '.*' },
    },
  })
  const { status, stderr } = await way.ssh('true', { user: 'drunk' })
  expect(status).toBe(255)
  const reference = referenceIn(stderr)
  const administrator = way.service.api({ token: await way.world.token('administrator') })
  await eventually(async () =>
    expect((await administrator.logins.refusal({ params: { reference } })).body).toMatchObject({
      reference,
      reason: 'firewall',
      sentence: 'A firewall rule denied the login.',
      rule: rule.id,
      username: 'drunk',
      device: way.agent.uid,
      source: '127.0.0.1',
      via: 'ssh',
      times: 1,
    }),
  )
  expect(way.service.log()).toContain(`"reference":"${reference}"`)
  using desk = openDesk({ HAWSER_SERVER: way.service.url, HAWSER_API_KEY: sample.apiKey })
  const said = await desk.hawser(['logins', 'refusal', reference.toLowerCase().replace('-', '')])
  expect(said.code, said.stderr).toBe(0)
  expect(said.stdout).toMatch(/sentence +A firewall rule denied the login\./)
  await way.owner.firewall.remove({ params: { id: rule.id } })
})

let door: Door
let administrator: Client
const olga = generatePrivateKey('ed25519')
beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '1000/600' })
  administrator = door.service.api({ token: await door.world.token('administrator') })
  await door.register(olga, { username: '^captain$', name: 'bridge' })
})
afterAll(async () => door[Symbol.asyncDispose]())

async function refusedPassword(user: string, from: string): Promise<string> {
  const banners: string[] = []
  const client = await door.knock({ from, banners })
  await client.attempt(user, { method: 'password', password: 'wrong' })
  door.leave()
  return referenceIn(banners.join(''))
}

test.each([
  ['password', sshid],
  ['unknown-device', `pilot@${sample.namespace}.nobody`],
  ['unknown-device', `pilot@${sample.namespace}.buoy`],
  ['offline', `pilot@${sample.namespace}.crane-1`],
])('a stranger’s reference leads to the reason %s, which the stranger is not told', async (reason, user) => {
  const reference = await refusedPassword(user, '198.51.100.1')
  await eventually(async () =>
    expect((await administrator.logins.refusal({ params: { reference } })).body).toMatchObject({
      reason,
      sshid: user,
      method: 'password',
      source: '198.51.100.1',
    }),
  )
  expect(JSON.stringify((await administrator.logins.refusals()).body)).not.toContain('wrong')
})

test('the same login, tried again, has one reference and a count; a key that does not fit is named', async () => {
  const from = '198.51.100.2'
  const first = await refusedPassword(sshid, from)
  expect(await refusedPassword(sshid, from)).toBe(first)
  expect(await refusedPassword(sshid.replace('pilot', 'cook'), from)).not.toBe(first)
  await eventually(async () =>
    expect((await administrator.logins.refusal({ params: { reference: first } })).body.times).toBe(2),
  )
  const client = await door.knock({ from: '198.51.100.3' })
  await client.attempt(sshid, { method: 'publickey', key: olga })
  door.leave()
  await eventually(async () =>
    expect((await administrator.logins.refusals()).body[0]).toMatchObject({
      reason: 'key-scope',
      rule: 'bridge',
      fingerprint: fingerprintSha256(olga.blob),
      source: '198.51.100.3',
    }),
  )
})

test('other namespaces find nothing by it, and roles below an administrator are refused', async () => {
  const reference = await refusedPassword(sshid, '198.51.100.4')
  await eventually(() => administrator.logins.refusal({ params: { reference } }))
  const as = async (person: 'stranger' | 'operator') =>
    door.service.api({ token: await door.world.token(person) })
  await expect((await as('stranger')).logins.refusal({ params: { reference } })).rejects.toMatchObject({
    status: 404,
  })
  await expect((await as('operator')).logins.refusal({ params: { reference } })).rejects.toMatchObject({
    status: 403,
  })
  await expect((await as('operator')).logins.refusals()).rejects.toMatchObject({ status: 403 })
})
