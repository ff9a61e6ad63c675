// Which keys the gateway and an agent show each other: Hawser's own agent a certificate, and the gateway an
// Ed25519 key for it; every other agent the device's RSA key, and the gateway an RSA key. The server's
// signature for the login is one of that key.
import { createServer } from 'node:http'
import { generateKeyPairSync, createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { duplexPair } from 'node:stream'
import { expect, test } from 'vitest'
import { knownKey, privateKeyFrom, type PrivateKey } from '@hawser/ssh'
import { hostKeysOf } from '../../agent/src/host-keys.ts'
import { keyApproval } from '../../agent/src/key-approval.ts'
import { serveSsh } from '../../agent/src/sshd.ts'
import { ownAccount, singleUser } from '../../agent/src/users.ts'
import { passwords } from '../../agent/src/passwords.ts'
import { localBus } from '../../server/src/bus/local.ts'
import { signer } from '../../server/src/domain/access/signer.ts'
import { deviceLeg, gatewayKeys } from '../../server/src/gateway/device/device-leg.ts'
import { spareLegs } from '../../server/src/gateway/device/spare-legs.ts'

const deviceKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const caller = { uid: 'a'.repeat(64), tenant_id: '00000000-0000-4000-8000-000000000001' }
const device = {
  ...caller,
  public_key: createPublicKey(deviceKey).export({ type: 'pkcs1', format: 'pem' }),
  enrolment_key: null,
  info_version: 'v0.27.0',
  info_platform: 'native',
} as Parameters<typeof deviceLeg>[1]

/** Logs in to the agent's SSH server with these host keys. `altered` changes what the server answers. */
async function logIn(hostKeys: readonly PrivateKey[], altered = (signature: string) => signature) {
  const signing = signer({ now: Date.now }, localBus())
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const { fingerprint, data } = JSON.parse(text) as { fingerprint: string; data: string }
      void signing.sign(caller, fingerprint, data).then((signature) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ signature: altered(signature) }))
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const approve = keyApproval(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => ({
    ...caller,
    token: 'token',
    name: 'crane',
  }))
  const ending = new AbortController()
  const shown: string[] = []
  const openSsh = async () => {
    const [ours, theirs] = duplexPair()
    void serveSsh(theirs, {
      hostKeys,
      users: singleUser({ passwords: passwords({ log: () => undefined }), hash: '$6$none$none' }),
      deviceName: 'crane',
      approveKey(login, signal) {
        shown.push(knownKey(login.blob).type)
        return approve(login, signal)
      },
      keepalive_ms: 30_000,
      signal: ending.signal,
      log: () => undefined,
    })
    return ours
  }
  const leg = deviceLeg(
    {
      findTunnel: async () => ({ openSsh }),
      signer: signing,
      approvals: { approve: async (key) => key },
      spares: spareLegs({ dial: async () => Promise.reject(new Error('no spare legs here')) }),
      gatewayKey: gatewayKeys(),
      loginKey: async () => deviceKey,
    },
    device,
    'session',
    ending.signal,
  )
  try {
    const answer = await leg.publicKey(ownAccount().name)
    const hostKey = answer === 'accepted' ? leg.connection().transport.negotiated.hostKey : undefined
    return { answer, shown, hostKey }
  } finally {
    ending.abort()
    server.close()
  }
}

test("Hawser's own agent and the gateway need no RSA signature", async () => {
  expect(await logIn(await hostKeysOf(deviceKey))).toEqual({
    answer: 'accepted',
    shown: ['ssh-ed25519'],
    hostKey: 'ssh-ed25519-cert-v01@openssh.com',
  })
})

test('an agent that has only the key of the device gets RSA', async () => {
  expect(await logIn([privateKeyFrom(deviceKey)])).toEqual({
    answer: 'accepted',
    shown: ['ssh-rsa'],
    hostKey: 'rsa-sha2-512',
  })
})

test.each([
  ['Ed25519', async () => hostKeysOf(deviceKey)],
  ['RSA', async () => [privateKeyFrom(deviceKey)]],
] as const)('a login with %s for which the server has signed something else is refused', async (_, keys) => {
  const spoilt = (signature: string): string => {
    const bytes = Buffer.from(signature, 'base64')
    bytes[7]! ^= 1
    return bytes.toString('base64')
  }
  expect(await logIn(await keys(), spoilt)).toMatchObject({ answer: 'refused' })
})
