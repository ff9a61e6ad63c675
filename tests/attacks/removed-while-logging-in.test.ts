// A member who is about to be removed begins to log in and takes time over it: they show their identity
// certificate and keep the connection waiting, or their device is slow to answer. The removal falls between,
// when no session is open that could be ended. The login is judged by what holds when it happens.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  fingerprintMd5,
  generatePrivateKey,
  publicKeyLine,
  startSession,
  withCertificate,
  type Unauthenticated,
} from '@hawser/ssh'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startDoor, type Door } from './door.ts'

let door: Door
let device: OldAgent
/** The device answers a login when the test says so. */
let asked = Promise.withResolvers<void>()
let answer = Promise.resolve()
const slow = `pilot@${sample.namespace}.slow`
const own = generatePrivateKey('ed25519')

const clientOf = async (who: Parameters<Door['world']['token']>[0]) =>
  door.service.api({ token: await door.world.token(who) })

beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '0/60' })
  device = await startOldAgent(door.service, {
    version: 2,
    tenant_id: sample.tenant,
    hostname: 'slow',
    async hesitate() {
      asked.resolve()
      await answer
    },
  })
  await (await clientOf('owner')).devices.accept({ params: { uid: device.uid } })
})
afterAll(async () => {
  await device[Symbol.asyncDispose]()
  await door[Symbol.asyncDispose]()
})

/** Makes the device wait with its next answer until the change is made. */
async function during<T>(login: () => Promise<T>, change: () => Promise<unknown>): Promise<T> {
  asked = Promise.withResolvers()
  const answering = Promise.withResolvers<void>()
  answer = answering.promise
  const waiting = login()
  await asked.promise
  await change()
  answering.resolve()
  return waiting
}

const identify = async (client: Unauthenticated, certificate: string) =>
  expect(
    await client.attempt(slow, { method: 'publickey', key: withCertificate(own, certificate) }),
  ).toMatchObject({ accepted: false, partial: true })

const certificateOf = async (api: Awaited<ReturnType<typeof clientOf>>): Promise<string> =>
  (await api.identityCertificates.create({ body: { public_key: publicKeyLine(own.type, own.blob) } })).body
    .certificate

const withPassword = async (client: Unauthenticated) =>
  client.attempt(slow, { method: 'password', password: 'pilot' })

const personRequired = async (require_person: boolean) =>
  (await clientOf('owner')).namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { require_person } },
  })

const removed = async (uid: string) =>
  (await clientOf('owner')).namespaces.removeMember({ params: { tenant: sample.tenant, uid } })

/** The session that the client has got ends with this sentence, and its device has run nothing for it. */
async function endsWith(client: Unauthenticated, sentence: string): Promise<void> {
  const before = device.seen.sessions.length
  const connection = client.connection()
  await expect(startSession(connection, { program: { type: 'shell' } })).rejects.toThrow()
  expect(await connection.ended).toMatchObject({ by: 'peer', message: sentence })
  expect(device.seen.sessions).toHaveLength(before)
  await eventually(() => expect(door.service.reach.sessions.size).toBe(0))
}

test('a former member’s certificate, shown before the removal, names nobody after it', async () => {
  await personRequired(true)
  const client = await door.knock()
  await identify(client, await certificateOf(await clientOf('operator')))
  await removed(sample.operator.id)
  await expect(withPassword(client)).rejects.toThrow('requires an identified user')
  expect(door.service.reach.sessions.size).toBe(0)
})

test('nor does the certificate of an API key that is deleted while the device checks the password', async () => {
  await personRequired(true)
  const client = await door.knock()
  await identify(client, await certificateOf(door.service.api({ apiKey: sample.apiKey })))
  const remove = async () => (await clientOf('owner')).apiKeys.remove({ params: { key: sample.apiKeyName } })
  await expect(during(async () => withPassword(client), remove)).rejects.toThrow(
    'requires an identified user',
  )
  expect(door.service.reach.sessions.size).toBe(0)
})

test('where people may be unknown, the former member is one of them', async () => {
  await personRequired(false)
  const client = await door.knock()
  await identify(client, await certificateOf(await clientOf('careful')))
  await removed(sample.careful.id)
  expect(await withPassword(client)).toMatchObject({ accepted: true })
  const connection = client.connection()
  const [latest] = (await (await clientOf('owner')).sessions.list({ query: {} })).body
  expect(latest).toMatchObject({ person: { kind: 'unknown' } })
  await connection.end()
  await eventually(() => expect(door.service.reach.sessions.size).toBe(0))
})

test('a member who is removed while the device answers has no session', async () => {
  const key = generatePrivateKey('ed25519')
  await door.register(key, { name: 'hers', owner: sample.observer.id })
  const client = await door.knock()
  const login = async () => client.attempt(slow, { method: 'publickey', key })
  expect(await during(login, async () => removed(sample.observer.id))).toMatchObject({ accepted: true })
  await endsWith(client, 'You are no longer a member of the namespace.')
})

test('a key that was registered for somebody at the moment of their removal lets nobody in', async () => {
  const key = generatePrivateKey('ed25519')
  await door.register(key, { name: 'late' })
  const { publicKeys } = door.service.rooms.stores.of(sample.tenant)
  // The membership took the keys that were there; this one came after them.
  await publicKeys.save(fingerprintMd5(key.blob), { owner: sample.observer.id })
  const client = await door.knock()
  expect(await client.attempt(slow, { method: 'publickey', key })).toMatchObject({ accepted: false })
  client.transport.end(new Error('That was all.') as never)
})

test('a key of nobody in particular that is deleted while the device answers opens nothing', async () => {
  const key = generatePrivateKey('ed25519')
  await door.register(key, { name: 'shared' })
  const client = await door.knock()
  const login = async () => client.attempt(slow, { method: 'publickey', key })
  const remove = async () =>
    (await clientOf('owner')).publicKeys.remove({ params: { fingerprint: fingerprintMd5(key.blob) } })
  expect(await during(login, remove)).toMatchObject({ accepted: true })
  await endsWith(client, 'The public key that opened the session was removed.')
})
