// A container's accounts that nobody may log in with were open to whoever had a key: those without a login
// shell, those that an administrator has locked or that have expired, and all but root while there is a
// `nologin` file. The engine here is a small HTTP server that has nothing but the files of a container.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { duplexPair } from 'node:stream'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { engineClient, serveContainer } from '@hawser/engine'
import { generatePrivateKey, openClient } from '@hawser/ssh'

const container = 'a'.repeat(64)
const usual: Record<string, string> = {
  '/etc/passwd': [
    'root:x:0:0:root:/root:/bin/sh',
    'olga:x:1000:1000::/home/olga:/bin/bash',
    'www:x:33:33::/var/www:/usr/sbin/nologin',
    'ftp:x:34:34::/srv:/bin/false',
    'locked:x:1001:1001::/:/bin/sh',
    'gone:x:1002:1002::/:/bin/sh',
    'keys:x:1003:1003::/:/bin/sh',
  ].join('\n'),
  '/etc/shadow': [
    'root:*:19000::::::',
    'olga:$6$x$y:19000::::::',
    'locked:!$6$x$y:19000::::::',
    'gone:$6$x$y:19000:::::19001:',
    'keys:!:19000::::::',
  ].join('\n'),
}
let files: Record<string, string>

/** A POSIX tar of one file. */
function archive(text: string): Buffer {
  const head = Buffer.alloc(512)
  head.write('file', 0)
  head.write(text.length.toString(8).padStart(11, '0'), 124)
  head.write('0', 156)
  const body = Buffer.alloc(Math.ceil(text.length / 512) * 512)
  body.write(text)
  return Buffer.concat([head, body, Buffer.alloc(1_024)])
}

const engine = http.createServer((request, response) => {
  const url = new URL(request.url!, 'http://engine')
  const text = url.pathname.endsWith('/archive') ? files[url.searchParams.get('path') ?? ''] : undefined
  if (text === undefined) response.writeHead(404).end('{"message":"no such thing"}')
  else response.end(archive(text))
})
beforeAll(async () => {
  engine.listen(0, '127.0.0.1')
  await once(engine, 'listening')
})
afterAll(() => {
  engine.closeAllConnections()
  engine.close()
})
beforeEach(() => {
  files = { ...usual }
})

/** Whether this user gets in with a key that the server stands behind, and with a password that is right. */
async function enters(user: string): Promise<[boolean, boolean]> {
  const { port } = engine.address() as AddressInfo
  const client = engineClient({ endpoint: () => ({ host: '127.0.0.1', port, name: 'engine' }) })
  const answers: boolean[] = []
  for (const proof of [
    { method: 'publickey', key: generatePrivateKey() } as const,
    { method: 'password', password: 'sesame' } as const,
  ]) {
    const [near, far] = duplexPair()
    const served = serveContainer(far, {
      client,
      container,
      deviceName: 'crate',
      hostKeys: [generatePrivateKey()],
      approveKey: async () => true,
      checkPassword: async () => true,
      log: () => undefined,
    })
    const opened = await openClient(near, { checkHostKey: () => true })
    answers.push((await opened.attempt(user, proof)).accepted)
    near.destroy()
    await served
  }
  return answers as [boolean, boolean]
}

const open = [true, true]
const closed = [false, false]

test.each([
  ['root', open],
  ['olga', open],
  // Without a password keys still work, which is how most are reached; passwords are judged elsewhere.
  ['keys', open],
  ['www', closed],
  ['ftp', closed],
  ['locked', closed],
  ['gone', closed],
  ['nobody-there', closed],
])('%s', async (user, expected) => {
  expect(await enters(user)).toEqual(expected)
})

test.each(['/etc/nologin', '/run/nologin'])('while there is %s root alone gets in', async (file) => {
  files[file] = 'The tide is out.\n'
  expect([await enters('root'), await enters('olga')]).toEqual([open, closed])
})

test('a container without a shadow file, or without any, is as open as it says', async () => {
  delete files['/etc/shadow']
  expect(await enters('olga')).toEqual(open)
  files = {}
  expect(await enters('root')).toEqual(open)
})
