// The host keys of the agent's SSH server: the device's own key, which is RSA and which every gateway knows,
// and an Ed25519 key with a certificate that the device's key has signed. A signature with the second costs a
// twentieth of one with the first. It is made with each start of the agent and never stored.
import type { KeyObject } from 'node:crypto'
import { hostCertificate } from '@hawser/contract/tunnel'
import { certifyHostKey, generatePrivateKey, privateKeyFrom, type PrivateKey } from '@hawser/ssh'

export async function hostKeysOf(device: KeyObject): Promise<readonly PrivateKey[]> {
  const own = privateKeyFrom(device)
  return [own, await certifyHostKey(generatePrivateKey('ed25519'), own, hostCertificate.principal)]
}
