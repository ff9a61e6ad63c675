// Counts the bytes that a tunnel costs its device's link, with sessions open and without. It reads the
// counters of the sockets that carry the tunnel, so a byte's path gains one sum per read. Headers of TCP and
// IP, records of TLS and acknowledgements are estimated: an idle device costs little else. Records of a proxy
// that ends TLS are not counted.
import type { Duplex } from 'node:stream'

/** Bytes from the device's point of view. */
export interface Flow {
  received: number
  sent: number
}

export interface Traffic {
  readonly idle: Flow
  readonly sessions: Flow
}

/** IPv4, and TCP with timestamps. */
const header_bytes = 52
/** Around what one packet carries, with TLS 1.3. */
const record_bytes = 22
const mtu_bytes = 1_448

export const noTraffic = (): Traffic => ({
  idle: { received: 0, sent: 0 },
  sessions: { received: 0, sent: 0 },
})

/** One socket of a tunnel, and how far it was counted. */
interface Counted {
  readonly socket: Duplex & { readonly bytesWritten?: number }
  readonly overhead_bytes: number
  /** Received since the last count, and in how many packets. */
  came_bytes: number
  came_packets: number
  /** The socket's own counter at the last count. */
  written_bytes: number
}

export class Meter {
  readonly #sockets = new Set<Counted>()
  #traffic = noTraffic()
  #sessions = 0

  /** Counts all that the socket carries, until it closes. */
  carry(socket: Duplex): void {
    const counted: Counted = {
      socket,
      overhead_bytes: header_bytes + ('encrypted' in socket ? record_bytes : 0),
      came_bytes: 0,
      came_packets: 0,
      written_bytes: 0,
    }
    counted.written_bytes = counted.socket.bytesWritten ?? 0
    this.#settle()
    this.#sockets.add(counted)
    socket.on('data', (chunk: Buffer) => {
      counted.came_bytes += chunk.length
      counted.came_packets += Math.ceil(chunk.length / mtu_bytes)
    })
    socket.once('close', () => {
      this.#settle()
      this.#sockets.delete(counted)
    })
  }

  /** While the stream is open, all that the tunnel carries counts as that of sessions. */
  session<T extends Duplex>(stream: T): T {
    if (stream.destroyed) return stream
    this.#settle()
    this.#sessions++
    stream.once('close', () => {
      this.#settle()
      this.#sessions--
    })
    return stream
  }

  /** The traffic since the last call. */
  take(): Traffic {
    this.#settle()
    const taken = this.#traffic
    this.#traffic = noTraffic()
    return taken
  }

  #settle(): void {
    const flow = this.#sessions > 0 ? this.#traffic.sessions : this.#traffic.idle
    for (const counted of this.#sockets) {
      const written = (counted.socket.bytesWritten ?? 0) - counted.written_bytes
      if (written <= 0 && counted.came_bytes === 0) continue
      const out = Math.ceil(written / mtu_bytes)
      // TCP acknowledges every second packet; most acknowledgements of small ones travel with an answer.
      const packets_out = Math.max(out, Math.ceil(counted.came_packets / 2))
      const packets_in = Math.max(counted.came_packets, Math.ceil(out / 2))
      flow.received += written + packets_out * counted.overhead_bytes
      flow.sent += counted.came_bytes + packets_in * counted.overhead_bytes
      counted.written_bytes += written
      counted.came_bytes = 0
      counted.came_packets = 0
    }
  }
}
