// The requests of a session channel (RFC 4254 section 6, OpenSSH's PROTOCOL file), read into one union and
// written from it.
//   pty-req        string terminal, uint32 columns, rows, width, height (pixels), string modes (section 8)
//   x11-req        boolean single, string protocol, string cookie, uint32 screen
//   env            string name, string value
//   shell          nothing      exec  string command      subsystem  string name
//   window-change  uint32 columns, rows, width, height
//   signal         string name without SIG               break  uint32 milliseconds
//   exit-status    uint32       exit-signal  string name, boolean core dumped, string message, string language
// Any other name is kept as it came: it can be passed on, or refused. A name of these with a body that is not
// as above, or with more behind it, is malformed, and of no use to anybody: what cannot be read here could
// mean anything elsewhere.
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'

/** The size of a terminal. */
export interface Size {
  readonly columns: number
  readonly rows: number
  /** In pixels, 0 where unknown. */
  readonly width: number
  readonly height: number
}

/** A terminal that a client asks for (RFC 4254 section 6.2). */
export interface Pty extends Size {
  readonly terminal: string
  /** Opcodes of RFC 4254 section 8 and their values. */
  readonly modes: ReadonlyMap<number, number>
}

/** The program of a session (RFC 4254 section 6.5). */
export type Program =
  | { readonly type: 'shell' }
  | { readonly type: 'exec'; readonly command: string }
  | { readonly type: 'subsystem'; readonly name: string }

/** How a program ended (RFC 4254 section 6.10). */
export type Exit =
  | { readonly type: 'exit-status'; readonly status: number }
  | {
      readonly type: 'exit-signal'
      readonly signal: string
      readonly coreDumped: boolean
      readonly message: string
    }

/** Requests of a session channel, by name. */
export type SessionRequest =
  | Program
  | Exit
  | { readonly type: 'pty-req'; readonly pty: Pty }
  | {
      readonly type: 'x11-req'
      readonly single: boolean
      readonly protocol: string
      readonly cookie: string
      readonly screen: number
    }
  | { readonly type: 'env'; readonly name: string; readonly value: string }
  | { readonly type: 'window-change'; readonly size: Size }
  | { readonly type: 'signal'; readonly signal: string }
  | { readonly type: 'break'; readonly duration_ms: number }
  | { readonly type: 'auth-agent-req@openssh.com' }
  | { readonly type: 'other'; readonly name: string; readonly payload: Buffer }
  /** To be refused. */
  | { readonly type: 'malformed'; readonly name: string; readonly payload: Buffer }

const endOfModes = 0
/** Higher opcodes have no known length. */
const unknownModes = 160

/** Never throws: see `other` and `malformed`. */
export function readRequest(name: string, payload: Buffer): SessionRequest {
  try {
    const reader = new Reader(payload)
    const request = readKnown(name, reader)
    if (!request) return { type: 'other', name, payload }
    reader.end()
    return request
  } catch (error) {
    if (error instanceof ProtocolError) return { type: 'malformed', name, payload }
    throw error
  }
}

/** Undefined: an unknown name. */
function readKnown(name: string, reader: Reader): SessionRequest | undefined {
  switch (name) {
    case 'shell':
    case 'auth-agent-req@openssh.com':
      return { type: name }
    case 'exec':
      return { type: name, command: reader.text(largestCommand) }
    case 'subsystem':
      return { type: name, name: reader.text() }
    case 'pty-req': {
      const terminal = reader.text()
      return { type: name, pty: { terminal, ...readSize(reader), modes: readModes(reader.string()) } }
    }
    case 'x11-req':
      return {
        type: name,
        single: reader.boolean(),
        protocol: reader.text(),
        cookie: reader.text(),
        screen: reader.uint32(),
      }
    case 'env':
      return { type: name, name: reader.text(), value: reader.text() }
    case 'window-change':
      return { type: name, size: readSize(reader) }
    case 'signal':
      return { type: name, signal: reader.text(64) }
    case 'break':
      return { type: name, duration_ms: reader.uint32() }
    case 'exit-status':
      return { type: name, status: reader.uint32() }
    case 'exit-signal': {
      const exit = {
        type: name,
        signal: reader.text(64),
        coreDumped: reader.boolean(),
        message: reader.text(),
      } as const
      reader.string()
      return exit
    }
    default:
      return undefined
  }
}

/** Commands may carry whole scripts. */
const largestCommand = 256 * 1024

function readSize(reader: Reader): Size {
  return { columns: reader.uint32(), rows: reader.uint32(), width: reader.uint32(), height: reader.uint32() }
}

function readModes(bytes: Buffer): Map<number, number> {
  const modes = new Map<number, number>()
  const reader = new Reader(bytes)
  while (!reader.done) {
    const opcode = reader.byte()
    if (opcode === endOfModes || opcode >= unknownModes) break
    modes.set(opcode, reader.uint32())
  }
  return modes
}

/** The name and the payload of a request. */
export function writeRequest(request: SessionRequest): { readonly name: string; readonly payload: Buffer } {
  const writer = new Writer()
  const size = ({ columns, rows, width, height }: Size): Writer =>
    writer.uint32(columns).uint32(rows).uint32(width).uint32(height)
  switch (request.type) {
    case 'shell':
    case 'auth-agent-req@openssh.com':
      break
    case 'exec':
      writer.string(request.command)
      break
    case 'subsystem':
      writer.string(request.name)
      break
    case 'pty-req': {
      const modes = new Writer()
      for (const [opcode, value] of request.pty.modes) modes.byte(opcode).uint32(value)
      writer.string(request.pty.terminal)
      size(request.pty).string(modes.byte(endOfModes).bytes())
      break
    }
    case 'x11-req':
      writer.boolean(request.single).string(request.protocol).string(request.cookie).uint32(request.screen)
      break
    case 'env':
      writer.string(request.name).string(request.value)
      break
    case 'window-change':
      size(request.size)
      break
    case 'signal':
      writer.string(request.signal)
      break
    case 'break':
      writer.uint32(request.duration_ms)
      break
    case 'exit-status':
      writer.uint32(request.status >>> 0)
      break
    case 'exit-signal':
      writer.string(request.signal).boolean(request.coreDumped).string(request.message).string('')
      break
    case 'other':
    case 'malformed':
      return { name: request.name, payload: request.payload }
  }
  return { name: request.type, payload: writer.bytes() }
}
