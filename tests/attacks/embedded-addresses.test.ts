// A tenant names an IPv6 address that a translator or a tunnel turns into an IPv4 address: 127.0.0.1 or the
// cloud's metadata service, which only the server reaches. Some of these spellings counted as addresses of
// the Internet or of a private network. Each of them counts as the IPv4 address inside it.
import { describe, expect, test } from 'vitest'
import { engine } from '../../server/src/connectors/engine.ts'
import { kindOf } from '../../server/src/outbound/addresses.ts'
import { destinationOf, destinations } from '../../server/src/receivers/destination.ts'
import { startPlace } from '../harness/place.ts'

/** Spells an IPv4 address, given as two hexadecimal groups, in every known way. */
const spellings: readonly (readonly [string, (high: string, low: string) => string])[] = [
  ['mapped', (high, low) => `::ffff:${high}:${low}`],
  ['SIIT', (high, low) => `::ffff:0:${high}:${low}`],
  ['NAT64', (high, low) => `64:ff9b::${high}:${low}`],
  ['NAT64 of a network, 96 bits', (high, low) => `64:ff9b:1::${high}:${low}`],
  ['NAT64 of a network, 96 bits, of another part of it', (high, low) => `64:ff9b:1:fffe::${high}:${low}`],
  [
    'NAT64 of a network, 64 bits',
    (high, low) => `64:ff9b:1:7:${high.slice(0, 2)}:${high.slice(2)}${low.slice(0, 2)}:${low.slice(2)}00:0`,
  ],
  ['NAT64 of a network, 56 bits', (high, low) => `64:ff9b:1:${high.slice(0, 2)}:${high.slice(2)}:${low}:0:0`],
  [
    'NAT64 of a network, 48 bits',
    (high, low) => `64:ff9b:1:${high}:${low.slice(0, 2)}:${low.slice(2)}00:0:0`,
  ],
  ['6to4', (high, low) => `2002:${high}:${low}::1`],
  ['Teredo, the client', (high, low) => `2001:0:cb00:7107:0:0:${inverted(high)}:${inverted(low)}`],
  ['Teredo, the server', (high, low) => `2001:0:${high}:${low}:0:0:34ff:8ef8`],
  ['ISATAP', (high, low) => `2001:db8::5efe:${high}:${low}`],
  ['ISATAP, of a global address', (high, low) => `2001:db8::200:5efe:${high}:${low}`],
]
const inverted = (group: string): string => (Number.parseInt(group, 16) ^ 0xffff).toString(16)

describe.each(spellings)('%s', (_, spelled) => {
  test('the metadata service is forbidden and loopback is loopback', () => {
    expect(kindOf(spelled('a9fe', 'a9fe'))).toBe('forbidden')
    expect(kindOf(spelled('7f00', '0001'))).toBe('loopback')
    expect(kindOf(spelled('0a00', '0001'))).toBe('private')
  })

  test('neither a connector nor an audit stream goes there', async () => {
    const streams = destinations({ allow: [], ownPorts: () => [], ownHost: '' })
    for (const [high, low] of [
      ['a9fe', 'a9fe'],
      ['7f00', '0001'],
    ] as const) {
      const address = spelled(high, low)
      await expect(
        engine({ allow: [] }).info({ address, port: 9, secure: false, tls: undefined }),
      ).rejects.toThrow("is the server's own or link-local")
      expect(() => streams.check(destinationOf(`https://[${address}]/`))).toThrow('has not allowed it')
    }
  })
})

test('an address that is inside in two ways is judged by the worse one', () => {
  expect(kindOf('2002:7f00:1::5efe:808:808')).toBe('loopback')
  expect(kindOf('2002:808:808::5efe:a9fe:a9fe')).toBe('forbidden')
  expect(kindOf('64:ff9b:1:7f00:0:5efe:808:808')).toBe('loopback')
})

test('an IPv4 address in the oldest way to write it into an IPv6 address leads nowhere', () => {
  for (const address of ['::127.0.0.1', '::169.254.169.254', '::10.0.0.1', '::8.8.8.8'])
    expect(kindOf(address)).toBe('forbidden')
})

test('public addresses stay public, and translators that a network has for itself stay private', () => {
  for (const address of ['::ffff:0:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1', '2001:db8::5efe:808:808'])
    expect(kindOf(address)).toBe('public')
  for (const address of ['64:ff9b:1::8.8.8.8', '64:ff9b:1::10.0.0.1', '2001:0:808:808::34ff:8ef8'])
    expect(kindOf(address)).toBe('private')
})

test('the interface refuses an audit stream to such an address', async () => {
  await using place = await startPlace()
  const url = 'https://[::ffff:0:169.254.169.254]/latest/meta-data/'
  await expect(place.owner.auditStreams.create({ body: { name: 'siit', url } })).rejects.toMatchObject({
    status: 400,
  })
})
