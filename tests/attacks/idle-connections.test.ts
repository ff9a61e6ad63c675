// A thousand connections from two addresses that say nothing shut everybody out for two minutes, people in a
// browser too. One source has a small share of the places of those who have not logged in; with many sources
// newcomers are dropped at random, but places are kept for those who logged in lately, and a browser's
// terminal does not compete with strangers.
import { once } from 'node:events'
import type net from 'node:net'
import { expect, test } from 'vitest'
import { generatePrivateKey } from '@hawser/ssh'
import { startups, type Startup } from '../../server/src/gateway/login/startups.ts'
import { dial } from '../clients/web.ts'
import { until } from '../harness/eventually.ts'
import { sshid, startDoor, type Door } from './door.ts'

const olga = generatePrivateKey('ed25519')
async function start(): Promise<Door> {
  const door = await startDoor()
  await door.register(olga)
  return door
}

async function logIn(door: Door, from: string): Promise<void> {
  const client = await door.knock({ from })
  expect(await client.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
  await client.connection().end()
}

/** Whether the server speaks to a connection, or closes it. The connection stays, and says nothing. */
async function isTaken(door: Door, from: string): Promise<boolean> {
  const socket: net.Socket = await door.dial(from)
  return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)])
}

test(
  'two addresses that hold what they can get leave room for everybody else',
  { timeout: 120_000 },
  async () => {
    await using door = await start()
    const taken = { '198.51.100.1': 0, '198.51.100.2': 0 }
    for (const from of ['198.51.100.1', '198.51.100.2'] as const)
      for (let burst = 0; burst < 10; burst += 1) {
        const came = await Promise.all(Array.from({ length: 50 }, async () => isTaken(door, from)))
        taken[from] += came.filter(Boolean).length
      }
    for (const held of Object.values(taken)) expect(held).toBeLessThanOrEqual(63)
    await logIn(door, '192.0.2.9')
    // When they leave at last, they have to stay away for a while; whoever logged in does not.
    door.service.clock.forward(119_000)
    door.leave()
    await until(() => door.service.reach.ssh.unauthenticated === 0)
    expect(await isTaken(door, '198.51.100.1')).toBe(false)
    await logIn(door, '192.0.2.9')
  },
)

test(
  'a crowd of a thousand addresses keeps no place of those who logged in lately',
  { timeout: 120_000 },
  async () => {
    await using door = await start()
    await logIn(door, '192.0.2.9')
    let taken = 0
    for (let net = 0; net < 20; net += 1) {
      const came = await Promise.all(
        Array.from({ length: 100 }, async (_, host) => isTaken(door, `198.18.${net}.${host}`)),
      )
      taken += came.filter(Boolean).length
    }
    expect(taken).toBeGreaterThanOrEqual(100)
    expect(taken).toBeLessThanOrEqual(800)
    for (let attempt = 0; attempt < 5; attempt += 1) await logIn(door, '192.0.2.9')
    const { service, world, agent } = door
    const body = { device: agent.uid, username: 'pilot', password: 'pilot' }
    const ticket = await service.api({ token: await world.token('observer') }).terminals.open({ body })
    using browser = await dial(service, ticket.body.token)
    expect(await browser.hear('session')).toMatch(/^[0-9a-f]{64}$/)
  },
)

test('a few sources that logged in once do not take all places either', () => {
  const all = startups(
    { now: () => 1_000_000 },
    { perSource: 500, rate: { max: Infinity, window_ms: 1_000 } },
    () => 0.999,
  )
  const enter = (address: string): Startup | undefined => {
    const place = all.enter(address, false)
    return typeof place === 'string' ? undefined : place
  }
  const people = Array.from({ length: 9 }, (_, number) => `198.51.100.${number}`)
  for (const address of people) enter(address)?.loggedIn()
  for (const address of people.slice(1)) for (let count = 0; count < 200; count += 1) enter(address)
  expect(enter('198.51.100.0')).toBeDefined()
  expect(enter('203.0.113.4')).toBeDefined()
})

test('neighbours in a /64 are one source', () => {
  const clock = { now: () => 1_000_000 }
  const all = startups(clock, { perSource: 32, rate: { max: Infinity, window_ms: 1_000 } }, () => 0.999)
  const held: Startup[] = []
  for (let host = 1; host < 10; host += 1) {
    const place = all.enter(`2001:db8::${host}`, false)
    if (typeof place !== 'string') held.push(place)
  }
  expect(held).toHaveLength(4)
  expect(all.enter('2001:db8::ffff', false)).toBe('too many of this source')
})
