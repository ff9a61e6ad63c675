// Certificates as ssh-keygen makes them, for every type of key and authority, and every way to spoil one.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { folder, keygen, run } from '../../test/programs.ts'
import { judgeCertificate, parseCertificate } from './certificate.ts'
import { KeyFormatError, parsePublicKeyLine } from './public-key.ts'
import { times } from '../../../tests/harness/tier.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
const where = folder()
const blobOf = (file: string): Buffer => Buffer.from(where.read(file).split(' ')[1]!, 'base64')
const types: Record<string, string[]> = {
  ed25519: ['-t', 'ed25519'],
  p256: ['-t', 'ecdsa'],
  p521: ['-t', 'ecdsa', '-b', '521'],
  rsa: ['-t', 'rsa', '-b', '2048'],
}
beforeAll(async () => {
  for (const [name, args] of Object.entries(types)) {
    await keygen(where, name, ...args)
    await keygen(where, `authority-${name}`, ...args)
  }
})
afterAll(() => where[Symbol.dispose]())

async function certify(key: string, authority: string, ...args: string[]): Promise<Buffer> {
  await run('ssh-keygen', [
    '-q',
    '-s',
    where.file(authority),
    '-I',
    'an id',
    ...args,
    where.file(`${key}.pub`),
  ])
  return blobOf(`${key}-cert.pub`)
}

describe.each(Object.keys(types))('for %s', (key) => {
  test.each(Object.keys(types))('by %s', async (authority) => {
    const certificate = await parseCertificate(
      await certify(
        key,
        `authority-${authority}`,
        '-n',
        'olga,root',
        '-z',
        '42',
        '-O',
        'force-command=uptime',
      ),
    )
    expect(certificate).toMatchObject({
      kind: 'user',
      id: 'an id',
      serial: 42n,
      principals: ['olga', 'root'],
    })
    expect(certificate.key.equals(parsePublicKeyLine(where.read(`${key}.pub`)).blob)).toBe(true)
    expect(
      certificate.authority.equals(parsePublicKeyLine(where.read(`authority-${authority}.pub`)).blob),
    ).toBe(true)
    expect([...certificate.extensions.keys()]).toContain('permit-pty')
    const use = {
      kind: 'user',
      authorities: [certificate.authority],
      principal: 'olga',
      now: new Date(),
    } as const
    expect(judgeCertificate(certificate, use)).toEqual({ allowed: true, forceCommand: 'uptime' })
    expect(judgeCertificate(certificate, { ...use, authorities: [] })).toMatchObject({
      because: 'Its authority is not trusted.',
    })
    expect(judgeCertificate(certificate, { ...use, kind: 'host' })).toMatchObject({
      because: 'It is a certificate for a user.',
    })
  })
})

test('addresses: inside, outside, unknown, and of the other family', async () => {
  const blob = await certify(
    'ed25519',
    'authority-ed25519',
    '-n',
    'olga',
    '-O',
    'source-address=10.1.0.0/16,2001:db8::/32',
  )
  const certificate = await parseCertificate(blob)
  const from = (address: string | undefined) =>
    judgeCertificate(certificate, {
      kind: 'user',
      authorities: [certificate.authority],
      principal: 'olga',
      now: new Date(),
      address,
    }).allowed
  expect([
    from('10.1.2.3'),
    from('2001:db8::7'),
    from('10.2.0.1'),
    from('2001:db9::'),
    from(undefined),
    from('nonsense'),
  ]).toEqual([true, true, false, false, false, false])
})

test('any change of a byte is noticed', async () => {
  const blob = await certify('ed25519', 'authority-ed25519', '-n', 'olga')
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: blob.length - 1 }), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
      const changed = Buffer.from(blob)
      changed[at]! ^= flip
      await expect(parseCertificate(changed)).rejects.toThrow(KeyFormatError)
    }),
    { numRuns: times(50, 300) },
  )
})
