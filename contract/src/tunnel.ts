// The protocol of tunnels between an agent and the server. The agent connects out with a WebSocket; the
// address that it uses decides how the tunnel works:
//
//   version 1  /ssh/connection    lines of JSON both ways. For every stream the server sends an address, and the
//                                 agent connects there with a WebSocket of its own (/ssh/revdial), on which it
//                                 is an HTTP server.
//   version 2  /agent/connection  yamux streams that the server opens. Each begins with multistream-select, which
//                                 names one of the protocols below, and one line of JSON.
//
// Versions and names are those of agents in the field and must not change.

export const tunnelPaths = {
  lines: '/ssh/connection',
  pickUp: '/ssh/revdial',
  streams: '/agent/connection',
} as const

/**
 * A header of the request for a tunnel, in which our own agent names its process: a random text that changes with
 * every start. So a device that reconnects can be told from a second one with the same identity.
 */
export const instanceHeader = 'x-hawser-instance'

export const protocols = {
  /** { id }: the agent's SSH server speaks on the stream. */
  ssh: '/ssh/open/1.0.0',
  /** { id }: ends the SSH connection of that id. */
  close: '/ssh/close/1.0.0',
  /** { nonce }: answered with one line, a `Proof`. Only Hawser's own agent supports it. */
  proof: '/hawser/proof/1.0.0',
} as const

export interface StreamHead {
  readonly id: string
}

export interface ProofRequest {
  readonly nonce: string
}

export interface Proof {
  /** RSASSA-PKCS1-v1_5 with SHA-256 over `proofText`, base64. */
  readonly signature: string
}

/**
 * The text that an agent signs to prove that it holds the device's private key. No other use signs such a
 * text.
 */
export function proofText(uid: string, nonce: string): string {
  return `hawser tunnel proof 1\n${uid}\n${nonce}\n`
}

/**
 * The host name in the certificate that our own agent signs with the device's key for the host key of its SSH
 * server. The device's key is RSA, whose signatures take a small device up to 30 ms each; the certified key is
 * Ed25519 and lives as long as the agent's process. A gateway that offers this algorithm gets the certificate,
 * every other gateway the device's key itself. An agent that has one also accepts an Ed25519 key from the
 * gateway in `auth.ssh`, where agents in the field know only RSA.
 */
export const hostCertificate = {
  algorithm: 'ssh-ed25519-cert-v01@openssh.com',
  principal: 'device.hawser',
} as const

/** Lines of a version 1 tunnel. */
export type TunnelMessage =
  | { readonly command: 'keep-alive' }
  | { readonly command: 'conn-ready'; readonly connPath: string }
  | { readonly command: 'pickup-failed'; readonly connPath: string; readonly err: string }

/** A version 1 agent gives up after 35 seconds without a keep-alive line. */
export const keepAlive_ms = 30_000
/** Agents of version 2 ping this often, so a tunnel that is silent for much longer is dead. */
export const ping_ms = 35_000
export const pong_ms = 15_000

/** The most sessions of one device at a time; each is a stream of its tunnel. */
export const mostStreams = 1_024

/**
 * The variable in which the gateway tells its own agent the client's "<address> <port>". No program gets it.
 */
export const clientVariable = 'HAWSER_CLIENT'

/** The platform of a device without an agent: its tunnel is a remote forward of its ssh client. */
export const agentlessPlatform = 'ssh'
