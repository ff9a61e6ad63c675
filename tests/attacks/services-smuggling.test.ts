// A request at the service of a device hides another one in it, which the device would take for one of the
// server, or for one of somebody else: with headers that only the server may set, or on a connection that all
// visitors of a public service share. Three did: `Connection: content-length` took the length away and left
// the body; a WebSocket's handshake with a length, whose body never came, swallowed the head of the next
// request; a request behind an ambiguous one was still passed on. A device smuggles, too: it answers twice,
// or so that Node throws where nobody catches, which ended the server for everybody.
import { expect, test } from 'vitest'
import { atRest } from '../harness/eventually.ts'
import { sharedServices, startProgram } from '../harness/services.ts'
import { answers, answerTo, bareProgram, dial, handshake, head, recording, statusOf } from './services-raw.ts'

const place = sharedServices()
const mib = 1024 * 1024

/** As the device would read it, and as the server would. */
const hidden = head('GET /hidden HTTP/1.1', 'Host: x', 'X-Hawser-User: root')
const behind = (host: string): string => head('GET /hidden HTTP/1.1', host)

const crlf = '\r\n'
/** What is asked, and with which statuses the server may answer; none: it closes the connection. */
const attacks: readonly (readonly [
  what: string,
  bytes: (host: string) => string,
  statuses: readonly number[],
])[] = [
  [
    'two lengths',
    (host) =>
      head('POST /a HTTP/1.1', host, 'Content-Length: 0', `Content-Length: ${behind(host).length}`) +
      behind(host),
    [400],
  ],
  [
    'a list of lengths',
    (host) => head('POST /a HTTP/1.1', host, `Content-Length: 0, ${behind(host).length}`) + behind(host),
    [400],
  ],
  ['a signed length', (host) => head('POST /a HTTP/1.1', host, 'Content-Length: +0') + behind(host), [400]],
  [
    'a length and chunks',
    (host) =>
      `${head('POST /a HTTP/1.1', host, 'Content-Length: 5', 'Transfer-Encoding: chunked')}0${crlf}${crlf}${behind(host)}`,
    [400],
  ],
  ...[
    'xchunked',
    'chunked, identity',
    'identity, chunked',
    'chunked, chunked',
    '"chunked"',
    '\x0bchunked',
  ].map(
    (coding) =>
      [
        `the coding ${JSON.stringify(coding)}`,
        (host: string) =>
          `${head('POST /a HTTP/1.1', host, `Transfer-Encoding: ${coding}`)}0${crlf}${crlf}${behind(host)}`,
        [400],
      ] as const,
  ),
  [
    'two codings',
    (host) =>
      `${head('POST /a HTTP/1.1', host, 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity')}0${crlf}${crlf}${behind(host)}`,
    [400],
  ],
  [
    'chunks in HTTP/1.0',
    (host) =>
      `${head('POST /a HTTP/1.0', host, 'Connection: keep-alive', 'Transfer-Encoding: chunked')}0${crlf}${crlf}${behind(host)}`,
    [400],
  ],
  [
    'a folded line',
    (host) =>
      head('POST /a HTTP/1.1', host, 'Transfer-Encoding:', ' chunked') + `0${crlf}${crlf}${behind(host)}`,
    [400],
  ],
  [
    'a bare CR',
    (host) => head('GET /a HTTP/1.1', host, `X-A: b\rGET /hidden HTTP/1.1`) + behind(host),
    [400],
  ],
  ['a bare LF', (host) => `GET /a HTTP/1.1\n${host}\nX-A: b\n\n${behind(host)}`, [400]],
  [
    'a bare LF behind a header',
    (host) => head('GET /a HTTP/1.1', host, 'X-A: b\nX-Hawser-User: root'),
    [400],
  ],
  [
    'a space before the colon',
    (host) => head('POST /a HTTP/1.1', host, `Content-Length : ${behind(host).length}`) + behind(host),
    [400],
  ],
  [
    'chunks that end with LF',
    (host) => `${head('POST /a HTTP/1.1', host, 'Transfer-Encoding: chunked')}0\n\n${behind(host)}`,
    [400, 502],
  ],
  ['NUL in a header', (host) => head('GET /a HTTP/1.1', host, 'X-A: b\0c') + behind(host), [400]],
  ['NUL in a name', (host) => head('GET /a HTTP/1.1', host, 'X-\0A: b') + behind(host), [400]],
  ['an absolute form', (host) => head('GET http://x/a HTTP/1.1', host) + behind(host), [400]],
  ['an authority', (host) => head('GET x:80 HTTP/1.1', host) + behind(host), [400]],
  ['OPTIONS *', (host) => head('OPTIONS * HTTP/1.1', host) + behind(host), [400]],
  ['CONNECT', (host) => head('CONNECT 127.0.0.1:22 HTTP/1.1', host) + behind(host), []],
  ['two hosts', (host) => head('GET /a HTTP/1.1', host, host) + behind(host), [400]],
  ['HTTP/2', () => `PRI * HTTP/2.0${crlf}${crlf}SM${crlf}${crlf}`, [400]],
  ['a control character in the path', (host) => head('GET /a\x01b HTTP/1.1', host), [400]],
  ['a path of other bytes', (host) => head('GET /a\xe9 HTTP/1.1', host) + behind(host), [400]],
]

test.each(attacks)('%s: nothing of it reaches the device', async (_, bytes, statuses) => {
  await using program = await recording()
  const { host } = await place.serve(program.port, { audience: 'public' })
  // Who was there before is let in at once, before the refusal has closed the connection.
  await place.browser().ask(host, { path: '/first' })
  const answer = await answerTo(place.url, bytes(`Host: ${host}`))
  if (statuses.length > 0) expect(statuses, answer).toContain(statusOf(answer))
  else expect(answer).toBe('')
  // What comes behind a refusal is neither answered nor passed on.
  expect(answer).not.toContain('seen')
  expect((await place.browser().ask(host, { path: '/next' })).text).toBe('seen')
  expect(program.paths.filter((path) => path !== '/a')).toEqual(['/first', '/next'])
})

test.each(['GET', 'DELETE', 'OPTIONS', 'POST'])(
  'a length that Connection names stays with the body of %s',
  async (method) => {
    await using program = await recording()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const lengths = ['Connection: close, Content-Length', `Content-Length: ${hidden.length}`]
    await answerTo(place.url, head(`${method} /a HTTP/1.1`, `Host: ${host}`, ...lengths) + hidden)
    await place.browser().ask(host, { path: '/next' })
    expect(program.paths).toEqual(['/a', '/next'])
  },
)

test.each(['Content-Length: 900', 'Transfer-Encoding: chunked'])(
  'the handshake of a WebSocket with %s takes nothing of the next request',
  async (length) => {
    // It answers without waiting for the body, as many do.
    await using program = await recording()
    const { host } = await place.serve(program.port, { audience: 'public' })
    await answerTo(place.url, head('GET /socket HTTP/1.1', `Host: ${host}`, ...handshake, length))
    const body = crlf.repeat(450) + hidden
    const lines = [`Host: ${host}`, 'Connection: close', `Content-Length: ${body.length}`]
    const answer = await answerTo(place.url, head('POST /next HTTP/1.1', ...lines) + body)
    expect(statusOf(answer)).toBe(200)
    expect(program.paths.filter((path) => path !== '/socket')).toEqual(['/next'])
  },
)

test('h2c is no upgrade, and neither is a WebSocket by another method', async () => {
  await using program = await startProgram((request, response) => {
    request.resume()
    response.end(JSON.stringify(request.headers))
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const h2c = [
    'Connection: Upgrade, HTTP2-Settings, close',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  ]
  for (const lines of [
    head('GET /a HTTP/1.1', `Host: ${host}`, ...h2c),
    head('POST /a HTTP/1.1', `Host: ${host}`, ...handshake, 'Connection: close', 'Content-Length: 0'),
  ]) {
    const answer = await answerTo(place.url, lines)
    expect(statusOf(answer)).toBe(200)
    expect(answer).not.toMatch(/"(?:upgrade|http2-settings)"/)
  }
})

test('requests on one connection are answered in their order, each with its own body', async () => {
  await using program = await startProgram((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => response.end(`${request.url} ${Buffer.concat(chunks).toString()};`))
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const answer = await answerTo(
    place.url,
    head('POST /1 HTTP/1.1', `Host: ${host}`, 'Content-Length: 3') +
      'one' +
      head('PUT /2 HTTP/1.1', `Host: ${host}`, 'Transfer-Encoding: chunked') +
      `3;x=y${crlf}two${crlf}0${crlf}X-Hawser-User: root${crlf}${crlf}` +
      head('GET /3 HTTP/1.1', `Host: ${host}`, 'Connection: close'),
  )
  expect([...answer.matchAll(/\/\d \w*;/g)].map(([one]) => one)).toEqual(['/1 one;', '/2 two;', '/3 ;'])
})

const ok = (body: string, ...lines: readonly string[]): string =>
  head('HTTP/1.1 200 OK', `Content-Length: ${body.length}`, ...lines) + body

test('the second of two answers is nobody’s', async () => {
  await using program = await bareProgram((socket, path) =>
    socket.write(path === '/twice' ? ok('first') + ok('second') : ok('own')),
  )
  const { host } = await place.serve(program.port, { audience: 'public' })
  const browser = place.browser()
  for (let count = 0; count < 3; count += 1) {
    const first = await browser.ask(host, { path: '/twice' }).catch(() => undefined)
    expect(first?.text ?? 'first').toBe('first')
    expect((await browser.ask(host)).text).toBe('own')
  }
})

test('an answer that is longer or shorter than it says ends there', async () => {
  await using program = await bareProgram((socket, path) => {
    if (path === '/longer') socket.write(`${ok('12345')}67890`)
    else if (path === '/shorter') socket.end(ok('12345').slice(0, -2))
    else if (path === '/chunks')
      socket.end(`${head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')}5${crlf}123`)
    else socket.write(ok('own'))
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const browser = place.browser()
  const longer = await browser.ask(host, { path: '/longer' }).catch(() => undefined)
  expect(longer?.text ?? '12345').toBe('12345')
  for (const path of ['/shorter', '/chunks'])
    await expect(browser.ask(host, { path })).rejects.toThrow(/aborted|hang up/)
  expect((await browser.ask(host)).text).toBe('own')
})

const nonsense: readonly (readonly [string, string])[] = [
  ['the status 000', head('HTTP/1.1 000 None', 'Content-Length: 0')],
  ['the status 099', head('HTTP/1.1 099 None', 'Content-Length: 0')],
  ['a status of one digit', head('HTTP/1.1 2 OK', 'Content-Length: 0')],
  ['a status of four digits', head('HTTP/1.1 2000 OK', 'Content-Length: 0')],
  [
    'a status that nobody asked for: 101',
    head('HTTP/1.1 101 Go', 'Connection: Upgrade', 'Upgrade: websocket'),
  ],
  ['two lengths', head('HTTP/1.1 200 OK', 'Content-Length: 1', 'Content-Length: 2') + '12'],
  [
    'a length and chunks',
    head('HTTP/1.1 200 OK', 'Content-Length: 1', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
  ],
  ['NUL in a header', head('HTTP/1.1 200 OK', 'X-A: b\0c', 'Content-Length: 0')],
  ['DEL in a header', head('HTTP/1.1 200 OK', 'X-A: b\x7fc', 'Content-Length: 0')],
  ['a bare CR in a header', head('HTTP/1.1 200 OK', 'X-A: b\rc: d', 'Content-Length: 0')],
  ['a name with a space', head('HTTP/1.1 200 OK', 'X A: b', 'Content-Length: 0')],
  ['a name of other bytes', head('HTTP/1.1 200 OK', 'X-\xe9: b', 'Content-Length: 0')],
  ['no name', head('HTTP/1.1 200 OK', ': b', 'Content-Length: 0')],
  ['HTTP/0.9', 'just text'],
]

test.each(nonsense)(
  'a device that answers with %s is told so, and hurts nobody',
  async (_, bytes) => {
    await using program = await bareProgram((socket) => socket.end(bytes, 'latin1'))
    const { host } = await place.serve(program.port, { audience: 'public' })
    expect((await place.browser().ask(host)).status).toBe(502)
    const upgraded = await answerTo(place.url, head('GET / HTTP/1.1', `Host: ${host}`, ...handshake))
    expect(statusOf(upgraded)).toBe(502)
  },
  20_000,
)

test('every byte in a header of an answer passes unchanged, or the answer does not', async () => {
  await using program = await bareProgram((socket, path) => {
    const byte = String.fromCharCode(Number(path.slice(1)))
    socket.end(head('HTTP/1.1 200 OK', `X-Byte: a${byte}b`, 'Content-Length: 0'), 'latin1')
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const browser = place.browser()
  for (let byte = 0; byte < 256; byte += 1) {
    const { status, headers } = await browser.ask(host, { path: `/${byte}` })
    if (status === 200) expect(headers['x-byte'], String(byte)).toBe(`a${String.fromCharCode(byte)}b`)
    else expect(status).toBe(502)
  }
})

test('1xx without end are not passed on, and the answer behind them is', async () => {
  await using program = await bareProgram((socket) => {
    socket.write(head('HTTP/1.1 103 Early', 'Link: </a>').repeat(1_000))
    socket.write(head('HTTP/1.1 100 Continue').repeat(1_000) + ok('at last'))
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const line = dial(place.url)
  line.socket.write(head('GET / HTTP/1.1', `Host: ${host}`, 'Connection: close'))
  expect(await line.closed).toContain('at last')
  expect(line.statuses().length).toBeLessThanOrEqual(2)
})

test.each([
  ['a head', head('HTTP/1.1 200 OK').slice(0, -2), 'X-Filler: '],
  ['one header', head('HTTP/1.1 200 OK', 'X-Filler: ').slice(0, -4), 'xxxxxxxxxx'],
  ['trailers', `${head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')}0\r\n`, 'X-Filler: '],
])('%s without end ends after 32 KiB', async (what, start, filler) => {
  let sent = 0
  await using program = await bareProgram((socket) => {
    socket.write(start)
    const more = (): void => {
      while (!socket.destroyed && sent < 64 * mib) {
        const piece = (filler + (filler.endsWith(': ') ? `${'y'.repeat(100)}\r\n` : '')).repeat(100)
        sent += piece.length
        if (!socket.write(piece)) return void socket.once('drain', more)
      }
    }
    more()
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const answer = await place
    .browser()
    .ask(host)
    .catch(() => undefined)
  if (answer && what !== 'trailers') expect(answer.status).toBe(502)
  expect(await atRest(() => sent, 100)).toBeLessThan(16 * mib)
})

test('an answer without end waits for its reader', async () => {
  let sent = 0
  await using program = await startProgram((_, response) => {
    const piece = Buffer.alloc(64 * 1024)
    const more = (): void => {
      while (!response.destroyed && sent < 256 * mib) {
        sent += piece.length
        if (!response.write(piece)) return void response.once('drain', more)
      }
    }
    more()
  })
  const { host } = await place.serve(program.port, { audience: 'public' })
  const line = dial(place.url)
  line.socket.write(head('GET / HTTP/1.1', `Host: ${host}`))
  await answers(line, 1)
  line.socket.pause()
  expect(await atRest(() => sent, 300)).toBeLessThan(32 * mib)
  line.socket.destroy()
})

test('a body without end waits for the device', async () => {
  await using program = await bareProgram((socket) => void socket.pause())
  const { host } = await place.serve(program.port, { audience: 'public' })
  const line = dial(place.url)
  const { socket } = line
  socket.write(head('POST / HTTP/1.1', `Host: ${host}`, `Content-Length: ${256 * mib}`))
  const piece = Buffer.alloc(64 * 1024)
  let sent = 0
  const more = (): void => {
    while (!socket.destroyed && sent < 255 * mib) {
      sent += piece.length
      if (!socket.write(piece)) return void socket.once('drain', more)
    }
  }
  more()
  expect(await atRest(() => sent, 300)).toBeLessThan(32 * mib)
  socket.destroy()
})
