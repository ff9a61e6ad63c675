// Host certificates that we make, with OpenSSH as the judge: ssh-keygen reads them, and its client trusts a
// server by them.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { folder, quietArgs, run } from '../../test/programs.ts'
import { startServer } from '../../test/server.ts'
import { serverAlgorithms } from '../algorithms.ts'
import { certifyHostKey, isCertifiedHostKey } from './host-certificate.ts'
import { generatePrivateKey, privateKeyFrom } from './private-key.ts'
import { publicKeyLine } from './public-key.ts'
import { verifySignature } from './signature.ts'

vi.setConfig({ testTimeout: 60_000 })
const where = folder()
afterAll(() => where[Symbol.dispose]())

const rsa = privateKeyFrom(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
const principal = 'crane.example'
const certified = await certifyHostKey(generatePrivateKey('ed25519'), rsa, principal)

test('ssh-keygen reads the certificate', async () => {
  const file = where.write('host-cert.pub', publicKeyLine(certified.type, certified.blob))
  const { stdout } = await run('ssh-keygen', ['-L', '-f', file])
  expect(stdout.toString()).toMatch(/ssh-ed25519-cert-v01@openssh\.com host certificate/)
  expect(stdout.toString()).toMatch(/Signing CA: RSA/)
  expect(stdout.toString()).toMatch(/Valid: forever/)
  expect(stdout.toString()).toMatch(/Principals:\s+crane\.example\s+Critical Options: \(none\)/)
})

test.each([
  ['trusts the server by it', rsa, ['HostKeyAlias=crane.example'], 0],
  ['does not trust it for another host', rsa, ['HostKeyAlias=winch.example'], 255],
  [
    'does not trust it by another authority',
    generatePrivateKey('ed25519'),
    ['HostKeyAlias=crane.example'],
    255,
  ],
] as const)('a client of OpenSSH %s', async (name, authority, settings, wanted) => {
  await using server = await startServer({ hostKeys: [certified] })
  const known = where.write(
    `known_hosts ${name}`.replaceAll(' ', '-'),
    `@cert-authority * ${publicKeyLine(authority.type, authority.blob)}\n`,
  )
  const options = [...settings, `UserKnownHostsFile=${known}`, 'StrictHostKeyChecking=yes']
  const { status } = await run('ssh', [...quietArgs(server.port, ...options), 'olga@127.0.0.1', 'true'])
  expect(status).toBe(wanted)
})

test('a client that knows no certificates gets the plain key, and is told of no certificate', async () => {
  await using server = await startServer({ hostKeys: [rsa, certified] })
  const known = where.write(
    'known_hosts',
    `[127.0.0.1]:${server.port} ${publicKeyLine(rsa.type, rsa.blob)}\n`,
  )
  const options = [
    `UserKnownHostsFile=${known}`,
    'StrictHostKeyChecking=yes',
    'UpdateHostKeys=yes',
    'HostKeyAlgorithms=rsa-sha2-256',
  ]
  const { status } = await run('ssh', [...quietArgs(server.port, ...options), 'olga@127.0.0.1', 'true'])
  expect(status).toBe(0)
  expect(where.read('known_hosts').trim().split('\n')).toHaveLength(1)
  expect(serverAlgorithms.hostKey[0]).toBe(certified.algorithms[0])
})

describe('what is no host certificate of the authority', () => {
  test('another key, another name, another authority, a plain key, changed bytes', async () => {
    expect(await isCertifiedHostKey(certified.blob, rsa.blob, principal)).toBe(true)
    expect(await isCertifiedHostKey(certified.blob, rsa.blob, 'winch.example')).toBe(false)
    expect(await isCertifiedHostKey(certified.blob, generatePrivateKey().blob, principal)).toBe(false)
    expect(await isCertifiedHostKey(rsa.blob, rsa.blob, principal)).toBe(false)
    for (let at = 0; at < certified.blob.length; at += 7) {
      const changed = Buffer.from(certified.blob)
      changed[at]! ^= 1
      expect(await isCertifiedHostKey(changed, rsa.blob, principal)).toBe(false)
    }
  })

  test('one for a user', async () => {
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', where.file('user')])
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', where.file('authority')])
    const args = ['-q', '-s', where.file('authority'), '-I', 'id', '-n', principal, where.file('user.pub')]
    await run('ssh-keygen', args)
    const blob = (file: string): Buffer => Buffer.from(where.read(file).split(' ')[1]!, 'base64')
    expect(await isCertifiedHostKey(blob('user-cert.pub'), blob('authority.pub'), principal)).toBe(false)
  })
})

test('a signature counts under the name of the certificate, and only there', async () => {
  const data = Buffer.from('what was signed')
  const [name] = certified.algorithms
  const signature = await certified.sign(name!, data)
  expect(await verifySignature(certified.blob, name!, data, signature)).toBe(true)
  expect(await verifySignature(certified.blob, 'ssh-ed25519', data, signature)).toBe(false)
  expect(await verifySignature(certified.blob, name!, Buffer.from('else'), signature)).toBe(false)
  const other = await generatePrivateKey('ed25519').sign('ssh-ed25519', data)
  expect(await verifySignature(certified.blob, name!, data, other)).toBe(false)
  expect(await verifySignature(rsa.blob, name!, data, signature)).toBe(false)
})
