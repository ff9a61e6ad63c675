// A TLS handshake costs the server a signature and memory, and a stranger nothing. Connections that never
// finish theirs, and connections that start one after the other, are bounded by source, and others get in.
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { folder } from '../../ssh/test/programs.ts'
import { handshakes } from '../../server/src/tls/handshakes.ts'
import { limiter } from '../../server/src/kit/limiter.ts'
import { makeAuthority } from '../harness/authority.ts'
import { until } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'

const where = folder()
let files: { readonly chain: string; readonly key: string }
const opened = new Set<net.Socket>()

beforeAll(async () => {
  files = await (await makeAuthority(where)).issue('server', 'IP:127.0.0.1')
})
afterAll(() => where[Symbol.dispose]())

const start = async (rate: string): Promise<Service> =>
  startService({
    env: {
      HAWSER_TLS_CERT: files.chain,
      HAWSER_TLS_KEY: files.key,
      HAWSER_TRUSTED_PROXIES: 'none',
      HAWSER_TLS_RATE_LIMIT: rate,
    },
  })

/** A connection from another address of this machine. */
async function dial(service: Service, localAddress: string): Promise<net.Socket> {
  const socket = net.connect({ port: service.tlsPort ?? 0, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined).resume()
  opened.add(socket)
  await once(socket, 'connect')
  return socket
}

/** Whether a handshake succeeds. */
async function isServed(service: Service, localAddress: string): Promise<boolean> {
  const socket = tls.connect({ socket: await dial(service, localAddress), rejectUnauthorized: false })
  const served = await new Promise<boolean>((resolve) => {
    socket.once('secureConnect', () => resolve(true))
    socket.on('error', () => resolve(false)).once('close', () => resolve(false))
  })
  socket.destroy()
  return served
}

test('handshakes that are never finished are few for each source, and others are served', async () => {
  await using service = await start('0/10')
  const silent = await Promise.all(Array.from({ length: 300 }, async () => dial(service, '127.0.0.2')))
  const closed = () => silent.filter((socket) => socket.closed || socket.destroyed).length
  await until(() => closed() === 200)
  expect(await isServed(service, '127.0.0.2')).toBe(false)
  expect(await isServed(service, '127.0.0.3')).toBe(true)
  for (const socket of opened) socket.destroy()
  await until(async () => isServed(service, '127.0.0.2'))
})

test('what is no TLS frees its place at once', async () => {
  await using service = await start('0/10')
  for (let burst = 0; burst < 3; burst += 1)
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = await dial(service, '127.0.0.2')
        const gone = once(socket, 'close')
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
        await gone
      }),
    )
  expect(await isServed(service, '127.0.0.2')).toBe(true)
})

test('one source starts no more than its rate', async () => {
  await using service = await start('5/600')
  const served: boolean[] = []
  for (let count = 0; count < 8; count += 1) served.push(await isServed(service, '127.0.0.2'))
  expect(served).toEqual([true, true, true, true, true, false, false, false])
  expect(await isServed(service, '127.0.0.3')).toBe(true)
})

test('many sources together are dropped at random from half of the places on, and never exceed them', () => {
  let chance = 0.999
  const rate = limiter({ now: () => 0 }, { max: Infinity, window_ms: 1 })
  const places = handshakes(rate, () => chance)
  const enter = (source: number): Disposable | undefined =>
    places.enter(`10.${source >> 8}.${source & 255}.1`, false)
  for (let source = 0; source < 5_000; source += 1) enter(source)
  expect(places.size).toBe(1_000)
  chance = 0
  const fewer = handshakes(rate, () => chance)
  for (let source = 0; source < 5_000; source += 1) fewer.enter(`10.${source >> 8}.${source & 255}.1`, false)
  expect(fewer.size).toBe(501)
})
