// A tunnel: the connection that a device's agent made to us, on which we open streams to the device. Both
// kinds of tunnel look like this from outside.
import type { Duplex } from 'node:stream'
import { createPublicKey, verify } from 'node:crypto'
import { proofText, type Feature } from '@hawser/contract/tunnel'
import type { Meter } from './meter.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** PEM. */
  readonly public_key: string
  /** Names the token that the tunnel came with; absent where there is none. */
  readonly token?: string
  readonly mustProve: boolean
  /** A proof of the key changes something, though the tunnel may not need it. */
  readonly wantsProof?: boolean
  /** Nobody has proved its key by a token so far; false: its tunnels are judged by the key alone. */
  readonly isFirstProof?: boolean
  /** Of its agent, as it was last reported. */
  readonly version?: string
  /** Nobody may have anything running on it. */
  readonly unaccepted?: boolean
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
  /** It was lost because the agent had said nothing for too long. */
  readonly silent?: boolean
}

/** Where a tunnel comes from, for the log. */
export interface TunnelOrigin {
  /** Version 1 or 2 of the agent's tunnel, a device without an agent, or a container. */
  readonly via: 'v1' | 'v2' | 'ssh' | 'container'
  readonly source?: string | undefined
}

export interface Tunnel {
  readonly device: TunnelDevice
  /** What the agent and this server both support beyond the tunnels of agents in the field. */
  readonly features?: ReadonlySet<Feature>
  /** Counts what it costs the device's link; undefined where that is not the device's own. */
  readonly meter?: Meter
  /**
   * A stream to the agent's SSH server, which speaks first: nothing may be said on the stream before, unless
   * the agent supports `pipelining`.
   */
  openSsh(id: string, signal: AbortSignal): Promise<Duplex>
  /**
   * Opens a stream of another protocol with its head, a line of JSON, for agents that have such features. The
   * agent's reply to the name of the protocol is the first that comes on it.
   */
  carry?(protocol: string, head: string, signal: AbortSignal): Promise<Duplex>
  /** Somebody waits in vain for an answer over this tunnel: one that is dead is closed within seconds. */
  check?(): void
  /** Asks for a signature with the device's key; undefined from agents that do not know how. */
  prove?(signal: AbortSignal): Promise<boolean | undefined>
  /**
   * Makes the agent end all that runs for people, and resolves when it has. Undefined for agents that take
   * no such order; they end everything with the tunnel. Rejects when the tunnel ends.
   */
  hangUp?(signal: AbortSignal): Promise<void>
  /** How long a message to the agent and back takes, in milliseconds. Rejects when the tunnel ends. */
  roundTrip?(): Promise<number>
  /** Streams that the agent opens, with the feature `report`. For one taker. */
  readonly incoming?: AsyncIterable<Duplex>
  /** The agent, which pings, will do so at least this often from now on. */
  pingsEvery?(interval_ms: number): void
  close(why: string): void
  /** Resolves, never rejects; undefined when `close` was called. */
  readonly ended: Promise<TunnelEnd | undefined>
}

/** What a node knows of a tunnel that may be another node's. */
export type RemoteTunnel = Pick<Tunnel, 'features' | 'openSsh' | 'carry' | 'check'>

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
