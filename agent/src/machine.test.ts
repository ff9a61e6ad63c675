// The mark of the machine next to the device's key: what a disk that was full, a power cut, a copied disk and
// a reset leave there.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { discardIdentity, isCopied, markFile } from './machine.ts'
import { rememberedNamespace, rememberNamespace } from './namespace.ts'

let key = ''
beforeEach(() => {
  key = path.join(mkdtempSync(path.join(os.tmpdir(), 'hawser-machine-')), 'device.key')
  writeFileSync(key, 'a key')
})
afterEach(() => rmSync(path.dirname(key), { recursive: true, force: true }))

const [here, elsewhere] = ['a'.repeat(64), 'b'.repeat(64)]

test('the first start marks the machine, and the mark of another one is noticed', () => {
  expect(isCopied(key, here)).toBe(false)
  expect(readFileSync(markFile(key), 'utf8')).toBe(`${here}\n`)
  expect(isCopied(key, here)).toBe(false)
  expect(isCopied(key, elsewhere)).toBe(true)
})

test.each(['', here.slice(0, 20), '\0'.repeat(65)])(
  'a mark that was not written whole is no other machine’s',
  (text) => {
    writeFileSync(markFile(key), text)
    expect(isCopied(key, here)).toBe(false)
    expect(readFileSync(markFile(key), 'utf8')).toBe(`${here}\n`)
    expect(readdirSync(path.dirname(key)).toSorted()).toEqual(['device.key', 'device.key.machine'])
  },
)

test('a device with another key presents its enrolment token again', () => {
  const enrolmentToken = `hwe_${'a'.repeat(32)}`
  rememberNamespace(
    { keyFile: key, enrolmentToken, settingsFile: '' },
    '00000000-0000-4000-8000-000000000000',
  )
  expect(rememberedNamespace(key, enrolmentToken)).toBeDefined()
  discardIdentity(key)
  expect(rememberedNamespace(key, enrolmentToken)).toBeUndefined()
})
