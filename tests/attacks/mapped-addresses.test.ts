// A proxy that listens on IPv6 names IPv4 clients by their mapped address, in sixteen bytes. Version 2 of the
// PROXY protocol gave them as ::ffff:c000:207, which no rule for 192.0.2.7 fits: whoever a rule denies came
// in.
import { once } from 'node:events'
import net from 'node:net'
import { expect, test } from 'vitest'
import { generatePrivateKey, openClient } from '@hawser/ssh'
import { neighbourhood, plainAddress } from '../../server/src/kit/address.ts'
import { sshid, startDoor } from './door.ts'

/** PROXY version 2, TCP over IPv6, from ::ffff:192.0.2.7. */
const header = Buffer.from(
  '0d0a0d0a000d0a515549540a' +
    '21' +
    '21' +
    '0024' +
    '00000000000000000000ffffc0000207' +
    '20010db8000000000000000000000001' +
    'dc04' +
    '0016',
  'hex',
)

test('a deny rule for an IPv4 address holds for its mapped form', async () => {
  await using door = await startDoor()
  const olga = generatePrivateKey('ed25519')
  await door.register(olga)
  const owner = door.service.api({ token: await door.world.token('owner') })
  const rule = {
    action: 'deny',
    active: true,
    priority: 0,
    source_ip: String.raw`^192\.0\.2\.`,
    username: '.*',
  } as const
  await owner.firewall.create({ body: { ...rule, filter: { hostname: '.*' } } })
  const socket = net.connect(door.service.sshPort, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(header)
  const client = await openClient(socket, { checkHostKey: () => true, handshake_ms: 20_000 })
  await expect(client.attempt(sshid, { method: 'publickey', key: olga })).rejects.toThrow('due a policy rule')
})

test('an address has one spelling', () => {
  for (const spelling of [
    '192.0.2.7',
    '::ffff:192.0.2.7',
    '::FFFF:C000:207',
    '::ffff:c000:0207',
    '0:0:0:0:0:ffff:c000:207',
  ])
    expect(plainAddress(spelling)).toBe('192.0.2.7')
  for (const spelling of ['2001:db8::7', '2001:DB8:0:0:0:0:0:7', '2001:0db8::0007'])
    expect(plainAddress(spelling)).toBe('2001:db8::7')
  expect(plainAddress('fe80::1%eth0')).toBe('fe80::1%eth0')
  expect(plainAddress('not an address')).toBe('not an address')
  expect(neighbourhood(plainAddress('::ffff:c000:207'))).toBe('192.0.2.7')
})
