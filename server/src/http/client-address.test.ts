// Where a request comes from: what a trusted proxy says is believed, what anybody else says is not, and what
// makes no sense is as if it were not there.
import { EventEmitter } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../config.ts'
import { neighbourhood } from '../kit/address.ts'
import { whereFrom } from './client-address.ts'

const trust = (proxies: string) =>
  whereFrom({ trusted: readConfig({ HAWSER_TRUSTED_PROXIES: proxies }).HAWSER_TRUSTED_PROXIES, header: '' })

type Headers = Record<string, string | string[]>

// Real requests over real connections; one server whose last request is kept, since the answer is about the
// request.
const asked = new EventEmitter<{ request: [IncomingMessage] }>()
const server = createServer((incoming, answer) => {
  asked.emit('request', incoming)
  answer.end()
})
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise((resolve) => server.close(resolve)))

/** How `proxies` reads a request with these headers that comes from `peer`. */
function seen(proxies: string, peer: string, headers: Headers) {
  const { promise, resolve, reject } = Promise.withResolvers<ReturnType<ReturnType<typeof whereFrom>>>()
  asked.once('request', (incoming) => {
    try {
      resolve(trust(proxies)(incoming))
    } catch (error) {
      reject(error)
    }
  })
  const { port } = server.address() as AddressInfo
  request({ host: '127.0.0.1', port, localAddress: peer, headers, agent: false }, (answer) => answer.resume())
    .on('error', reject)
    .end()
  return promise
}

const sourceOf = async (proxies: string, headers: Headers, peer = '127.0.0.1') =>
  (await seen(proxies, peer, headers)).source
const loopback = '127.0.0.0/8, ::1'

describe('from a trusted proxy', () => {
  test.each<[string, Headers, string]>([
    ['nothing said: the peer', {}, '127.0.0.1'],
    ['X-Real-IP', { 'x-real-ip': '192.0.2.7' }, '192.0.2.7'],
    ['X-Real-IP with blanks around', { 'x-real-ip': ' 192.0.2.7 ' }, '192.0.2.7'],
    ['X-Real-IP of version 6', { 'x-real-ip': '2001:db8::7' }, '2001:db8::7'],
    ['an address of version 4 written as version 6', { 'x-real-ip': '::ffff:192.0.2.7' }, '192.0.2.7'],
    ['both, and they agree', { 'x-real-ip': '192.0.2.8', 'x-forwarded-for': '192.0.2.8' }, '192.0.2.8'],
    [
      'both, and X-Real-IP is a proxy on the way',
      { 'x-real-ip': '127.0.0.5', 'x-forwarded-for': '192.0.2.8, 127.0.0.5' },
      '192.0.2.8',
    ],
    [
      'both, written otherwise',
      { 'x-real-ip': '::ffff:192.0.2.8', 'x-forwarded-for': '192.0.2.8' },
      '192.0.2.8',
    ],
    [
      'both, and they contradict each other: X-Forwarded-For',
      { 'x-real-ip': '192.0.2.7', 'x-forwarded-for': '192.0.2.8' },
      '192.0.2.8',
    ],
    [
      'both, and X-Real-IP is hearsay of the chain: X-Forwarded-For',
      { 'x-real-ip': '192.0.2.7', 'x-forwarded-for': '192.0.2.7, 192.0.2.8' },
      '192.0.2.8',
    ],
    ['X-Forwarded-For', { 'x-forwarded-for': '192.0.2.8' }, '192.0.2.8'],
    [
      'a chain: the last one that is not ours',
      { 'x-forwarded-for': '192.0.2.1, 192.0.2.8, 127.0.0.5' },
      '192.0.2.8',
    ],
    [
      'what the caller put in front of the chain is hearsay',
      { 'x-forwarded-for': '10.9.9.9, 192.0.2.8' },
      '192.0.2.8',
    ],
    [
      'nonsense in front of the chain does not matter',
      { 'x-forwarded-for': 'unknown, 192.0.2.8' },
      '192.0.2.8',
    ],
    ['several headers are one chain', { 'x-forwarded-for': ['192.0.2.1', '192.0.2.8'] }, '192.0.2.8'],
    [
      'a chain of our own proxies only: the first of them',
      { 'x-forwarded-for': '127.0.0.5, ::1' },
      '127.0.0.5',
    ],
    [
      'nonsense behind our own proxy: that proxy',
      { 'x-forwarded-for': '192.0.2.8, nonsense, 127.0.0.5' },
      '127.0.0.5',
    ],
  ])('%s', async (_, headers, source) => {
    expect(await sourceOf(loopback, headers)).toBe(source)
  })

  test.each<[string, Headers]>([
    ['an empty X-Real-IP', { 'x-real-ip': '' }],
    ['a word', { 'x-real-ip': 'localhost' }],
    ['a number too large', { 'x-real-ip': '999.0.2.7' }],
    ['an address with a port', { 'x-real-ip': '192.0.2.7:80' }],
    ['two addresses', { 'x-real-ip': '192.0.2.7, 192.0.2.8' }],
    ['two X-Real-IP headers', { 'x-real-ip': ['192.0.2.7', '192.0.2.8'] }],
    ['colons', { 'x-real-ip': ':::::' }],
    ['a very long text', { 'x-real-ip': '1.'.repeat(2000) }],
    ['an empty chain', { 'x-forwarded-for': '' }],
    ['commas', { 'x-forwarded-for': ',,,' }],
    ['nonsense at the end of the chain', { 'x-forwarded-for': '192.0.2.8, unknown' }],
    ['the Forwarded header, which nobody reads', { forwarded: 'for=192.0.2.8' }],
  ])('%s says nothing: the peer it is', async (_, headers) => {
    expect(await sourceOf(loopback, headers)).toBe('127.0.0.1')
  })

  test('a subnet of proxies in front of ours is passed over too', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.8, 10.1.2.3' }
    expect(await sourceOf('127.0.0.1, 10.0.0.0/8', headers)).toBe('192.0.2.8')
    expect(await sourceOf('127.0.0.1', headers)).toBe('10.1.2.3')
  })

  test('host and protocol are those that it says', async () => {
    const headers = {
      host: 'inner:8080',
      'x-forwarded-host': 'hawser.example.com',
      'x-forwarded-proto': 'https',
    }
    expect(await seen(loopback, '127.0.0.1', headers)).toEqual({
      source: '127.0.0.1',
      host: 'hawser.example.com',
      secure: true,
    })
    expect(await seen(loopback, '127.0.0.1', { host: 'inner:8080' })).toMatchObject({
      host: 'inner:8080',
      secure: false,
    })
  })
})

describe('from anybody else', () => {
  const headers = {
    host: 'hawser.example.com',
    'x-real-ip': '192.0.2.8',
    'x-forwarded-for': '192.0.2.8',
    'x-forwarded-host': 'evil.example.com',
    'x-forwarded-proto': 'https',
  }

  test.each([
    ['with no proxies', 'none', '127.0.0.1'],
    ['with another proxy', '127.0.0.2', '127.0.0.1'],
    ['with another subnet', '10.0.0.0/8, fd00::/8', '127.0.0.1'],
    ['from another address than the proxy’s', '127.0.0.1', '127.0.0.3'],
  ])('%s, no word about the caller is believed', async (_, proxies, peer) => {
    expect(await seen(proxies, peer, headers)).toEqual({
      source: peer,
      host: 'hawser.example.com',
      secure: false,
    })
  })

  test('the same words from the proxy are', async () => {
    expect(await seen('127.0.0.2', '127.0.0.2', headers)).toEqual({
      source: '192.0.2.8',
      host: 'evil.example.com',
      secure: true,
    })
  })
})

describe('what is limited together', () => {
  test.each([
    ['an address of version 4, alone', '192.0.2.1', '192.0.2.1'],
    ['a whole address of version 6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['a shortened one', '2001:db8::1', '2001:db8:0:0::/64'],
    ['one shortened after its network', '2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['one shortened in front', '::1', '0:0:0:0::/64'],
    ['one shortened within its network', '2001::2:3:4:5:6', '2001:0:0:2::/64'],
    ['what is no address', 'nowhere', 'nowhere'],
  ])('%s: %s', (_, address, together) => {
    expect(neighbourhood(address)).toBe(together)
  })
})

describe('the port that people use', () => {
  test.each([
    ['is added where the proxy names it apart', 'hawser.example', '8443', 'hawser.example:8443'],
    ['is not added twice', 'hawser.example:8443', '9000', 'hawser.example:8443'],
    ['goes without saying when it is the usual one', 'hawser.example', '443', 'hawser.example'],
    ['is ignored when it is no port', 'hawser.example', '80; rm', 'hawser.example'],
  ])('%s', async (_, host, port, expected) => {
    const headers = { 'x-forwarded-host': host, 'x-forwarded-port': port }
    expect((await seen(loopback, '127.0.0.1', headers)).host).toBe(expected)
  })

  test('is not taken from anybody else', async () => {
    const headers = { host: 'hawser.example', 'x-forwarded-port': '8443' }
    expect((await seen('none', '127.0.0.1', headers)).host).toBe('hawser.example')
  })
})
