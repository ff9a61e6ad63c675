// Which targets of web services the setting permits, and how it is written.
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'
import { permits } from './permitted-targets.ts'
import { readHost, readServices } from './services-setting.ts'

const read = (HAWSER_SERVICES?: string) =>
  readConfig(
    {
      HAWSER_SERVER_ADDRESS: 'https://hawser.example.com',
      HAWSER_TENANT_ID: '00000000-0000-4000-8000-000000000000',
      ...(HAWSER_SERVICES === undefined ? {} : { HAWSER_SERVICES }),
    },
    true,
  ).services

describe('the setting', () => {
  test('is a word, or a list of entries', () => {
    const localhost = [{ host: 'localhost', bits: undefined, port: undefined }]
    expect(read()).toEqual(localhost)
    expect(read('')).toEqual(localhost)
    expect(read('localhost')).toEqual(localhost)
    expect(read('off')).toBe('off')
    expect(read('network')).toBe('network')
    expect(read('Printer.lan.:80, 10.0.0.0/24:*  [fd00::1]:443,[FD00:0::/64]:1 localhost')).toEqual([
      { host: 'printer.lan', bits: undefined, port: 80 },
      { host: '10.0.0.0', bits: 24, port: undefined },
      { host: 'fd00::1', bits: undefined, port: 443 },
      { host: 'fd00::', bits: 64, port: 1 },
      { host: 'localhost', bits: undefined, port: undefined },
    ])
  })

  test.each([
    'on',
    'printer.lan',
    'printer.lan:',
    'printer.lan:0',
    'printer.lan:65536',
    'printer.lan:8o',
    'printer.lan/24:80',
    '10.0.0.0/33:80',
    '10.0.0:80',
    '10.0.0.256:80',
    '0x7f000001:80',
    'fd00::1:80',
    '[fd00::/129]:80',
    '[::ffff:10.0.0.1]:80',
    '[fe80::1%eth0]:80',
    '[printer.lan]:80',
    'localhost:80,',
    'off, localhost:80',
    'http://printer.lan:80',
    'printer lan:80',
  ])('%s is refused with a sentence', (text) => {
    expect(readServices(text)).toBeUndefined()
    expect(() => read(text)).toThrow(ConfigError)
    expect(() => read(text)).toThrow('HAWSER_SERVICES: use off, localhost, network or a list, for example')
  })
})

test.each([
  ['LOCALHOST', 'localhost'],
  ['printer.lan.', 'printer.lan'],
  ['_dns.x-1.example', '_dns.x-1.example'],
  ['::FFFF:0a00:0001', '10.0.0.1'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['', undefined],
  ['.', undefined],
  ['a..b', undefined],
  ['127.1', undefined],
  ['2130706433', undefined],
  ['10.0x1', undefined],
  ['fe80::1%lo', undefined],
  ['a b', undefined],
  ['a\n', undefined],
  ['ä.example', undefined],
  [`${'a.'.repeat(126)}a`, `${'a.'.repeat(126)}a`],
  [`${'a.'.repeat(126)}ab`, undefined],
  [7, undefined],
  [['localhost'], undefined],
])('the host %j is read as %j', (text, host) => {
  expect(readHost(text)).toBe(host)
})

/** Addresses that are their own name. */
const may = (setting: string, address: string, host = address, port = 80): boolean =>
  permits(readServices(setting)!, { host, port }, address)

const local = ['127.0.0.1', '127.255.255.254', '::1']
const others = ['10.0.0.1', '192.168.1.1', '203.0.113.7', 'fd00::1', '2001:db8::1', '64:ff9b::a00:1']
const never = [
  '0.0.0.0',
  '0.1.2.3',
  '169.254.0.1',
  '169.254.169.254',
  '100.100.100.200',
  '192.0.0.192',
  '224.0.0.1',
  '239.255.255.255',
  '255.255.255.255',
  '::',
  '::7f00:1',
  '::a9fe:a9fe',
  'fe80::1',
  'febf::1',
  'ff02::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  '::ffff:169.254.169.254',
  '::ffff:0.0.0.0',
  '::ffff:0:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '2001::1',
]

describe('permits', () => {
  test('localhost: the device itself, by its usual names', () => {
    for (const address of local) {
      expect(may('localhost', address)).toBe(true)
      expect(may('localhost', address, 'localhost')).toBe(true)
      expect(may('localhost', address, 'rebound.example')).toBe(false)
    }
    for (const address of [...others, ...never]) {
      expect(may('localhost', address)).toBe(false)
      expect(may('localhost', address, 'localhost')).toBe(false)
    }
  })

  test('network: everything but addresses that are never meant', () => {
    for (const address of [...local, ...others]) expect(may('network', address), address).toBe(true)
    for (const address of never) expect(may('network', address), address).toBe(false)
    for (const address of never) expect(may('network', address, 'rebound.example'), address).toBe(false)
  })

  test('off: nothing', () => {
    for (const address of [...local, ...others]) expect(may('off', address)).toBe(false)
  })

  test('a list: what it lists', () => {
    const list = 'localhost:8080 printer.lan:80 10.0.0.0/24:80 10.0.1.5:* [fd00::/64]:443'
    expect(may(list, '127.0.0.1', 'localhost', 8080)).toBe(true)
    expect(may(list, '127.0.0.1', '127.0.0.1', 8080)).toBe(true)
    expect(may(list, '127.0.0.1', 'localhost', 8081)).toBe(false)
    expect(may(list, '127.0.0.1', 'other.lan', 8080)).toBe(false)
    expect(may(list, '10.9.9.9', 'printer.lan')).toBe(true)
    expect(may(list, '10.9.9.9', 'printer.lan', 81)).toBe(false)
    expect(may(list, '10.9.9.9', 'other.lan')).toBe(false)
    expect(may(list, '10.0.0.255')).toBe(true)
    expect(may(list, '10.0.0.255', 'other.lan')).toBe(true)
    expect(may(list, '10.0.1.1')).toBe(false)
    expect(may(list, '10.0.1.5', '10.0.1.5', 65_535)).toBe(true)
    expect(may(list, 'fd00::9', 'fd00::9', 443)).toBe(true)
    expect(may(list, 'fd01::9', 'fd01::9', 443)).toBe(false)
  })

  test('a list: addresses that are never meant only when it names them', () => {
    const all = '0.0.0.0/0:* [::/0]:* rebound.example:*'
    for (const address of never) {
      expect(may(all, address), address).toBe(false)
      expect(may(all, address, 'rebound.example'), address).toBe(false)
    }
    expect(may('[::/0]:*', '10.0.0.1')).toBe(false)
    expect(may('169.254.7.7:80', '169.254.7.7')).toBe(true)
    expect(may('169.254.7.7:80', '169.254.169.254')).toBe(false)
    expect(may('169.254.0.0/16:80', '169.254.9.9')).toBe(true)
    expect(may('100.100.100.200:80', '100.100.100.200')).toBe(true)
  })
})
