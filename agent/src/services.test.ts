// Web services in the tunnel of an agent, against a server that is only its end of the tunnel.
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  featuresHeader,
  nonceHeader,
  protocols,
  targetText,
  type ListeningPort,
} from '@hawser/contract/tunnel'
import { acceptBytes, multistream, openMux, type Mux } from '@hawser/mux'
import { blobOf } from '@hawser/ssh'
import { eventually } from '../../tests/harness/eventually.ts'
import { pingInterval } from './ping-interval.ts'
import { resumableStreams } from './resumable-streams.ts'
import { servicesOf, type Services } from './services.ts'
import { readServices } from './services-setting.ts'
import type { ServedDevice } from './serving.ts'
import { holdTunnel } from './tunnel.ts'

const { privateKey: key } = generateKeyPairSync('ed25519')
const uid = 'crane'

let sockets: Socket[]
let target: net.Server
beforeEach(async () => {
  sockets = []
  target = net.createServer((socket) => void sockets.push(socket.on('error', () => undefined).resume()))
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
})
afterEach(() => void target.close())
const address = () => ({ host: '127.0.0.1', port: (target.address() as AddressInfo).port })

let sessions = 0
function servicesWith(setting: string, served?: ServedDevice): Services {
  return servicesOf({
    config: { services: readServices(setting)! },
    served,
    device: {
      now: () => ({ uid, token: '', namespace: 'harbour', name: uid }) as never,
      serverKey: () => blobOf(key),
    },
    session() {
      sessions += 1
      return { [Symbol.dispose]: () => void (sessions -= 1) }
    },
    log: () => undefined,
  })
}

/** The server's end of the tunnel of an agent. */
async function tunnelTo(services: Services | undefined) {
  const opened = Promise.withResolvers<{ mux: Mux; nonce: string }>()
  const server = createServer().on('upgrade', (request, socket, head) => {
    const carrier = acceptBytes(request, socket, head, { headers: { [featuresHeader]: 'services' } })
    opened.resolve({
      mux: openMux(carrier, { role: 'client' }),
      nonce: request.headers[nonceHeader] as string,
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stopping = new AbortController()
  const serve = async () => undefined
  const held = holdTunnel(
    {
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      key,
      serve,
      resumable: resumableStreams(serve, stopping.signal),
      ...(services ? { services } : {}),
      reports: {
        report: () => ({}),
        told: () => undefined,
        watch: () => ({ [Symbol.dispose]: () => undefined }),
      },
      interval: pingInterval(),
      connection: () => ({}),
      leaving: () => 'stopped',
      isHangUp: async (signature) => signature === 'signed',
      hangUp: async () => undefined,
      onLost: () => undefined,
      log: () => undefined,
    },
    { uid, token: '' },
    stopping.signal,
    () => undefined,
  )
  const { mux, nonce } = await opened.promise
  async function ask(protocol: string, head: object): Promise<{ stream: Duplex; answer: unknown }> {
    const stream = mux.open(
      Buffer.concat([multistream.propose(protocol), Buffer.from(`${JSON.stringify(head)}\n`)]),
    )
    expect(await multistream.readReply(stream, protocol)).toBe(true)
    return { stream, answer: JSON.parse(await multistream.readLine(stream, 64 * 1024)) }
  }
  return {
    mux,
    connect: async (of = uid) => {
      const signature = sign(null, Buffer.from(targetText(of, nonce, address())), key).toString('base64')
      return ask(protocols.target, { ...address(), signature })
    },
    listening: async () => ask(protocols.listening, {}),
    hangUp: async (signature: string) => ask(protocols.hangUp, { signature }).catch(() => undefined),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      mux.close()
      await held.catch(() => undefined)
      server.closeAllConnections()
      server.close()
    },
  }
}

const off = { refused: 'off' }

test('a stream of the tunnel is a connection to the target, until its tunnel ends', async () => {
  const tunnel = await tunnelTo(servicesWith('localhost'))
  const { stream, answer } = await tunnel.connect()
  expect(answer).toEqual({ open: true })
  const socket = await eventually(() => sockets[0] ?? expect.fail())
  socket.end('hello')
  expect(((await once(stream, 'data')) as [Buffer])[0].toString()).toBe('hello')
  expect((await tunnel.connect('buoy')).answer).toEqual({ refused: 'unapproved' })
  expect((await tunnel.connect()).answer).toEqual({ open: true })
  await eventually(() => expect(sessions).toBe(2))
  await tunnel[Symbol.asyncDispose]()
  await eventually(() => expect(sessions).toBe(0))
})

test('what runs for people ends when the server orders it, and only then', async () => {
  await using tunnel = await tunnelTo(servicesWith('network'))
  const { stream } = await tunnel.connect()
  await tunnel.hangUp('not signed')
  expect([stream.closed, sessions]).toEqual([false, 1])
  await tunnel.hangUp('signed')
  await eventually(() => expect([stream.closed, sessions]).toEqual([true, 0]))
})

test('the ports of the device are listed, for everybody who asks', async () => {
  await using tunnel = await tunnelTo(servicesWith('localhost'))
  const answers = await Promise.all([tunnel.listening(), tunnel.listening(), tunnel.listening()])
  for (const { answer, stream } of answers) {
    const { ports } = answer as { ports: ListeningPort[] }
    const { host, port } = address()
    expect(ports.find((each) => each.port === port)).toMatchObject({ address: host, port })
    stream.resume().end()
  }
  await eventually(() => expect([tunnel.mux.streams, sessions]).toEqual([0, 0]))
})

test('nothing is connected or listed where services are off', async () => {
  for (const services of [undefined, servicesWith('off')]) {
    await using tunnel = await tunnelTo(services)
    expect((await tunnel.connect()).answer).toEqual(off)
    expect((await tunnel.listening()).answer).toEqual(off)
  }
  expect(sockets).toEqual([])
})

test('a container is reached by its own addresses, or not at all', async () => {
  const container = { facts: () => ({}) as never, serve: async () => undefined }
  await using unknown = await tunnelTo(servicesWith('network', container))
  expect((await unknown.connect()).answer).toEqual({ refused: 'unreachable' })
  expect((await unknown.listening()).answer).toEqual({ refused: 'failed' })
  // The loopback of this machine is no address of a container.
  await using own = await tunnelTo(
    servicesWith('network', { ...container, addresses: async () => ['127.0.0.1'] }),
  )
  expect((await own.connect()).answer).toEqual({ refused: 'unreachable' })
  expect(sockets).toEqual([])
})
