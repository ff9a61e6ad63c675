import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import { hangUpText, proofText } from '@hawser/contract/tunnel'
import { blobOf } from '@hawser/ssh'
import { inTime, isOrder } from './hang-up.ts'

const [server, stranger] = [0, 1].map(() => generateKeyPairSync('ed25519'))
const pinned = blobOf(server!.privateKey)
const asked = { uid: 'crane', nonce: 'ab'.repeat(16) }
const signed = (text: string, key: KeyObject = server!.privateKey): string =>
  sign(null, Buffer.from(text), key).toString('base64')

test('an order is the server’s signature over this device and this request', async () => {
  expect(await isOrder(signed(hangUpText(asked.uid, asked.nonce)), asked, pinned)).toBe(true)
})

test.each([
  ['of a stranger', signed(hangUpText(asked.uid, asked.nonce), stranger!.privateKey)],
  ['for another request', signed(hangUpText(asked.uid, 'cd'.repeat(16)))],
  ['for another device', signed(hangUpText('buoy', asked.nonce))],
  ['over a text of another use', signed(proofText(asked.uid, asked.nonce))],
  ['without a signature', ''],
  ['that is no text', ['one', 'two']],
  ['that is absent', undefined],
  ['of other bytes', Buffer.alloc(64, 7).toString('base64')],
])('an order %s counts for nothing', async (_, order) => {
  expect(await isOrder(order, asked, pinned)).toBe(false)
})

test('without a pinned key, or with one that is no key, no order counts', async () => {
  const order = signed(hangUpText(asked.uid, asked.nonce))
  expect(await isOrder(order, asked, undefined)).toBe(false)
  expect(await isOrder(order, asked, Buffer.from('no key'))).toBe(false)
})

test('a program that does not end holds the answer up for a while only', async () => {
  await inTime([Promise.resolve(), new Promise(() => undefined)])
  await inTime([])
})
