// The signing call signs for one login on one device, once, and only while that login is going on.
import { createVerify, generateKeyPairSync, verify } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { localBus } from '../../bus/local.ts'
import { signer, type PendingLogin, type Signer } from './signer.ts'

const pair = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
const device = { uid: 'a'.repeat(64), tenant_id: '00000000-0000-4000-8000-000000000001' }
const fingerprint = '19:e2:45:6d:a5:71:0d:a3:10:5c:26:3a:b7:d1:56:0f'
const login: PendingLogin = {
  tenant_id: device.tenant_id,
  device_uid: device.uid,
  username: 'root',
  fingerprint,
  privateKey: pair.privateKey,
}
const data = JSON.stringify({ Username: 'root', Namespace: 'crane-1' })

let now: number
let signing: Signer
beforeEach(() => {
  now = 1_700_000_000_000
  signing = signer({ now: () => now }, localBus())
})

async function signs(caller = device, print = fingerprint, text = data): Promise<boolean> {
  try {
    await signing.sign(caller, print, text)
    return true
  } catch (error) {
    if (error instanceof Failure && error.kind === 'notFound') return false
    throw error
  }
}

test('an agent verifies the signature with SHA-256 and the key of the login', async () => {
  using _ = signing.open(login)
  const signature = await signing.sign(device, fingerprint, data)
  expect(createVerify('sha256').update(data).verify(pair.publicKey, signature, 'base64')).toBe(true)
  expect(createVerify('sha256').update(`${data} `).verify(pair.publicKey, signature, 'base64')).toBe(false)
})

test('with an Ed25519 key, the signature is one of Ed25519', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  using _ = signing.open({ ...login, privateKey })
  const signature = Buffer.from(await signing.sign(device, fingerprint, data), 'base64')
  expect(verify(null, Buffer.from(data), publicKey, signature)).toBe(true)
  expect(verify(null, Buffer.from(`${data} `), publicKey, signature)).toBe(false)
})

test('without an open login nothing is signed', async () => expect(await signs()).toBe(false))

test('one login is good for one signature', async () => {
  using _ = signing.open(login)
  expect([await signs(), await signs()]).toEqual([true, false])
})

test('two logins that go on together get one signature each', async () => {
  using one = signing.open(login)
  using two = signing.open(login)
  expect(one).not.toBe(two)
  expect([await signs(), await signs(), await signs()]).toEqual([true, true, false])
})

test('a login that ends with its signature leaves the other its own', async () => {
  // An agent does not say for which of two equal logins it asks: the first signature may be for either of
  // them.
  using one = signing.open(login)
  const two = signing.open(login)
  expect(await signs()).toBe(true)
  two[Symbol.dispose]()
  expect(one).toBeDefined()
  expect([await signs(), await signs()]).toEqual([true, false])
})

test('in whatever order many equal logins ask and end, each is signed for', async () => {
  const rounds = 500
  // A walk that is the same every time: some begin, some are asked for, some end, and whoever ends has been
  // asked for.
  let seed = 7
  const chance = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
  const begun: Disposable[] = []
  const asked: Disposable[] = []
  let refused = 0
  for (let step = 0; step < rounds; step += 1) {
    const act = chance(3)
    if (act === 0) begun.push(signing.open(login))
    else if (act === 1 && begun.length > 0) {
      asked.push(...begun.splice(chance(begun.length), 1))
      if (!(await signs())) refused += 1
    } else if (act === 2 && asked.length > 0) asked.splice(chance(asked.length), 1)[0]?.[Symbol.dispose]()
  }
  expect(refused).toBe(0)
})

test('never more signatures are left than logins go on', async () => {
  using going = signing.open(login)
  const [two, three] = [signing.open(login), signing.open(login)]
  expect(going).toBeDefined()
  two[Symbol.dispose]()
  three[Symbol.dispose]()
  // Disposing twice gives back nothing more.
  three[Symbol.dispose]()
  expect([await signs(), await signs()]).toEqual([true, false])
})

test('a login that is too old leaves the younger one its signature', async () => {
  signing.open(login)
  now += 20_000
  signing.open(login)
  now += 10_000
  expect([await signs(), await signs()]).toEqual([true, false])
})

describe('a login is not good for', () => {
  test.each<[string, typeof device, string, string]>([
    ['another device', { ...device, uid: 'b'.repeat(64) }, fingerprint, data],
    [
      'the same device of another namespace',
      { ...device, tenant_id: '00000000-0000-4000-8000-000000000002' },
      fingerprint,
      data,
    ],
    ['another key', device, fingerprint.replace('19', '20'), data],
    ['another user name', device, fingerprint, JSON.stringify({ Username: 'deploy', Namespace: 'crane-1' })],
    [
      'a user name in other letters',
      device,
      fingerprint,
      JSON.stringify({ Username: 'Root', Namespace: 'crane-1' }),
    ],
    ['data without a user name', device, fingerprint, JSON.stringify({ Namespace: 'crane-1' })],
    ['a user name that is no text', device, fingerprint, JSON.stringify({ Username: ['root'] })],
    ['data that is no JSON', device, fingerprint, 'root'],
    ['data that is no object', device, fingerprint, '"root"'],
    ['null', device, fingerprint, 'null'],
  ])('%s', async (_, caller, print, text) => {
    signing.open(login)
    expect(await signs(caller, print, text)).toBe(false)
    // A refused request has not used it up.
    expect(await signs()).toBe(true)
  })
})

test('a login ends by itself after 30 seconds', async () => {
  signing.open(login)
  now += 29_999
  expect(await signs()).toBe(true)
  signing.open(login)
  now += 30_000
  expect(await signs()).toBe(false)
})

test('a login that is over signs nothing more', async () => {
  {
    using _ = signing.open(login)
  }
  expect(await signs()).toBe(false)
})
