// Somebody at a browser asks for a login by key and leaves the challenge unsigned. Before they sign, an
// administrator deletes the key, narrows it, forbids the device by a firewall rule, or removes the member.
// The rules of the moment when the signature comes decide.
import { generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { blobOf, fingerprintMd5, publicKeyLine } from '@hawser/ssh'
import { apiOf, dial, sharedQuarters, ticket } from '../clients/web.ts'

const quarters = sharedQuarters()

type Owner = Awaited<ReturnType<typeof apiOf>>

/** Registers a key, takes the challenge, makes the change and signs; the sentence of the refusal. */
async function signsAfter(
  change: (owner: Owner, fingerprint: string) => Promise<unknown>,
  who: 'observer' | 'operator' = 'operator',
): Promise<unknown> {
  const owner = await apiOf(quarters(), 'owner')
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const blob = blobOf(publicKey)
  const line = publicKeyLine('ssh-ed25519', blob)
  await owner.publicKeys.create({
    body: {
      data: Buffer.from(line).toString('base64'),
      name: 'key',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })
  const asked = await ticket(quarters(), { password: undefined, public_key: line }, who)
  using shell = await dial(quarters().service, asked)
  const challenge = Buffer.from(await shell.hear('sign'), 'base64')
  await change(owner, fingerprintMd5(blob))
  shell.say({ kind: 'signature', signature: sign(null, challenge, privateKey).toString('base64') })
  const sentence = await shell.hear('end')
  await shell.closed
  expect(shell.news.some(({ kind }) => kind === 'session')).toBe(false)
  expect(quarters().service.reach.sessions.size).toBe(0)
  return sentence
}

const notHere = 'This key is not registered here for this user on this device.'

test('a key that was deleted lets nobody in', async () => {
  const remove = async (owner: Owner, fingerprint: string) =>
    owner.publicKeys.remove({ params: { fingerprint } })
  expect(await signsAfter(remove)).toBe(notHere)
})

test('a key that is for other users now lets nobody in as this one', async () => {
  const narrow = async (owner: Owner, fingerprint: string) =>
    owner.publicKeys.update({
      params: { fingerprint },
      body: { name: 'key', username: 'somebody-else', filter: { hostname: '.*' } },
    })
  expect(await signsAfter(narrow)).toBe(notHere)
})

test('a member who was removed has no terminal', async () => {
  const remove = async (owner: Owner) =>
    owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.observer.id } })
  expect(await signsAfter(remove, 'observer')).toBe('You are no longer a member of the namespace.')
})

test('a firewall rule that was added holds', async () => {
  const forbid = async (owner: Owner) =>
    owner.firewall.create({
      body: {
        action: 'deny',
        priority: 0,
        active: true,
        source_ip: '.*',
        username: '.*',
        filter: { hostname: '.*' },
      },
    })
  expect(await signsAfter(forbid)).toBe('A firewall rule of the namespace does not allow this.')
})
