// chacha20-poly1305@openssh.com (OpenSSH's PROTOCOL.chacha20poly1305; draft-ietf-sshm-chacha20-poly1305). On
// the wire:
//   4 bytes: packet_length under ChaCha20 with the second half of the key
//   packet_length bytes under ChaCha20 with the first half, from block 1 on
//   16 bytes: Poly1305 over all of the above, its key being the first 32 bytes of block 0
// The nonce of each packet is its sequence number as a uint64. This is not the AEAD of RFC 8439, whose tag
// covers other bytes, so that the two primitives are put together here.
import * as crypto from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { macFailure, type Cipher, type Room } from './cipher.ts'
import { openSsl, tag_bytes } from './openssl.ts'

/** Newer than the type declarations of Node that we have. */
type CreateMac = (
  algorithm: 'poly1305',
  key: Uint8Array,
) => { update(bytes: Uint8Array): void; final(): Buffer }
const createMac = (crypto as unknown as { readonly createMac?: CreateMac }).createMac

const zeros = Buffer.alloc(64)

function poly1305(key: Buffer, ...parts: Buffer[]): Buffer {
  const mac = createMac!('poly1305', key)
  for (const part of parts) mac.update(part)
  return mac.final()
}

/** OpenSSL's nonce: the block counter, little-endian, and then ours. */
function nonceOf(sequence: number): Buffer {
  const nonce = Buffer.alloc(16)
  nonce.writeUInt32BE(sequence, 12)
  return nonce
}

function chacha20(key: Buffer, nonce: Buffer): crypto.Cipheriv {
  return crypto.createCipheriv('chacha20', key, nonce)
}

/** With contexts that live as long as the keys, and memory only for the sealed bytes. */
function directly(mainKey: Buffer, headerKey: Buffer) {
  const library = openSsl()
  if (!library) return undefined
  const { oneTimeMac } = library
  const [main, header] = [library.keyStream(mainKey), library.keyStream(headerKey)]
  const [nonce, length, block] = [Buffer.alloc(16), Buffer.alloc(4), Buffer.alloc(64)]
  const macKey = block.subarray(0, 32)
  const begin = (sequence: number): void => {
    nonce.writeUInt32BE(sequence, 12)
    main.begin(nonce)
    main.run(zeros, block)
  }
  return {
    seal(packet: Buffer, sequence: number, room: Room): Buffer {
      const whole = room(packet.length + tag_bytes)
      begin(sequence)
      main.run(packet.subarray(4), whole.subarray(4))
      header.begin(nonce)
      header.run(packet.subarray(0, 4), whole)
      oneTimeMac(macKey, whole.subarray(0, packet.length)).copy(whole, packet.length)
      return whole
    },
    length(head: Buffer, sequence: number): number {
      nonce.writeUInt32BE(sequence, 12)
      header.begin(nonce)
      header.run(head, length)
      return length.readUInt32BE(0)
    },
    open(packet: Buffer, sequence: number): Buffer {
      const end = packet.length - tag_bytes
      begin(sequence)
      if (!crypto.timingSafeEqual(oneTimeMac(macKey, packet.subarray(0, end)), packet.subarray(end)))
        throw new SshError(Reason.macError, macFailure)
      const body = packet.subarray(4, end)
      main.run(body, body)
      return body
    },
    free(): void {
      main.free()
      header.free()
    },
  }
}

export const chacha20Poly1305: Cipher = {
  name: 'chacha20-poly1305@openssh.com',
  key_bytes: 64,
  iv_bytes: 0,
  needsMac: false,
  sealer({ key }) {
    const [main, header] = [key.subarray(0, 32), key.subarray(32)]
    const direct = directly(main, header)
    return {
      block: 8,
      padsLength: false,
      seal(packet, sequence, room) {
        if (direct) return [direct.seal(packet, sequence, room)]
        const nonce = nonceOf(sequence)
        const length = chacha20(header, nonce).update(packet.subarray(0, 4))
        const stream = chacha20(main, nonce)
        const macKey = stream.update(zeros).subarray(0, 32)
        const body = stream.update(packet.subarray(4))
        return [length, body, poly1305(macKey, length, body)]
      },
      free: () => direct?.free(),
    }
  },
  opener({ key }) {
    const [main, header] = [key.subarray(0, 32), key.subarray(32)]
    const direct = directly(main, header)
    return {
      tag: tag_bytes,
      block: 8,
      padsLength: false,
      length: (head, sequence) =>
        direct?.length(head, sequence) ?? chacha20(header, nonceOf(sequence)).update(head).readUInt32BE(0),
      open(packet, sequence) {
        if (direct) return direct.open(packet, sequence)
        const end = packet.length - tag_bytes
        const stream = chacha20(main, nonceOf(sequence))
        const macKey = stream.update(zeros).subarray(0, 32)
        if (!crypto.timingSafeEqual(poly1305(macKey, packet.subarray(0, end)), packet.subarray(end))) {
          throw new SshError(Reason.macError, macFailure)
        }
        return stream.update(packet.subarray(4, end))
      },
      free: () => direct?.free(),
    }
  },
}

/** Older Nodes have no Poly1305; there the cipher is not offered. */
export const hasPoly1305 = createMac !== undefined
