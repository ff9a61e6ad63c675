// aes128-ctr, aes192-ctr and aes256-ctr (RFC 4344 section 4), always with an encrypt-then-MAC MAC. On the wire:
//   uint32 packet_length in clear
//   packet_length bytes under one key stream that runs on from packet to packet
//   the MAC of ciphers/mac.ts
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { macFailure, type Cipher } from './cipher.ts'
import { macOf } from './mac.ts'

function ctr(bits: 128 | 192 | 256): Cipher {
  const algorithm = `aes-${bits}-ctr`
  return {
    name: `aes${bits}-ctr`,
    key_bytes: bits / 8,
    iv_bytes: 16,
    needsMac: true,
    sealer(keys, mac) {
      const cipher = createCipheriv(algorithm, keys.key, keys.iv)
      return {
        block: 16,
        padsLength: false,
        seal(packet, sequence) {
          const length = Buffer.from(packet.subarray(0, 4))
          const body = cipher.update(packet.subarray(4))
          return [length, body, macOf(mac!, keys.mac, sequence, length, body)]
        },
      }
    },
    opener(keys, mac) {
      const decipher = createDecipheriv(algorithm, keys.key, keys.iv)
      const tag = mac!.bytes
      return {
        tag,
        block: 16,
        padsLength: false,
        length: (head) => head.readUInt32BE(0),
        open(packet, sequence) {
          const end = packet.length - tag
          if (!timingSafeEqual(macOf(mac!, keys.mac, sequence, packet.subarray(0, end)), packet.subarray(end))) {
            throw new SshError(Reason.macError, macFailure)
          }
          return decipher.update(packet.subarray(4, end))
        },
      }
    },
  }
}

export const aes128Ctr = ctr(128)
export const aes192Ctr = ctr(192)
export const aes256Ctr = ctr(256)
