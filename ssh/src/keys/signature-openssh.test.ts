// Signatures, with ssh-keygen as the judge: what it takes we take, what it refuses we refuse. Security keys
// are played by plain ones, because only the bytes that are signed differ.
import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { folder, run } from '../../test/programs.ts'
import { Writer } from '../wire.ts'
import { blobOf } from './key-object.ts'
import { generatePrivateKey } from './private-key.ts'
import { publicKeyLine } from './public-key.ts'
import { verifySignature } from './signature.ts'
import { times } from '../../../tests/harness/tier.ts'

vi.setConfig({ testTimeout: 60_000 })
const where = folder()
afterAll(() => where[Symbol.dispose]())

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
const text = Buffer.from('what was signed')

/** The input of `ssh-keygen -Y sign` (OpenSSH's PROTOCOL.sshsig), and its file. */
async function sshsig(
  blob: Buffer,
  signer: (data: Buffer) => Promise<Buffer>,
): Promise<{ data: Buffer; signature: Buffer; file: string }> {
  const fields = (writer: Writer): Writer => writer.string('file').string('').string('sha512')
  const digest = createHash('sha512').update(text).digest()
  const data = Buffer.from(
    fields(new Writer().raw(Buffer.from('SSHSIG')))
      .string(digest)
      .bytes(),
  )
  const signature = await signer(data)
  const whole = fields(new Writer().raw(Buffer.from('SSHSIG')).uint32(1).string(blob))
    .string(signature)
    .bytes()
  return {
    data,
    signature,
    file: `-----BEGIN SSH SIGNATURE-----\n${whole.toString('base64')}\n-----END SSH SIGNATURE-----\n`,
  }
}

async function sshKeygenAgrees(type: string, blob: Buffer, file: string): Promise<boolean> {
  const allowed = where.write('allowed', `olga ${publicKeyLine(type, blob)}\n`)
  const { status } = await run(
    'ssh-keygen',
    ['-Y', 'verify', '-f', allowed, '-I', 'olga', '-n', 'file', '-s', where.write('sig', file)],
    text,
  )
  return status === 0
}

interface Token {
  readonly type: string
  readonly blob: Buffer
  sign(data: Buffer, flags: number): Buffer
}

function token(kind: 'ed25519' | 'ecdsa'): Token {
  const application = Buffer.from('ssh:')
  const ed = kind === 'ed25519'
  const { privateKey, publicKey }: { privateKey: KeyObject; publicKey: KeyObject } = ed
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const type = ed ? 'sk-ssh-ed25519@openssh.com' : 'sk-ecdsa-sha2-nistp256@openssh.com'
  const plain = blobOf(publicKey)
  const afterType = plain.subarray(4 + plain.readUInt32BE(0))
  return {
    type,
    blob: Buffer.from(new Writer().string(type).raw(afterType).string(application).bytes()),
    sign(data, flags) {
      const counter = 7
      const signed = new Writer()
        .raw(sha256(application))
        .byte(flags)
        .uint32(counter)
        .raw(sha256(data))
        .bytes()
      const raw = ed
        ? sign(null, signed, privateKey)
        : sign('sha256', signed, { key: privateKey, dsaEncoding: 'ieee-p1363' })
      const bytes = ed ? raw : new Writer().mpint(raw.subarray(0, 32)).mpint(raw.subarray(32)).bytes()
      return Buffer.from(new Writer().string(type).string(bytes).byte(flags).uint32(counter).bytes())
    },
  }
}

describe('security keys', () => {
  test.each(['ed25519', 'ecdsa'] as const)(
    '%s: a touched token is taken, an untouched one is not',
    async (kind) => {
      const key = token(kind)
      const touched = await sshsig(key.blob, async (data) => key.sign(data, 0x01))
      expect(await sshKeygenAgrees(key.type, key.blob, touched.file)).toBe(true)
      expect(await verifySignature(key.blob, key.type, touched.data, touched.signature)).toBe(true)
      const untouched = await sshsig(key.blob, async (data) => key.sign(data, 0x00))
      expect(await verifySignature(key.blob, key.type, untouched.data, untouched.signature)).toBe(false)
    },
  )
})

describe('plain keys', () => {
  test.each(['ed25519', 'ecdsa', 'rsa'] as const)('%s: ssh-keygen takes what we sign', async (type) => {
    const key = generatePrivateKey(type)
    for (const algorithm of key.algorithms) {
      const made = await sshsig(key.blob, async (data) => key.sign(algorithm, data))
      expect(await sshKeygenAgrees(key.type, key.blob, made.file)).toBe(true)
      expect(await verifySignature(key.blob, algorithm, made.data, made.signature)).toBe(true)
    }
  })

  test('a signature under another name is not taken', async () => {
    const key = generatePrivateKey('rsa')
    const signature = await key.sign('rsa-sha2-256', text)
    expect(await verifySignature(key.blob, 'rsa-sha2-256', text, signature)).toBe(true)
    expect(await verifySignature(key.blob, 'rsa-sha2-512', text, signature)).toBe(false)
    expect(await verifySignature(key.blob, 'ssh-ed25519', text, signature)).toBe(false)
    await expect(key.sign('ssh-rsa', text)).rejects.toThrow('cannot sign with ssh-rsa')
  })

  test('whatever is changed, the answer is no and never an error', async () => {
    const made = [generatePrivateKey('ed25519'), generatePrivateKey('ecdsa'), generatePrivateKey('rsa')].map(
      async (key) => ({
        key,
        signature: await key.sign(key.algorithms[0]!, text),
      }),
    )
    const keys = await Promise.all(made)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...keys),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async ({ key, signature }, at, flip) => {
          const changed = Buffer.from(signature)
          changed[at % changed.length]! ^= flip
          expect(await verifySignature(key.blob, key.algorithms[0]!, text, changed)).toBe(false)
          expect(
            await verifySignature(
              key.blob,
              key.algorithms[0]!,
              text,
              signature.subarray(0, at % signature.length),
            ),
          ).toBe(false)
        },
      ),
      { numRuns: times(50, 500) },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.uint8Array({ maxLength: 200 }),
        async (blob, signature) => {
          expect(await verifySignature(Buffer.from(blob), 'ssh-ed25519', text, Buffer.from(signature))).toBe(
            false,
          )
        },
      ),
    )
  })
})
