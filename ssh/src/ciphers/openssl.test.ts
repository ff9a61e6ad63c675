// OpenSSL called directly and by node:crypto: what the one seals the other opens, so that it does not matter
// which of them is there, and nobody gets memory that is not theirs.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { duplexPair } from 'node:stream'
import { beforeAll, describe, expect, test } from 'vitest'
import { pair, servedLine } from '../../test/pairs.ts'
import { allAlgorithms, serverAlgorithms } from '../algorithms.ts'
import { Message } from '../messages.ts'
import { openTransport } from '../transport/transport.ts'
import { aes128Gcm, aes256Gcm } from './aes-gcm.ts'
import { chacha20Poly1305 } from './chacha20-poly1305.ts'
import { cipherImplementation, contextsInUse, openSsl, tag_bytes } from './openssl.ts'

test('it is there in the Node that we bring', () => {
  expect(openSsl()).toBeDefined()
  expect(cipherImplementation()).toEqual({ name: 'openssl' })
})

test('without node:ffi nothing is offered, and the reason is given', () => {
  expect(elsewhere('process.stdout.write(String(openSsl()))')).toBe('undefined')
  expect(JSON.parse(elsewhere('process.stdout.write(JSON.stringify(cipherImplementation()))'))).toEqual({
    name: 'node:crypto',
    reason: 'this Node has no node:ffi, or it is switched off',
  })
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
  const [key, iv] = [randomBytes(16), randomBytes(12)]

  test('that is too short for what is sealed is refused, and nothing is written', () => {
    const aead = openSsl()!.aead('aes-128-gcm', key, iv, 'seal')
    const memory = Buffer.alloc(200)
    expect(() => aead.seal(randomBytes(104), 4, memory.subarray(0, 104))).toThrow(RangeError)
    expect(() => aead.seal(randomBytes(3), 4, memory.subarray(0, 19))).toThrow(RangeError)
    expect(memory.equals(Buffer.alloc(200))).toBe(true)
  })

  test('that has no room for a tag is refused', () => {
    const aead = openSsl()!.aead('aes-128-gcm', key, iv, 'open')
    expect(() => aead.open(randomBytes(4 + tag_bytes - 1), 4)).toThrow(RangeError)
  })

  test('that is too short for a key stream is refused, as are keys and nonces of another length', () => {
    const { keyStream, oneTimeMac, aead } = openSsl()!
    const stream = keyStream(randomBytes(32))
    expect(() => stream.begin(randomBytes(12))).toThrow(RangeError)
    stream.begin(randomBytes(16))
    expect(() => stream.run(randomBytes(10), Buffer.alloc(9))).toThrow(RangeError)
    expect(() => keyStream(randomBytes(16))).toThrow(RangeError)
    expect(() => aead('aes-256-gcm', randomBytes(16), iv, 'seal')).toThrow(RangeError)
    expect(() => aead('aes-128-gcm', key, randomBytes(11), 'seal')).toThrow(RangeError)
    expect(() => oneTimeMac(randomBytes(16), randomBytes(10))).toThrow(RangeError)
  })
})

describe('contexts', () => {
  test('are freed once, and not used after that', () => {
    const before = contextsInUse()
    const { aead, keyStream } = openSsl()!
    const sealer = aead('aes-128-gcm', randomBytes(16), randomBytes(12), 'seal')
    const stream = keyStream(randomBytes(32))
    expect(contextsInUse()).toBe(before + 2)
    for (const freed of [sealer, sealer, stream, stream]) freed.free()
    expect(contextsInUse()).toBe(before)
    expect(() => sealer.seal(randomBytes(14), 4, Buffer.alloc(30))).toThrow('freed')
    expect(() => stream.begin(randomBytes(16))).toThrow('freed')
  })

  test.each(['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com'])(
    'of %s are freed when keys are replaced and when the connection ends',
    async (cipher) => {
      const before = contextsInUse()
      const algorithms = { ...serverAlgorithms, ciphers: [cipher] }
      const { client, server } = await pair({ algorithms })
      const keyed = contextsInUse()
      expect(keyed).toBeGreaterThan(before)
      for (let round = 0; round < 3; round += 1) {
        client.rekey()
        await client.request('after the new keys')
      }
      await expect.poll(contextsInUse).toBe(keyed)
      await client.end()
      await server.ended
      expect(contextsInUse()).toBe(before)
    },
  )

  test('of keys that the peer has not confirmed are freed with the connection', async () => {
    const before = contextsInUse()
    const { line, server } = servedLine()
    const [near, far] = duplexPair()
    // The client's NEWKEYS never arrives, so that the server's new keys to read with are never used.
    const withheld = Promise.withResolvers<void>()
    far.on('data', (chunk: Buffer) => (chunk[5] === Message.newKeys ? withheld.resolve() : line.write(chunk)))
    line.on('data', (chunk: Buffer) => far.write(chunk))
    const transport = openTransport(near, {
      role: 'client',
      software: 'Test',
      algorithms: allAlgorithms,
      hostKeys: [],
      rekey_bytes: 2 ** 30,
      rekey_ms: 2 ** 30,
      speakSecond: false,
      answerKexInit: false,
    })
    await withheld.promise
    expect(contextsInUse()).toBeGreaterThan(before)
    near.destroy()
    line.destroy()
    await transport.ended
    await expect(server).rejects.toThrow()
    expect(contextsInUse()).toBe(before)
  })
})

/** Returns the output of a script in a Node without node:ffi. */
function elsewhere(script: string, input = ''): string {
  const names = {
    'aes128Gcm, aes256Gcm': './aes-gcm.ts',
    chacha20Poly1305: './chacha20-poly1305.ts',
    'openSsl, cipherImplementation': './openssl.ts',
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
