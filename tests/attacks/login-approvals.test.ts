// An agent accepts a login by public key without asking the server if it shows an approval: a
// certificate by the server's key for one user, one device and one SSH connection. Here somebody reaches
// the agent's SSH server with a real approval that was made for something else, with the gateway's own
// key, or with a certificate of their own. None of that lets them in: the agent asks the server, which
// knows of no such login.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { duplexPair } from 'node:stream'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { approval } from '@hawser/contract/tunnel'
import { certify, generatePrivateKey, openClient, type PrivateKey } from '@hawser/ssh'
import { hostKeysOf } from '../../agent/src/host-keys.ts'
import { keyApproval } from '../../agent/src/key-approval.ts'
import { pinServerKey, serverKeyFile } from '../../agent/src/server-key.ts'
import { serveSsh } from '../../agent/src/sshd.ts'
import { ownAccount, singleUser } from '../../agent/src/users.ts'
import { passwords } from '../../agent/src/passwords.ts'
import { approvals, type Approvals } from '../../server/src/gateway/login/approvals.ts'

const uid = 'a'.repeat(64)
const user = ownAccount().name
const deviceKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const gatewayKey = generatePrivateKey('ed25519')

/** A server's approvals, with what it keeps in memory. */
async function newApprovals(now = Date.now): Promise<Approvals> {
  const rows: { type: string; private_key: string }[] = []
  const keys = { list: async () => rows, insert: async (row: (typeof rows)[number]) => rows.push(row) }
  const vault = { seal: (_: string, plain: string) => plain, open: (_: string, sealed: string) => sealed }
  return approvals({ keys, vault, now: () => '' }, { now })
}

let server: Approvals
let questions = 0
const http = createServer((_, response) => {
  questions += 1
  response.writeHead(404).end('{}')
})
beforeAll(async () => {
  server = await newApprovals()
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
})
afterAll(() => void http.close())
beforeEach(() => void (questions = 0))

/** Reaches the agent's SSH server and shows what `make` makes of the session id. */
async function knock(make: (sessionId: Buffer) => Promise<PrivateKey>, as = user): Promise<boolean> {
  const [ours, theirs] = duplexPair()
  const pinned = Buffer.from(server.publicKey.split(' ')[1]!, 'base64')
  const ending = new AbortController()
  void serveSsh(theirs, {
    hostKeys: await hostKeysOf(deviceKey),
    users: singleUser({ passwords: passwords({ log: () => undefined }), hash: '$6$none$none' }),
    deviceName: 'crane',
    approveKey: keyApproval(
      `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
      () => ({ uid, token: 'token', name: 'crane' }),
      () => pinned,
    ),
    keepalive_ms: 30_000,
    signal: ending.signal,
    log: () => undefined,
  })
  try {
    const client = await openClient(ours, { checkHostKey: () => true, pipelining: true })
    const key = await make(client.transport.sessionId)
    return (await client.attempt(as, { method: 'publickey', key })).accepted
  } finally {
    ending.abort()
  }
}

const approved = (sessionId: Buffer, change: { device_uid?: string; username?: string } = {}) =>
  server.approve(gatewayKey, { device_uid: uid, username: user, sessionId, ...change })

const fields = {
  kind: 'user',
  id: '',
  principals: [user],
  validAfter: 0n,
  validBefore: 2n ** 64n - 1n,
} as const
const options = (sessionId: Buffer) =>
  new Map<string, Buffer>([
    [approval.device, Buffer.from(uid)],
    [approval.session, sessionId],
  ])

test('an approval of this login lets in, and the server is not asked', async () => {
  expect(await knock((sessionId) => approved(sessionId))).toBe(true)
  expect(questions).toBe(0)
})

test('an approval does not depend on the clock of the device', async () => {
  const late = await newApprovals(() => Date.parse('1999-01-01T00:00:00Z'))
  const before = server
  server = late
  try {
    expect(await knock((sessionId) => approved(sessionId))).toBe(true)
    expect(questions).toBe(0)
  } finally {
    server = before
  }
})

let stolen: PrivateKey | undefined
const attacks: Record<string, (sessionId: Buffer) => Promise<PrivateKey>> = {
  'for another device': (sessionId) => approved(sessionId, { device_uid: 'b'.repeat(64) }),
  'for another user': (sessionId) => approved(sessionId, { username: 'somebody-else' }),
  'for a user whose name begins so': (sessionId) => approved(sessionId, { username: `${user}x` }),
  'for another connection': () => approved(Buffer.alloc(32, 1)),
  'for a connection without an id': () => approved(Buffer.alloc(0)),
  'by another server': async (sessionId) =>
    (await newApprovals()).approve(gatewayKey, { device_uid: uid, username: user, sessionId }),
  'by its own key': (sessionId) =>
    certify(gatewayKey, gatewayKey, { ...fields, criticalOptions: options(sessionId) }),
  'that names the server and is signed by another key': (sessionId) =>
    certify(
      gatewayKey,
      { ...generatePrivateKey('ed25519'), blob: Buffer.from(server.publicKey.split(' ')[1]!, 'base64') },
      { ...fields, criticalOptions: options(sessionId) },
    ),
  'shown with another key': async (sessionId) => {
    const { blob, algorithms } = await approved(sessionId)
    const mallory = generatePrivateKey('ed25519')
    return { ...mallory, blob, algorithms, sign: async (_, data) => mallory.sign(mallory.type, data) }
  },
  'by the device itself': async (sessionId) =>
    certify(gatewayKey, (await hostKeysOf(deviceKey))[0]!, {
      ...fields,
      criticalOptions: options(sessionId),
    }),
}

test.each(Object.entries(attacks))('an approval %s lets nobody in', async (_, make) => {
  expect(await knock(make)).toBe(false)
})

test('an approval that was used once is of no use on the next connection', async () => {
  expect(await knock(async (sessionId) => (stolen = await approved(sessionId)))).toBe(true)
  expect(await knock(async () => stolen!)).toBe(false)
})

const withAuthority = privateKeyOfServer()
test.each([
  ['without conditions', () => new Map<string, Buffer>()],
  ['for any device', (id: Buffer) => new Map([[approval.session, id]])],
  ['for any connection', () => new Map([[approval.device, Buffer.from(uid)]])],
  [
    'with a condition that agents do not know',
    (id: Buffer) => options(id).set('later@hawser', Buffer.alloc(0)),
  ],
  ['with a forced command', (id: Buffer) => options(id).set('force-command', Buffer.from('true'))],
] as const)('a certificate of the server %s is no approval', async (_, criticalOptions) => {
  const before = server
  server = { ...server, publicKey: withAuthority.line }
  try {
    const make = (sessionId: Buffer) =>
      certify(gatewayKey, withAuthority.key, { ...fields, criticalOptions: criticalOptions(sessionId) })
    expect(await knock(make)).toBe(false)
    const host = (sessionId: Buffer) =>
      certify(gatewayKey, withAuthority.key, { ...fields, kind: 'host', criticalOptions: options(sessionId) })
    expect(await knock(host)).toBe(false)
    expect(questions).toBe(2)
  } finally {
    server = before
  }
})

function privateKeyOfServer(): { readonly key: PrivateKey; readonly line: string } {
  const key = generatePrivateKey('ed25519')
  return { key, line: `ssh-ed25519 ${key.blob.toString('base64')}` }
}

test('a server that later tells another key is not believed; one at another address is new', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-pin-'))
  const file = path.join(folder, 'device.key')
  const [first, second] = [generatePrivateKey('ed25519'), generatePrivateKey('ed25519')]
  const line = ({ type, blob }: PrivateKey): string => `${type} ${blob.toString('base64')}`
  try {
    expect(pinServerKey(file, 'https://one', undefined)).toBeUndefined()
    expect(pinServerKey(file, 'https://one', line(first))).toEqual(first.blob)
    expect(pinServerKey(file, 'https://one', line(second))).toBeUndefined()
    expect(pinServerKey(file, 'https://one', line(first))).toEqual(first.blob)
    expect(readFileSync(serverKeyFile(file), 'utf8')).toBe(`https://one ${line(first)}\n`)
    expect(pinServerKey(file, 'https://one.example', line(second))).toEqual(second.blob)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
