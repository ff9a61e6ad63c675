// The data that a public key signs to log in (RFC 4252 section 7); the same bytes on both sides.
//   string session id, byte 50, string user, string service, string "publickey", boolean true, string algorithm, string key
import { Message } from '../messages.ts'
import { Writer } from '../wire.ts'

export const connectionService = 'ssh-connection'
export const authService = 'ssh-userauth'

/** Signed by a key to log in as the user, in the session with this id. */
export function proofData(sessionId: Buffer, user: string, algorithm: string, blob: Buffer): Buffer {
  return new Writer(blob.length + 256)
    .string(sessionId)
    .byte(Message.authRequest)
    .string(user)
    .string(connectionService)
    .string('publickey')
    .boolean(true)
    .string(algorithm)
    .string(blob)
    .bytes()
}
