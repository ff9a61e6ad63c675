// An agent may show a certificate for its host key instead of the device's own key. Somebody in the place of
// a device can show one, too: signed by a key of theirs, or with the device's key only named as the
// authority, or one that the device signed for something else. None of them hears a password.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { hostCertificate } from '@hawser/contract/tunnel'
import { certifyHostKey, generatePrivateKey, privateKeyFrom, type PrivateKey } from '@hawser/ssh'
import { startOldAgent } from '../harness/old-agent.ts'
import { startDoor, type Door } from './door.ts'

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const deviceKey = rsa()
const device = privateKeyFrom(deviceKey)
const mallory = privateKeyFrom(rsa())
const { principal } = hostCertificate

const certified = (authority: PrivateKey, name: string = principal): Promise<PrivateKey> =>
  certifyHostKey(generatePrivateKey('ed25519'), authority, name)

let door: Door
beforeAll(async () => {
  door = await startDoor()
})
afterAll(async () => door[Symbol.asyncDispose]())

async function passwordOn(hostname: string, hostKey: PrivateKey) {
  await using agent = await startOldAgent(door.service, {
    version: 2,
    tenant_id: sample.tenant,
    hostname,
    key: deviceKey,
    hostKeys: [hostKey],
  })
  const owner = door.service.api({ token: await door.world.token('owner') })
  await owner.devices.accept({ params: { uid: agent.uid } })
  const client = await door.knock()
  const { accepted } = await client.attempt(`pilot@${sample.namespace}.${hostname}`, {
    method: 'password',
    password: 'pilot',
  })
  return { accepted, heard: agent.seen.attempts, streams: agent.seen.streams }
}

test('a certificate that the device signed is as good as its key', async () => {
  expect(await passwordOn('signed', await certified(device))).toMatchObject({
    accepted: true,
    heard: ['password pilot'],
  })
})

const forged: Record<string, () => Promise<PrivateKey>> = {
  'signed by another key': () => certified(mallory),
  'that names the device and is signed by another key': () => certified({ ...mallory, blob: device.blob }),
  'for another purpose': () => certified(device, 'somewhere.else'),
  'of the device for another key': async () => {
    const { blob } = await certified(device)
    return { ...(await certified(mallory)), blob }
  },
}

test.each(Object.entries(forged))('a certificate %s gets no password', async (kind, hostKey) => {
  const hostname = `forged-${Object.keys(forged).indexOf(kind)}`
  const seen = await passwordOn(hostname, await hostKey())
  expect(seen).toMatchObject({ accepted: false, heard: [] })
  expect(seen.streams).toBeGreaterThan(0)
})
