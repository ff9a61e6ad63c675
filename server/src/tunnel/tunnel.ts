// A tunnel: the connection that a device's agent made to us, on which we open streams to the device. Both
// kinds of tunnel look like this from outside.
import type { Duplex } from 'node:stream'
import { createPublicKey, verify } from 'node:crypto'
import { proofText } from '@hawser/contract/tunnel'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** PEM. */
  readonly public_key: string
  readonly mustProve: boolean
  /** That its agent proves itself changes something, though it need not. */
  readonly renewed?: boolean
}

/** Why tunnels end. The metrics have one count for each; docs/guides/monitoring.md explains them. */
export const tunnelEndings = [
  'closed',
  'lost',
  'broken',
  'replaced',
  'moved',
  'revoked',
  'unproved',
  'stopping',
] as const
export type TunnelEnding = (typeof tunnelEndings)[number]

/** How a tunnel ended, as far as the tunnel itself knows. */
export interface TunnelEnd {
  /** The agent closed it, the connection was lost, the agent broke a rule, or the device may not have it. */
  readonly ending: Extract<TunnelEnding, 'closed' | 'lost' | 'broken' | 'revoked'>
  readonly detail?: string | undefined
}

/** Where a tunnel comes from, for the log. */
export interface TunnelOrigin {
  /** Version 1 or 2 of the agent's tunnel, a device without an agent, or a container. */
  readonly via: 'v1' | 'v2' | 'ssh' | 'container'
  readonly source?: string | undefined
}

export interface Tunnel {
  readonly device: TunnelDevice
  /** A stream on which the agent's SSH server speaks first. Nothing may be said on it before. */
  openSsh(id: string, signal: AbortSignal): Promise<Duplex>
  /** Asks for a signature with the device's key; undefined from agents that do not know how. */
  prove?(signal: AbortSignal): Promise<boolean | undefined>
  close(why: string): void
  /** Resolves, never rejects; undefined when `close` was called. */
  readonly ended: Promise<TunnelEnd | undefined>
}

/** The device cannot be reached just now. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
}

/** False for a key that cannot be read, too: whoever cannot be recognised is not recognised. */
export function proves(device: TunnelDevice, nonce: string, signature: string): boolean {
  try {
    const key = createPublicKey(device.public_key)
    return verify('sha256', Buffer.from(proofText(device.uid, nonce)), key, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}
