// Signatures that were refused left no trace: neither a forged proof at the SSH door, nor an agent's question
// for a login that nobody makes. Each is in the log and counted, and whoever goes on has to wait.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generatePrivateKey } from '@hawser/ssh'
import { eventually } from '../harness/eventually.ts'
import { onlineDevice, sshid, startDoor, withoutReference, type Door } from './door.ts'

let door: Door
const olga = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')
beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '4/600' })
  await door.register(olga)
})
afterAll(async () => door[Symbol.asyncDispose]())

const lines = (event: string): Record<string, unknown>[] =>
  door.service
    .log()
    .split('\n')
    .filter((line) => line.includes(`"${event}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test.each([
  ['by a key that nobody registered', '203.0.113.1', mallory],
  ['by another key, under the name of a registered one', '203.0.113.2', { ...mallory, blob: olga.blob }],
])('a proof %s is logged, and counts', async (_, from, key) => {
  for (let connection = 0; connection < 4; connection += 1) {
    const client = await door.knock({ from })
    expect(await client.attempt(sshid, { method: 'publickey', key })).toMatchObject({ accepted: false })
  }
  const banners: string[] = []
  const client = await door.knock({ from, banners })
  await expect(client.attempt(sshid, { method: 'password', password: 'pilot' })).rejects.toThrow()
  expect(banners.map(withoutReference)).toEqual([
    'Too many failed attempts from your address; wait a while.\r\n',
  ])
  // Whoever has a key that is good does not pay for the guesses of others behind the same address.
  const good = await door.knock({ from })
  expect(await good.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
  await good.connection().end()
  // A login is refused when its connection is over.
  door.leave()
  const refused = await eventually(() => {
    const found = lines('login.refused').filter(
      ({ source, method }) => source === from && method === 'publickey',
    )
    expect(found).toHaveLength(4)
    return found
  })
  for (const line of refused) expect(line).toMatchObject({ sshid: `pilot@${onlineDevice}` })
})

test('a client that shows all keys of its agent fails once, not once per key', async () => {
  const from = '203.0.113.3'
  const client = await door.knock({ from })
  for (let key = 0; key < 5; key += 1)
    await client.attempt(sshid, { method: 'publickey', key: generatePrivateKey('ed25519') })
  const again = await door.knock({ from })
  expect(await again.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
  await again.connection().end()
})

test('a device that asks for signatures of logins that nobody makes is logged, counted and made to wait', async () => {
  const { rooms } = door.service
  const caller = {
    uid: door.agent.uid,
    tenant_id: (await rooms.stores.callers.namespaceOfDevice(door.agent.uid))!,
  }
  const ask = async (): Promise<string> =>
    rooms.signer
      .sign(caller, '19:e2:45:6d:a5:71:0d:a3:10:5c:26:3a:b7:d1:56:0f', JSON.stringify({ Username: 'root' }))
      .then(
        () => 'signed',
        (error: { kind?: string }) => error.kind ?? '',
      )
  const answers: string[] = []
  for (let question = 0; question < 40; question += 1) answers.push(await ask())
  expect(answers.slice(0, 30)).toEqual(Array(30).fill('notFound'))
  expect(answers.slice(30)).toEqual(Array(10).fill('tooMany'))
  expect(lines('signature.refused').length).toBeGreaterThanOrEqual(30)
  expect(lines('signature.refused')[0]).toMatchObject({ device: door.agent.uid })
  expect(rooms.signer.refused).toBe(40)
  // A login that is being made is signed all the same.
  const client = await door.knock({ from: '203.0.113.9' })
  expect(await client.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
  await client.connection().end()
})
