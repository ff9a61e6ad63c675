// Keys are found by their MD5 fingerprint, for which two keys can be made that share it. The whole key is
// compared: a registered key lets in its own holder, not whoever has another one with the same fingerprint.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { fingerprintMd5, generatePrivateKey, publicKeyLine } from '@hawser/ssh'
import { sshid, startDoor } from './door.ts'

test('a key with the fingerprint of a registered one is not that key', async () => {
  await using door = await startDoor()
  const [olga, mallory] = [generatePrivateKey('ed25519'), generatePrivateKey('ed25519')]
  // As if the two collided: what is stored is the key of olga, and found under the fingerprint of mallory.
  await door.service.rooms.stores.of(sample.tenant).publicKeys.insert({
    fingerprint: fingerprintMd5(mallory.blob),
    data: Buffer.from(publicKeyLine(olga.type, olga.blob)).toString('base64'),
    name: 'olga',
    username: '.*',
    filter: JSON.stringify({ hostname: '.*' }),
    created_at: new Date(0).toISOString(),
  })
  const client = await door.knock()
  expect(await client.attempt(sshid, { method: 'publickey', key: mallory })).toMatchObject({
    accepted: false,
  })
  expect(door.agent.seen.attempts).toEqual([])
})
