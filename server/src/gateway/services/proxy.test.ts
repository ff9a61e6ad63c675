// One request on its way: what is late, unasked or unreadable in the answer of a device.
import http, { type IncomingMessage } from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { minute_ms } from '../../kit/clock.ts'
import { eventually } from '../../../../tests/harness/eventually.ts'
import { passRequest } from './proxy.ts'
import { upstream } from './upstream.ts'
import type { Pass } from './visits.ts'

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }),
)
afterEach(() => void vi.useRealTimers())

async function listening(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A server in front of a device that answers with these bytes, and says no more. */
async function world(answer: string, service: object = {}) {
  const sockets = new Set<Socket>()
  const requests: string[] = []
  const device = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      requests.push(bytes.toString('latin1'))
      socket.write(answer)
    })
  })
  const devicePort = await listening(device)
  const connections = upstream(async () => {
    const socket = net.connect(devicePort, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  })
  const known = { host: '127.0.0.1', port: 80, scheme: 'http', host_header: 'own', audience: 'public' }
  const visit = {
    connections,
    admitted: {
      service: Object.defineProperties(known, Object.getOwnPropertyDescriptors(service)),
      person: {},
    },
  }
  const ended: number[] = []
  const errors: unknown[] = []
  const front = http.createServer((request, response) => {
    const passing = {
      pass: { visit, exchanges: new Set() } as unknown as Pass,
      request,
      caller: { source: '192.0.2.1', secure: false, host: 'a.test' },
      exchange: { cut: () => undefined },
      onError: (error: unknown) => void errors.push(error),
    }
    passRequest(passing, response, (status) => void ended.push(status))
  })
  const port = await listening(front)
  return {
    requests,
    ended,
    errors,
    ask: (options: http.RequestOptions = {}) => http.request({ port, agent: false, ...options }),
    async [Symbol.asyncDispose]() {
      connections.destroy()
      for (const socket of sockets) socket.destroy()
      front.closeAllConnections()
      device.close()
      await new Promise((resolve) => void front.close(resolve))
    },
  }
}

const answerOf = async (request: http.ClientRequest): Promise<IncomingMessage> =>
  ((await once(request, 'response')) as [IncomingMessage])[0]

test('a device that does not answer is given two minutes, and then the person reads so', async () => {
  await using here = await world('')
  const request = here.ask().end()
  const answer = answerOf(request)
  await eventually(() => expect(here.requests).toHaveLength(1))
  await vi.advanceTimersByTimeAsync(2 * minute_ms - 1_000)
  expect(here.ended).toEqual([])
  await vi.advanceTimersByTimeAsync(1_000)
  const { statusCode, headers } = await answer
  expect([statusCode, headers['retry-after']]).toEqual([504, '5'])
  const text = (await (await answer).resume().setEncoding('utf8').toArray()).join('')
  expect(JSON.parse(text)).toEqual({ message: 'The device did not answer in time.' })
  await eventually(() => expect(here.ended).toEqual([504]))
})

test('a 100 that nobody has asked for is not passed on', async () => {
  await using here = await world(
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  )
  const request = here.ask().end()
  let wasTold = false
  request.on('continue', () => (wasTold = true))
  expect((await answerOf(request)).statusCode).toBe(200)
  expect(wasTold).toBe(false)
})

test('a stranger who sends next to nothing is let go, also one who was told to wait and did not', async () => {
  await using here = await world('')
  const request = here.ask({
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': 1_000_000 },
  })
  const gone = once(request, 'error')
  request.flushHeaders()
  await eventually(() => expect(here.requests).toHaveLength(1))
  request.write('x')
  await eventually(() => expect(here.requests.join('')).toMatch(/\r\n\r\nx$/))
  await vi.advanceTimersByTimeAsync(minute_ms)
  await gone
  expect(here.ended).toEqual([0])
})

test('an answer that cannot be read ends the request, and nothing else', async () => {
  await using here = await world('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', {
    get audience(): string {
      throw new Error('as an invalid URL did once')
    },
  })
  for (const _ of [1, 2]) expect((await answerOf(here.ask().end())).statusCode).toBe(502)
  await eventually(() => expect(here.ended).toEqual([502, 502]))
  expect(here.errors.map(String)).toEqual(Array(2).fill('Error: as an invalid URL did once'))
})

test('a request beyond the bound waits until another one leaves', async () => {
  await using here = await world('')
  const paths = Array.from({ length: 33 }, (_, index) => `/${index}`)
  const requests = paths.map((path) =>
    here
      .ask({ path })
      .on('error', () => undefined)
      .end(),
  )
  await eventually(() => expect(here.requests).toHaveLength(32))
  const isThere = (path: string): boolean => here.requests.some((head) => head.startsWith(`GET ${path} `))
  const waiting = paths.find((path) => !isThere(path))!
  requests[paths.indexOf(waiting === '/0' ? '/1' : '/0')]!.destroy()
  await eventually(() => expect(isThere(waiting)).toBe(true))
  for (const request of requests) request.destroy()
})
