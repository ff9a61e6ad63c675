// A rogue device at the end of a tunnel: it says the bytes it likes, as a WebSocket client does, and reads
// when it likes.
import type { IncomingMessage } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { acceptBytes } from '@hawser/mux'

const request = {
  method: 'GET',
  headers: {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  },
} as unknown as IncomingMessage

export interface RogueDevice {
  /** Our end of its WebSocket. */
  readonly carrier: Duplex
  /** Its own end: what is not read here is not taken from the server. */
  readonly line: Duplex
  /** Resolves when the server has taken the bytes. */
  say(bytes: Buffer): Promise<void>
}

export function rogueDevice(): RogueDevice {
  const [line, socket] = duplexPair()
  line.on('error', () => undefined)
  const carrier = acceptBytes(request, socket, Buffer.alloc(0))
  return {
    carrier,
    line,
    say: (bytes) => new Promise((resolve) => void line.write(bytes, () => resolve())),
  }
}

/** Frames of WebSocket clients, with a mask of zeros. */
export const wsPing = Buffer.from('898000000000', 'hex')

export function wsBinary(payload: Buffer): Buffer {
  const head = Buffer.alloc(14)
  head[0] = 0x82
  head[1] = 0x80 | 127
  head.writeUInt32BE(payload.length, 6)
  return Buffer.concat([head, payload])
}

/** A frame of yamux: type, flags, stream, length. */
export function yamux(type: number, flags: number, id: number, length: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes[1] = type
  bytes.writeUInt16BE(flags, 2)
  bytes.writeUInt32BE(id, 4)
  bytes.writeUInt32BE(length, 8)
  return bytes
}

/** So many of them, in a buffer of its own. */
export function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.allocUnsafeSlow(bytes.length * count).fill(bytes)
}

export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}
