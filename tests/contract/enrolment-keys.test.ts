// Enrolment keys of a namespace and its login key: what is kept, what is refused, how many there may be, and
// that nobody sees or removes another namespace's. What devices do with them is in tests/clients/agentless-*.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  fingerprintMd5,
  fingerprintSha256,
  generatePrivateKey,
  parsePublicKeyLine,
  privateKeyFrom,
  publicKeyLine,
} from '@hawser/ssh'
import { startPlace } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
const lineOf = ({ type, blob }: { type: string; blob: Buffer }): string => publicKeyLine(type, blob)
const newLine = (): string => lineOf(generatePrivateKey())

test.each(oneDatabase)('an administrator registers, sees and removes a key on %s', async (_, options) => {
  await using place = await startPlace(await options())
  const key = generatePrivateKey()
  const { body } = await place.administrator.enrolmentKeys.create({
    body: { name: 'boilers', public_key: ` ${lineOf(key)} boiler@yard\n` },
  })
  const fingerprint = fingerprintMd5(key.blob)
  expect(body).toEqual({
    name: 'boilers',
    fingerprint,
    fingerprint_sha256: fingerprintSha256(key.blob),
    public_key: lineOf(key),
    tenant_id: sample.tenant,
    created_at: expect.stringMatching(/Z$/) as unknown,
  })
  const { body: listed, headers } = await place.observer.enrolmentKeys.list({ query: {} })
  expect(listed.map(({ name }) => name)).toEqual(['cranes', 'boilers'])
  expect(headers.get('x-total-count')).toBe('2')
  await place.administrator.enrolmentKeys.remove({ params: { fingerprint } })
  await expect(place.administrator.enrolmentKeys.remove({ params: { fingerprint } })).rejects.toMatchObject(
    refused(404),
  )
})

test('a namespace has a key once, and another namespace may have it too', async () => {
  await using place = await startPlace()
  const body = { name: 'one', public_key: newLine() }
  await place.administrator.enrolmentKeys.create({ body })
  await expect(
    place.administrator.enrolmentKeys.create({ body: { ...body, name: 'two' } }),
  ).rejects.toMatchObject(refused(409))
  const { body: theirs } = await place.stranger.enrolmentKeys.create({ body })
  expect(theirs.tenant_id).toBe(sample.otherTenant)
  await place.stranger.enrolmentKeys.remove({ params: { fingerprint: theirs.fingerprint } })
  expect((await place.observer.enrolmentKeys.list({ query: {} })).body.map(({ name }) => name)).toContain(
    'one',
  )
  await expect(
    place.stranger.enrolmentKeys.remove({ params: { fingerprint: sample.enrolmentFingerprint } }),
  ).rejects.toMatchObject(refused(404))
})

test.each([
  ['nothing that is a key', 'rope'],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----'],
  ['a short RSA key', lineOf(privateKeyFrom(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey))],
])('%s is refused', async (_, public_key) => {
  await using place = await startPlace()
  await expect(
    place.administrator.enrolmentKeys.create({ body: { name: 'x', public_key } }),
  ).rejects.toMatchObject(refused(400))
})

test('there are a hundred at most', async () => {
  await using place = await startPlace()
  const create = async () =>
    place.administrator.enrolmentKeys.create({ body: { name: 'one more', public_key: newLine() } })
  for (let n = 1; n < 100; n += 1) await create()
  await expect(create()).rejects.toMatchObject(refused(403))
  expect(
    (await place.observer.enrolmentKeys.list({ query: { per_page: 1 } })).headers.get('x-total-count'),
  ).toBe('100')
})

test.each(oneDatabase)(
  'the login key is one for the namespace, made once, and sealed on %s',
  async (_, options) => {
    await using place = await startPlace(await options())
    const answers = await Promise.all(
      [place.observer, place.owner, place.key].map(async (client) => client.enrolmentKeys.loginKey()),
    )
    const [{ body }] = answers as [(typeof answers)[0]]
    expect(answers.map((answer) => answer.body)).toEqual([body, body, body])
    const { type, blob, comment } = parsePublicKeyLine(body.public_key)
    expect([type, comment, body.fingerprint]).toEqual([
      'ssh-ed25519',
      'hawser-harbour',
      fingerprintSha256(blob),
    ])
    expect((await place.stranger.enrolmentKeys.loginKey()).body.public_key).not.toContain(
      body.public_key.split(' ')[1]!,
    )
    const kept = (await place.rooms.stores.of(sample.tenant).loginKeys.find())!
    expect(Buffer.from(kept, 'base64').toString('latin1')).not.toContain('PRIVATE KEY')
  },
)
