// The errors of a connection, by name. Every SshError carries the reason code of RFC 4253 section 11.1
// with which the peer is told goodbye; its message is safe to show to that peer, because the peer is who
// reads it.

/** The reason codes of a DISCONNECT (RFC 4253 section 11.1). */
export const Reason = {
  hostNotAllowed: 1,
  protocolError: 2,
  keyExchangeFailed: 3,
  macError: 5,
  serviceNotAvailable: 7,
  versionNotSupported: 8,
  hostKeyNotVerifiable: 9,
  connectionLost: 10,
  byApplication: 11,
  tooManyConnections: 12,
  authCancelled: 13,
  noMoreAuthMethods: 14,
  illegalUserName: 15,
} as const

/** A connection failed; the peer receives the reason and the message. */
export class SshError extends Error {
  override readonly name: string = 'SshError'
  readonly reason: number
  constructor(reason: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** The peer broke a rule of the protocol; the connection ends. */
export class ProtocolError extends SshError {
  override readonly name = 'ProtocolError'
  constructor(message: string, options?: ErrorOptions) {
    super(Reason.protocolError, message, options)
  }
}

/** The two sides have no algorithm of one kind in common. */
export class NothingInCommon extends SshError {
  override readonly name = 'NothingInCommon'
  readonly missing: string
  /** The client's offer: untrusted, shortened and safe for a log. */
  readonly offered: readonly string[]
  constructor(missing: string, offered: readonly string[]) {
    super(Reason.keyExchangeFailed, `There is no ${missing} that both sides know.`)
    this.missing = missing
    this.offered = offered.slice(0, 32).map((name) => name.slice(0, 64).replaceAll(/[^\x21-\x7e]/g, '?'))
  }
}

/** The peer disconnected, or the network failed. */
export class ConnectionEnded extends SshError {
  override readonly name = 'ConnectionEnded'
  readonly by: 'us' | 'peer' | 'network'
  constructor(by: 'us' | 'peer' | 'network', reason: number, message: string, options?: ErrorOptions) {
    super(reason, message, options)
    this.by = by
  }
}

/** The server accepted no proof of the client. */
export class AuthenticationFailed extends SshError {
  override readonly name = 'AuthenticationFailed'
  /** The methods that the server would still accept. */
  readonly methods: readonly string[]
  constructor(message: string, methods: readonly string[]) {
    super(Reason.noMoreAuthMethods, message)
    this.methods = methods
  }
}

/** The peer refused to open a channel (RFC 4254 section 5.1). */
export class ChannelRefused extends Error {
  override readonly name = 'ChannelRefused'
  readonly reason: number
  constructor(reason: number, message: string) {
    super(message)
    this.reason = reason
  }
}

/** A write or a request on a closed channel. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed'
}

export function errorFrom(cause: unknown): SshError {
  if (cause instanceof SshError) return cause
  // Internal errors are for our log, not for the peer.
  return new SshError(Reason.byApplication, 'Internal error.', { cause })
}
