// A rogue agent holds a tunnel, serves a session, and then continues its stream and breaks it in a loop. The
// session ends after few attempts, and its person is told why.
import { generateKeyPairSync } from 'node:crypto'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { ResumableStream } from '@hawser/mux'
import { acceptConnection, connect, privateKeyFrom, startSession } from '@hawser/ssh'
import { pingInterval } from '../../agent/src/ping-interval.ts'
import { resumableStreams } from '../../agent/src/resumable-streams.ts'
import { holdTunnel } from '../../agent/src/tunnel.ts'
import { eventually } from '../harness/eventually.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 180_000 })

test('a session whose agent only breaks ends with a sentence to its person, after few attempts', async () => {
  await using service = await startService({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const { privateKey: key, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const body = {
    identity: { mac: '02:00:00:00:00:77' },
    hostname: 'rogue',
    public_key: publicKey.export({ type: 'pkcs1', format: 'pem' }),
    tenant_id: sample.tenant,
    info: { id: 'linux', pretty_name: 'Linux', version: 'v0.16.4', arch: 'amd64', platform: 'native' },
  }
  const { uid } = (await service.api().devices.auth({ body })).body
  await owner.devices.accept({ params: { uid } })
  const device = (await service.api().devices.auth({ body })).body

  const stopping = new AbortController()
  /** Lets everybody in, and says nothing more. */
  let served: ResumableStream | undefined
  const serve = async (stream: Duplex): Promise<void> => {
    if (stream instanceof ResumableStream) served = stream
    const connection = await acceptConnection(stream, {
      hostKeys: [privateKeyFrom(key)],
      methods: ['password'],
      authenticate: () => Promise.resolve('accept'),
      channelTypes: ['session'],
    })
    for await (const opening of connection.channels) {
      const channel = opening.accept()
      void (async () => {
        for await (const request of channel.requests) request.reply(true)
      })()
    }
  }
  const honest = resumableStreams(serve, stopping.signal)
  const carriers: Duplex[] = []
  let resumes = 0
  const parts = {
    server: service.url,
    key,
    features: ['resume'] as const,
    serve,
    resumable: {
      open: async (head: Parameters<typeof honest.open>[0], carrier: Duplex, tunnel: { check(): void }) => {
        carriers.push(carrier)
        return honest.open(head, carrier, tunnel)
      },
      resume(_: object, carrier: Duplex) {
        resumes += 1
        carrier.on('error', () => undefined)
        carrier.write(`${JSON.stringify(served?.detach())}\n`)
        carrier.once('data', () => carrier.destroy())
      },
      close: honest.close,
      closeAll: honest.closeAll,
    },
    reports: {
      report: () => ({}),
      told: () => undefined,
      watch: () => ({ [Symbol.dispose]: () => undefined }),
    },
    interval: pingInterval(),
    connection: () => ({}),
    leaving: () => 'stopped' as const,
    isHangUp: async () => false,
    hangUp: async () => undefined,
    onLost: () => undefined,
    log: () => undefined,
  }
  const up = Promise.withResolvers<void>()
  void holdTunnel(parts, device, stopping.signal, () => up.resolve()).catch(() => undefined)
  await up.promise

  const socket = net.connect(service.sshPort, '127.0.0.1')
  const connection = await connect(socket, {
    user: `root@${sample.namespace}.${device.name}`,
    proofs: [{ method: 'password', password: 'any' }],
    checkHostKey: () => true,
  })
  const { channel } = await startSession(connection, {
    program: { type: 'shell' },
    pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() },
  })
  let shown = ''
  void channel.readAll(({ bytes }) => void (shown += bytes.toString())).catch(() => undefined)
  for (const carrier of carriers) carrier.destroy()
  await channel.write(Buffer.from('typed'))
  await eventually(() => expect(shown).toMatch(/broke again and again, and the session was ended/), 120_000)
  expect(resumes).toBeLessThan(100)
  stopping.abort()
  socket.destroy()
})
