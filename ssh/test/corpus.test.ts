// Recorded beginnings of real clients (corpus/*.hex: the ident and every packet in clear, up to NEWKEYS), and
// what becomes of the server when they are cut off, changed, repeated or taken out of order: it lets go with
// a named reason or waits within its limits, whatever comes, and it still serves the next one.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { servedLine } from './pairs.ts'

vi.setConfig({ testTimeout: 120_000 })

const folder = path.join(import.meta.dirname, 'corpus')
const recorded = readdirSync(folder).map((file) => {
  const bytes = Buffer.from(readFileSync(path.join(folder, file), 'utf8').replaceAll('\n', ''), 'hex')
  const ident = bytes.subarray(0, bytes.indexOf('\n') + 1)
  const packets: Buffer[] = []
  for (let at = ident.length; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32BE(at)
    packets.push(bytes.subarray(at, end))
    at = end
  }
  return { name: path.basename(file, '.hex'), bytes, ident, packets }
})

/** Sends these bytes to a server, then ends the line; returns the outcome. */
async function madeOf(...parts: readonly Buffer[]): Promise<string> {
  const { line, server } = servedLine({ handshake_ms: 5_000 })
  line.on('error', () => undefined)
  line.resume()
  for (const part of parts) line.write(part)
  line.end()
  return server.then(
    () => 'got in',
    (error: Error) => error.message,
  )
}

const unknown = ['Internal error.', 'got in']

test('there is a recording of every client that we know', () => {
  expect(recorded.map(({ name }) => name).toSorted()).toEqual([
    'asyncssh',
    'dropbear',
    'openssh',
    'paramiko',
    'putty',
  ])
  for (const { packets } of recorded) expect(packets.length).toBeGreaterThanOrEqual(2)
})

describe.each(recorded)('of $name', ({ bytes, ident, packets }) => {
  test('as it was: the exchange begins, and the connection is lost where the recording ends', async () => {
    expect(await madeOf(bytes)).toBe('The connection was lost.')
  })

  test('cut off anywhere', async () => {
    for (let end = 0; end < bytes.length; end += 7)
      expect(await madeOf(bytes.subarray(0, end))).toBe('The connection was lost.')
  })

  test('a byte at a time', async () => {
    expect(await madeOf(...Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1)))).toBe(
      'The connection was lost.',
    )
  })

  test.each([0x01, 0x80, 0xff])('with any byte changed by %i', async (mask) => {
    for (let at = 0; at < bytes.length; at += 5) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= mask
      expect(unknown).not.toContain(await madeOf(changed))
    }
  })

  test('with packets repeated, left out or in another order', async () => {
    const orders = packets.flatMap((_, index) => [
      [...packets.slice(0, index + 1), ...packets.slice(index)],
      packets.filter((__, other) => other !== index),
      [...packets.slice(index), ...packets.slice(0, index)],
    ])
    for (const order of [...orders, packets.toReversed()])
      expect(unknown).not.toContain(await madeOf(ident, ...order))
  })

  test('with lengths that lie', async () => {
    for (const length of [0, 1, 4, 5, 12, 35_001, 0x7fff_ffff, 0xffff_ffff]) {
      const lying = Buffer.from(bytes)
      lying.writeUInt32BE(length, ident.length)
      expect(unknown).not.toContain(await madeOf(lying))
    }
  })
})
