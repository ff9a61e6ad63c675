// Connections to a target: as many requests as there is room for, whether or not their connections are there
// yet, and nothing stays of a request that is over.
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { eventually } from '../../../../tests/harness/eventually.ts'
import { upstream, type Dial } from './upstream.ts'

/** Requests that run until they are ended. */
function runs(dial: Dial, most: number) {
  const connections = upstream(dial, most)
  let running = 0
  const begin = () => {
    const gone = new AbortController()
    const over = Promise.withResolvers<void>()
    const outcome = { why: undefined as unknown, isOver: false }
    const done = connections
      .take(async () => {
        running += 1
        const request = connections.begin({ path: '/' }, gone.signal)
        request.on('error', (error) => (outcome.why = error))
        request.on('response', (response) => response.resume())
        request.end()
        await over.promise
        request.destroy()
        running -= 1
      }, gone.signal)
      ?.catch(() => undefined)
    return {
      outcome,
      end: async () => {
        over.resolve()
        gone.abort()
        await done
      },
    }
  }
  return { connections, begin, running: () => running }
}

test('the bound holds also while no connection is there yet', async () => {
  const dials: AbortSignal[] = []
  const { begin, running } = runs(async (gone) => {
    dials.push(gone)
    return new Promise<Duplex>((_, reject) => {
      gone.addEventListener('abort', () => reject(gone.reason as Error), { once: true })
    })
  }, 32)
  const all = Array.from({ length: 500 }, begin)
  await eventually(() => expect([running(), dials.length]).toEqual([32, 16]))
  // A request that leaves ends the attempt to connect for it, and the next one gets the turn.
  for (const one of all.slice(0, 490)) await one.end()
  await eventually(() => expect(running()).toBe(10))
  expect(dials.filter(({ aborted }) => !aborted)).toHaveLength(10)
  await Promise.all(all.map(async ({ end }) => end()))
  expect(running()).toBe(0)
})

test('requests that waited in vain are not dialled for afterwards', async () => {
  let dialled = 0
  const { begin } = runs(async () => {
    dialled += 1
    return new Promise<Duplex>(() => undefined)
  }, 4)
  const first = Array.from({ length: 4 }, begin)
  await eventually(() => expect(dialled).toBe(4))
  const waiting = Array.from({ length: 200 }, begin)
  for (const one of waiting) await one.end()
  for (const one of first) await one.end()
  expect(dialled).toBe(4)
})

test('a connection is used again, until it is destroyed', async () => {
  const server = http.createServer((_, response) => response.end('yes')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  let dialled = 0
  const connections = upstream(async () => {
    dialled += 1
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }, 2)
  const ask = async () => {
    const gone = new AbortController()
    await connections.take(async () => {
      const request = connections.begin({ path: '/' }, gone.signal).end()
      const [response] = (await once(request, 'response')) as [http.IncomingMessage]
      await once(response.resume(), 'close')
    }, gone.signal)
  }
  for (let count = 0; count < 5; count += 1) await ask()
  expect(dialled).toBe(1)
  connections.destroy()
  server.closeAllConnections()
  await new Promise((resolve) => void server.close(resolve))
})
