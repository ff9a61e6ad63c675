// The meaning of a policy, accepted and refused, with the spellings by which people get around such rules.
import { describe, expect, test } from 'vitest'
import { openPolicy, destinationPattern, type Policy } from '@hawser/contract/policies'
import { say } from '@hawser/contract/sentences'
import { policyPart, sessionPolicy, transfersOf } from './session-policy.ts'

const policyText = (policy: Policy) => say(policyPart(policy)).sentence
const rules = (change: Partial<Policy>) => sessionPolicy({ ...openPolicy, ...change })

test('a namespace that says nothing forbids nothing', () => {
  const open = rules({})
  expect(open.files).toEqual({})
  expect(open.command('scp -t /')).toBeUndefined()
  expect(open.subsystem('sftp')).toBeUndefined()
  expect(open.forward({ host: 'db', port: 5432 })).toBeUndefined()
  expect(open.forward({ path: '/run/docker.sock' })).toBeUndefined()
  expect(open.listen()).toBeUndefined()
  expect(policyText(openPolicy)).toBe('The policy of the namespace forbids nothing.')
})

describe('commands that move files', () => {
  test.each([
    ['scp -t /tmp', true, false],
    ['scp -r -p -d -t -- /tmp', true, false],
    ['scp -rpt /tmp', true, false],
    ['scp -f /etc/passwd', false, true],
    ['/usr/bin/scp -qf x', false, true],
    ['sudo -u root scp -t x', true, false],
    ['cd /tmp && scp -t x', true, false],
    ['sh -c "scp -t x"', true, false],
    ["'s'cp -t x", true, false],
    ['s\\cp -t x', true, false],
    ['rsync --server -vlogDtpre.iLsfxCIvu . /tmp', true, false],
    ['rsync --server --sender -vlogDtpre.iLsfxCIvu . /etc', false, true],
    ['rsync --server --daemon .', true, true],
    ['/usr/lib/openssh/sftp-server', true, true],
    ['internal-sftp', true, true],
    ['ls -t', false, false],
    ['scp', false, false],
    ['man scp; ls -t', false, false],
    ['rsync -a /a /b', false, false],
    ['echo hello', false, false],
    ['', false, false],
  ])('%s', (line, receives, sends) => {
    expect(transfersOf(line)).toEqual({ receives, sends })
    expect(rules({ uploads: false }).command(line) !== undefined).toBe(receives)
    expect(rules({ downloads: false }).command(line) !== undefined).toBe(sends)
  })
})

describe('subsystems', () => {
  test('some are forbidden, or all but some', () => {
    const some = rules({ subsystem_exceptions: ['netconf'] })
    expect([some.subsystem('netconf'), some.subsystem('sftp')]).toEqual([expect.any(String), undefined])
    const others = rules({ subsystems: 'forbid', subsystem_exceptions: ['sftp'] })
    expect([others.subsystem('netconf'), others.subsystem('sftp')]).toEqual([expect.any(String), undefined])
  })

  test('where transfers are restricted, only the one that is read passes', () => {
    for (const change of [{ uploads: false }, { downloads: false }])
      for (const name of ['SFTP', 'sftp ', 'sftp\0', 'netconf', '']) {
        expect(rules(change).subsystem('sftp')).toBeUndefined()
        expect(rules(change).subsystem(name)).toEqual(expect.any(String))
      }
  })
})

describe('destinations', () => {
  const allows = (exceptions: string[], host: string, port: number): boolean =>
    rules({ forwards: 'forbid', forward_exceptions: exceptions }).forward({ host, port }) === undefined
  const forbids = (exceptions: string[], host: string, port: number): boolean =>
    rules({ forward_exceptions: exceptions }).forward({ host, port }) !== undefined

  test.each([
    ['db.internal:5432', 'db.internal', 5432, true],
    ['db.internal:5432', 'DB.Internal.', 5432, true],
    ['db.internal:5432', 'db.internal', 5433, false],
    ['db.internal:5432', 'xdb.internal', 5432, false],
    ['*.internal:*', 'db.internal', 1, true],
    ['*.internal:*', 'db.internal.example.com', 1, false],
    ['10.0.*:8000-8999', '10.0.7.7', 8999, true],
    ['10.0.*:8000-8999', '10.0.7.7', 9000, false],
    ['[::1]:22', '::1', 22, true],
    ['[::1]:22', '0:0:0:0:0:0:0:1', 22, true],
    ['[2001:db8::*]:22', '2001:db8::7', 22, true],
    ['*:443', 'anything', 443, true],
    ['192.0.2.7:22', '192.0.2.7', 22, true],
    ['192.0.2.7:22', '3221225991', 22, true],
    ['192.0.2.7:22', '0xc0.0.02.7', 22, true],
    ['192.0.2.7:22', '::ffff:192.0.2.7', 22, true],
    ['192.0.2.7:22', '::ffff:c000:207', 22, true],
  ])('%s: %s port %i', (pattern, host, port, fits) => {
    expect(new RegExp(destinationPattern).test(pattern)).toBe(true)
    expect(allows([pattern], host, port)).toBe(fits)
    expect(forbids([pattern], host, port)).toBe(fits)
  })

  test('what leads to loopback is loopback where it is forbidden, and only its names where it is allowed', () => {
    for (const pattern of ['localhost:22', '127.0.0.1:22', '[::1]:22', 'ip6-localhost:22'])
      for (const host of [
        'localhost',
        'LOCALHOST.',
        '127.0.0.1',
        '127.1',
        '0x7f000001',
        '2130706433',
        '127.9.9.9',
        '0.0.0.0',
        '0',
        '::',
        '::1',
        '::1%lo',
        '::ffff:127.0.0.1',
        'x.localhost',
        'ip6-localhost',
        'IP6-Loopback.',
        'localhost.localdomain',
        'localhost4',
        'localhost6.localdomain6',
        '',
      ])
        expect([pattern, host, forbids([pattern], host, 22)]).toEqual([pattern, host, true])
    expect(allows(['localhost:22'], '127.0.0.1', 22)).toBe(true)
    expect(allows(['localhost:22'], '127.9.9.9', 22)).toBe(false)
    expect(allows(['localhost:22'], '0.0.0.0', 22)).toBe(false)
    expect(allows(['localhost:22'], 'ip6-localhost', 22)).toBe(false)
    expect(allows(['ip6-localhost:22'], 'ip6-localhost', 22)).toBe(true)
  })

  test('sockets', () => {
    const one = rules({ forwards: 'forbid', forward_exceptions: ['unix:/run/app/*.sock', '*:*'] })
    expect(one.forward({ path: '/run/app/one.sock' })).toBeUndefined()
    expect(one.forward({ path: '/run/docker.sock' })).toEqual(expect.any(String))
    expect(one.listen()).toEqual(expect.any(String))
    expect(rules({ forward_exceptions: ['*:*'] }).listen()).toBeUndefined()
  })

  test.each(['', 'host', ':', 'a b:1', 'host:99999999', '*.*:1', '[::1:22', 'host:', 'host:1-', 'unix:*a*'])(
    'the contract refuses %s',
    (pattern) => expect(new RegExp(destinationPattern).test(pattern) && pattern.length >= 3).toBe(false),
  )
})

test('a policy in a sentence', () => {
  expect(
    policyText({
      uploads: false,
      downloads: true,
      forwards: 'forbid',
      forward_exceptions: ['db:5432'],
      subsystems: 'allow',
      subsystem_exceptions: ['netconf'],
      services: 'allow',
    }),
  ).toBe(
    'The policy of the namespace forbids uploads; forwarded connections to other than db:5432; the subsystems netconf.',
  )
  expect(policyText({ ...openPolicy, forwards: 'forbid', subsystems: 'forbid' })).toBe(
    'The policy of the namespace forbids forwarded connections; the subsystems.',
  )
})
