// `hostkeys-prove-00@openssh.com` asks for signatures by our host keys, and RSA takes milliseconds for each.
// One message of 256 KB that names our own key again and again was answered with 637 of them, 9 s in which
// nobody was served. Each key is proved once in a message, and few messages are answered: to people, and to
// machines that come with an enrolment key.
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  connect,
  generatePrivateKey,
  parsePrivateKey,
  verifySignature,
  type Connection,
  type Proof,
} from '@hawser/ssh'
import { pair } from '../../ssh/test/pairs.ts'
import { Reader, Writer } from '../../ssh/src/wire.ts'
import { opensshMachine, password, sharedHarbour, type Machine } from '../clients/agentless.ts'
import type { Running } from '../clients/way.ts'
import { countJobs } from './jobs.ts'

const announced = 'hostkeys-00@openssh.com'
const prove = 'hostkeys-prove-00@openssh.com'
const harbour = sharedHarbour()

function strings(bytes: Buffer): Buffer[] {
  const reader = new Reader(bytes)
  const found: Buffer[] = []
  while (!reader.done) found.push(reader.string())
  return found
}

const naming = (...blobs: Buffer[]): Buffer =>
  blobs.reduce((writer, blob) => writer.string(blob), new Writer(300_000)).bytes()

/** As often as it fits into the largest packet. */
const often = (blob: Buffer): Buffer =>
  naming(...Array.from({ length: Math.floor(255_000 / (blob.length + 4)) }, () => blob))

let machine: Machine
let line: Running
let device: string
beforeAll(async () => {
  machine = await opensshMachine()
  const joined = await harbour.accepted(machine)
  line = joined.line
  device = joined.device.name
})
afterAll(async () => {
  await line[Symbol.asyncDispose]()
  await machine[Symbol.asyncDispose]()
})

/** A client that is in, and the host keys that it was told of. */
async function enter(user: string, proof: Proof): Promise<{ client: Connection; keys: Buffer[] }> {
  const client = await connect(net.connect(harbour.service.sshPort, '127.0.0.1'), {
    user,
    proofs: [proof],
    checkHostKey: () => true,
    globalRequests: [announced],
  })
  for await (const request of client.requests)
    if (request.name === announced) return { client, keys: strings(request.payload) }
  throw new Error('no host keys were announced')
}

const rsaOf = (keys: readonly Buffer[]): Buffer => keys.find((blob) => blob.includes('ssh-rsa'))!

describe.each<[string, () => Promise<{ client: Connection; keys: Buffer[] }>]>([
  ['a person', async () => enter(`olga@harbour.${device}`, { method: 'password', password })],
  [
    'a machine with an enrolment key',
    async () =>
      enter(sample.tenant, { method: 'publickey', key: parsePrivateKey(harbour.where.read('gate')) }),
  ],
])('%s', (_, come) => {
  test('is given each key’s signature once, and no signature for a key that is named again', async () => {
    const { client, keys } = await come()
    await using _ = client
    expect(keys).toHaveLength(2)
    const answer = await client.request(prove, naming(...keys))
    const data = (blob: Buffer): Buffer =>
      new Writer(2_000).string(prove).string(client.transport.sessionId).string(blob).bytes()
    const signatures = strings(answer!)
    expect(signatures).toHaveLength(2)
    for (const [at, signature] of signatures.entries()) {
      const algorithm = new Reader(signature).text()
      expect(await verifySignature(keys[at]!, algorithm, data(keys[at]!), signature)).toBe(true)
    }
    expect(await client.request(prove, often(rsaOf(keys)))).toBe(undefined)
    expect(await client.request(prove, naming(keys[0]!, keys[0]!))).toBe(undefined)
  })

  test('is answered a few times on one connection', async () => {
    const { client, keys } = await come()
    await using _ = client
    const answers = await Promise.all(
      Array.from({ length: 64 }, async () => client.request(prove, naming(rsaOf(keys)))),
    )
    const given = answers.filter((answer) => answer !== undefined)
    expect(given.length).toBeGreaterThan(0)
    expect(given.length).toBeLessThanOrEqual(4)
  })
})

test('a host key that is not ours is proved by nobody, and one message does not stop the others', async () => {
  const { client, keys } = await enter(`olga@harbour.${device}`, { method: 'password', password })
  await using _ = client
  expect(await client.request(prove, naming(keys[0]!, generatePrivateKey().blob))).toBe(undefined)
  expect(strings((await client.request(prove, naming(keys[0]!)))!)).toHaveLength(1)
})

test('what is signed is signed by another thread, and answers keep their order', async () => {
  const rsa = generatePrivateKey('rsa')
  await using both = await pair({ hostKeys: [generatePrivateKey('ed25519'), rsa], globalRequests: 'all' })
  void (async () => {
    for await (const request of both.server.requests) request.accept(Buffer.from(request.name))
  })()
  using jobs = countJobs()
  const answers = await Promise.all([
    both.client.request('before'),
    both.client.request(prove, naming(rsa.blob)),
    both.client.request('after'),
  ])
  expect(answers.map((answer) => answer?.length)).toEqual([6, expect.any(Number), 5])
  expect(strings(answers[1]!)).toHaveLength(1)
  expect([jobs.elsewhere, jobs.here]).toEqual([['SIGNREQUEST'], []])
})
