// The messages of the transport that belong to no service (RFC 4253 section 11, RFC 8308, and PING of
// OpenSSH's PROTOCOL file, section 1.9), read and written.
//   DISCONNECT     uint32 reason, string description, string language
//   UNIMPLEMENTED  uint32 sequence number of the packet that was not understood
//   EXT_INFO       uint32 count, for each extension: string name, string value
//   PING, PONG     string
import { ConnectionEnded, ProtocolError, type SshError } from '../errors.ts'
import { signatureAlgorithms } from '../keys/signature.ts'
import { Message } from '../messages.ts'
import { message, Reader, type Writer } from '../wire.ts'

const longestPing_bytes = 4_096
const longestDescription_bytes = 512

export function writeDisconnect(error: SshError): Writer {
  return message(Message.disconnect, error.message.length + 16)
    .uint32(error.reason)
    .string(error.message)
    .string('')
}

export function readDisconnect(payload: Buffer): ConnectionEnded {
  const fields = new Reader(payload, 1)
  const reason = fields.uint32()
  return new ConnectionEnded('peer', reason, fields.string().toString('utf8', 0, longestDescription_bytes))
}

export function writeUnimplemented(sequence: number): Writer {
  return message(Message.unimplemented).uint32(sequence)
}

export function writePong(ping: Buffer): Writer {
  const echoed = new Reader(ping, 1).string()
  if (echoed.length > longestPing_bytes) throw new ProtocolError('A ping is too long.')
  return message(Message.pong, 4 + echoed.length).string(echoed)
}

/** RFC 8308 section 2.3. */
export function writeExtInfo(): Writer {
  return message(Message.extInfo, 300)
    .uint32(2)
    .string('server-sig-algs')
    .string(signatureAlgorithms.join(','))
    .string('ping@openssh.com')
    .string('0')
}

/** The algorithms that the server verifies (RFC 8308 section 3.1). */
export function readServerSigAlgs(payload: Buffer): readonly string[] | undefined {
  const fields = new Reader(payload, 1)
  let algorithms: string[] | undefined
  for (let count = fields.uint32(); count > 0; count -= 1) {
    const [name, value] = [fields.text(), fields.string()]
    if (name === 'server-sig-algs') algorithms = value.toString('latin1').split(',')
  }
  return algorithms
}

/** Messages of authentication, of the connection protocol (RFC 4250 section 4.1.1), or about a service. */
export function isServiceMessage(type: number): boolean {
  return (
    type === Message.serviceRequest ||
    type === Message.serviceAccept ||
    (type >= 50 && type <= Message.channelFailure)
  )
}
