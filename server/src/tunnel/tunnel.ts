// A tunnel: the connection that a device's agent made to us, on which we open streams to the device. Both
// kinds share this interface.
import type { Duplex } from 'node:stream'
import { createPublicKey, verify } from 'node:crypto'
import { proofText, type Feature, type TargetAddress } from '@hawser/contract/tunnel'
import type { Meter } from './meter.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  readonly public_key: string
  /** Identifies the token that the tunnel came with; absent where there is none. */
  readonly token?: string
  /** The agent proved once that it has the private key, so every later tunnel must prove it, too. */
  readonly mustProve: boolean
  /** A proof of the key changes something, though the tunnel may not need it. */
  readonly wantsProof?: boolean
  /** Nobody has proved its key by a token so far; false: its tunnels are judged by the key alone. */
  readonly isFirstProof?: boolean
  readonly version?: string
  /** Nobody may have anything running on it: it is pending or unused. */
  readonly unaccepted?: boolean
}

/** The metrics have one count for each; docs/guides/monitoring.md explains them. */
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
  /** Lost because the agent was silent for too long. */
  readonly silent?: boolean
}

/** For the log. */
export interface TunnelOrigin {
  /** Version 1 or 2 of the agent's tunnel, a device without an agent, or a container. */
  readonly via: 'v1' | 'v2' | 'ssh' | 'container'
  readonly source?: string | undefined
}

export interface Tunnel {
  readonly device: TunnelDevice
  /** Features that the agent and this server both support, beyond the tunnels of agents in the field. */
  readonly features?: ReadonlySet<Feature>
  /** Undefined where the link is not the device's own. */
  readonly meter?: Meter
  /** A stream to the agent's SSH server, which must speak first unless the agent supports `pipelining`. */
  openSsh(id: string, signal: AbortSignal): Promise<Duplex>
  /**
   * Opens a stream of another protocol with its head, a line of JSON, for agents with such features. The
   * agent's reply to the name of the protocol comes first on it.
   */
  carry?(protocol: string, head: string, signal: AbortSignal): Promise<Duplex>
  /** A connection from the device to a target. Throws TargetRefused, or an error of the tunnel. */
  openTarget?(target: TargetAddress, signal: AbortSignal): Promise<Duplex>
  /** Somebody waits in vain for an answer over this tunnel: a dead one is closed within seconds. */
  check?(): void
  /** Requests a signature with the device's key; undefined from agents that cannot make one. */
  prove?(signal: AbortSignal): Promise<boolean | undefined>
  /**
   * Makes the agent end all that runs for people; resolves when it has, rejects when the tunnel ends.
   * Undefined for agents that take no such order; they end everything with the tunnel.
   */
  hangUp?(signal: AbortSignal): Promise<void>
  /** The round trip of a message to the agent, in milliseconds. Rejects when the tunnel ends. */
  roundTrip?(): Promise<number>
  /** Streams that the agent opens, with the feature `report`. For one taker. */
  readonly incoming?: AsyncIterable<Duplex>
  /** The agent will ping at least this often. */
  pingsEvery?(interval_ms: number): void
  close(why: string): void
  /** Resolves, never rejects; undefined when `close` was called. */
  readonly ended: Promise<TunnelEnd | undefined>
}

/** The part of a tunnel that a node knows when the tunnel may be another node's. */
export type RemoteTunnel = Pick<Tunnel, 'features' | 'openSsh' | 'carry' | 'openTarget' | 'check'>

export class Unreachable extends Error {
  override readonly name = 'Unreachable'
}

/** A key that cannot be read proves nothing. */
export function proves(device: TunnelDevice, nonce: string, signature: string): boolean {
  try {
    const key = createPublicKey(device.public_key)
    return verify('sha256', Buffer.from(proofText(device.uid, nonce)), key, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}
