// OpenSSL called directly and by node:crypto: what the one seals the other opens, so that it does not matter
// which of them is there, and nobody gets memory that is not theirs.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { aes128Gcm, aes256Gcm } from './aes-gcm.ts'
import { chacha20Poly1305 } from './chacha20-poly1305.ts'
import { openSsl, tag_bytes } from './openssl.ts'

test('it is there in the Node that we bring', () => {
  expect(openSsl()).toBeDefined()
})

test('without node:ffi nothing is offered', () => {
  expect(elsewhere('process.stdout.write(String(openSsl()))')).toBe('undefined')
})

describe.each([aes128Gcm, aes256Gcm, chacha20Poly1305])('$name', (cipher) => {
  const keys = { key: randomBytes(cipher.key_bytes), iv: randomBytes(12), mac: Buffer.alloc(0) }
  const packets = [16, 24, 32, 1_008, 32_784, 131_088].map((length) => {
    const packet = randomBytes(4 + length)
    packet.writeUInt32BE(length)
    packet[4] = 4
    return packet
  })
  let there: { sealed: string[] }
  const inWords = (packet: Buffer): string => packet.toString('base64')

  beforeAll(() => {
    const input = {
      name: cipher.name,
      key: inWords(keys.key),
      iv: inWords(keys.iv),
      packets: packets.map(inWords),
    }
    there = JSON.parse(
      elsewhere(
        `
        const input = JSON.parse(readFileSync(0, 'utf8'))
        const cipher = [aes128Gcm, aes256Gcm, chacha20Poly1305].find(({ name }) => name === input.name)
        const bytes = (text) => Buffer.from(text, 'base64')
        const sealer = cipher.sealer({ key: bytes(input.key), iv: bytes(input.iv), mac: Buffer.alloc(0) })
        const sealed = input.packets.map((packet, sequence) => Buffer.concat(sealer.seal(bytes(packet), sequence, Buffer.allocUnsafe)).toString('base64'))
        process.stdout.write(JSON.stringify({ sealed }))`,
        JSON.stringify(input),
      ),
    ) as typeof there
  })

  test('both seal the same bytes', () => {
    const sealer = cipher.sealer(keys, undefined)
    expect(
      packets.map((packet, sequence) =>
        inWords(Buffer.concat(sealer.seal(packet, sequence, Buffer.allocUnsafe))),
      ),
    ).toEqual(there.sealed)
  })

  test('what node:crypto sealed is opened where it lies', () => {
    const opener = cipher.opener(keys, undefined)
    for (const [sequence, packet] of packets.entries()) {
      const wire = Buffer.from(there.sealed[sequence]!, 'base64')
      expect(opener.length(wire.subarray(0, 4), sequence)).toBe(packet.length - 4)
      const body = opener.open(wire, sequence)
      expect(body.equals(packet.subarray(4))).toBe(true)
      expect(body.buffer).toBe(wire.buffer)
    }
  })
})

describe('memory', () => {
  const [key, nonce, known] = [randomBytes(16), randomBytes(12), randomBytes(4)]

  test('that is too short for what is sealed is refused, and nothing is written', () => {
    const aead = openSsl()!.aead('aes-128-gcm', key, 'seal')
    const memory = Buffer.alloc(200)
    expect(() => aead.seal(nonce, known, randomBytes(100), memory.subarray(0, 100))).toThrow(RangeError)
    expect(() => aead.seal(nonce.subarray(1), known, randomBytes(100), memory.subarray(0, 116))).toThrow(
      RangeError,
    )
    expect(memory.equals(Buffer.alloc(200))).toBe(true)
  })

  test('that has no room for a tag is refused', () => {
    const aead = openSsl()!.aead('aes-128-gcm', key, 'open')
    expect(() => aead.open(nonce, known, randomBytes(tag_bytes - 1))).toThrow(RangeError)
  })

  test('that is too short for a key stream is refused, as are keys and nonces of another length', () => {
    const { keyStream, oneTimeMac, aead } = openSsl()!
    const stream = keyStream(randomBytes(32))
    expect(() => stream.begin(randomBytes(12))).toThrow(RangeError)
    stream.begin(randomBytes(16))
    expect(() => stream.run(randomBytes(10), Buffer.alloc(9))).toThrow(RangeError)
    expect(() => keyStream(randomBytes(16))).toThrow(RangeError)
    expect(() => aead('aes-256-gcm', randomBytes(16), 'seal')).toThrow(RangeError)
    expect(() => oneTimeMac(randomBytes(16), randomBytes(10))).toThrow(RangeError)
  })
})

/** Runs a script in a Node that has no node:ffi; what it printed. */
function elsewhere(script: string, input = ''): string {
  const names = {
    'aes128Gcm, aes256Gcm': './aes-gcm.ts',
    chacha20Poly1305: './chacha20-poly1305.ts',
    openSsl: './openssl.ts',
  }
  const imports = Object.entries(names).map(
    ([what, from]) => `import { ${what} } from ${JSON.stringify(new URL(from, import.meta.url))}`,
  )
  const whole = ["import { readFileSync } from 'node:fs'", ...imports, script].join('\n')
  return execFileSync(process.execPath, ['--no-experimental-ffi', '--input-type=module', '--eval', whole], {
    input,
    encoding: 'utf8',
  })
}
