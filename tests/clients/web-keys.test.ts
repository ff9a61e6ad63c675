// Private keys as people have them, in every format that ssh-keygen and openssl write, are read and sign what
// the server verifies; what cannot be read is told apart in words.
import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  blobOf,
  privateKeyFile,
  privateKeyFrom,
  proofData,
  publicKeyLine,
  verifySignature,
} from '@hawser/ssh'
import { joined, lengthed } from '../../console/src/terminal/bytes.ts'
import { KeyError, readPrivateKey } from '../../console/src/terminal/keys.ts'

const user = `pilot@${'a'.repeat(64)}`
const keys: Readonly<Record<string, KeyObject>> = {
  'ssh-ed25519': generateKeyPairSync('ed25519').privateKey,
  'ssh-rsa': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'ecdsa-sha2-nistp256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-sha2-nistp384': generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-sha2-nistp521': generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
}

/** In the format that is older than PKCS#8. */
const pem = (key: KeyObject, type: 'pkcs1' | 'sec1'): string =>
  type === 'pkcs1' ? key.export({ type, format: 'pem' }) : key.export({ type, format: 'pem' })

const files: [string, string, string][] = Object.entries(keys).flatMap(([type, key]) => {
  const older = type === 'ssh-rsa' ? 'pkcs1' : type.startsWith('ecdsa') ? 'sec1' : undefined
  return [
    [type, 'OpenSSH', privateKeyFile(privateKeyFrom(key, 'olga at home'))],
    [type, 'PKCS#8', key.export({ type: 'pkcs8', format: 'pem' })],
    ...(older ? [[type, older, pem(key, older)] as [string, string, string]] : []),
  ]
})

describe('a private key', () => {
  test.each(files)('%s of %s is read and signs a login', async (type, _, file) => {
    const key = await readPrivateKey(file)
    const blob = blobOf(keys[type]!)
    expect(key.line).toBe(publicKeyLine(type, blob))
    const algorithm = type === 'ssh-rsa' ? 'rsa-sha2-512' : type
    // Numbers with and without a zero before them come by chance.
    for (let turn = 0; turn < 8; turn += 1) {
      const challenge = proofData(randomBytes(32), user, algorithm, blob)
      const signature = joined(lengthed(algorithm), lengthed(await key.sign(challenge, user)))
      expect(await verifySignature(blob, algorithm, challenge, Buffer.from(signature))).toBe(true)
    }
  })

  test('is read with the line ends of Windows and with space around it', async () => {
    const [, , file] = files[0]!
    expect((await readPrivateKey(`\r\n${file.replaceAll('\n', '\r\n')}  `)).line).toMatch(/^ssh-ed25519 /)
  })

  test('signs nothing but its own login', async () => {
    const key = await readPrivateKey(files[0]![2])
    const blob = blobOf(keys['ssh-ed25519']!)
    const proof = (who = user, algorithm = 'ssh-ed25519', shown = blob, id = randomBytes(32)) =>
      proofData(id, who, algorithm, shown)
    for (const challenge of [
      proof('root@elsewhere'),
      proof(user, 'ssh-rsa'),
      proof(user, 'ssh-ed25519', blobOf(keys['ssh-rsa']!)),
      proof(user, 'ssh-ed25519', blob, randomBytes(64)),
      Buffer.concat([proof(), Buffer.from('more')]),
      Buffer.from('pilot'),
    ])
      await expect(key.sign(challenge, user)).rejects.toThrow('does not belong to this login')
  })

  const [, rsa] = Object.values(keys)
  test.each([
    ['with a passphrase, OpenSSH', privateKeyFile(privateKeyFrom(rsa!), 'rope'), 'passphrase'],
    [
      'with a passphrase, PKCS#8',
      rsa!.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'rope' }),
      'passphrase',
    ],
    [
      'with a passphrase, PKCS#1',
      '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x,y\n\nAAAA\n-----END RSA PRIVATE KEY-----',
      'passphrase',
    ],
    ['that is the public half', publicKeyLine('ssh-rsa', blobOf(rsa!)), 'without .pub'],
    [
      'of another kind',
      generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
      'This type of key is not supported',
    ],
    ['that is nothing', 'hello', 'not a private key'],
    [
      'that is cut short',
      files[0]![2].slice(0, 200) + '\n-----END OPENSSH PRIVATE KEY-----',
      'not a private key',
    ],
    [
      'of zeros',
      '-----BEGIN PRIVATE KEY-----\nAAAAAAAA\n-----END PRIVATE KEY-----',
      'This type of key is not supported',
    ],
  ])('%s is not read, and it is said why', async (_, file, why) => {
    const reading = readPrivateKey(file)
    await expect(reading).rejects.toThrow(KeyError)
    await expect(reading).rejects.toThrow(why)
  })
})
