// The question whether the server vouches for a login: its signature counts, whichever type of key it is by,
// and several questions share a connection. A connection that the server has closed is no refusal.
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, test } from 'vitest'
import { blobOf } from '@hawser/ssh'
import { keyApproval } from './key-approval.ts'

const keys = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ed25519: generateKeyPairSync('ed25519'),
  p256: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
}

const signed = (key: KeyObject, data: string): string =>
  sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', Buffer.from(data), key).toString('base64')

/** A server that signs with this key; `meddle` sees a request first and may handle it. */
async function startServer(
  key: KeyObject,
  meddle: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
) {
  const sockets = new Set<Socket>()
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    if (meddle(request, response)) return
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const { data } = JSON.parse(text) as { data: string }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ signature: signed(key, data) }))
    })
  })
  server.on('connection', (socket) => sockets.add(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    approve: keyApproval(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => ({
      uid: 'a'.repeat(64),
      token: 'token',
      name: 'crane',
    })),
    connections: () => sockets.size,
    requests: () => requests,
    closeIdle: () => server.closeIdleConnections(),
    [Symbol.dispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const login = (key: KeyObject) => ({ user: 'olga', blob: blobOf(key), sessionId: Buffer.alloc(32) })

test.each(['rsa', 'ed25519'] as const)('a signature by the %s key that was shown counts', async (type) => {
  using server = await startServer(keys[type].privateKey)
  expect(await server.approve(login(keys[type].publicKey))).toBe(true)
  const other = generateKeyPairSync('ed25519').publicKey
  expect(await server.approve(login(other))).toBe(false)
})

test('a key of a type that no server has for it does not count', async () => {
  using server = await startServer(keys.p256.privateKey)
  expect(await server.approve(login(keys.p256.publicKey))).toBe(false)
})

test('several questions share a connection, and one that was closed is opened again', async () => {
  using server = await startServer(keys.ed25519.privateKey)
  const ask = () => server.approve(login(keys.ed25519.publicKey))
  expect([await ask(), await ask(), await ask()]).toEqual([true, true, true])
  expect(server.connections()).toBe(1)
  server.closeIdle()
  expect(await ask()).toBe(true)
  expect(server.connections()).toBe(2)
})

test('a question on a connection that breaks is asked again, once and on a new one', async () => {
  const seen = new Set<Socket>()
  using server = await startServer(keys.ed25519.privateKey, ({ socket }) => {
    const isUsed = seen.has(socket)
    seen.add(socket)
    if (isUsed) socket.resetAndDestroy()
    return isUsed
  })
  const ask = () => server.approve(login(keys.ed25519.publicKey))
  expect(await ask()).toBe(true)
  expect(await ask()).toBe(true)
  expect(server.requests()).toBe(3)
})

test('a question on a connection that was new is not asked again', async () => {
  using server = await startServer(keys.ed25519.privateKey, ({ socket }) => {
    socket.resetAndDestroy()
    return true
  })
  await expect(server.approve(login(keys.ed25519.publicKey))).rejects.toThrow()
  expect(server.requests()).toBe(1)
})
