// Secrets at rest: what is sealed can be opened again only whole, with the same key and for the same purpose;
// marks are the same for the same secret and tell nothing without the key; the master key is made once and
// for its owner alone.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, chmodSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { hashOf, masterKey, sameText, vault } from './secrets.ts'

const key = Buffer.alloc(32, 7)
const otherKey = Buffer.alloc(32, 8)

describe('a vault', () => {
  test.each(['', 'rope', 'Ærø ⚓', 'x'.repeat(100_000)])('opens what it has sealed: %#', (plain) => {
    expect(vault(key).open('note', vault(key).seal('note', plain))).toBe(plain)
  })

  test('seals the same text differently each time', () => {
    const { seal } = vault(key)
    expect(seal('note', 'rope')).not.toBe(seal('note', 'rope'))
  })

  test('a sealed value shows nothing of the text', () => {
    const sealed = Buffer.from(vault(key).seal('note', 'rope-and-anchor'), 'base64')
    expect(sealed.includes('rope')).toBe(false)
    // The format: version, nonce, ciphertext of the text's length, tag.
    expect([sealed[0], sealed.length]).toEqual([1, 1 + 12 + 'rope-and-anchor'.length + 16])
  })

  test('opens nothing for another purpose or with another key', () => {
    const sealed = vault(key).seal('note', 'rope')
    expect(() => vault(key).open('other', sealed)).toThrow()
    expect(() => vault(otherKey).open('note', sealed)).toThrow()
  })

  test('opens nothing that was changed in any byte, or cut', () => {
    const sealed = Buffer.from(vault(key).seal('note', 'rope'), 'base64')
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed)
      changed[i]! ^= 1
      expect(() => vault(key).open('note', changed.toString('base64')), `byte ${i}`).toThrow()
      expect(() => vault(key).open('note', sealed.subarray(0, i).toString('base64')), `cut at ${i}`).toThrow()
    }
    expect(() => vault(key).open('note', 'not base64 at all')).toThrow()
  })

  test('marks the same secret alike, and apart by purpose, by secret and by key', () => {
    const { mark } = vault(key)
    expect(mark('code', 'K7QX2')).toBe(mark('code', 'K7QX2'))
    expect(mark('code', 'K7QX2')).toMatch(/^[0-9a-f]{64}$/)
    const others = [
      mark('other', 'K7QX2'),
      mark('code', 'K7QX3'),
      vault(otherKey).mark('code', 'K7QX2'),
      hashOf('K7QX2'),
    ]
    expect(new Set([...others, mark('code', 'K7QX2')]).size).toBe(5)
  })

  test('a mark cannot be reached by moving the border between purpose and secret', () => {
    const { mark } = vault(key)
    expect(mark('a', 'bc')).not.toBe(mark('ab', 'c'))
  })
})

test('a hash is the SHA-256 in hex', () => {
  expect(hashOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})

test.each([
  ['rope', 'rope', true],
  ['', '', true],
  ['rope', 'ropes', false],
  ['rope', 'Rope', false],
  ['rope', '', false],
])('%j and %j are the same text: %j', (a, b, same) => {
  expect(sameText(a, b)).toBe(same)
})

describe('the master key', () => {
  function folder() {
    const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-key-'))
    return { path: place, [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true }) }
  }

  test('is made at the first start, in a folder that need not exist, and is the same ever after', () => {
    using place = folder()
    const inside = path.join(place.path, 'deep', 'data')
    const made = masterKey(inside)
    expect(made).toHaveLength(32)
    expect(masterKey(inside)).toEqual(made)
    expect(readdirSync(inside)).toEqual(['master.key'])
  })

  test('is another one in every installation', () => {
    using one = folder()
    using other = folder()
    expect(masterKey(one.path)).not.toEqual(masterKey(other.path))
  })

  test('can be read by its owner alone, also when it was open to others before', () => {
    using place = folder()
    masterKey(place.path)
    const file = path.join(place.path, 'master.key')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    chmodSync(file, 0o644)
    masterKey(place.path)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test.each(['', 'not a key', 'ab'.repeat(31), 'ab'.repeat(33)])(
    'a damaged file is refused, not replaced: %j',
    (text) => {
      using place = folder()
      const file = path.join(place.path, 'master.key')
      writeFileSync(file, text)
      expect(() => masterKey(place.path)).toThrow('is not a master key')
      expect(readFileSync(file, 'utf8')).toBe(text)
    },
  )
})
