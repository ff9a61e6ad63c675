// The settings: what is in force without any, what each kind of text means, that all mistakes are told
// together, and that a secret is never printed.
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, printConfig, readConfig, settings, publicListen } from './config.ts'

function problemsOf(environment: Record<string, string>): string {
  try {
    readConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error('the settings were accepted')
}

test('nothing needs to be set', () => {
  const config = readConfig({})
  expect(config).toMatchObject({
    HAWSER_HTTP: { host: '0.0.0.0', port: 8080 },
    HAWSER_SSH: { host: '0.0.0.0', port: 2222 },
    HAWSER_DATA: path.resolve('data'),
    HAWSER_DATABASE: '',
    HAWSER_SMTP: '',
    HAWSER_URL: '',
    HAWSER_REGISTRATION: 'open',
    HAWSER_LOG: 'info',
    HAWSER_METRICS: undefined,
    HAWSER_RATE_LIMIT: { max: 100, window_ms: 10_000 },
    HAWSER_DEVICE_RATE_LIMIT: { max: 20, window_ms: 10_000 },
    HAWSER_CONNECTOR_ALLOW: [],
  })
})

test('every setting accepts its own example and its own fallback', () => {
  for (const [name, { example, fallback }] of Object.entries(settings))
    for (const value of [example, fallback])
      expect(() => readConfig({ [name]: value }), `${name}=${value}`).not.toThrow()
})

test('an empty variable is an absent one, and blanks around a value do not count', () => {
  expect(readConfig({ HAWSER_LOG: '', HAWSER_HTTP: '   ' })).toEqual(readConfig({}))
  expect(readConfig({ HAWSER_LOG: ' debug\n' }).HAWSER_LOG).toBe('debug')
})

test('other programs’ variables are not looked at', () => {
  expect(readConfig({ PATH: '/bin', HOME: '/', SHELLHUB_PROXY: 'true', XHAWSER_HTTP: 'x' })).toEqual(
    readConfig({}),
  )
})

describe('an address to listen on', () => {
  test.each([
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    ['localhost:0', 'localhost', 0],
    ['[::1]:443', '::1', 443],
    ['[::]:65535', '::', 65_535],
    [':8080', '0.0.0.0', 8080],
  ])('%s', (text, host, port) => {
    expect(readConfig({ HAWSER_HTTP: text }).HAWSER_HTTP).toEqual({ host, port })
  })

  test.each([
    '8080',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    '::1:8080',
    'a b:80',
    'http://x:80',
  ])('%j is none', (text) => {
    expect(problemsOf({ HAWSER_SSH: text })).toContain(
      'HAWSER_SSH: an address and a port are expected, for example 0.0.0.0:22',
    )
  })
})

describe('the address of a node', () => {
  const read = (text: string) => readConfig({ HAWSER_NODE_ADDRESS: text }).HAWSER_NODE_ADDRESS

  test('is a port, or a Unix socket of this machine', () => {
    expect(read('10.0.0.5:7400')).toEqual({ host: '10.0.0.5', port: 7400 })
    expect(read('unix:/run/hawser/1.sock')).toEqual({ path: '/run/hawser/1.sock' })
    expect(read('')).toBe(undefined)
  })

  test.each(['unix:', 'unix:node.sock', `unix:/${'a'.repeat(107)}`])('%s is refused', (text) => {
    expect(() => read(text)).toThrow('an absolute path of at most 107 bytes is expected')
  })
})

describe('a port that several nodes share', () => {
  const where = { host: '0.0.0.0', port: 22 }
  const nats = { HAWSER_NATS: 'nats://127.0.0.1:4222' }
  const shared = (env: Record<string, string>, platform: NodeJS.Platform = 'linux') =>
    publicListen(readConfig(env), where, platform)

  test('is shared when that is wanted, by nodes that hear each other', () => {
    expect(shared({})).toEqual({ ...where, reusePort: false })
    expect(shared({ ...nats, HAWSER_REUSE_PORT: 'on' })).toEqual({ ...where, reusePort: true })
  })

  test('is refused where the kernel does not spread connections', () => {
    for (const platform of ['darwin', 'win32', 'freebsd'] as const)
      expect(() => shared({ ...nats, HAWSER_REUSE_PORT: 'on' }, platform)).toThrow('only Linux')
  })

  test('is refused without NATS: two servers on one database would start unnoticed', () => {
    expect(() => shared({ HAWSER_REUSE_PORT: 'on' })).toThrow('also need HAWSER_NATS')
  })
})

describe('a rate', () => {
  test.each([
    ['5/10', 5, 10_000],
    ['1/1', 1, 1000],
    ['0/10', Infinity, 10_000],
  ])('%s', (text, max, window_ms) => {
    expect(readConfig({ HAWSER_RATE_LIMIT: text }).HAWSER_RATE_LIMIT).toEqual({ max, window_ms })
  })

  test.each(['5', '5/0', '/10', '-1/10', '5/10s', '1.5/10', '99999999/10'])('%j is none', (text) => {
    expect(problemsOf({ HAWSER_DEVICE_RATE_LIMIT: text })).toContain(
      'HAWSER_DEVICE_RATE_LIMIT: calls/seconds is expected',
    )
  })
})

describe('trusted proxies', () => {
  const trusts = (text: string | undefined, address: string) =>
    readConfig(text === undefined ? {} : { HAWSER_TRUSTED_PROXIES: text }).HAWSER_TRUSTED_PROXIES.check(
      address,
      address.includes(':') ? 'ipv6' : 'ipv4',
    )

  test.each([
    [undefined, '127.0.0.1', true],
    [undefined, '127.9.9.9', true],
    [undefined, '::1', true],
    [undefined, '10.0.0.1', false],
    ['none', '127.0.0.1', false],
    ['none', '::1', false],
    ['10.0.0.0/8, ::1', '10.200.0.1', true],
    ['10.0.0.0/8, ::1', '11.0.0.1', false],
    ['10.0.0.0/8, ::1', '127.0.0.1', false],
    ['192.0.2.1 192.0.2.2', '192.0.2.2', true],
    ['fd00::/8', 'fd12::1', true],
    ['fd00::/8', 'fe80::1', false],
  ])('with %j, %s: %j', (text, address, expected) => {
    expect(trusts(text, address)).toBe(expected)
  })

  test.each(['proxy.example.com', '10.0.0.0/33', '10.0.0.0/x', '10.0.0/8', 'all', '10.0.0.1, nonsense'])(
    '%j is refused',
    (text) => {
      expect(problemsOf({ HAWSER_TRUSTED_PROXIES: text })).toContain('HAWSER_TRUSTED_PROXIES: ')
    },
  )
})

test('addresses lose a slash at their end, and must be of the right kind', () => {
  expect(readConfig({ HAWSER_URL: 'https://hawser.example.com//' }).HAWSER_URL).toBe(
    'https://hawser.example.com',
  )
  for (const [name, value] of [
    ['HAWSER_URL', 'hawser.example.com'],
    ['HAWSER_URL', 'ftp://hawser.example.com'],
    ['HAWSER_SMTP', 'https://mail.example.com'],
    ['HAWSER_DATABASE', 'mysql://db.example.com'],
  ] as const)
    expect(problemsOf({ [name]: value })).toContain(`${name}: an address with `)
})

test('what the command line reads from the same shell is no mistake', () => {
  expect(
    readConfig({ HAWSER_SERVER: 'https://hawser.example.com', HAWSER_API_KEY: 'a key' }).HAWSER_LOG,
  ).toBe('info')
})

test('all mistakes are told together, each with an example', () => {
  const message = problemsOf({
    HAWSER_HTTP: 'nowhere',
    HAWSER_LOG: 'loud',
    HAWSER_REGISTRATION: 'maybe',
    HAWSER_TYPO: '1',
  })
  const lines = message.split('\n')
  expect(lines).toHaveLength(5)
  expect(lines[1]).toContain('HAWSER_HTTP: an address and a port are expected, for example 127.0.0.1:8080')
  expect(message).toContain(
    'HAWSER_LOG: one of trace, debug, info, warn, error, fatal, silent is expected, for example debug',
  )
  expect(message).toContain('HAWSER_REGISTRATION: one of open, invited, closed is expected')
  expect(message).toContain('HAWSER_TYPO: there is no such setting')
})

describe('secrets', () => {
  const secret = 'tidal-wave'
  test('are not printed', () => {
    const lines = printConfig({
      HAWSER_SMTP: `smtp://user:${secret}@mail.example.com`,
      HAWSER_DATABASE: `postgres://user:${secret}@db.example.com/x`,
      HAWSER_METRICS_TOKEN: secret,
      HAWSER_LOG: 'debug',
    })
    expect(lines.join('\n')).not.toContain(secret)
    expect(lines).toEqual(
      expect.arrayContaining([
        'HAWSER_SMTP=[secret]',
        'HAWSER_METRICS_TOKEN=[secret]',
        'HAWSER_LOG=debug',
        'HAWSER_HTTP=0.0.0.0:8080',
      ]),
    )
    expect(lines).toHaveLength(Object.keys(settings).length)
  })

  test('are not quoted when they are refused', () => {
    const message = problemsOf({
      HAWSER_SMTP: `smpt://user:${secret}@mail.example.com`,
      HAWSER_DATABASE: `pg://user:${secret}@db/x`,
    })
    expect(message).toContain('HAWSER_SMTP')
    expect(message).not.toContain(secret)
  })
})
