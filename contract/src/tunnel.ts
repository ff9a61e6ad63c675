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
 * A header of the request for a tunnel, in which our own agent names its process: a random text that changes
 * with every start. So a device that reconnects can be told from a second one with the same identity.
 */
export const instanceHeader = 'x-hawser-instance'

/**
 * A header of the request and of the answer that open a tunnel of version 2. Each end names what it supports
 * beyond the tunnels of agents in the field, separated by commas; both use what both name. An end without the
 * header supports nothing more.
 */
export const featuresHeader = 'x-hawser-features'

/**
 * `approval`: the agent checks a certificate of the server for a login by public key (see `approval`).
 * `pipelining`: the agent's SSH server takes what the gateway sends before it has answered itself
 * (`pipelining` and `earlyChannels` of ssh/).
 */
export type Feature = 'approval' | 'pipelining' | 'report' | 'resume' | 'services'

/** The features that this version supports. `services`: the agent connects to addresses for web services. */
export const features: readonly Feature[] = ['approval', 'pipelining', 'report', 'resume', 'services']

/**
 * Which of `own` the other end supports too, by its header. Names that this version does
 * not know are ignored.
 */
export function sharedFeatures(
  header: string | readonly string[] | undefined,
  own: readonly Feature[] = features,
): ReadonlySet<Feature> {
  const named = new Set(typeof header === 'string' ? header.slice(0, 1_024).split(/ *, */) : [])
  return new Set(own.filter((feature) => named.has(feature)))
}

/**
 * A header of the request for a tunnel, with which our own agent says that it takes the order to hang up:
 * random, in hex, and new for each request. The order signs it, so nobody can use an order twice.
 */
export const nonceHeader = 'x-hawser-nonce'

/**
 * A header of the answer that refuses a tunnel: the signature of the order to hang up (`hangUpText`). The
 * server sends it when the device was rejected or removed, or its namespace deleted. Any other refusal may
 * come from a proxy, a stranger or a server in trouble, and ends nothing.
 */
export const hangUpHeader = 'x-hawser-hang-up'

export const protocols = {
  /** { id }: the agent's SSH server speaks on the stream. */
  ssh: '/ssh/open/1.0.0',
  /** { id }: ends the SSH connection of that id. */
  close: '/ssh/close/1.0.0',
  /** { nonce }: answered with one line, a `Proof`. Only Hawser's own agent supports it. */
  proof: '/hawser/proof/1.0.0',
  /**
   * A `ResumableHead`: the agent's SSH server speaks on a stream that outlives the tunnel (feature `resume`).
   */
  resumable: '/hawser/resumable/1.0.0',
  /** A `ResumeRequest`, answered with one line, a `ResumeAnswer`: continues such a stream on this tunnel. */
  resume: '/hawser/resume/1.0.0',
  /**
   * A `EndOrder`: the agent ends all that runs for people, then answers with one line and closes the
   * stream. Only for agents that sent a nonce.
   */
  hangUp: '/hawser/hang-up/1.0.0',
  /**
   * A `TargetRequest`, answered with one line, a `TargetAnswer`. If it is open, the bytes of a TCP connection
   * to the target follow, both ways. For agents with the feature `services`.
   */
  target: '/hawser/target/1.0.0',
  /** `{}`, answered with one line, a `ListeningAnswer`. For agents with the feature `services`. */
  listening: '/hawser/listening/1.0.0',
} as const

/**
 * How agents of ShellHub connect to an address, in tunnels of version 2: `{ id, host, port }`, the port as
 * text, answered with one line, `{ status: 'ok' }` or `{ error }`. The bytes of the connection follow.
 */
export const shellHubProxy = '/http/proxy/1.0.0'

/**
 * The one stream that the agent opens, with the feature `report`: lines of JSON both ways, see reports.ts.
 * Then the agent alone pings, and the server watches for silence.
 */
export const reportProtocol = '/hawser/report/1.0.0'

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

/** Begins a stream that outlives the tunnel. */
export interface ResumableHead {
  readonly id: string
  /** Random, in hex. Id and secret are all that it takes to continue the stream. */
  readonly secret: string
  /** How long both ends wait for the next tunnel. */
  readonly grace_s: number
}

/** Continues a stream, with what its opener has received and read of it so far. */
export interface ResumeRequest {
  readonly id: string
  readonly secret: string
  readonly received: number
  readonly read: number
  /** The stream is to end instead, because its user has left. */
  readonly over?: true
}

/** How much the agent has received and read of the stream, or that it does not know the stream. */
export type ResumeAnswer = { readonly received: number; readonly read: number } | { readonly unknown: true }

/** How long streams wait for the next tunnel unless the namespace says otherwise, and at most. */
export const defaultGrace_s = 300
export const mostGrace_s = 3_600

/**
 * The text that an agent signs to prove that it holds the device's private key. No other use signs such a
 * text.
 */
export function proofText(uid: string, nonce: string): string {
  return `hawser tunnel proof 1\n${uid}\n${nonce}\n`
}

/** In the tunnel: all that runs on the device for people ends. */
export interface EndOrder {
  /** Over `hangUpText`, base64. */
  readonly signature: string
}

/**
 * The text that the server signs, with its Ed25519 key for approvals, to make an agent hang up. `nonce` is
 * the one of the request for the tunnel that the order is sent in, or that is refused with it.
 */
export function hangUpText(uid: string, nonce: string): string {
  return `hawser hang up 1\n${uid}\n${nonce}\n`
}

/** A host and a port that the device reaches. */
export interface TargetAddress {
  readonly host: string
  readonly port: number
}

export interface TargetRequest extends TargetAddress {
  /** Over `targetText`, base64: the server has approved this target. */
  readonly signature: string
}

/**
 * The text that the server signs, with its Ed25519 key for approvals, before an agent connects to a target.
 * `nonce` is the one of the request for the tunnel that the request is sent in.
 */
export function targetText(uid: string, nonce: string, { host, port }: TargetAddress): string {
  return `hawser target 1\n${uid}\n${nonce}\n${port}\n${host}\n`
}

/** Why an agent does not connect to a target. */
export const targetRefusals = [
  /** The agent's settings permit no target, or not this one. */
  'off',
  'forbidden',
  /** The server has not approved the target. */
  'unapproved',
  /** Nothing listens there; there is no way there, or no such host; no answer came. */
  'closed',
  'unreachable',
  'timeout',
  /** The agent has too many connections open. */
  'busy',
  'failed',
] as const
export type TargetRefusal = (typeof targetRefusals)[number]

export type TargetAnswer = { readonly open: true } | { readonly refused: TargetRefusal }

/** The agent and the server wait at most this long for a connection to a target. */
export const targetDial_ms = 15_000

/** A TCP port on which the device listens. */
export interface ListeningPort {
  /** `0.0.0.0` and `::`: on all addresses. */
  readonly address: string
  readonly port: number
  /** The name of the program; empty where the agent may not see it. */
  readonly program: string
}

export type ListeningAnswer =
  | { readonly ports: readonly ListeningPort[] }
  | { readonly refused: Extract<TargetRefusal, 'off' | 'failed'> }

/** An agent lists at most this many. */
export const mostListening = 256
export const longestListening_bytes = 32 * 1024

/** The server waits at most this long for the answer to the order, then closes the tunnel anyway. */
export const hangUp_ms = 4_000

/**
 * The host name in the certificate that our own agent signs with the device's key for the host key of its SSH
 * server. The device's key is RSA, whose signatures take a small device up to 30 ms each; the certified key
 * is Ed25519 and lives as long as the agent's process. A gateway that offers this algorithm gets the
 * certificate, every other gateway the device's key itself. An agent that has one also accepts an Ed25519 key
 * from the gateway in `auth.ssh`, where agents in the field know only RSA.
 */
export const hostCertificate = {
  algorithm: 'ssh-ed25519-cert-v01@openssh.com',
  principal: 'device.hawser',
} as const

/**
 * The approval of a login by public key, which our own agent checks by itself: a user certificate for
 * the gateway's key, signed by a key of the server that the agent got when it enrolled. Its principal is
 * the user, and these critical options bind it to one device and to one SSH connection (the session id
 * of its key exchange).
 */
export const approval = {
  algorithm: 'ssh-ed25519-cert-v01@openssh.com',
  device: 'device@hawser',
  session: 'session@hawser',
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

/**
 * How long the gateway keeps an SSH connection to our own agent on which nobody has logged in. An agent that
 * names `pipelining` waits longer than this for the login.
 */
export const spareLeg_ms = 5 * 60_000

/**
 * With the feature `report` the agent learns how often it has to ping, between these limits. It begins with
 * the first, which every NAT known to us bears; while people are connected it pings every `ping_ms` at most.
 */
export const shortestPing_s = 25
export const firstPing_s = 30
export const longestPing_s = 600

/** The most sessions of one device at a time; each is a stream of its tunnel. */
export const mostStreams = 1_024

/**
 * The variable in which the gateway tells its own agent the client's "<address> <port>". No program gets it.
 */
export const clientVariable = 'HAWSER_CLIENT'

/**
 * The variable in which the gateway tells its own agent who opened the session, as `personText` writes it.
 * Programs get it under the same name; nobody but the gateway can send it.
 */
export const personVariable = 'HAWSER_PERSON'

/**
 * The variable of the gateway, for its own agent, that makes the terminal of a session outlive the gateway:
 * a `DetachRequest` as `detachText`. No program gets it, and only the gateway can send it.
 */
export const detachVariable = 'HAWSER_KEEP'

/** How long a terminal stays when its gateway is lost, and who may continue it then. */
export interface DetachRequest {
  /** The uid of the session. */
  readonly id: string
  /** In hex. A login to the same account that knows id and secret may continue the terminal. */
  readonly secret: string
  readonly grace_s: number
}

/** For each agent; further terminals end with their gateway. */
export const mostDetached = 32

export const detachText = ({ id, secret, grace_s }: DetachRequest): string => `${id} ${secret} ${grace_s}`

/** A value of that variable; undefined if the gateway would not have written it. */
export function readDetachRequest(value: string): DetachRequest | undefined {
  const read = /^([0-9a-f]{64}) ([0-9a-f]{64}) ([1-9]\d{0,4})$/.exec(value)
  return read ? { id: read[1]!, secret: read[2]!, grace_s: Number(read[3]) } : undefined
}

/**
 * The subsystem by which a gateway continues such a terminal, on a session with the variable. The agent
 * refuses it unless it has the terminal. It first sends a `DetachedHead` as JSON on the stream of errors, then
 * its stored output, and then the terminal continues.
 */
export const attachSubsystem = 'kept@hawser'

/** The size and the stored output of a detached terminal. */
export interface DetachedHead {
  readonly columns: number
  readonly rows: number
  /** The length of the stored output; older agents do not report it. */
  readonly bytes?: number
  /** Whether the output is all there ever was, at this size: a screen made of it lacks nothing. */
  readonly whole?: boolean
}

const longestPerson = 128

/**
 * A person in one harmless word or few: a user by name, others with their kind before it, which no user name
 * can have. Empty: unknown.
 */
export function personText({ kind, name }: { readonly kind: string; readonly name: string }): string {
  if (kind === 'unknown') return ''
  const prefix = kind === 'user' ? '' : kind === 'api-key' ? 'key:' : `${kind}:`
  return `${prefix}${name}`.replaceAll(/[^\w .,:;@+=~-]/gu, '?').slice(0, longestPerson)
}

/** A value of that variable; undefined if the gateway would not have written it. */
export function readPersonText(value: string): string | undefined {
  return /^[\w .,:;@+=~?-]{1,128}$/.test(value) ? value : undefined
}

/** The platform of a device without an agent: its tunnel is a remote forward of its ssh client. */
export const agentlessPlatform = 'ssh'
