// The server vouches for logins by public key. The gateway shows a key of its own, and the agent asks the
// server over HTTP to sign with that key that it makes this login. Anybody else who reaches the agent's SSH
// server has no key that the server signs for.
import { verify } from 'node:crypto'
import { promisify } from 'node:util'
import { fingerprintMd5, knownKey } from '@hawser/ssh'
import { call, keptConnections } from './call.ts'

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
  // People log in several times in a row, and over TLS a new connection costs more than the question.
  const connections = keptConnections()
  return async ({ user, blob }, signal) => {
    const { token, name } = device()
    const data = JSON.stringify({ Username: user, Namespace: name })
    const answer = await call({
      method: 'POST',
      url: `${server}/api/auth/ssh`,
      token,
      body: { fingerprint: fingerprintMd5(blob), data },
      signal,
      connections,
    })
    const { signature } = (answer.body ?? {}) as { signature?: unknown }
    if (answer.status !== 200 || typeof signature !== 'string') return false
    return isSignature(blob, Buffer.from(data), Buffer.from(signature, 'base64'))
  }
}

/** Servers sign with RSA and SHA-256, and with Ed25519 for agents that have a certified host key. */
async function isSignature(blob: Buffer, data: Buffer, signature: Buffer): Promise<boolean> {
  const { type, object } = knownKey(blob)
  if (type === 'ssh-ed25519') return verify(null, data, object, signature)
  return type === 'ssh-rsa' && promisify(verify)('sha256', data, object, signature)
}
