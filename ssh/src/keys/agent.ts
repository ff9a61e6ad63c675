// Keys that live in an agent, over its socket (draft-ietf-sshm-ssh-agent). Only what a client needs: list and
// sign.
//   every message        uint32 length, byte type, fields
//   11 list              → 12: uint32 count, then for each: string blob, string comment
//   13 sign              string blob, string data, uint32 flags (2: SHA-256, 4: SHA-512) → 14: string signature
//   5                    the agent would not
import { connect } from 'node:net'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import { certificateName, plainName } from './certified-key.ts'
import { algorithmsOf } from './signature.ts'
import type { Signer } from './signer.ts'

/** The agent could not be reached, or refused. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure'
}

/** A key that an agent holds. */
export interface AgentKey extends Signer {
  readonly comment: string
}

const listRequest = 11
const listAnswer = 12
const signRequest = 13
const signAnswer = 14
const mostKeys = 1_000
const longestAnswer_bytes = 256 * 1024
/** Signing may wait for a person. */
const wait_ms = 120_000

/** Over a connection of its own. */
async function ask(socketPath: string, request: Buffer, expected: number): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    let answer: Buffer = Buffer.alloc(0)
    const fail = (cause?: Error): void => {
      socket.destroy()
      reject(new AgentFailure('The agent did not answer.', { cause }))
    }
    socket.setTimeout(wait_ms, () => fail())
    socket.on('error', fail)
    socket.on('close', () => fail())
    socket.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      const length = answer.length < 4 ? 0 : answer.readUInt32BE(0)
      if (length > longestAnswer_bytes) return fail()
      if (answer.length < 5 || answer.length < 4 + length) return
      socket.destroy()
      if (answer[4] === expected) resolve(new Reader(answer, 5))
      else reject(new AgentFailure('The agent refused.'))
    })
    socket.write(new Writer(request.length + 4).string(request).bytes())
  })
}

/** Behind a socket, such as that of SSH_AUTH_SOCK. The keys sign in the agent. */
export async function agentKeys(socketPath: string): Promise<AgentKey[]> {
  try {
    const answer = await ask(socketPath, Buffer.of(listRequest), listAnswer)
    const count = answer.uint32()
    if (count > mostKeys) throw new ProtocolError('The agent has too many keys.')
    return Array.from({ length: count }, () =>
      agentKey(socketPath, Buffer.from(answer.string()), answer.text()),
    ).filter((key) => key.algorithms.length > 0)
  } catch (error) {
    if (error instanceof ProtocolError)
      throw new AgentFailure('The agent answered something odd.', { cause: error })
    throw error
  }
}

function agentKey(socketPath: string, blob: Buffer, comment: string): AgentKey {
  const type = new Reader(blob).text()
  const plain = plainName(type)
  const algorithms = plain === undefined ? algorithmsOf(type) : algorithmsOf(plain).map(certificateName)
  return {
    blob,
    comment,
    algorithms,
    askFirst: true,
    async sign(algorithm, data) {
      const flags = algorithm.startsWith('rsa-sha2-512') ? 4 : algorithm.startsWith('rsa-sha2-256') ? 2 : 0
      const request = new Writer(data.length + blob.length + 20)
        .byte(signRequest)
        .string(blob)
        .string(data)
        .uint32(flags)
      const answer = await ask(socketPath, request.bytes(), signAnswer)
      return Buffer.from(answer.string())
    },
  }
}
