// aes128-gcm@openssh.com and aes256-gcm@openssh.com (RFC 5647 section 7, with the negotiation of OpenSSH's
// PROTOCOL file, section 1.6). On the wire:
//   uint32 packet_length in clear, authenticated as additional data
//   packet_length encrypted bytes, a multiple of 16
//   16 bytes of tag
// The nonce is 4 fixed bytes and a counter of 8, both from the derived IV; the counter goes up by one with
// each packet.
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { macFailure, ownCopy, type Cipher, type Room } from './cipher.ts'
import { openSsl, tag_bytes, type Aead, type Gcm } from './openssl.ts'

function gcm(name: string, algorithm: Gcm, key_bytes: number): Cipher {
  return {
    name,
    key_bytes,
    iv_bytes: 12,
    needsMac: false,
    sealer({ key, iv }) {
      const direct = openSsl()?.aead(algorithm, key, iv, 'seal')
      const nonce = ownCopy(iv)
      return {
        block: 16,
        padsLength: false,
        seal: (packet, _, room) =>
          direct ? sealAt(direct, packet, room) : sealed(algorithm, key, nonce, packet),
        free: () => direct?.free(),
      }
    },
    opener({ key, iv }) {
      const direct = openSsl()?.aead(algorithm, key, iv, 'open')
      const nonce = ownCopy(iv)
      return {
        tag: tag_bytes,
        block: 16,
        padsLength: false,
        length: (head) => head.readUInt32BE(0),
        open: (packet) => (direct ? openedAt(direct, packet) : opened(algorithm, key, nonce, packet)),
        free: () => direct?.free(),
      }
    },
  }
}

function sealAt(direct: Aead, packet: Buffer, room: Room): Buffer[] {
  const whole = room(packet.length + tag_bytes)
  direct.seal(packet, 4, whole)
  return [whole]
}

function openedAt(direct: Aead, packet: Buffer): Buffer {
  if (!direct.open(packet, 4)) throw new SshError(Reason.macError, macFailure)
  return packet.subarray(4, packet.length - tag_bytes)
}

function sealed(algorithm: Gcm, key: Buffer, nonce: Buffer, packet: Buffer): Buffer[] {
  const cipher = createCipheriv(algorithm, key, nonce)
  const length = Buffer.from(packet.subarray(0, 4))
  cipher.setAAD(length)
  const body = cipher.update(packet.subarray(4))
  // Returns nothing in a stream mode, but computes the tag.
  cipher.final()
  countUp(nonce)
  return [length, body, cipher.getAuthTag()]
}

function opened(algorithm: Gcm, key: Buffer, nonce: Buffer, packet: Buffer): Buffer {
  const end = packet.length - tag_bytes
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tag_bytes })
  decipher.setAAD(packet.subarray(0, 4))
  decipher.setAuthTag(packet.subarray(end))
  const body = decipher.update(packet.subarray(4, end))
  try {
    decipher.final()
  } catch (cause) {
    throw new SshError(Reason.macError, macFailure, { cause })
  }
  countUp(nonce)
  return body
}

function countUp(nonce: Buffer): void {
  for (let at = 11; at >= 4; at -= 1) {
    nonce[at] = (nonce[at]! + 1) & 0xff
    if (nonce[at] !== 0) return
  }
}

export const aes128Gcm = gcm('aes128-gcm@openssh.com', 'aes-128-gcm', 16)
export const aes256Gcm = gcm('aes256-gcm@openssh.com', 'aes-256-gcm', 32)
