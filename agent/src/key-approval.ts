// The server vouches for logins by public key. The gateway offers a key of its own with an approval: a
// certificate by the server's pinned key (server-key.ts), for this user on this device in this SSH
// connection. It needs no clock: the session id is new with every connection, and nobody could have signed it
// before. Without a valid approval the agent asks the server over HTTP to sign with the key of this login.
// Nobody else who reaches the agent's SSH server can do either.
import { verify } from 'node:crypto'
import { promisify } from 'node:util'
import { approval } from '@hawser/contract/tunnel'
import { fingerprintMd5, judgeCertificate, knownKey, type Certificate } from '@hawser/ssh'
import { call, keptConnections } from './call.ts'

export interface KeyLogin {
  readonly user: string
  /** The blob of the offered key. */
  readonly blob: Buffer
  readonly certificate?: Certificate | undefined
  /** Identifies the SSH connection (RFC 4253 section 7.2). */
  readonly sessionId: Buffer
}

/** Whether the server vouches for this login. */
export type ApproveKey = (login: KeyLogin, signal?: AbortSignal) => Promise<boolean>

/**
 * The name is that of the enrolment; the server does not insist on it. `pinned`: the blob of the server's key
 * for approvals, if the agent has one.
 */
export function keyApproval(
  server: string,
  device: () => { readonly uid: string; readonly token: string; readonly name: string },
  pinned: () => Buffer | undefined = () => undefined,
): ApproveKey {
  // People log in several times in a row, and over TLS a new connection costs more than the question.
  const connections = keptConnections()
  return async (login, signal) => {
    const { uid, token, name } = device()
    if (isApproved(login, uid, pinned())) return true
    const { user, blob } = login
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

function isApproved(
  { user, certificate, sessionId }: KeyLogin,
  uid: string,
  authority: Buffer | undefined,
): boolean {
  if (!certificate || !authority) return false
  const judged = judgeCertificate(certificate, {
    kind: 'user',
    authorities: [authority],
    principal: user,
    now: undefined,
    criticalOptions: new Map([
      [approval.device, Buffer.from(uid)],
      [approval.session, sessionId],
    ]),
  })
  // The agent cannot force a command, and approvals have none.
  return judged.allowed && judged.forceCommand === undefined
}

/** Servers sign with RSA and SHA-256, and with Ed25519 for agents that have a certified host key. */
async function isSignature(blob: Buffer, data: Buffer, signature: Buffer): Promise<boolean> {
  const { type, object } = knownKey(blob)
  if (type === 'ssh-ed25519') return verify(null, data, object, signature)
  return type === 'ssh-rsa' && promisify(verify)('sha256', data, object, signature)
}
