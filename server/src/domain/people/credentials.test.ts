// Passwords: the format that is kept, that only the right one matches, that hashes of other strengths are
// still read, and that a line which is too long is refused rather than lengthened.
import { argon2Sync, createHash } from 'node:crypto'
import { hashSync } from 'bcryptjs'
import { describe, expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { adoptHash, hashPassword, isForeign, passwordMatches } from './credentials.ts'

const shape = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

/** A hash that costs next to nothing to check. */
function cheap(password: string): string {
  const nonce = Buffer.alloc(16, 1)
  const hash = argon2Sync('argon2id', {
    message: password,
    nonce,
    tagLength: 32,
    memory: 8,
    passes: 1,
    parallelism: 1,
  })
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  return `$argon2id$v=19$m=8,t=1,p=1$${text(nonce)}$${text(hash)}`
}

describe('hashing', () => {
  test('gives Argon2id in the PHC format, with 19 MiB, two passes and a salt of its own', async () => {
    const [one, other] = [await hashPassword('rope-and-anchor'), await hashPassword('rope-and-anchor')]
    expect(one).toMatch(shape)
    expect(one).not.toBe(other)
    const [, nonce = '', hash = ''] = shape.exec(one)!
    const again = argon2Sync('argon2id', {
      message: 'rope-and-anchor',
      nonce: Buffer.from(nonce, 'base64'),
      tagLength: 32,
      memory: 19_456,
      passes: 2,
      parallelism: 1,
    })
    expect(Buffer.from(hash, 'base64')).toEqual(again)
  })

  test('the hash shows nothing of the password', async () => {
    expect(await hashPassword('ropeandanchor')).not.toContain('rope')
  })
})

describe('checking', () => {
  test.each(['rope-and-anchor', 'пароль', '  blanks  ', '🪢🪢🪢🪢🪢', 'x'.repeat(30)])(
    '%j matches its own hash and no other',
    async (password) => {
      const stored = await hashPassword(password)
      expect(await passwordMatches(password, stored)).toBe(true)
      for (const wrong of [`${password} `, password.slice(0, -1), password.toUpperCase() + '!', ''])
        expect(await passwordMatches(wrong, stored), JSON.stringify(wrong)).toBe(false)
    },
  )

  test('a hash made elsewhere, with another cost, is read: the published vector for "password" and "somesalt"', async () => {
    const stored = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
    expect(await passwordMatches('password', stored)).toBe(true)
    expect(await passwordMatches('Password', stored)).toBe(false)
  })

  test.each([
    undefined,
    '',
    'rope-and-anchor',
    '$2b$10$abcdefghijklmnopqrstuv',
    '$argon2i$v=19$m=8,t=1,p=1$AAAA$AAAA',
  ])('nothing matches %j, not even itself', async (stored) => {
    for (const password of ['', 'rope-and-anchor', stored ?? 'undefined'])
      expect(await passwordMatches(password, stored)).toBe(false)
  })
})

describe('the line', () => {
  test('fifty of a network wait; one more is told to come back, whether or not there is such a user; later there is room again', async () => {
    const stored = cheap('rope')
    const waiting = Array.from({ length: 52 }, () => passwordMatches('rope', stored))
    for (const late of [
      () => passwordMatches('rope', stored),
      () => passwordMatches('rope', undefined),
      () => hashPassword('rope'),
    ]) {
      const refusal: unknown = await late().catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(Failure)
      expect(refusal).toMatchObject({ kind: 'tooMany', headers: { 'retry-after': '5' } })
    }
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]))
    expect(await passwordMatches('rope', stored)).toBe(true)
  })
})

describe('hashes from elsewhere', () => {
  /** Of the lowest cost, so that the test is quick. */
  const bcrypt = hashSync('rope-and-anchor', 4)

  test.each(['2a', '2b', '2y'])(
    'a bcrypt hash with the prefix %s matches its own password and no other',
    async (prefix) => {
      const stored = bcrypt.replace(/^\$2\w/, `$${prefix}`)
      expect(await adoptHash(stored)).toBe(stored)
      expect(isForeign(stored)).toBe(true)
      expect(await passwordMatches('rope-and-anchor', stored, undefined, true)).toBe(true)
      expect(await passwordMatches('rope-and-anchor ', stored, undefined, true)).toBe(false)
      expect(await passwordMatches(stored, stored)).toBe(false)
    },
  )

  test('the published bcrypt vector is read', async () => {
    expect(await passwordMatches('U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW')).toBe(
      true,
    )
  })

  test('SHA-256 is kept only inside Argon2id, and matches the password, not itself', async () => {
    const hash = createHash('sha256').update('rope-and-anchor').digest('hex')
    const stored = (await adoptHash(hash))!
    expect(stored).toMatch(/^\$sha256\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(stored).not.toContain(hash)
    expect(isForeign(stored)).toBe(true)
    expect(await passwordMatches('rope-and-anchor', stored)).toBe(true)
    for (const wrong of ['rope-and-anchors', hash, stored, ''])
      expect(await passwordMatches(wrong, stored)).toBe(false)
  })

  test.each(['', 'plain', '$2a$31$' + '.'.repeat(53), '$2a$10$short', '$6$salt$hash', 'g'.repeat(64)])(
    '%j is kept of nobody',
    async (hash) => {
      expect(await adoptHash(hash)).toBe(undefined)
      expect(isForeign(hash)).toBe(false)
      expect(await passwordMatches(hash, hash)).toBe(false)
    },
  )

  test('while bcrypt is around, nobody matches either', async () => {
    expect(await passwordMatches('rope-and-anchor', undefined, undefined, true)).toBe(false)
    expect(
      await passwordMatches('rope-and-anchor', await hashPassword('rope-and-anchor'), undefined, true),
    ).toBe(true)
  })
})
