// The PROXY protocol, versions 1 and 2: before the first byte a load balancer says where the connection comes
// from. Only headers of trusted proxies are read, because anyone else could forge an address. The header is
// optional: without one the connection comes from the proxy itself. The bytes after the header stay on the
// socket.
//   v1  text, up to 107 bytes: "PROXY TCP4 <source> <destination> <source port> <destination port>\r\n", or UNKNOWN
//   v2  12 bytes signature, 1 byte 0x20 (LOCAL) or 0x21 (PROXY), 1 byte family and protocol, 2 bytes length of the
//       rest: source and destination address, source and destination port, then extensions, which are ignored
import { isIP, type Socket } from 'node:net'
import { plainAddress } from '../../kit/address.ts'
import type { Origin } from '../channels/logged-in.ts'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const longestV1 = 107
/** Addresses and a few extras; the format allows more than anybody sends. */
const longestV2 = 536
/** A proxy sends its header at once; a client may wait for the server's identification first. */
const patience_ms = 1_000

export class BadHeader extends Error {
  override readonly name = 'BadHeader'
}

/** The origin that the header names; undefined: there is no header, or it names none. */
export function readProxyHeader(socket: Socket): Promise<Origin | undefined> {
  return new Promise((resolve, reject) => {
    let got: Buffer = Buffer.alloc(0)
    const stop = (): void => {
      clearTimeout(timer)
      socket.off('data', onData).off('close', onClose)
      socket.pause()
    }
    const done = (origin: Origin | undefined, used: number): void => {
      stop()
      if (used < got.length) socket.unshift(got.subarray(used))
      resolve(origin)
    }
    const onClose = (): void => {
      stop()
      reject(new BadHeader('The connection ended before its first byte.'))
    }
    const onData = (chunk: Buffer): void => {
      got = got.length === 0 ? chunk : Buffer.concat([got, chunk])
      try {
        const read = parse(got)
        if (read) done(read.origin, read.used)
      } catch (error) {
        stop()
        reject(error)
      }
    }
    const timer = setTimeout(() => (got.length === 0 ? done(undefined, 0) : onClose()), patience_ms)
    socket.on('data', onData).on('close', onClose)
  })
}

/** Undefined while more bytes are needed. */
export function parse(bytes: Buffer): { origin: Origin | undefined; used: number } | undefined {
  const begins = (text: Buffer): boolean =>
    bytes.subarray(0, text.length).equals(text.subarray(0, Math.min(bytes.length, text.length)))
  if (begins(signature)) return parseV2(bytes)
  if (begins(Buffer.from('PROXY '))) return parseV1(bytes)
  return { origin: undefined, used: 0 }
}

function parseV1(bytes: Buffer): ReturnType<typeof parse> {
  const end = bytes.subarray(0, longestV1).indexOf('\r\n')
  if (end < 0) {
    if (bytes.length >= longestV1) throw new BadHeader('The PROXY line does not end.')
    return undefined
  }
  const [, family, address = '', , port = ''] = bytes.subarray(0, end).toString('latin1').split(' ')
  if (family === 'UNKNOWN') return { origin: undefined, used: end + 2 }
  if (isIP(address) !== (family === 'TCP4' ? 4 : family === 'TCP6' ? 6 : -1) || !/^\d{1,5}$/.test(port))
    throw new BadHeader('The PROXY line is malformed.')
  return { origin: { address: plainAddress(address), port: Number(port) }, used: end + 2 }
}

function parseV2(bytes: Buffer): ReturnType<typeof parse> {
  if (bytes.length < 16) return undefined
  const [command, family, length] = [bytes[12]!, bytes[13]!, bytes.readUInt16BE(14)]
  if (command >> 4 !== 2 || length > longestV2) throw new BadHeader('The PROXY header is malformed.')
  const used = 16 + length
  if (bytes.length < used) return undefined
  // LOCAL: the proxy connects for itself, for example for a health check.
  if ((command & 0xf) === 0) return { origin: undefined, used }
  const body = bytes.subarray(16, used)
  if (family === 0x11 && length >= 12)
    return { origin: { address: [...body.subarray(0, 4)].join('.'), port: body.readUInt16BE(8) }, used }
  if (family === 0x21 && length >= 36) {
    const groups = Array.from({ length: 8 }, (_, index) => body.readUInt16BE(index * 2).toString(16))
    return { origin: { address: plainAddress(groups.join(':')), port: body.readUInt16BE(32) }, used }
  }
  if (family === 0) return { origin: undefined, used }
  throw new BadHeader('The PROXY header names a family that is no use here.')
}
