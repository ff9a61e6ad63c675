// Public key lines, against the real ssh-keygen for every type that it can make without hardware, then every
// way in which a line or a blob can be malformed, then anything at all: the answer is a key or a
// KeyFormatError.
import { execFileSync } from 'node:child_process'
import { createECDH, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  fingerprintMd5,
  fingerprintSha256,
  KeyFormatError,
  parsePublicKeyLine,
  publicKeyLine,
} from '../index.ts'
import { times } from '../../../tests/harness/tier.ts'

// Finding the primes of an RSA key can take long.
vi.setConfig({ testTimeout: 120_000 })

// Made once by ssh-keygen, because OpenSSH 10 can no longer make or read DSA keys.
const dsa = {
  line: `ssh-dss ${[
    'AAAAB3NzaC1kc3MAAACBAIB6q6E3P+o7InFDq+yKzMIWmRcpYrWg0bw2YpFy3MUtQU3E386C0LA0VaDqotllZY7Y5OLvm2usJaIXJC/cfdaL/r5yp6heLa/5',
    'SiphOe42sK8mRqktE/mtFWG+WP+zEVZJTtLVl25Keyw1KVCBBEjPjSzpJwpdKv7CDUPVXv/BAAAAFQC/MK5muM/hNZSgT1qcjfoJMYDhBwAAAIASXxncmzYJ',
    'lGFr8eMbQTfzO8i2uoJp8QF+6l/54OwWgDZ2SJRK9TgKr1/lrhoXncDYlwd3AaNZLE7lOfEW5Cjw7BWl/31Z8hl5GyVV4Kq4IopBPOiIWuKA1q2f8Wsj2WfW',
    'j0LQgJEi3BNMwYTk9V3/nla7hxExS1W4l8wfljDvpgAAAIAlt6ITBCfF7HGUrRxesgJAJnRghu/lwqJonGieFRN3KR+v+J9YgxaTBSu7lj/ajv0u0ywIis+a',
    'emMC/ZdB32gDNNlg30w+5HSIA55zvZe8MIxkE7dv2iTjpmT0Ev1xW5HXGOZ6+fP4LQ7pRW2BM25WI8ZboTn35o/6pvgW5nHxiw==',
  ].join('')} old crane`,
  md5: 'db:b4:83:c4:1b:a9:b0:21:5c:07:08:d3:40:e7:3d:6d',
  sha256: 'SHA256:C+Z1T/TNRbDQbBP4KrCbRceWH7UXWn6FPmfuT0WcCco',
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'hawser-keys-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function sshKeygen(...args: string[]): string {
  try {
    return execFileSync('ssh-keygen', args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new Error('These tests need ssh-keygen: install the OpenSSH client.', { cause })
    throw cause
  }
}

function make(name: string, ...args: string[]): string {
  sshKeygen('-q', '-N', '', '-C', 'olga at work', '-f', name, ...args)
  return readFileSync(path.join(folder, `${name}.pub`), 'utf8')
}

/** The size and the fingerprint by ssh-keygen. */
function listed(line: string, hash: 'md5' | 'sha256'): { bits: number; fingerprint: string } {
  const file = path.join(folder, 'listed.pub')
  writeFileSync(file, `${line}\n`)
  const [bits, fingerprint = ''] = sshKeygen('-l', '-E', hash, '-f', file).split(' ')
  return { bits: Number(bits), fingerprint: fingerprint.replace(/^MD5:/, '') }
}

const string = (value: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(value as string)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
const line = (type: string, ...parts: (string | Uint8Array)[]): string =>
  publicKeyLine(type, Buffer.concat([type, ...parts].map(string)))
const point = (curve: string): Buffer => createECDH(curve).generateKeys()

function refusal(text: string): string {
  try {
    parsePublicKeyLine(text)
  } catch (error) {
    if (error instanceof KeyFormatError) return error.message
    throw error
  }
  throw new Error('it was not refused')
}

describe('keys of the real ssh-keygen', () => {
  test.each<[string, string, number | null, string[]]>([
    ['rsa-1024', 'ssh-rsa', 1024, ['-t', 'rsa', '-b', '1024']],
    ['rsa-2048', 'ssh-rsa', 2048, ['-t', 'rsa', '-b', '2048']],
    ['rsa-3072', 'ssh-rsa', 3072, ['-t', 'rsa', '-b', '3072']],
    ['ed25519', 'ssh-ed25519', null, ['-t', 'ed25519']],
    ['ecdsa-256', 'ecdsa-sha2-nistp256', null, ['-t', 'ecdsa', '-b', '256']],
    ['ecdsa-384', 'ecdsa-sha2-nistp384', null, ['-t', 'ecdsa', '-b', '384']],
    ['ecdsa-521', 'ecdsa-sha2-nistp521', null, ['-t', 'ecdsa', '-b', '521']],
  ])('%s is read, and its fingerprints are the same', (name, type, bits, args) => {
    const made = make(name, ...args)
    const key = parsePublicKeyLine(made)
    expect(key).toMatchObject({ type, comment: 'olga at work', bits })
    expect(`${publicKeyLine(key.type, key.blob)} olga at work\n`).toBe(made)
    expect(fingerprintMd5(key.blob)).toBe(listed(made, 'md5').fingerprint)
    expect(fingerprintSha256(key.blob)).toBe(listed(made, 'sha256').fingerprint)
    if (bits !== null) expect(listed(made, 'md5').bits).toBe(bits)
  })

  test('ssh-dss is read', () => {
    const key = parsePublicKeyLine(dsa.line)
    expect(key).toMatchObject({ type: 'ssh-dss', comment: 'old crane', bits: 1024 })
    expect(fingerprintMd5(key.blob)).toBe(dsa.md5)
    expect(fingerprintSha256(key.blob)).toBe(dsa.sha256)
  })

  // Only a security token can make these; ssh-keygen reads them without one.
  test.each([
    ['sk-ssh-ed25519@openssh.com', () => line('sk-ssh-ed25519@openssh.com', randomBytes(32), 'ssh:')],
    [
      'sk-ecdsa-sha2-nistp256@openssh.com',
      () => line('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', point('prime256v1'), 'ssh:'),
    ],
  ])('%s is read as ssh-keygen reads it', (type, build) => {
    const built = build()
    const key = parsePublicKeyLine(built)
    expect(key).toMatchObject({ type, comment: '', bits: null })
    expect(fingerprintSha256(key.blob)).toBe(listed(built, 'sha256').fingerprint)
  })

  test('a certificate is refused, and the sentence says what to give instead', () => {
    make('authority', '-t', 'ed25519')
    make('olga', '-t', 'ed25519')
    sshKeygen('-q', '-s', 'authority', '-I', 'olga', '-n', 'root', 'olga.pub')
    expect(refusal(readFileSync(path.join(folder, 'olga-cert.pub'), 'utf8'))).toBe(
      'This is a certificate, not a public key; give the public key of the authority that signed it.',
    )
  })

  test('a private key is refused, and none of it is in the sentence', () => {
    make('private', '-t', 'ed25519')
    const message = refusal(readFileSync(path.join(folder, 'private'), 'utf8'))
    expect(message).toBe(
      'This is a PEM file, perhaps a private key; the public key is one line that starts with its type.',
    )
  })
})

describe('the line', () => {
  const good = line('ssh-ed25519', Buffer.alloc(32, 7))

  test('white space around and between its parts, and a comment with spaces', () => {
    expect(parsePublicKeyLine(`  ${good.replace(' ', ' \t ')}\t olga's  old key \r\n`).comment).toBe(
      "olga's  old key",
    )
    expect(parsePublicKeyLine(good).comment).toBe('')
  })

  const typeFirst =
    'The line must start with the type of the key, such as ssh-ed25519; options before it are not allowed.'
  test.each([
    ['nothing', '', typeFirst],
    ['options before the type', `no-pty ${good}`, typeFirst],
    ['quoted options before the type', `command="true" ${good}`, typeFirst],
    ['the name of a signature algorithm', good.replace('ssh-ed25519', 'rsa-sha2-256'), typeFirst],
    ['the name of an object’s own method', good.replace('ssh-ed25519', 'constructor'), typeFirst],
    ['only a type', 'ssh-ed25519', 'The key after its type is not base64.'],
    ['something else than base64', 'ssh-ed25519 AAAA*AAA', 'The key after its type is not base64.'],
    ['base64 without its padding', 'ssh-ed25519 AAAAC3NzaA', 'The key after its type is not base64.'],
    ['base64 with loose last bits', 'ssh-ed25519 AAAAC3NzaB==', 'The key after its type is not base64.'],
    ['two lines', `${good}\n${good}`, 'The key must be one line without control characters.'],
    [
      'an escape sequence in the comment',
      `${good} \u001b]0;x\u0007`,
      'The key must be one line without control characters.',
    ],
    ['a line separator', `${'x'.repeat(60_000)}\u2028x`, typeFirst],
    ['far too much', `${good} ${'x'.repeat(70_000)}`, 'The key is far too long.'],
  ])('%s is refused', (_, text, message) => expect(refusal(text)).toBe(message))
})

describe('the blob', () => {
  const p256 = point('prime256v1')
  const offCurve = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)])
  const n = Buffer.concat([Buffer.of(0), randomBytes(256).fill(0xff, 0, 1)])
  const e = Buffer.of(1, 0, 1)

  test('an RSA modulus is measured by its highest bit', () => {
    expect(parsePublicKeyLine(line('ssh-rsa', e, n)).bits).toBe(2048)
    expect(parsePublicKeyLine(line('ssh-rsa', e, Buffer.from('7f'.padEnd(512, '0'), 'hex'))).bits).toBe(2047)
    expect(parsePublicKeyLine(line('ssh-rsa', e, Buffer.from('01'.padEnd(512, '0'), 'hex'))).bits).toBe(2041)
  })

  test.each([
    [
      'another type inside',
      line('ssh-rsa', e, n).replace('ssh-rsa', 'ssh-ed25519'),
      'The key does not have the type that its line names.',
    ],
    ['an RSA key without a modulus', line('ssh-rsa', e), 'The key is cut short.'],
    ['an RSA key with a third number', line('ssh-rsa', e, n, e), 'There are bytes after the end of the key.'],
    ['an RSA exponent of one', line('ssh-rsa', Buffer.of(1), n), 'The exponent of the RSA key is too small.'],
    ['a number that is zero', line('ssh-rsa', e, ''), 'A number in the key is zero.'],
    ['a negative number', line('ssh-rsa', e, n.subarray(1)), 'A number in the key is negative.'],
    [
      'needless zeros',
      line('ssh-rsa', Buffer.of(0, 1, 0, 1), n),
      'A number in the key has needless leading zeros.',
    ],
    [
      'a zero written out',
      line('ssh-rsa', e, Buffer.of(0)),
      'A number in the key has needless leading zeros.',
    ],
    [
      'a huge number',
      line('ssh-rsa', e, Buffer.alloc(2049, 1)),
      'A number in the key has more than 16384 bits.',
    ],
    ['a DSA key with three numbers', line('ssh-dss', e, e, e), 'The key is cut short.'],
    ['a short Ed25519 key', line('ssh-ed25519', Buffer.alloc(31)), 'An Ed25519 key has 32 bytes.'],
    ['a long Ed25519 key', line('ssh-ed25519', Buffer.alloc(33)), 'An Ed25519 key has 32 bytes.'],
    [
      'another curve inside',
      line('ecdsa-sha2-nistp384', 'nistp256', p256),
      'The curve of the ECDSA key is not the one that its type names.',
    ],
    [
      'a point of another curve',
      line('ecdsa-sha2-nistp384', 'nistp384', p256),
      'The point of the ECDSA key is not one of nistp384.',
    ],
    [
      'a point off the curve',
      line('ecdsa-sha2-nistp256', 'nistp256', offCurve),
      'The point of the ECDSA key is not one of nistp256.',
    ],
    [
      'a compressed point',
      line('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(33, 2)),
      'The point of the ECDSA key is not one of nistp256.',
    ],
    [
      'a security key without its application',
      line('sk-ssh-ed25519@openssh.com', Buffer.alloc(32)),
      'The key is cut short.',
    ],
    [
      'NUL in an application',
      line('sk-ssh-ed25519@openssh.com', Buffer.alloc(32), 'ssh:\0'),
      'The application of the security key has a NUL byte in it.',
    ],
    [
      'a length past the end',
      publicKeyLine('ssh-rsa', Buffer.of(0xff, 0xff, 0xff, 0xff, 1)),
      'The key is cut short.',
    ],
    ['half a length', publicKeyLine('ssh-rsa', Buffer.of(0, 0)), 'The key is cut short.'],
  ])('%s is refused', (_, text, message) => expect(refusal(text)).toBe(message))
})

describe('whatever arrives, the answer is a key or a KeyFormatError', () => {
  const types = [
    'ssh-rsa',
    'ssh-dss',
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp521',
    'sk-ssh-ed25519@openssh.com',
    'sk-ecdsa-sha2-nistp256@openssh.com',
  ]
  const onlyKeys = (text: string): void => {
    try {
      const key = parsePublicKeyLine(text)
      expect(parsePublicKeyLine(publicKeyLine(key.type, key.blob)).blob.equals(key.blob)).toBe(true)
    } catch (error) {
      if (!(error instanceof KeyFormatError)) throw error
    }
  }

  test('any text', () =>
    fc.assert(fc.property(fc.string({ unit: 'binary' }), onlyKeys), { numRuns: times(100, 1_000) }))
  test('any bytes after a type', () => {
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 300 }), (type, bytes) =>
        onlyKeys(publicKeyLine(type, bytes)),
      ),
      { numRuns: times(100, 1_000) },
    )
  })
  test('any strings after a type', () => {
    const parts = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 140 }),
        fc.constantFrom('nistp256', 'nistp521', 'ssh:'),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.constant(point('prime256v1')),
      ),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(fc.constantFrom(...types), parts, (type, some) => onlyKeys(line(type, ...some))),
      { numRuns: times(300, 3_000) },
    )
  })
  test('a real key with one byte changed, dropped or added', () => {
    const { type, blob } = parsePublicKeyLine(dsa.line)
    const keys = [
      { type, blob },
      ...[
        line('ecdsa-sha2-nistp256', 'nistp256', point('prime256v1')),
        line('ssh-ed25519', randomBytes(32)),
      ].map(parsePublicKeyLine),
    ]
    fc.assert(
      fc.property(
        fc.constantFrom(...keys),
        fc.nat(),
        fc.nat({ max: 255 }),
        fc.constantFrom(0, 1),
        fc.constantFrom(0, 1),
        (key, at, byte, drop, add) => {
          const changed = [...key.blob]
          changed.splice(at % changed.length, drop, ...(add ? [byte] : []))
          onlyKeys(publicKeyLine(key.type, Uint8Array.from(changed)))
        },
      ),
      { numRuns: times(300, 3_000) },
    )
  })
})
