// The server vouches for logins by public key. The gateway shows a key of its own, and the agent asks the
// server over HTTP to sign with that key that it makes this login. Anybody else who reaches the agent's SSH
// server has no key that the server signs for.
import { createPublicKey, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { fingerprintMd5 } from '@hawser/ssh'
import { call } from './call.ts'

export interface KeyLogin {
  readonly user: string
  /** The blob of the key that was shown. */
  readonly blob: Buffer
}

/** Asks the server whether it vouches for this login. */
export type ApproveKey = (login: KeyLogin, signal?: AbortSignal) => Promise<boolean>

/** The name is the one that the device had when it enrolled; the server does not insist on it. */
export function keyApproval(
  server: string,
  device: () => { readonly token: string; readonly name: string },
): ApproveKey {
  return async ({ user, blob }, signal) => {
    const { token, name } = device()
    const data = JSON.stringify({ Username: user, Namespace: name })
    const answer = await call({
      method: 'POST',
      url: `${server}/api/auth/ssh`,
      token,
      body: { fingerprint: fingerprintMd5(blob), data },
      signal,
    })
    const { signature } = (answer.body ?? {}) as { signature?: unknown }
    if (answer.status !== 200 || typeof signature !== 'string') return false
    const key = rsaKey(blob)
    return (
      key !== undefined &&
      promisify(verify)('sha256', Buffer.from(data), key, Buffer.from(signature, 'base64'))
    )
  }
}

/** string "ssh-rsa", mpint e, mpint n (RFC 4253 section 6.6); undefined for any other key. */
function rsaKey(blob: Buffer): ReturnType<typeof createPublicKey> | undefined {
  const fields: Buffer[] = []
  for (let at = 0; at + 4 <= blob.length;) {
    const length = blob.readUInt32BE(at)
    fields.push(blob.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  const [type, e, n] = fields
  if (type?.toString() !== 'ssh-rsa' || !e || !n) return undefined
  const number = (bytes: Buffer): string => (bytes[0] === 0 ? bytes.subarray(1) : bytes).toString('base64url')
  return createPublicKey({ key: { kty: 'RSA', e: number(e), n: number(n) }, format: 'jwk' })
}
