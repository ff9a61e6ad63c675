// Many streams in one connection, in both roles: the face of the package. A WebSocket becomes a stream of
// bytes, on which yamux makes many streams, of which each begins by naming its use (multistream-select). What
// the streams are for is nobody's business here.
export { acceptBytes, dialBytes, type BytesOptions } from './byte-socket.ts'
export { acceptWebSocket, dialWebSocket, type DialOptions } from './doors.ts'
export * from './errors.ts'
export { keepPinging, type PingOptions } from './keep-pinging.ts'
export * as multistream from './multistream.ts'
export { openMux, type Mux, type MuxOptions } from './session.ts'
