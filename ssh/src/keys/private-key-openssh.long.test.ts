// Private keys against the real ssh-keygen: what it writes we read, what we write it reads, plain and
// encrypted.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { folder, keygen, run } from '../../test/programs.ts'
import {
  generatePrivateKey,
  parsePrivateKey,
  PassphraseNeeded,
  privateKeyFile,
  privateKeyFrom,
} from './private-key.ts'
import { KeyFormatError, parsePublicKeyLine } from './public-key.ts'
import { verifySignature } from './signature.ts'

vi.setConfig({ testTimeout: 120_000 })
const where = folder()
afterAll(() => where[Symbol.dispose]())

const kinds: [string, string[]][] = [
  ['ed25519', ['-t', 'ed25519']],
  ['p256', ['-t', 'ecdsa', '-b', '256']],
  ['p384', ['-t', 'ecdsa', '-b', '384']],
  ['p521', ['-t', 'ecdsa', '-b', '521']],
  ['rsa', ['-t', 'rsa', '-b', '2048']],
]
const data = Buffer.from('to be signed')

describe('what ssh-keygen writes', () => {
  test.each(kinds)('%s', async (name, args) => {
    await keygen(where, name, ...args)
    const key = parsePrivateKey(where.read(name))
    expect(key.blob.equals(parsePublicKeyLine(where.read(`${name}.pub`)).blob)).toBe(true)
    expect(key.comment).toBe(name)
    for (const algorithm of key.algorithms) {
      const signature = await key.sign(algorithm, data)
      expect(await verifySignature(key.blob, algorithm, data, signature)).toBe(true)
      expect(await verifySignature(key.blob, algorithm, Buffer.from('other'), signature)).toBe(false)
    }
  })

  test.each(['aes256-ctr', 'aes128-cbc', 'aes256-gcm@openssh.com'])('encrypted with %s', async (cipher) => {
    const name = `sealed-${cipher}`
    await keygen(where, name, '-t', 'ed25519', '-N', 'sesame', '-Z', cipher, '-a', '3')
    const key = parsePrivateKey(where.read(name), 'sesame')
    expect(key.blob.equals(parsePublicKeyLine(where.read(`${name}.pub`)).blob)).toBe(true)
    expect(() => parsePrivateKey(where.read(name))).toThrow(PassphraseNeeded)
    expect(() => parsePrivateKey(where.read(name), 'mellon')).toThrow(PassphraseNeeded)
  })

  test.each(['PEM', 'PKCS8'])('as %s', async (format) => {
    for (const kind of ['rsa', 'ecdsa']) {
      const name = `${format}-${kind}`
      await keygen(where, name, '-t', kind, '-m', format)
      expect(
        parsePrivateKey(where.read(name)).blob.equals(parsePublicKeyLine(where.read(`${name}.pub`)).blob),
      ).toBe(true)
    }
  })
})

describe('what we write', () => {
  test.each(['ed25519', 'ecdsa', 'rsa'] as const)(
    '%s, plain and encrypted, is read by ssh-keygen and by us',
    async (type) => {
      const key = generatePrivateKey(type, 'made here')
      for (const passphrase of ['', 'sesame']) {
        const file = where.write(`ours-${type}`, privateKeyFile(key, passphrase))
        const { stdout, stderr } = await run('ssh-keygen', ['-y', '-P', passphrase, '-f', file])
        expect(stderr).toBe('')
        expect(parsePublicKeyLine(stdout.toString()).blob.equals(key.blob)).toBe(true)
        const again = parsePrivateKey(where.read(`ours-${type}`), passphrase)
        expect([again.comment, again.blob.equals(key.blob)]).toEqual(['made here', true])
      }
    },
  )
})

describe('what is not a key', () => {
  test.each([
    ['nothing', ''],
    ['a public key', 'ssh-ed25519 AAAA'],
    ['an empty OpenSSH file', '-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----\n'],
    ['a PEM of something else', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    [
      'a key of a type that SSH does not have',
      generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }),
    ],
  ])('%s is refused', (_, text) => expect(() => parsePrivateKey(text)).toThrow(KeyFormatError))

  test('any change to a file is a refusal or the same key', () => {
    const key = generatePrivateKey()
    const bytes = Buffer.from(privateKeyFile(key).replaceAll(/-----.*-----|\n/g, ''), 'base64')
    fc.assert(
      fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 0, max: 255 }), (at, value) => {
        const changed = Buffer.from(bytes)
        changed[at] = value
        const text = `-----BEGIN OPENSSH PRIVATE KEY-----\n${changed.toString('base64')}\n-----END OPENSSH PRIVATE KEY-----\n`
        try {
          expect(parsePrivateKey(text).blob.equals(key.blob)).toBe(true)
        } catch (error) {
          if (!(error instanceof KeyFormatError)) throw error
        }
      }),
      { numRuns: 500 },
    )
  })

  test('an encrypted PKCS#8 key asks for its passphrase', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    const sealed = privateKey.export({
      format: 'pem',
      type: 'pkcs8',
      cipher: 'aes-256-cbc',
      passphrase: 'sesame',
    })
    expect(() => parsePrivateKey(sealed)).toThrow(PassphraseNeeded)
    const key = parsePrivateKey(sealed, 'sesame')
    expect(
      createPublicKey(createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }))).equals(
        createPublicKey(key.object),
      ),
    ).toBe(true)
    expect(privateKeyFrom(privateKey).blob.equals(key.blob)).toBe(true)
  })
})
