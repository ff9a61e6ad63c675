// The errors of a socket, a session or a stream, by name. Messages are for our log: the peer learns
// at most a number of yamux or WebSocket, never a text.

/** The rules that a peer can break. */
export type Rule =
  | 'version'
  | 'type'
  | 'length'
  | 'window'
  | 'credit'
  | 'unknown stream'
  | 'stream opened twice'
  | 'parity'
  | 'finished twice'
  | 'go away'
  | 'truncated'
  | 'flood'

/** The peer broke a rule of yamux: the session is over, for all of its streams. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly rule: Rule
  constructor(rule: Rule, message: string) {
    super(message)
    this.rule = rule
  }
}

/** The connection under a session is lost, or a ping was not answered in time. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  /** The peer was silent for too long; else the connection was cut. */
  readonly silent: boolean
  constructor(message: string, options: { readonly cause?: unknown; readonly silent?: boolean } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.silent = options.silent === true
  }
}

/** The session was closed regularly while a stream was open. */
export class MuxClosed extends Error {
  override readonly name = 'MuxClosed'
}

/** The peer reset the stream. */
export class StreamReset extends Error {
  override readonly name = 'StreamReset'
}

/** The stream could not be opened: too many are open, or the peer takes no more. */
export class StreamRefused extends Error {
  override readonly name = 'StreamRefused'
}

/** The session's streams held too much that nobody read, and this one held the most. */
export class StreamEvicted extends Error {
  override readonly name = 'StreamEvicted'
}

/** A stream that outlives its carriers was given up: no next carrier came in time, or the peer is another. */
export class StreamLost extends Error {
  override readonly name = 'StreamLost'
}

/** A WebSocket broke a rule, or ended without a close frame. */
export class SocketLost extends Error {
  override readonly name = 'SocketLost'
  /** As in RFC 6455 section 7.4; 1006 when there was no close frame. */
  readonly code: number
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A request is not for a WebSocket, or a dial got another answer. */
export class UpgradeFailed extends Error {
  override readonly name = 'UpgradeFailed'
  /** Undefined: there was no HTTP answer. */
  readonly status: number | undefined
  /** The value of Retry-After. */
  readonly retryAfter: string | undefined
  /** The headers of the HTTP answer; repeated ones are joined or left out. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  constructor(
    message: string,
    answer: {
      status?: number | undefined
      retryAfter?: string | undefined
      headers?: Readonly<Record<string, string | string[] | undefined>>
    } = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.status = answer.status
    this.retryAfter = answer.retryAfter
    this.headers = answer.headers ?? {}
  }
}

/** The peer does not speak multistream-select, or broke off in the middle of it. */
export class NegotiationFailed extends Error {
  override readonly name = 'NegotiationFailed'
}
