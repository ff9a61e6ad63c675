// An identity certificate says who is signed in at an SSH client. Whoever has one tries to get more out
// of it: a login without anything else, the name of somebody else, a name in another namespace, a name
// that has ended. Whoever has none signs one with a key of their own, or makes the server's key an
// authority of their namespace.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  certify,
  generatePrivateKey,
  judgeCertificate,
  parseCertificate,
  publicKeyLine,
  withCertificate,
  type PrivateKey,
} from '@hawser/ssh'
import { sshid, startDoor, type Door } from './door.ts'

let door: Door
const registered = generatePrivateKey('ed25519')
const own = generatePrivateKey('ed25519')

beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '0/60' })
  await door.register(registered, { name: 'shared' })
})
afterAll(async () => door[Symbol.asyncDispose]())

type Who = Parameters<Door['world']['token']>[0]

const clientOf = async (who: Who) => door.service.api({ token: await door.world.token(who) })

/** The line of a certificate for the attacker's own key, as this person gets it. */
async function certificateOf(who: Who, key: PrivateKey = own): Promise<string> {
  const client = await clientOf(who)
  const { body } = await client.identityCertificates.create({
    body: { public_key: publicKeyLine(key.type, key.blob) },
  })
  return body.certificate
}

const read = (line: string) => parseCertificate(Buffer.from(line.split(' ')[1] ?? '', 'base64'))

let newest = ''
async function newSession() {
  const { body } = await (await clientOf('owner')).sessions.list({ query: {} })
  const session = body.find(({ username }) => username === 'pilot')
  if (session?.uid === newest) return undefined
  newest = session?.uid ?? ''
  return session
}
beforeEach(async () => void (await newSession()))

/** Shows the certificate, then logs in with the registered key; whether each was taken, and the session. */
async function comesWith(certificate: string, target = sshid) {
  const client = await door.knock()
  const shown = await client.attempt(target, { method: 'publickey', key: withCertificate(own, certificate) })
  const { accepted } = await client.attempt(target, { method: 'publickey', key: registered })
  if (accepted) await client.connection().end()
  else client.transport.end(new Error('That was all.') as never)
  return { shown, accepted, session: await newSession() }
}

test('with a registered key it names who asked for it', async () => {
  const { shown, accepted, session } = await comesWith(await certificateOf('observer'))
  expect(shown).toMatchObject({ accepted: false, partial: true })
  expect(accepted).toBe(true)
  expect(session).toMatchObject({ person: { kind: 'user', name: 'vera' }, via: 'cli' })
})

test('alone it lets nobody in, however often it is shown', async () => {
  const certificate = withCertificate(own, await certificateOf('owner'))
  const client = await door.knock()
  for (let i = 0; i < 5; i += 1) {
    const { accepted } = await client.attempt(sshid, { method: 'publickey', key: certificate })
    expect(accepted).toBe(false)
  }
  expect((await client.attempt(sshid, { method: 'publickey', key: own })).accepted).toBe(false)
  client.transport.end(new Error('That was all.') as never)
  expect(await newSession()).toBeUndefined()
})

test('the first certificate of a connection counts, so that nobody adds a second name', async () => {
  const [first, second] = [await certificateOf('observer'), await certificateOf('owner')]
  const client = await door.knock()
  for (const line of [first, second])
    await client.attempt(sshid, { method: 'publickey', key: withCertificate(own, line) })
  expect((await client.attempt(sshid, { method: 'publickey', key: registered })).accepted).toBe(true)
  await client.connection().end()
  expect(await newSession()).toMatchObject({ person: { name: 'vera' } })
})

test('somebody else’s certificate is of no use without its key', async () => {
  const hers = generatePrivateKey('ed25519')
  const client = await door.knock()
  // The attacker's signature under her certificate.
  const stolen = withCertificate(own, await certificateOf('owner', hers))
  const { accepted, partial } = (await client.attempt(sshid, { method: 'publickey', key: stolen })) as {
    accepted: boolean
    partial?: boolean
  }
  expect([accepted, partial]).toEqual([false, false])
  expect((await client.attempt(sshid, { method: 'publickey', key: registered })).accepted).toBe(true)
  await client.connection().end()
  expect(await newSession()).toMatchObject({ person: { kind: 'unknown' }, via: 'ssh' })
})

test('a certificate of the attacker’s own making names nobody', async () => {
  const claim = { kind: 'user', tenant_id: sample.tenant, user_id: sample.owner.id, epoch: 0, token_id: '' }
  const forged = await certify(own, generatePrivateKey('ed25519'), {
    kind: 'user',
    id: JSON.stringify(claim),
    principals: ['identity.hawser', 'pilot'],
    validAfter: 0n,
    validBefore: 2n ** 63n,
    criticalOptions: new Map([['identity@hawser', Buffer.from('1')]]),
  })
  const { shown, session } = await comesWith(publicKeyLine(forged.type, forged.blob))
  expect(shown).toMatchObject({ accepted: false, partial: false })
  expect(session).toMatchObject({ person: { kind: 'unknown' }, via: 'ssh' })
})

test('a member of another namespace is nobody here', async () => {
  const { shown, session } = await comesWith(await certificateOf('stranger'))
  expect(shown).toMatchObject({ partial: true })
  expect(session).toMatchObject({ person: { kind: 'unknown' } })
})

test('the server’s key as an authority of a namespace makes no logins of its certificates', async () => {
  const line = await certificateOf('observer')
  const client = await door.knock()
  const { authority } = await read(line)
  const server = { type: 'ssh-ed25519', blob: authority } as PrivateKey
  await door.register(server, { name: 'the server', certificate_authority: true })
  const shown = await client.attempt(sshid, { method: 'publickey', key: withCertificate(own, line) })
  expect(shown).toMatchObject({ accepted: false, partial: true })
  client.transport.end(new Error('That was all.') as never)
  expect(await newSession()).toBeUndefined()
})

test('a membership, a password and an API key that have ended take their certificates along', async () => {
  const { stores, namespaces } = door.service.rooms
  const gone = await certificateOf('operator')
  await namespaces.leave(sample.tenant, sample.operator.id)
  const renewed = await certificateOf('careful')
  const row = await stores.users.find(sample.careful.id)
  await stores.users.save(sample.careful.id, { epoch: (row?.epoch ?? 0) + 1 })
  const api = door.service.api({ apiKey: sample.apiKey })
  const key = await api.identityCertificates.create({
    body: { public_key: publicKeyLine(own.type, own.blob) },
  })
  await stores.of(sample.tenant).apiKeys.remove(sample.apiKeyName)
  for (const certificate of [gone, renewed, key.body.certificate]) {
    const { shown, session } = await comesWith(certificate)
    expect(shown).toMatchObject({ accepted: false, partial: false })
    expect(session).toMatchObject({ person: { kind: 'unknown' } })
  }
})

test('an API key with the name of one that was removed, made by somebody else, is another', async () => {
  const made = async (who: Who) =>
    (await (await clientOf(who)).apiKeys.create({ body: { name: 'deploy', expires_at: -1 } })).body.id
  const api = door.service.api({ apiKey: await made('administrator') })
  const { body } = await api.identityCertificates.create({
    body: { public_key: publicKeyLine(own.type, own.blob) },
  })
  expect((await comesWith(body.certificate)).shown).toMatchObject({ partial: true })
  await (await clientOf('owner')).apiKeys.remove({ params: { key: 'deploy' } })
  await made('owner')
  expect((await comesWith(body.certificate)).shown).toMatchObject({ accepted: false, partial: false })
})

test('after five minutes it is over', async () => {
  const certificate = await certificateOf('observer')
  door.service.clock.forward(5 * 60_000)
  expect((await comesWith(certificate)).shown).toMatchObject({ accepted: false, partial: false })
})

test('whoever trusts the server’s key elsewhere refuses it: it demands what only the gateway knows', async () => {
  const certificate = await read(await certificateOf('observer'))
  const { authority, principals } = certificate
  const use = { kind: 'user', authorities: [authority], now: new Date(door.service.clock.now()) } as const
  expect(judgeCertificate(certificate, { ...use, principal: principals[0] ?? '' })).toMatchObject({
    allowed: false,
    because: 'It demands identity@hawser, which is not known here.',
  })
})

test('a certificate ends with the sign-in that it was made with', async () => {
  const token = await door.world.token('observer')
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  const ends_at = (JSON.parse(claims) as { exp: number }).exp * 1_000
  door.service.clock.forward(ends_at - door.service.clock.now() - 30_000)
  const { body } = await door.service.api({ token }).identityCertificates.create({
    body: { public_key: publicKeyLine(own.type, own.blob) },
  })
  expect(Date.parse(body.expires_at)).toBe(ends_at)
})
