// A service leads where its maker has no business: to the secrets that clouds give their machines, to another
// host of the device's network, or back to the server. The server judges how a host is written, and the agent
// the address that it connects to.
import http from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { isNever, permits } from '../../agent/src/permitted-targets.ts'
import { readHost } from '../../agent/src/services-setting.ts'
import { hostOf, sharedServices, startProgram } from '../harness/services.ts'
import { answerTo, handshake, head, statusOf } from './services-raw.ts'

const place = sharedServices()

const make = async (client: Client, host: string): Promise<{ id: string; address: string }> =>
  (await client.services.create({ body: { device_uid: place.agent.uid, name: 'web', port: 80, host } })).body

/** Other spellings of addresses; whoever connects by name reads them as such. */
const metadata = [
  '169.254.169.254',
  '169.254.0.1',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '0:0:0:0:0:ffff:a9fe:a9fe',
  '::FFFF:169.254.169.254',
  'fe80::1',
  'FE80::1',
  'febf::1',
  'ff02::1',
  '224.0.0.1',
  '239.255.255.250',
  '255.255.255.255',
  '0.0.0.0',
  '0.1.2.3',
  '::',
  '0:0:0:0:0:0:0:0',
  '::ffff:0.0.0.0',
]
const otherSpellings = [
  '2852039166',
  '0xa9fea9fe',
  '0xA9FEA9FE',
  '169.254.43518',
  '169.16689662',
  '0251.0376.0251.0376',
  '0xa9.0xfe.0xa9.0xfe',
  '169.254.169.0xfe',
  '0',
  '0x0',
  '127.1',
  '2130706433',
  '0177.0.0.1',
]
const translated = [
  '::169.254.169.254',
  '::a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '::ffff:0:a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  'fd00:ec2::254',
]
const unwritable = [
  '169.254.169.254.',
  'localhost.',
  '[::1]',
  'fe80::1%eth0',
  '127.0.0.1:22',
  'a@b',
  'http://x',
  'a/b',
  'a b',
  'a\r\nb',
  '１２７.0.0.1',
  '',
  '.',
  '-',
]

describe('the server', () => {
  test.each(metadata)('makes no service of %s', async (host) => {
    await expect(make(place.owner, host)).rejects.toMatchObject({ status: 400 })
    await expect(
      place.owner.webEndpoints.create({ body: { uid: place.agent.uid, host, port: 80, ttl: -1 } }),
    ).rejects.toMatchObject({ status: 400 })
  })

  test.each(unwritable)('makes no service of %j', async (host) => {
    await expect(make(place.owner, host)).rejects.toMatchObject({ status: 400 })
  })

  // Over SSH, and with agents of ShellHub, no agent of ours judges the address behind such a name.
  test.each(otherSpellings)('makes no service of %s, which is an address in disguise', async (host) => {
    await expect(make(place.owner, host)).rejects.toMatchObject({ status: 400 })
  })

  test.each([
    '10.0.0.1',
    '192.168.1.1',
    'printer',
    'printer.local',
    '127.0.0.1.evil.test',
    'localhost.evil.test',
    'xlocalhost',
    '::2',
    'fd00::1',
    '128.0.0.1',
    '1.127.0.0',
    '::ffff:10.0.0.1',
  ])('lets an operator make no service of %s', async (host) => {
    await expect(make(place.operator, host)).rejects.toMatchObject({ status: 403 })
    await expect(
      place.operator.webEndpoints.create({ body: { uid: place.agent.uid, host, port: 80, ttl: -1 } }),
    ).rejects.toMatchObject({ status: 403 })
    await expect(make(place.observer, host)).rejects.toMatchObject({ status: 403 })
  })

  test('lets an operator turn no service into one of another host', async () => {
    const [own, other] = [
      await make(place.administrator, '127.0.0.1'),
      await make(place.administrator, '10.0.0.1'),
    ]
    const change = (id: string, body: Parameters<Client['services']['update']>[0]['body']) =>
      place.operator.services.update({ params: { id }, body })
    await expect(change(own.id, { host: '10.0.0.1' })).rejects.toMatchObject({ status: 403 })
    await expect(change(own.id, { host: 'printer' })).rejects.toMatchObject({ status: 403 })
    await expect(change(own.id, { host: '169.254.169.254' })).rejects.toMatchObject({ status: 400 })
    await expect(change(other.id, { host: '10.0.0.2' })).rejects.toMatchObject({ status: 403 })
    await expect(change(other.id, { port: 22 })).rejects.toMatchObject({ status: 403 })
    await expect(change(other.id, { scheme: 'https' })).rejects.toMatchObject({ status: 403 })
    await expect(
      place.stranger.services.update({ params: { id: own.id }, body: { port: 1 } }),
    ).rejects.toMatchObject({
      status: 404,
    })
    await change(own.id, { audience: 'link' })
    await place.administrator.services.update({ params: { id: other.id }, body: { audience: 'link' } })
    const newLink = (id: string) => place.operator.services.newLink({ params: { id } })
    await expect(newLink(other.id)).rejects.toMatchObject({ status: 403 })
    expect((await newLink(own.id)).body.link).toContain(own.address)
    for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '::1', '127.8.8.8', '::ffff:127.0.0.1'])
      expect((await change(own.id, { host })).body.host).toBe(host)
  })
})

describe('the agent', () => {
  test.each([...metadata, ...translated])('never connects to %s, unless its setting lists it', (address) => {
    expect(isNever(readHost(address)!)).toBe(true)
    expect(permits('network', { host: 'name.test', port: 80 }, readHost(address)!)).toBe(false)
    const listed = [{ host: 'name.test', bits: undefined, port: undefined }]
    expect(permits(listed, { host: 'name.test', port: 80 }, readHost(address)!)).toBe(false)
  })

  test.each(otherSpellings)('takes %s for no name', (host) => {
    expect(readHost(host)).toBeUndefined()
  })

  test('refuses what its setting does not permit, and says nothing else', async () => {
    for (const host of ['10.0.0.1', 'name.test', '::2']) {
      const { id, address } = await make(place.administrator, host)
      await place.administrator.services.update({ params: { id }, body: { audience: 'public' } })
      const { status, text } = await place.browser().ask(hostOf(address))
      expect([status, text], host).toEqual([502, expect.stringContaining('does not permit')])
    }
  })
})

describe('a service that leads to the server itself', () => {
  test.each(['own', 'x'])('ends with 508 at the host header of a service: %s', async (form) => {
    const port = Number(new URL(place.url).port)
    const first = await place.serve(port, { audience: 'public' })
    const second = await place.serve(port, { audience: 'public', host_header: first.host })
    const { host } = form === 'own' ? first : second
    for (const path of ['/', '/a?b']) {
      const { status, text } = await place.browser().ask(host, { path })
      expect([status, text]).toEqual([508, '{"message":"Loop: this service leads back to this server."}'])
    }
    const upgrade = head('GET / HTTP/1.1', `Host: ${host}`, ...handshake, 'Connection: via')
    expect(statusOf(await answerTo(place.url, upgrade))).toBe(508)
    const named = head('GET / HTTP/1.1', `Host: ${host}`, 'Connection: close, Via', 'Via: 1.1 a, 1.1 b')
    expect(statusOf(await answerTo(place.url, named))).toBe(508)
  })

  test('does so by way of a program that passes requests on, too', async () => {
    let passed = 0
    await using program = await startProgram((request, response) => {
      passed += 1
      const onward = http.request(
        { port: new URL(place.url).port, agent: false, path: request.url, headers: request.headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 0)
          answer.pipe(response)
        },
      )
      onward.on('error', () => response.destroy()).end()
    })
    const { host } = await place.serve(program.port, { audience: 'public' })
    expect((await place.browser().ask(host)).status).toBe(508)
    expect(passed).toBeLessThanOrEqual(3)
  })
})
