// How a server tells its clients of all its host keys, so that they can learn a new one before an old one goes (OpenSSH's
// PROTOCOL file, section 2.5).
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

/** Undefined when a key is asked about that is not ours. The algorithm is that of the exchange where the key can do it. */
export function proveHostKeys(keys: readonly PrivateKey[], sessionId: Buffer, algorithm: string, payload: Buffer): Buffer | undefined {
  const reader = new Reader(payload)
  const answer = new Writer(1_024)
  while (!reader.done) {
    const blob = reader.string()
    const key = keys.find((candidate) => candidate.blob.equals(blob))
    if (!key) return undefined
    const signed = new Writer(1_024).string(proveName).string(sessionId).string(blob).bytes()
    answer.string(key.sign(key.algorithms.includes(algorithm) ? algorithm : key.algorithms[0]!, signed))
  }
  return answer.bytes()
}
