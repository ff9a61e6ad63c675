// The kinds of addresses, in every spelling; and that a name is refused for any one of its addresses.
import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { AddressRefused, checkedAddress, kindOf } from './addresses.ts'

describe('link-local, unspecified, multicast and reserved addresses are forbidden', () => {
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '169.254.0.1',
    '169.254.169.254',
    '100.100.100.200',
    '192.0.0.192',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::7f00:1',
    'fe80::1',
    'fe80::1%lo',
    'febf::1',
    'ff02::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    '::ffff:169.254.169.254',
    '::ffff:0.0.0.0',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    'no address',
    '',
  ])('%s', (address) => expect(kindOf(address)).toBe('forbidden'))
})

describe('loopback is loopback in every disguise', () => {
  test.each([
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
  ])('%s', (address) => expect(kindOf(address)).toBe('loopback'))
})

describe('private networks', () => {
  test.each([
    '10.255.0.1',
    '172.16.255.1',
    '172.31.255.254',
    '192.168.255.1',
    '100.64.0.1',
    '198.18.0.1',
    'fd12::1',
    'fc00::1',
    '::ffff:10.255.0.1',
    '64:ff9b::aff:1',
    '64:ff9b:1::1',
    '2002:aff:1::',
    '2001::1',
    '2001:0:cb00:7107::34ff:8ef8',
  ])('%s', (address) => expect(kindOf(address)).toBe('private'))
})

test.each([
  '203.0.113.7',
  '128.0.0.1',
  '126.255.255.255',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.0.1',
  '100.128.0.1',
  '2001:db8::1',
  '2606:4700::1111',
  '64:ff9b::808:808',
  '::ffff:203.0.113.7',
])('%s is public', (address) => expect(kindOf(address)).toBe('public'))

test('the addresses of this machine are its own', () => {
  const outside = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  expect(outside).not.toEqual([])
  for (const { address, family } of outside) {
    expect(kindOf(address)).toBe('own')
    if (family === 'IPv4') expect(kindOf(`::ffff:${address}`)).toBe('own')
  }
})

test('a name is refused when any of its addresses is', async () => {
  const may = (address: string): boolean => kindOf(address) === 'public'
  const stands = (...found: string[]) => checkedAddress('name.test', may, async () => found)
  expect(await stands('203.0.113.1', '203.0.113.2')).toBe('203.0.113.1')
  await expect(stands('203.0.113.1', '127.0.0.1')).rejects.toMatchObject({ why: 'refused' })
  await expect(stands()).rejects.toMatchObject({ why: 'unresolved' })
  await expect(
    checkedAddress('name.test', may, async () => Promise.reject(new Error('ENOTFOUND'))),
  ).rejects.toBeInstanceOf(AddressRefused)
})
