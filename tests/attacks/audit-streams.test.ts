// A tenant uses audit streams to have the server knock at doors that only the server reaches: by spelling an
// address in another way, by a name that stands for it, by a name that changes its mind, or by a redirect;
// holds the server up with a receiver that is silent, slow or says too much; looks for secrets in what the
// server shows or writes; or asks for the log or the streams of another namespace.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import net, { type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import { sample } from '@hawser/contract/examples'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../server/src/config.ts'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { destinationOf, destinations } from '../../server/src/receivers/destination.ts'
import { receivers, type StreamBatch } from '../../server/src/receivers/receivers.ts'
import { sharedPlace, startPlace } from '../harness/place.ts'
import { receiverCa, startSyslog, startWebhook } from '../harness/receivers.ts'

/** Listens, and counts who came. */
async function openDoor(serve: (socket: Socket) => void = () => undefined, host = '127.0.0.1') {
  let visits = 0
  const sockets = new Set<Socket>()
  const server = net.createServer((socket) => {
    visits++
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    socket.resume()
    serve(socket)
  })
  server.listen(0, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get visits() {
      return visits
    },
    get open() {
      return sockets.size
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A name server that answers every question for an IPv4 address with these, and has no IPv6 addresses. */
async function nameServer(answers: { addresses: readonly string[] }) {
  const socket = createSocket('udp4')
  socket.on('message', (question, from) => {
    const end = question.indexOf(0, 12) + 5
    const wantsIpv4 = question.readUInt16BE(end - 4) === 1
    const found = wantsIpv4 ? answers.addresses : []
    const header = Buffer.from(question.subarray(0, 12))
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(found.length, 6)
    header.writeUInt32BE(0, 8)
    const records = found.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([header, question.subarray(12, end), ...records]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { at: `127.0.0.1:${socket.address().port}`, [Symbol.dispose]: () => void socket.close() }
}

const allowing = (text: string) => readConfig({ HAWSER_STREAM_ALLOW: text }).HAWSER_STREAM_ALLOW
const parts = {
  ownPorts: () => [],
  ownHost: 'hawser.test',
  hostName: 'hawser.test',
  clock: { now: Date.now },
}
const about: StreamBatch = { stream: 's', tenant_id: 't', redelivery: false, test: true, entries: [] }
const to = (url: string) => ({ url, secret: 'rope-and-anchor-16', ca: null })
const refusal = /is private or the server's own; the server's administrator has not allowed it\.$/
const ownAddresses = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .filter(({ internal, address, family }) => !internal && family === 'IPv4' && !address.startsWith('169.254'))
  .map(({ address }) => address)

describe('spellings of addresses that only the server reaches', () => {
  const spellings = [
    '127.0.0.1',
    '127.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.0.0.1.',
    '0.0.0.0',
    '0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '169.254.169.254',
    '[::ffff:169.254.169.254]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '[fd12::1]',
    '%31%32%37.0.0.1',
    '127。0。0。1',
    ...ownAddresses,
  ]

  test('there is an address of the machine’s own to try', () => expect(ownAddresses).not.toEqual([]))

  test.each(spellings)('%s', async (host) => {
    await using door = await openDoor()
    const strict = receivers({ ...parts, allow: [] })
    for (const scheme of ['https', 'http', 'syslog+tls', 'syslog+tcp'])
      expect(await strict.send(to(`${scheme}://${host}:${door.port}`), about)).toMatch(refusal)
    expect(door.visits).toBe(0)
  })

  test('an operation refuses them before anything is stored', async () => {
    await using place = await startPlace()
    for (const url of ['https://127.1/', 'https://[::ffff:10.0.0.1]/', 'syslog+tls://169.254.169.254:6514'])
      await expect(
        place.administrator.auditStreams.create({ body: { name: 'door', url } }),
      ).rejects.toMatchObject({ status: 400 })
    expect((await place.administrator.auditStreams.list({})).total).toBe(1)
  })
})

describe('names', () => {
  test.each([
    ['loopback', ['127.0.0.1']],
    ['a private network', ['10.1.2.3']],
    ['the metadata of a cloud', ['169.254.169.254']],
    ['a public address and loopback', ['203.0.113.9', '127.0.0.1']],
  ])('that stand for %s are refused', async (_, addresses) => {
    await using door = await openDoor()
    using names = await nameServer({ addresses })
    const strict = receivers({ ...parts, allow: [], nameServers: [names.at] })
    for (const scheme of ['https', 'syslog+tls'])
      expect(await strict.send(to(`${scheme}://rebind.test:${door.port}`), about)).toMatch(refusal)
    expect(door.visits).toBe(0)
  })

  test('that change their mind are looked at each time, and the checked address is the one that is used', async () => {
    const answers = { addresses: ['203.0.113.9'] }
    using names = await nameServer(answers)
    const places = destinations({ ...parts, allow: [], nameServers: [names.at] })
    const destination = destinationOf('https://rebind.test/')
    expect(await places.resolve(destination)).toBe('203.0.113.9')
    answers.addresses = ['127.0.0.1']
    await expect(places.resolve(destination)).rejects.toThrow(refusal)
  })

  test('of the server itself are refused, whatever they stand for', async () => {
    using names = await nameServer({ addresses: ['203.0.113.9'] })
    const all = receivers({ ...parts, allow: allowing('hawser.test'), nameServers: [names.at] })
    for (const host of ['hawser.test', 'HAWSER.test', 'hawser.test.'])
      expect(await all.send(to(`https://${host}/`), about)).toMatch(refusal)
  })

  test('whose name server is silent cost no more than the time of a delivery', async () => {
    const silent = createSocket('udp4').bind(0, '127.0.0.1')
    await once(silent, 'listening')
    const hasty = receivers({
      ...parts,
      allow: [],
      nameServers: [`127.0.0.1:${silent.address().port}`],
      patience_ms: 200,
    })
    expect(await hasty.send(to('https://slow.test/'), about)).toBe('The receiver did not answer in time.')
    silent.close()
  })
})

describe('what the administrator allows', () => {
  const everything =
    '127.0.0.1, ::1, 127.0.0.0/8, 169.254.169.254, 169.254.0.0/16, fe80::/10, fd00:ec2::254, 0.0.0.0, 224.0.0.1'

  test.each(['169.254.169.254', '[fe80::1]', '[fd00:ec2::254]', '0.0.0.0', '224.0.0.1'])(
    '%s stays refused',
    async (host) =>
      expect(
        await receivers({ ...parts, allow: allowing(everything) }).send(to(`https://${host}/`), about),
      ).toMatch(refusal),
  )

  test('the ports of the server itself stay refused', async () => {
    await using place = await startPlace({ env: { HAWSER_STREAM_ALLOW: everything } })
    const own = [Number(new URL(place.url).port), place.sshPort]
    for (const port of own)
      for (const url of [
        `http://127.0.0.1:${port}/`,
        `syslog+tcp://127.0.0.1:${port}`,
        `http://[::1]:${port}/`,
      ])
        await expect(
          place.administrator.auditStreams.create({ body: { name: 'door', url } }),
        ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(refusal) as string })
  })

  test('a subnet does not allow loopback, a port no other, and an address no other', async () => {
    await using door = await openDoor()
    const other = door.port === 9999 ? 9998 : 9999
    for (const allow of ['127.0.0.0/8', `127.0.0.1:${other}`, '127.0.0.2', 'localhost']) {
      const some = receivers({ ...parts, allow: allowing(allow) })
      expect(await some.send(to(`https://127.0.0.1:${door.port}/`), about)).toMatch(refusal)
    }
    expect(door.visits).toBe(0)
    const named = receivers({ ...parts, allow: allowing(`127.0.0.1:${door.port}`), patience_ms: 200 })
    await named.send(to(`https://127.0.0.1:${door.port}/`), about)
    expect(door.visits).toBe(1)
  })

  test('a subnet allows private networks in it, and those without TLS', async () => {
    const places = destinations({ ...parts, allow: allowing('10.20.0.0/16, siem.internal:6514') })
    expect(await places.resolve(destinationOf('syslog+tcp://10.20.255.1:601'))).toBe('10.20.255.1')
    expect(await places.resolve(destinationOf('https://[::ffff:10.20.255.1]/'))).toBe('::ffff:a14:ff01')
    await expect(places.resolve(destinationOf('https://10.21.0.1/'))).rejects.toThrow(refusal)
    await expect(places.resolve(destinationOf('http://203.0.113.9/'))).rejects.toThrow('Without TLS')
  })
})

describe('receivers that do not behave', () => {
  const patient = receivers({ ...parts, allow: allowing('127.0.0.1'), patience_ms: 30_000 })
  const hasty = receivers({ ...parts, allow: allowing('127.0.0.1'), patience_ms: 300 })
  const flood = (socket: Socket, start: string, bytes: string): void => {
    socket.write(start)
    const more = (): void => {
      while (!socket.destroyed && socket.write(bytes));
    }
    socket.on('drain', more)
    more()
  }

  test('a redirect to a door is not followed', async () => {
    await using door = await openDoor()
    await using webhook = await startWebhook({ secret: () => '', secure: false })
    for (const status of [301, 302, 303, 307, 308]) {
      webhook.answer = (_, response) =>
        response.writeHead(status, { location: `http://127.0.0.1:${door.port}/` }).end()
      expect(await patient.send(to(webhook.url), about)).toBe(
        `The receiver answered with status ${status}; redirects are not followed.`,
      )
    }
    expect(door.visits).toBe(0)
  })

  test('one that is silent, or never ends its headers, is given up on, and its connection is closed', async () => {
    await using silent = await openDoor()
    await using dripping = await openDoor((socket) => void socket.write('HTTP/1.1 200 OK\r\nx-a: '))
    for (const door of [silent, dripping]) {
      expect(await hasty.send(to(`http://127.0.0.1:${door.port}`), about)).toBe(
        'The receiver did not answer in time.',
      )
      await expect.poll(() => door.open).toBe(0)
    }
  })

  test('a syslog server that never closes its side is given up on, and the connection is closed', async () => {
    await using syslog = await startSyslog({ secure: false })
    const came = Promise.withResolvers<Socket>()
    syslog.instead = (socket) => came.resolve(socket.resume())
    expect(await hasty.send(to(syslog.url), about)).toBe('The receiver did not answer in time.')
    const socket = await came.promise
    // Whoever writes to a connection that is closed is told so.
    await expect.poll(() => socket.destroyed || (socket.write('x'), socket.destroyed)).toBe(true)
  })

  test.each([
    ['headers', 'HTTP/1.1 200 OK\r\n', `x-a: ${'a'.repeat(1000)}\r\n`, /^The receiver cannot be reached/],
    ['interim answers', '', 'HTTP/1.1 100 Continue\r\n\r\n', /^The receiver says more than it is asked for/],
    ['what is no HTTP', '', 'a'.repeat(1000), /^The receiver cannot be reached/],
  ])('%s without end are cut off', async (_, start, bytes, sentence) => {
    await using door = await openDoor((socket) => flood(socket, start, bytes))
    expect(await patient.send(to(`http://127.0.0.1:${door.port}/`), about)).toMatch(sentence)
    await expect.poll(() => door.open).toBe(0)
  })

  test.each([200, 500])('a body without end after a status %i is not read', async (status) => {
    const start = `HTTP/1.1 ${status} Fine\r\ntransfer-encoding: chunked\r\n\r\n`
    await using door = await openDoor((socket) => flood(socket, start, `3e8\r\n${'a'.repeat(1000)}\r\n`))
    expect(await patient.send(to(`http://127.0.0.1:${door.port}/`), about)).toBe(
      status === 200 ? undefined : 'The receiver answered with status 500.',
    )
    await expect.poll(() => door.open).toBe(0)
  })

  test('a syslog server that talks without end is cut off', async () => {
    await using syslog = await startSyslog({ secure: false })
    syslog.instead = (socket) => flood(socket, '', 'a'.repeat(1000))
    expect(await patient.send(to(syslog.url), about)).toBe('The receiver says more than it is asked for.')
  })

  test('a certificate of another authority, or for another name, gets nothing', async () => {
    await using webhook = await startWebhook({ secret: () => '' })
    await using syslog = await startSyslog()
    for (const { url } of [webhook, syslog])
      expect(await patient.send(to(url), about)).toMatch(/^The receiver cannot be reached \([A-Z_]+\)\.$/)
    const named = receivers({ ...parts, allow: allowing('localhost, 127.0.0.1') })
    for (const { url } of [webhook, syslog])
      expect(
        await named.send({ ...to(url.replace('127.0.0.1', 'localhost')), ca: receiverCa }, about),
      ).toMatch(/^The receiver cannot be reached \([A-Z_]+\)\.$/)
    expect(webhook.requests).toBe(0)
    expect(syslog.taken).toEqual([])
  })
})

describe('in the server', () => {
  const place = sharedPlace(async () => ({ env: { HAWSER_STREAM_ALLOW: '127.0.0.1' } }))

  test('neither the secret nor the URL’s token is in the log, an entry, an answer or the database', async () => {
    const [secret, other, token] = ['secret-5d41402abc4b', 'secret-2a76b9719d91', 'token-7d793037a076']
    const { auditStreams } = place.administrator
    await using webhook = await startWebhook({ secret: () => secret })
    webhook.answer = (_, response) => response.writeHead(500).end()
    const url = `${webhook.url}?access=${token}`
    const { body } = await auditStreams.create({ body: { name: 'secretive', url, secret, ca: receiverCa } })
    expect(body.secret).toBe(secret)
    const params = { uid: body.uid }
    await place.rooms.streams.settle()
    await expect(auditStreams.test({ params })).rejects.toMatchObject({ status: 424 })
    await auditStreams.update({ params, body: { secret: other, url: `${url}2` } })
    const { body: shown } = await auditStreams.get({ params })
    const { body: listed } = await auditStreams.list({})
    const { body: log } = await place.administrator.audit.list({ query: { limit: 500 } })
    expect(JSON.stringify(log)).toContain('audit-stream.updated')
    for (const word of [secret, other]) expect(JSON.stringify([shown, listed])).not.toContain(word)
    await place.rooms.background.settled()
    const files = readdirSync(place.folder).filter((name) => name.includes('.db') || name.includes('sqlite'))
    expect(files).not.toEqual([])
    const stored = files.map((name) => readFileSync(path.join(place.folder, name), 'latin1')).join('')
    for (const word of [secret, other, token]) {
      expect(JSON.stringify(log)).not.toContain(word)
      expect(place.log()).not.toContain(word)
      expect(stored).not.toContain(word)
    }
    await auditStreams.remove({ params })
  })

  test('another namespace gets nothing of the log, and finds no stream', async () => {
    const theirs = place.stranger.auditStreams
    const params = { uid: sample.auditStream }
    for (const refused of [
      () => theirs.get({ params }),
      () => theirs.update({ params, body: { url: 'https://siem.example.com/', enable: true } }),
      () => theirs.remove({ params }),
      () => theirs.test({ params }),
      () => theirs.deadLetters({ params }),
      () => theirs.redeliver({ params, body: {} }),
    ])
      await expect(refused()).rejects.toMatchObject({ status: 404 })
    expect((await theirs.list({})).body).toEqual([])

    let secret = ''
    await using webhook = await startWebhook({ secret: () => secret })
    const wanted = { name: 'theirs', url: webhook.url, ca: receiverCa, from_start: true }
    const { body } = await theirs.create({ body: wanted })
    secret = body.secret ?? ''
    for (const tenant_id of [sample.tenant, sample.otherTenant])
      await place.rooms.audit.event(
        { ...theServer, tenant_id },
        { action: 'device.updated', target: { kind: 'device', id: tenant_id, name: 'crane' } },
      )
    await place.rooms.streams.settle()
    const entries = webhook.taken.flatMap((batch) => batch.entries)
    expect(entries.map(({ target }) => target.id)).toContain(sample.otherTenant)
    expect(new Set(entries.map(({ tenant_id }) => tenant_id))).toEqual(new Set([sample.otherTenant]))
    await theirs.remove({ params: { uid: body.uid } })
  })

  test('whoever changes the URL again and again gets no more attempts than thirty in a minute', async () => {
    await using own = await startPlace({ env: { HAWSER_STREAM_ALLOW: '127.0.0.1' } })
    await using door = await openDoor((socket) => void socket.destroy())
    const { auditStreams } = own.administrator
    const url = (number: number): string => `http://127.0.0.1:${door.port}/${number}`
    const { body } = await auditStreams.create({ body: { name: 'scan', url: url(0) } })
    for (let number = 1; number <= 40; number++) {
      await own.rooms.streams.settle()
      await auditStreams.update({ params: { uid: body.uid }, body: { url: url(number) } })
    }
    await own.rooms.streams.settle()
    expect(door.visits).toBeGreaterThan(10)
    expect(door.visits).toBeLessThanOrEqual(30)
  })

  test('observers and operators neither see nor make streams', async () => {
    for (const person of [place.observer, place.operator]) {
      await expect(person.auditStreams.list({})).rejects.toMatchObject({ status: 403 })
      await expect(
        person.auditStreams.create({ body: { name: 'mine', url: 'https://siem.example.com/' } }),
      ).rejects.toMatchObject({ status: 403 })
    }
  })
})
