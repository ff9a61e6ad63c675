// The first line of either side (RFC 4253 section 4.2):
//   SSH-2.0-software comments CR LF        at most 255 bytes
// A server may say other lines before it. What comes after the line, in the same chunk or not, belongs to the
// packets and is handed on; what comes before it is bounded.
import { ProtocolError, Reason, SshError } from '../errors.ts'

const longestLine_bytes = 255
/** The most bytes in lines before a server's ident, which are ignored. */
const mostBefore_bytes = 8_192

export interface IdentReader {
  /** The ident and the bytes after it; undefined: more bytes are needed. */
  push(chunk: Buffer): { readonly ident: string; readonly rest: Buffer } | undefined
}

export function identReader(from: 'client' | 'server'): IdentReader {
  let held: Buffer = Buffer.alloc(0)
  let before_bytes = 0
  return {
    push(chunk) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      for (;;) {
        const end = held.subarray(0, longestLine_bytes + 1).indexOf(0x0a)
        if (end === -1) {
          // Long lines before the ident are cut in pieces; an ident is not.
          const possible = held.subarray(0, 4).equals(Buffer.from('SSH-').subarray(0, held.length))
          if (held.length > longestLine_bytes && (possible || from === 'client'))
            throw new ProtocolError('The ident is too long.')
          if (held.length <= longestLine_bytes) {
            if (from === 'client' && !possible) throw new ProtocolError('This is not SSH.')
            return undefined
          }
        }
        const line_bytes = end === -1 ? longestLine_bytes : end + 1
        const line = held
          .subarray(0, line_bytes)
          .toString('latin1')
          .replace(/\r?\n$/, '')
        held = held.subarray(line_bytes)
        if (line.startsWith('SSH-')) {
          const rest = held
          held = Buffer.alloc(0)
          return { ident: checked(line), rest }
        }
        before_bytes += line_bytes
        if (from === 'client' || before_bytes > mostBefore_bytes) throw new ProtocolError('This is not SSH.')
      }
    },
  }
}

function checked(line: string): string {
  // A server that also speaks version 1 sends 1.99 (section 5.1).
  if (!/^SSH-(?:2\.0|1\.99)-/.test(line))
    throw new SshError(Reason.versionNotSupported, 'Only version 2 of SSH is spoken here.')
  return line
}

/** `software`: without spaces or dashes. */
export function identOf(software: string): string {
  if (!/^[\x21-\x2c\x2e-\x7e]{1,200}(?: [\x20-\x7e]{0,40})?$/.test(software))
    throw new TypeError('The software name of an ident is malformed.')
  return `SSH-2.0-${software}`
}
