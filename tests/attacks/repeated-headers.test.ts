// A request names two hosts, two tokens or two pages. A proxy in front may judge it by the one and the server
// by the other. Such requests were answered by the first of each. They are refused, on every path and for
// WebSockets, and so are requests whose length is ambiguous.
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { failureHeader } from '@hawser/contract/failures'
import { sample } from '@hawser/contract/examples'
import { describe, expect, test } from 'vitest'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

/** Sends a head as it is and returns the answer's status, head and body. */
async function answerTo(lines: readonly string[]) {
  const socket = connect(Number(new URL(place.url).port), '127.0.0.1')
  socket.write([...lines, '', ''].join('\r\n'), 'latin1')
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body }
}

const upgrade = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
]
const doors = [
  '/agent/connection',
  '/ssh/connection',
  '/ssh/revdial?revdial.dialer=0123456789abcdef0123456789abcdef',
  '/ws/ssh?token=garbage',
  `/api/sessions/${sample.session}/live`,
]

function expectRefused({ status, head, body }: Awaited<ReturnType<typeof answerTo>>): void {
  expect(status).toBe(400)
  expect(head).toContain(`\r\n${failureHeader}: invalid\r\n`)
  expect(Object.keys(JSON.parse(body) as object)).toEqual(['message'])
}

const repeated: readonly (readonly [string, readonly string[]])[] = [
  ['two hosts', ['Host: hawser.test', 'Host: evil.example']],
  ['the same host twice', ['Host: hawser.test', 'hOsT: hawser.test']],
  ['two tokens', ['Host: hawser.test', 'Authorization: Bearer a', 'Authorization: Bearer b']],
  ['two API keys', ['Host: hawser.test', 'X-API-Key: a', 'X-API-Key: b']],
  ['two pages', ['Host: hawser.test', 'Origin: http://hawser.test', 'Origin: http://evil.example']],
]

describe.each(repeated)('%s', (_, headers) => {
  test.each(['/info', '/', '/api/devices', '/no-such-page', '/%ff', '/healthcheck'])(
    'are refused at %s',
    async (path) => {
      for (const version of ['HTTP/1.1', 'HTTP/1.0'])
        expectRefused(await answerTo([`GET ${path} ${version}`, 'Connection: close', ...headers]))
    },
  )

  test.each(doors)('are refused for a WebSocket at %s', async (path) => {
    expectRefused(await answerTo([`GET ${path} HTTP/1.1`, ...headers, ...upgrade]))
  })
})

describe('a request without a host', () => {
  test.each(['/info', '/', '/api/devices'])('is refused at %s', async (path) => {
    expect((await answerTo([`GET ${path} HTTP/1.1`, 'Connection: close'])).status).toBe(400)
  })
  test.each(doors)('is refused for a WebSocket at %s', async (path) => {
    expectRefused(await answerTo([`GET ${path} HTTP/1.1`, ...upgrade]))
  })
  test('is served in HTTP/1.0, which has none', async () => {
    expect((await answerTo(['GET /info HTTP/1.0'])).status).toBe(200)
  })
})

test.each([
  ['two lengths', ['Content-Length: 2', 'Content-Length: 3']],
  ['a length and chunks', ['Content-Length: 2', 'Transfer-Encoding: chunked']],
  ['chunks twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
])('%s are refused', async (_, headers) => {
  const said = ['POST /api/login HTTP/1.1', 'Host: x', 'Content-Type: application/json', ...headers]
  expect((await answerTo([...said, '', '{}'])).status).toBe(400)
})

test('two lists of addresses are one list, of which the last address is the proxy’s word', async () => {
  await answerTo([
    'POST /api/user/resend_email HTTP/1.1',
    'Host: x',
    'Connection: close',
    'X-Forwarded-For: 203.0.113.66',
    'X-Forwarded-For: 192.0.2.8',
    'Content-Length: 0',
  ])
  const lines = place
    .log()
    .split('\n')
    .filter((line) => line.includes('"users.resend"'))
  expect(JSON.parse(lines.at(-1) ?? '{}')).toMatchObject({ source: '192.0.2.8' })
})
