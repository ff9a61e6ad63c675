// Many streams in one connection, in both roles: a WebSocket becomes a stream of bytes, yamux makes many
// streams of it, and each of them begins by naming its protocol (multistream-select). A resumable stream
// outlives the stream that carries it. Each of the four can be used without the others. What the streams are
// for is not known here.
export {
  ConnectionLost,
  MuxClosed,
  NegotiationFailed,
  ProtocolError,
  SocketLost,
  StreamEvicted,
  StreamLost,
  StreamRefused,
  StreamReset,
  UpgradeFailed,
} from './errors.ts'
export type { Rule } from './errors.ts'
export { liveness } from './liveness.ts'
export type { Liveness } from './liveness.ts'
export * as multistream from './multistream.ts'
export type { PingTimes } from './pings.ts'
export { isReleasing } from './releases-buffers.ts'
export { ResumableMemory } from './resumable-memory.ts'
export { ResumableStream, resumableWindow_bytes } from './resumable.ts'
export type { ResumableCounts, ResumableOptions } from './resumable.ts'
export type { BytesOptions } from './websocket/byte-stream.ts'
export { acceptBytes, dialBytes } from './websocket/handshake.ts'
export type { AcceptOptions, DialOptions } from './websocket/handshake.ts'
export { keepalive } from './websocket/keepalive.ts'
export type { PingOptions } from './websocket/keepalive.ts'
export { acceptWebSocket, dialWebSocket } from './websocket/web-socket.ts'
export { openMux } from './yamux.ts'
export type { Mux, MuxOptions } from './yamux.ts'
