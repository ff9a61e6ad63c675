// Packets for both decompressors from a peer that is logged in and keeps to no rule: each becomes a payload
// that is no larger than packets may be, or ends the connection with a named reason. No context stays behind.
import { expect, test, vi } from 'vitest'
import { compressions } from '../../ssh/src/algorithms.ts'
import type { Compression, CompressionContext } from '../../ssh/src/compression/compression.ts'
import { contextMemory } from '../../ssh/src/compression/zlib-context.ts'
import { ProtocolError } from '../../ssh/src/errors.ts'
import { Message } from '../../ssh/src/messages.ts'
import { largestPacket_bytes } from '../../ssh/src/transport/packets.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { inputOf, messagesIn } from './bare-transport.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const context: CompressionContext = {
  mode: 'always',
  loggedIn: true,
  peerWants: false,
  isPlain: () => false,
  isSlow: () => false,
}
const data = (bytes: Uint8Array): Writer => message(Message.channelData, 512).uint32(0).string(bytes)
const written = (): Writer[] => [
  data(Buffer.alloc(400, 'a rope and another rope, ')),
  data(Buffer.alloc(400, 'another rope and a rope, ')),
  message(Message.globalRequest).string('keepalive@openssh.com').boolean(true),
  data(Buffer.from('q')),
  data(Buffer.alloc(300_000)),
]

/** Each message is packed and copied at once: the next one is packed in the same memory. */
function seedOf(method: Compression): Buffer {
  const compressor = method.compressor(context)
  const packets = written().map((one) => inputOf(compressor.pack(one)))
  compressor.free()
  return Buffer.concat(packets)
}

test.each([...compressions.values()])('any packets of $name', async (method) => {
  const before_bytes = contextMemory.held_bytes
  const { inputs, endings } = await fuzz({
    name: `compression-${method.name.replace(/@.*/, '')}`,
    seeds: [seedOf(method), seedOf(method).subarray(0, 200)],
    feed(input) {
      const decompressor = method.decompressor({ ...context })
      let [packets, most_bytes] = [0, 0]
      try {
        for (const packet of messagesIn(input)) {
          const payload = decompressor.unpack(packet, largestPacket_bytes)
          expect(payload.length).toBeLessThanOrEqual(largestPacket_bytes)
          packets += 1
          most_bytes = Math.max(most_bytes, payload.length)
        }
        return `${packets} packets of up to ${Math.ceil(Math.log2(most_bytes + 1))} bits of length`
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
        return `${packets} packets, then: ${(error as ProtocolError).message}`
      } finally {
        decompressor.free()
      }
    },
  })
  expect(contextMemory.held_bytes).toBe(before_bytes)
  expect(endings.size).toBeGreaterThan(5)
  console.log(`compression of ${method.name}: ${inputs} inputs, ${endings.size} endings`)
})
