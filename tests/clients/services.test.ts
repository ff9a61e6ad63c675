// Services of a device in front of a real agent: what passes, who gets in, and what ends.
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { hostOf, navigating, sharedServices, startProgram, type Browser } from '../harness/services.ts'

const place = sharedServices()

type Seen = { url: string; headers: Record<string, string> }
const echo: http.RequestListener = (request, response) =>
  response.end(JSON.stringify({ url: request.url, headers: request.headers }))

/** A request that is sent, and may still be answered. */
function begin(browser: Browser, host: string, options: http.RequestOptions): http.ClientRequest {
  const cookie = [...(browser.cookies.get(host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
  return http.request({
    port: new URL(place.url).port,
    agent: false,
    ...options,
    headers: { host, ...(cookie === '' ? {} : { cookie }), ...(options.headers as object) },
  })
}

async function answerOf(request: http.ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  return answer
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** The handshake of a WebSocket, and then whatever the test says. */
async function webSocket(
  browser: Browser,
  host: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; socket: Duplex; answer: IncomingMessage }> {
  const request = begin(browser, host, {
    path: '/socket',
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      ...headers,
    },
  })
  request.end()
  return new Promise((resolve, reject) => {
    request.once('error', reject)
    request.once('upgrade', (answer, socket) => resolve({ status: 101, socket, answer }))
    request.once('response', (answer) =>
      resolve({ status: answer.statusCode ?? 0, socket: answer.socket, answer }),
    )
  })
}

/** Sends back whatever comes on a WebSocket. */
function echoSocket(server: http.Server): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.on('error', () => undefined)
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.pipe(socket)
  })
}

describe('signing in', () => {
  test('a member signs in at the console and gets to the device', async () => {
    await using program = await startProgram((request, response) => {
      response.setHeader('set-cookie', ['own=1; Domain=services.test; Path=/', 'hawser-service=stolen'])
      echo(request, response)
    })
    const service = await place.serve(program.port)
    const browser = place.browser()
    const answer = await browser.open(service.address, place.operator, '/first?page=1')
    expect(answer.status, answer.text).toBe(200)
    const { url, headers } = JSON.parse(answer.text) as Seen
    expect(url).toBe('/first?page=1')
    expect(headers).toMatchObject({
      host: service.host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': service.host,
    })
    expect(headers['cookie']).toBeUndefined()
    expect(answer.headers['set-cookie']).toEqual(['own=1; Path=/'])
    const again = await browser.ask(service.host, { headers: navigating })
    expect((JSON.parse(again.text) as Seen).headers['cookie']).toBe('own=1')
  })

  test('whoever may not open it, and whoever asks for one that does not exist, see the same', async () => {
    await using program = await startProgram(echo)
    const service = await place.serve(program.port, { audience: 'members', role: 'operator' })
    const there = await place.browser().ask(service.host, { headers: navigating })
    const nowhere = await place.browser().ask(hostOf('0'.repeat(32)), { headers: navigating })
    expect([there.status, nowhere.status]).toEqual([302, 302])
    const plain = (answer: typeof there): object => ({
      ...answer.headers,
      date: '',
      location: answer.headers.location?.replace(/state=[^&]*/, '').replace(/[0-9a-f]{32}/, ''),
      'set-cookie': '',
    })
    expect(plain(there)).toEqual(plain(nowhere))
    const opening = { state: 'x'.repeat(32), path: '/' }
    for (const [client, address] of [
      [place.observer, service.address],
      [place.stranger, service.address],
      [place.operator, '0'.repeat(32)],
    ] as const)
      await expect(client.services.open({ body: { ...opening, address } })).rejects.toMatchObject({
        status: 404,
        message: 'There is no such service, or you may not open it.',
      })
    expect((await place.browser().ask(service.host)).status).toBe(401)
  })

  test('a higher role that is asked for, and a person who is left out, end what is open', async () => {
    await using program = await startProgram(echo, echoSocket)
    const service = await place.serve(program.port, { audience: 'members', role: 'operator' })
    const browser = place.browser()
    expect((await browser.open(service.address, place.operator)).status).toBe(200)
    const { socket } = await webSocket(browser, service.host)
    socket.write('still here')
    expect(String((await once(socket, 'data'))[0])).toBe('still here')
    const closed = once(socket, 'close')
    await place.owner.services.update({ params: { id: service.id }, body: { role: 'administrator' } })
    await closed
    expect((await browser.ask(service.host)).status).toBe(401)
    await place.owner.services.update({
      params: { id: service.id },
      body: { audience: 'people', people: [sample.operator.username] },
    })
    expect((await browser.ask(service.host)).status).toBe(200)
    const second = await webSocket(browser, service.host)
    const over = once(second.socket, 'close')
    await place.owner.services.update({
      params: { id: service.id },
      body: { people: [sample.observer.username] },
    })
    await over
  })

  test('public, by a link, and after its end', async () => {
    await using program = await startProgram(echo)
    const open = await place.serve(program.port, { audience: 'public' })
    expect((await place.browser().ask(open.host)).status).toBe(200)

    const linked = await place.serve(program.port, { audience: 'link' })
    const { link } = (await place.operator.services.newLink({ params: { id: linked.id } })).body
    const browser = place.browser()
    const { pathname, search } = new URL(link)
    expect((await browser.ask(linked.host)).status).toBe(401)
    expect(
      (await browser.ask(linked.host, { path: `${pathname}${search}`, headers: navigating })).status,
    ).toBe(302)
    expect((await browser.ask(linked.host)).status).toBe(200)
    await place.operator.services.newLink({ params: { id: linked.id } })
    expect((await browser.ask(linked.host)).status).toBe(401)

    const expires_at = new Date(place.clock.now() + 60_000).toISOString()
    const ending = await place.serve(program.port, { audience: 'public', expires_at })
    expect((await place.browser().ask(ending.host)).status).toBe(200)
    place.clock.forward(61_000)
    await eventually(async () => expect((await place.browser().ask(ending.host)).status).toBe(401))
  })
})

describe('HTTP', () => {
  test('bodies of any kind pass both ways', async () => {
    await using program = await startProgram((request, response) => {
      const hash = createHash('sha256')
      request.on('data', (chunk: Buffer) => hash.update(chunk))
      request.on('end', () =>
        response.end(
          JSON.stringify({ hash: hash.digest('hex'), coding: request.headers['transfer-encoding'] }),
        ),
      )
    })
    const { host } = await place.serve(program.port, { audience: 'public' })
    const body = randomBytes(3 * 1024 * 1024 + 17)
    const hash = createHash('sha256').update(body).digest('hex')
    const known = await place
      .browser()
      .ask(host, { method: 'POST', body, headers: { 'content-length': body.length } })
    expect(JSON.parse(known.text)).toEqual({ hash })
    const chunked = await place
      .browser()
      .ask(host, { method: 'PUT', body, headers: { 'transfer-encoding': 'chunked' } })
    expect(JSON.parse(chunked.text)).toEqual({ hash, coding: 'chunked' })
  })

  test('HEAD, 304, ranges, and an answer without a length', async () => {
    await using program = await startProgram((request, response) => {
      if (request.url === '/304') response.writeHead(304, { etag: '"1"' }).end()
      else if (request.url === '/range')
        response.writeHead(206, { 'content-range': 'bytes 2-4/9', 'content-length': 3 }).end('cde')
      else if (request.url === '/head') response.writeHead(200, { 'content-length': 1_000 }).end()
      else request.socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end')
    })
    const { host } = await place.serve(program.port, { audience: 'public' })
    const browser = place.browser()
    expect(await browser.ask(host, { path: '/304' })).toMatchObject({ status: 304, text: '' })
    expect(await browser.ask(host, { path: '/range' })).toMatchObject({ status: 206, text: 'cde' })
    const head = await browser.ask(host, { path: '/head', method: 'HEAD' })
    expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '1000', ''])
    expect((await browser.ask(host, { path: '/end' })).text).toBe('until the end')
  })

  test('events come one by one, and the device learns that the reader has left', async () => {
    const left = Promise.withResolvers<void>()
    await using program = await startProgram((request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: first\n\n')
      request.socket.once('close', () => left.resolve())
    })
    const { host } = await place.serve(program.port, { audience: 'public' })
    const request = begin(place.browser(), host, { path: '/events' })
    request.end()
    const answer = await answerOf(request)
    expect(String((await once(answer, 'data'))[0])).toBe('data: first\n\n')
    answer.destroy()
    await left.promise
  })

  test('100-continue is the device’s to say', async () => {
    await using program = await startProgram(echo, (server) =>
      server.on('checkContinue', (request: IncomingMessage, response: http.ServerResponse) => {
        if (request.url === '/no') {
          response.writeHead(417).end()
          return
        }
        response.writeContinue()
        request.resume().on('end', () => response.end('taken'))
      }),
    )
    const { host } = await place.serve(program.port, { audience: 'public' })
    const headers = { expect: '100-continue', 'content-length': 4 }
    const yes = begin(place.browser(), host, { method: 'POST', path: '/yes', headers })
    yes.flushHeaders()
    await once(yes, 'continue')
    yes.end('body')
    expect(await textOf(await answerOf(yes))).toBe('taken')
    const no = begin(place.browser(), host, { method: 'POST', path: '/no', headers })
    let continued = false
    no.once('continue', () => (continued = true))
    no.flushHeaders()
    expect((await answerOf(no)).statusCode).toBe(417)
    expect(continued).toBe(false)
    no.destroy()
  })

  test('WebSockets, and a device that refuses one', async () => {
    await using program = await startProgram(echo, echoSocket)
    const { host } = await place.serve(program.port, { audience: 'public' })
    const { socket } = await webSocket(place.browser(), host)
    const bytes = randomBytes(200_000)
    socket.write(bytes)
    const back: Buffer[] = []
    for await (const chunk of socket) {
      back.push(chunk as Buffer)
      if (Buffer.concat(back).length >= bytes.length) break
    }
    expect(Buffer.concat(back).equals(bytes)).toBe(true)
    await using plain = await startProgram((_, response) => void response.writeHead(403).end('no sockets'))
    const other = await place.serve(plain.port, { audience: 'public' })
    const refused = await webSocket(place.browser(), other.host)
    expect([refused.status, await textOf(refused.answer)]).toEqual([403, 'no sockets'])
  })

  test('a refusal of a WebSocket arrives whole, however long it is', async () => {
    const body = 'no'.repeat(1024 * 1024)
    await using program = await startProgram(echo, (server) =>
      server.on('upgrade', (_: IncomingMessage, socket: Duplex) =>
        socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
      ),
    )
    const { host } = await place.serve(program.port, { audience: 'public' })
    const { status, answer } = await webSocket(place.browser(), host)
    expect(status).toBe(403)
    expect(await textOf(answer)).toHaveLength(body.length)
  })

  test('sixty files take few connections', async () => {
    let connections = 0
    await using program = await startProgram(echo, (server) =>
      server.on('connection', () => (connections += 1)),
    )
    const { host } = await place.serve(program.port, { audience: 'public' })
    const agent = new http.Agent({ keepAlive: true, maxSockets: 6 })
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const request = begin(place.browser(), host, { agent, path: `/${index}` })
        request.end()
        const answer = await answerOf(request)
        expect(answer.statusCode).toBe(200)
        await textOf(answer)
      }),
    )
    agent.destroy()
    expect(connections).toBeLessThanOrEqual(8)
  })
})

describe('a device that does not answer as it should', () => {
  test('nothing listens, and then it does', async () => {
    const program = await startProgram(echo)
    const { port } = program
    await program[Symbol.asyncDispose]()
    const { host } = await place.serve(port, { audience: 'public' })
    const page = await place.browser().ask(host, { headers: navigating })
    expect([page.status, page.headers['retry-after']]).toEqual([502, '5'])
    expect(page.text).toContain('Nothing on the device listens at the port of this service.')
    expect(page.text).toContain('http-equiv="refresh"')
    const json = await place.browser().ask(host, { headers: { accept: 'application/json' } })
    expect(JSON.parse(json.text)).toEqual({
      message: 'Nothing on the device listens at the port of this service.',
    })
  })

  test('garbage, an early end, and a target that the agent does not permit', async () => {
    const garbage = net.createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end('SSH-2.0-OpenSSH_9.2\r\n')
    })
    await once(garbage.listen(0, '127.0.0.1'), 'listening')
    const { port } = garbage.address() as net.AddressInfo
    const { host } = await place.serve(port, { audience: 'public' })
    expect((await place.browser().ask(host)).status).toBe(502)
    // Nor is it a certificate that does not fit.
    const noTls = await place.serve(port, { audience: 'public', scheme: 'https' })
    const spoken = await place.browser().ask(noTls.host)
    expect([spoken.status, spoken.text]).toEqual([
      502,
      expect.stringContaining('The device did not send a valid HTTP response.'),
    ])
    garbage.close()

    await using cut = await startProgram((request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('only this')
      setTimeout(() => request.socket.destroy(), 20)
    })
    const early = await place.serve(cut.port, { audience: 'public' })
    await expect(place.browser().ask(early.host)).rejects.toThrow(/aborted|hang up/)

    const elsewhere = await place.serve(80, { audience: 'public', host: '192.0.2.1' })
    const refused = await place.browser().ask(elsewhere.host)
    expect([refused.status, refused.text]).toEqual([
      502,
      expect.stringContaining('does not permit connections to the host of this service'),
    ])
  })
})

test('a session of the type web says who it was and what passed', async () => {
  await using program = await startProgram((request, response) => {
    request.resume()
    response.end('12345')
  })
  const tenant = sample.tenant
  await place.owner.namespaces.edit({ params: { tenant }, body: { settings: { log_web_requests: true } } })
  const service = await place.serve(program.port)
  const browser = place.browser()
  await browser.open(service.address, place.operator)
  await browser.ask(service.host, { method: 'POST', path: '/form?secret=1', body: 'abc' })
  const session = await eventually(async () => {
    const found = (await place.observer.sessions.list({ query: {} })).body.find(
      ({ web }) => web?.service === service.id,
    )
    expect(found?.web?.requests).toBe(2)
    return found!
  })
  expect(session).toMatchObject({
    type: 'web',
    active: true,
    username: '',
    method: 'sign-in',
    via: 'browser',
    person: { kind: 'user', name: sample.operator.username },
    web: { target: `127.0.0.1:${program.port}`, refused: 0, received: 3, sent: 10 },
  })
  await eventually(async () => {
    const { events } = (await place.owner.sessions.events({ params: { uid: session.uid }, query: {} })).body
    expect(events).toMatchObject([
      { kind: 'web', subject: 'GET /', target: '127.0.0.1', why: '200', sent: 5 },
      { kind: 'web', subject: 'POST /form', why: '200', received: 3, sent: 5 },
    ])
  })
  await place.owner.sessions.close({ params: { uid: session.uid }, body: { device: place.agent.uid } })
  await eventually(async () =>
    expect((await place.owner.sessions.get({ params: { uid: session.uid } })).body.active).toBe(false),
  )
})

test('the flag of the interface makes one public service of port 80, and takes it away', async () => {
  const { uid } = place.agent
  await place.operator.devices.update({ params: { uid }, body: { public_url: true } })
  const address = createHash('md5').update(uid).digest('hex')
  const listed = async () =>
    (await place.observer.services.list({ query: { device_uid: uid } })).body.filter(
      ({ public_url }) => public_url,
    )
  expect(await listed()).toMatchObject([{ address, port: 80, audience: 'public', host: '127.0.0.1' }])
  expect([502, 200]).toContain((await place.browser().ask(hostOf(address))).status)
  await place.operator.devices.update({ params: { uid }, body: { public_url: false } })
  expect(await listed()).toEqual([])
  expect((await place.browser().ask(hostOf(address))).status).toBe(401)
})

test('web endpoints are public services by another name', async () => {
  await using program = await startProgram(echo)
  const { uid } = place.agent
  const { body } = await place.operator.webEndpoints.create({
    body: { uid, host: '127.0.0.1', port: program.port, ttl: 3_600 },
  })
  expect(body).toMatchObject({ device_uid: uid, ttl: 3_600, full_address: hostOf(body.address) })
  expect((await place.browser().ask(hostOf(body.address))).status).toBe(200)
  await place.operator.webEndpoints.remove({ params: { address: body.address } })
  expect((await place.browser().ask(hostOf(body.address))).status).toBe(401)
})

test('the ports on which the device listens', async () => {
  await using program = await startProgram(echo)
  const { ports } = (await place.operator.services.scan({ params: { uid: place.agent.uid } })).body
  expect(ports).toContainEqual({
    address: '127.0.0.1',
    port: program.port,
    program: expect.stringMatching(/node|vitest|MainThread/) as string,
  })
})

test('a program learns who it is, and can check it', async () => {
  await using program = await startProgram(echo)
  const { host, address } = await place.serve(program.port, { identify: true })
  const browser = place.browser()
  await browser.open(address, place.operator)
  const forged = { 'x-hawser-user': 'olga', 'x-hawser-assertion': 'e30.e30.x' }
  const { headers } = JSON.parse((await browser.ask(host, { headers: forged })).text) as Seen
  expect(headers['x-hawser-user']).toBe(sample.operator.username)
  const [head = '', payload = '', signature = ''] = (headers['x-hawser-assertion'] ?? '').split('.')
  const read = (part: string) =>
    JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
  const { keys } = (await place.nobody.services.keys()).body
  const key = keys.find(({ kid }) => kid === read(head)['kid'])!
  const publicKey = createPublicKey({ key: { ...key }, format: 'jwk' })
  const signed = Buffer.from(`${head}.${payload}`)
  expect(verify(null, signed, publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
  expect(read(payload)).toMatchObject({
    iss: 'http://hawser.test',
    aud: `http://${host}`,
    sub: sample.operator.id,
    name: sample.operator.username,
    role: 'operator',
    namespace: sample.namespace,
    device: place.agent.uid,
    target: `http://127.0.0.1:${program.port}`,
  })
})

/** Makes a rule that denies, and removes all others. */
async function onlyRule(source_ip: string, username: string): Promise<string> {
  for (const { id } of (await place.owner.firewall.list({ query: {} })).body)
    await place.owner.firewall.remove({ params: { id } })
  const { body } = await place.owner.firewall.create({
    body: { action: 'deny', active: true, priority: 1, source_ip, username, filter: { hostname: '.*' } },
  })
  return body.id
}

test('a rule of the firewall for every user holds for services, too', async () => {
  await using program = await startProgram(echo)
  const rule = await onlyRule('^127\\.', '.*')
  const forbidden = await place.serve(program.port, { audience: 'public' })
  expect((await place.browser().ask(forbidden.host)).status).toBe(401)
  await place.owner.firewall.remove({ params: { id: rule } })
  expect((await place.browser().ask(forbidden.host)).status).toBe(200)
})

test('a rule of the firewall for a user holds for services that name that user', async () => {
  await using program = await startProgram(echo)
  const id = await onlyRule('.*', '^root$')
  const [root, pilot, none] = [
    await place.serve(program.port, { audience: 'public', username: 'root' }),
    await place.serve(program.port, { audience: 'public', username: 'pilot' }),
    await place.serve(program.port, { audience: 'public' }),
  ]
  const statuses = [root, pilot, none].map(async ({ host }) => (await place.browser().ask(host)).status)
  expect(await Promise.all(statuses)).toEqual([401, 200, 200])
  // The agent connects without a user: naming one that may log in opens nothing.
  const every = { active: true, source_ip: '.*', filter: { hostname: '.*' } }
  const denied = { ...every, action: 'deny', username: '.*', priority: 2 } as const
  await place.owner.firewall.update({ params: { id }, body: denied })
  const { body: allowed } = await place.owner.firewall.create({
    body: { ...every, action: 'allow', username: '^deploy$', priority: 1 },
  })
  const deploy = await place.serve(program.port, { audience: 'public', username: 'deploy' })
  expect((await place.browser().ask(deploy.host)).status).toBe(401)
  for (const one of [id, allowed.id]) await place.owner.firewall.remove({ params: { id: one } })
})
