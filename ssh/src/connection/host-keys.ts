// How a server tells its clients of all its host keys, so that they can learn a new one before an old one
// goes (OpenSSH's PROTOCOL file, section 2.5).
//   hostkeys-00@openssh.com        string key, for each key
//   hostkeys-prove-00@openssh.com  the same from the client; the answer is for each: string signature over
//                                  string "hostkeys-prove-00@openssh.com", string session id, string key
import type { PrivateKey } from '../keys/private-key.ts'
import { Reader, Writer } from '../wire.ts'

export const hostKeysName = 'hostkeys-00@openssh.com'
export const proveName = 'hostkeys-prove-00@openssh.com'

export function writeHostKeys(keys: readonly PrivateKey[]): Buffer {
  const writer = new Writer(1_024)
  for (const key of keys) writer.string(key.blob)
  return writer.bytes()
}

/** Clients ask once, about unknown keys; those who ask more often want us to compute. */
const mostAsked = 4

/** Undefined, without a signature: a key is not ours, or named twice, or too many were named before. */
export type HostKeyProofs = (payload: Buffer, algorithm: string) => Promise<Buffer | undefined>

/** For one connection. Keys sign with the algorithm of the exchange where they can. */
export function hostKeyProofs(keys: readonly PrivateKey[], sessionId: Buffer): HostKeyProofs {
  let asked = 0
  return async (payload, algorithm) => {
    asked += 1
    const wanted = asked > mostAsked ? undefined : keysIn(payload, keys)
    if (!wanted) return undefined
    const answer = new Writer(1_024)
    for (const key of wanted) {
      const signed = new Writer(1_024).string(proveName).string(sessionId).string(key.blob).bytes()
      answer.string(
        await key.sign(key.algorithms.includes(algorithm) ? algorithm : key.algorithms[0]!, signed),
      )
    }
    return answer.bytes()
  }
}

/** Each of our keys at most once, which bounds the work, however long the message is. */
function keysIn(payload: Buffer, keys: readonly PrivateKey[]): ReadonlySet<PrivateKey> | undefined {
  const reader = new Reader(payload)
  const found = new Set<PrivateKey>()
  while (!reader.done) {
    const blob = reader.string()
    const key = keys.find((candidate) => candidate.blob.equals(blob))
    if (!key || found.has(key)) return undefined
    found.add(key)
  }
  return found
}
