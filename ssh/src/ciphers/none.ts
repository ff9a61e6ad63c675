// No cipher, for the packets before the first keys (RFC 4253 section 6): padded to eight bytes, nothing
// authenticated.
import { nothingToFree, type Opener, type Sealer } from './cipher.ts'

export const plainSealer: Sealer = {
  block: 8,
  padsLength: true,
  seal: (packet) => [packet],
  free: nothingToFree,
}

export const plainOpener: Opener = {
  tag: 0,
  block: 8,
  padsLength: true,
  length: (head) => head.readUInt32BE(0),
  open: (packet) => packet.subarray(4),
  free: nothingToFree,
}
