// Proves that a tunnel leads to the right device by a key exchange with its agent's SSH server, whose
// signature needs the device's private key. The connection ends there, without a login.
import { createPublicKey, randomBytes } from 'node:crypto'
import { blobOf, openClient, Reason, SshError } from '@hawser/ssh'
import type { Tunnel } from '../../tunnel/tunnel.ts'

export async function probe(tunnel: Tunnel, signal: AbortSignal): Promise<boolean> {
  const expected = blobOf(createPublicKey(tunnel.device.public_key))
  const stream = await tunnel.openSsh(randomBytes(32).toString('hex'), signal)
  let same = false
  try {
    const { transport } = await openClient(stream, {
      speakSecond: true,
      signal,
      checkHostKey: (key) => (same = key.equals(expected)),
    })
    transport.end(new SshError(Reason.byApplication, 'That was all.'))
    await transport.ended
  } finally {
    stream.destroy()
  }
  return same
}
