// Every registered public key was a certificate authority: whoever could borrow it for one signature, root on
// a device where somebody once came with a forwarded agent, signed a certificate for `root` that is valid for
// ever. A key signs certificates only if its owner said so, and one that does lets nobody in by itself, as in
// sshd.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generatePrivateKey, withCertificate, type PrivateKey } from '@hawser/ssh'
import { Reader, Writer } from '../../ssh/src/wire.ts'
import { sshid, startDoor, type Door } from './door.ts'

let door: Door
const olga = generatePrivateKey('ed25519')
const authority = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')

/** Signed with somebody else's key: for `root` and `pilot`, from everywhere, for ever. */
async function forged(signer: PrivateKey, holder: PrivateKey): Promise<string> {
  const type = 'ssh-ed25519-cert-v01@openssh.com'
  const key = new Reader(holder.blob)
  key.string()
  const forEver = (1n << 64n) - 1n
  const body = new Writer(512)
    .string(type)
    .string(randomBytes(32))
    .string(key.string())
    .uint64(1n)
    .uint32(1)
    .string('mallory')
    .string(new Writer().string('root').string('pilot').bytes())
    .uint64(0n)
    .uint64(forEver)
    .string('')
    .string(new Writer().string('permit-pty').string('').bytes())
    .string('')
    .string(signer.blob)
    .bytes()
  const blob = new Writer(1_024)
    .raw(body)
    .string(await signer.sign('ssh-ed25519', body))
    .bytes()
  return `${type} ${Buffer.from(blob).toString('base64')}`
}

async function comesIn(key: Parameters<typeof withCertificate>[0]): Promise<boolean> {
  const client = await door.knock()
  const { accepted } = await client.attempt(sshid, { method: 'publickey', key })
  if (accepted) await client.connection().end()
  else client.transport.end(new Error('That was all.') as never)
  return accepted
}

beforeAll(async () => {
  door = await startDoor()
  await door.register(olga, { name: 'olga' })
  await door.register(authority, { name: 'authority', certificate_authority: true })
})
afterAll(async () => door[Symbol.asyncDispose]())

test('a key that was registered to log in signs nothing', async () => {
  expect(await comesIn(withCertificate(mallory, await forged(olga, mallory)))).toBe(false)
  expect(await comesIn(withCertificate(olga, await forged(olga, olga)))).toBe(false)
  expect(await comesIn(olga)).toBe(true)
})

test('a key that was marked as an authority signs, and lets nobody in by itself', async () => {
  expect(await comesIn(withCertificate(mallory, await forged(authority, mallory)))).toBe(true)
  expect(await comesIn(authority)).toBe(false)
})

test('the mark is seen in the list, and can be taken off and put on again', async () => {
  const owner = door.service.api({ token: await door.world.token('owner') }).publicKeys
  const { body } = await owner.list({ query: { per_page: 100 } })
  const [login, signing] = ['olga', 'authority'].map((name) => body.find((key) => key.name === name)!)
  expect([login!.certificate_authority, signing!.certificate_authority]).toEqual([false, true])
  const { fingerprint, name, username } = signing!
  const change = async (more: object) =>
    (
      await owner.update({
        params: { fingerprint },
        body: { name, username, filter: { hostname: '.*' }, ...more },
      })
    ).body
  expect(await change({})).toMatchObject({ certificate_authority: true })
  expect(await change({ certificate_authority: false })).toMatchObject({ certificate_authority: false })
  expect(await comesIn(withCertificate(mallory, await forged(authority, mallory)))).toBe(false)
  expect(await comesIn(authority)).toBe(true)
  expect(await change({ certificate_authority: true })).toMatchObject({ certificate_authority: true })
})
