// Pings of the WebSocket itself, for sockets that carry no session that pings. A socket on which nothing at
// all came for the time limit after a ping is terminated, and with `mustAnswer_ms` also one that sends data but
// answers no ping: a peer that reads nothing would stay for ever. A socket that is paused, because our own
// reader is slow, is spared: its pong may have come and wait; if the peer is gone, TCP will say so.
import { WebSocket } from 'ws'

/** When to ping, and when to give up. */
export interface PingOptions {
  readonly every_ms: number
  /** Without an answer. */
  readonly timeout_ms: number
  readonly onPong?: () => void
  /** Without a pong, for peers that send little: an answer waits behind earlier output. */
  readonly mustAnswer_ms?: number
}

/** Pings the socket until it is disposed of or the socket closes. */
export function keepalive(socket: WebSocket, options: PingOptions): Disposable {
  let heard = false
  let answered = false
  const { mustAnswer_ms = Infinity } = options
  let unanswered_ms = 0
  let timer: NodeJS.Timeout

  const after = (delay_ms: number, act: () => void): void => {
    timer = setTimeout(act, delay_ms)
    timer.unref()
  }
  const ask = (): void => {
    if (socket.readyState !== WebSocket.OPEN) return stop()
    heard = false
    answered = false
    unanswered_ms = 0
    socket.ping(() => undefined)
    after(options.timeout_ms, check)
  }
  const check = (): void => {
    if (!answered && !socket.isPaused) unanswered_ms += options.timeout_ms
    if ((!heard && !socket.isPaused) || unanswered_ms > mustAnswer_ms) {
      stop()
      return socket.terminate()
    }
    if (answered) return after(Math.max(0, options.every_ms - options.timeout_ms), ask)
    heard = false
    after(options.timeout_ms, check)
  }
  const onMessage = (): void => {
    heard = true
  }
  const onPong = (): void => {
    heard = true
    answered = true
    options.onPong?.()
  }
  const stop = (): void => {
    clearTimeout(timer)
    socket.off('message', onMessage)
    socket.off('pong', onPong)
    socket.off('close', stop)
  }

  socket.on('message', onMessage)
  socket.on('pong', onPong)
  socket.on('close', stop)
  // Spread: after a restart thousands of sockets open in the same second.
  after(options.every_ms * (0.5 + Math.random() / 2), ask)
  return { [Symbol.dispose]: stop }
}
