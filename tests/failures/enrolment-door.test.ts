// The door for devices without an agent, met by clients that do what OpenSSH would not: sign with keys that
// nobody knows, say passwords, forward nothing, lead to somebody who never speaks, and ask for everything
// else once they are in.
import net from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  ConnectionEnded,
  connect,
  generatePrivateKey,
  openClient,
  publicKeyLine,
  writeListen,
  writePath,
  writeTcpForward,
  type Connection,
  type Proof,
} from '@hawser/ssh'
import { freePort } from '../../ssh/test/programs.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const key = generatePrivateKey()
const rsa = generatePrivateKey('rsa')
let service: Service
beforeAll(async () => {
  service = await startService({ env: { HAWSER_SSH_FAILURE_LIMIT: '4/600' } })
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  for (const { type, blob } of [key, rsa])
    await owner.enrolmentKeys.create({ body: { name: type, public_key: publicKeyLine(type, blob) } })
})
afterAll(() => service[Symbol.asyncDispose]())

const socket = () => net.connect(service.sshPort, '127.0.0.1')
const checkHostKey = () => true
const comeIn = async (
  proof: Proof = { method: 'publickey', key },
  user: string = sample.tenant,
): Promise<Connection> =>
  connect(socket(), { user, proofs: [proof], checkHostKey, channelTypes: ['forwarded-tcpip'] })
const sentence = async (connection: Connection): Promise<string> => (await connection.ended).message

test('whoever forwards nothing, or leads to somebody who never speaks, is let go with a sentence', async () => {
  const idle = await comeIn()
  const silent = await comeIn({ method: 'publickey', key: rsa }, sample.tenant.toUpperCase())
  expect(await silent.request('tcpip-forward', writeListen('', 0))).toEqual(Buffer.from([0, 0, 0, 22]))
  const opening = (await silent.channels.next())!
  expect(opening.type).toBe('forwarded-tcpip')
  opening.accept()
  expect(await Promise.all([sentence(idle), sentence(silent)])).toEqual([
    'Nothing was forwarded: run ssh -N -R 0:localhost:22 on the device.',
    'No SSH server answered at the other end of the forward: is it running, and does -R lead to it?',
  ])
  expect(service.reach.tunnels.size).toBe(0)
})

test('no channel is to be had on such a connection, and whoever asked for one does not join', async () => {
  await using connection = await comeIn()
  const direct = writeTcpForward({
    host: '127.0.0.1',
    port: service.sshPort,
    origin: '127.0.0.1',
    originPort: 1,
  })
  await expect(connection.open('direct-tcpip', direct)).rejects.toMatchObject({
    name: 'ChannelRefused',
    reason: 1,
  })
  await expect(connection.open('direct-streamlocal@openssh.com', writePath('/run/x'))).rejects.toMatchObject({
    reason: 1,
  })
  await connection.request('tcpip-forward', writeListen('0.0.0.0', 0)).catch(() => undefined)
  expect(await connection.ended).toMatchObject({ message: expect.stringContaining('with -N') as unknown })
})

test('nothing but one forward is to be had on such a connection', async () => {
  await using connection = await comeIn()
  const port = await freePort()
  expect(await connection.request('streamlocal-forward@openssh.com', writePath('/run/x'))).toBe(undefined)
  expect(await connection.request('tcpip-forward', writeListen('0.0.0.0', port))).toEqual(Buffer.alloc(0))
  expect(await connection.request('tcpip-forward', writeListen('0.0.0.0', port + 1))).toBe(undefined)
  expect(await connection.request('cancel-tcpip-forward', writeListen('0.0.0.0', port))).toBe(undefined)
  await expect(
    new Promise((resolve, reject) =>
      net.connect(port, '127.0.0.1', () => resolve('open')).on('error', reject),
    ),
  ).rejects.toThrow()
})

test('keys that nobody registered and passwords are refused alike, and those who go on trying are turned away', async () => {
  const client = await openClient(socket(), { checkHostKey })
  const stranger = generatePrivateKey()
  const refused = { accepted: false, partial: false, methods: ['publickey'] }
  expect(await client.attempt(sample.tenant, { method: 'password', password: 'rope' })).toEqual(refused)
  for (let n = 0; n < 4; n += 1)
    expect(await client.attempt(sample.tenant, { method: 'publickey', key: stranger })).toEqual(refused)
  // From here on the right key is of no use either.
  await expect(client.attempt(sample.tenant, { method: 'publickey', key })).rejects.toBeInstanceOf(
    ConnectionEnded,
  )
  expect((await client.transport.ended).message).toBe(
    'Too many failed attempts from your address; wait a while.',
  )
})
