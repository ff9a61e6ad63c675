// A bad link, for tests and benches: a relay on loopback in front of a server. It delays bytes, lets only so
// many pass per second, stalls, cuts connections, or goes silent, which neither end is told of; and it counts
// what crosses it. A new connection takes the time of TCP's handshake. TCP's slow start and lost packets are
// not simulated: a packet that TCP sends again looks like jitter from here.
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'

export interface LinkShape {
  /** One way; a round trip takes twice as long. */
  readonly delay_ms: number
  /** Added to a delay by chance. Bytes stay in order. */
  readonly jitter_ms: number
  /** In each direction, for all connections together; Infinity: no limit. */
  readonly bytesPerSecond: number
  /** A connection idle for longer is dropped silently, as by a NAT; Infinity: never. */
  readonly forgets_ms: number
}

export interface LinkCount {
  readonly payload: number
  /** With the headers of TCP and IPv4 and the acknowledgements of such packets, estimated. */
  readonly wire: number
}

export interface Link extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** `up` leads from the side that connects to the server behind the link. */
  readonly up: LinkCount
  readonly down: LinkCount
  readonly opened: number
  /** Connections whose bytes still pass. */
  readonly passing: number
  /**
   * Counts round trips from now on: the longest chain of bytes that crossed the link from the server and
   * back, each sent after the one before had arrived. The speed of either end does not matter. A new
   * connection costs one before its first byte.
   */
  countRoundTrips(): () => number
  /** Changes the link for later bytes. */
  shape(change: Partial<LinkShape>): void
  /** Holds all bytes and new connections until `resume`; nothing is lost. */
  stall(): void
  resume(): void
  /** Resets every connection, at both ends. New ones pass. */
  cut(): void
  /**
   * Drops every byte of the open connections, for good and silently. New ones are dropped as well until
   * `resume`.
   */
  silence(): void
  /** Refuses new connections, or accepts them again. */
  refuse(on: boolean): void
}

const mtu_bytes = 1_448
/** IPv4 and TCP with timestamps. */
const header_bytes = 52
/** In flight in one direction of a connection; above it the sender has to wait. */
const window_bytes = 4 * 1024 * 1024
/** With a limited rate, pieces are small enough to share the link fairly. */
const piece_bytes = 16 * 1024

class Direction {
  payload = 0
  wire = 0
  /** When the link will have sent its queue; by performance.now(). */
  free_at = 0

  count(bytes: number, back: Direction): void {
    const packets = Math.ceil(bytes / mtu_bytes)
    this.payload += bytes
    this.wire += bytes + packets * header_bytes
    // TCP acknowledges every second full packet, and a single one after a while.
    back.wire += Math.ceil(packets / 2) * header_bytes
  }
}

async function until(moment: number): Promise<void> {
  const wait_ms = moment - performance.now()
  if (wait_ms > 0.5) await new Promise((resolve) => setTimeout(resolve, wait_ms))
}

/** The longest chain of bytes that has arrived at each end, in crossings of the link. */
interface Chains {
  /** At the connecting side. */
  near: number
  far: number
}

/** A socket at each end, and the bytes between them. */
interface Pair {
  readonly near: Socket
  /** Undefined until TCP's handshake is over. */
  far: Socket | undefined
  lost: boolean
  /** The time of the last byte; by performance.now(). */
  active_at: number
}

/** For the server at this URL; returns the URL that leads through the link. */
export async function startLinkTo(url: string): Promise<Link & { readonly url: string }> {
  const through = new URL(url)
  const link = await startLink({ host: through.hostname, port: Number(through.port) })
  through.host = `${link.host}:${link.port}`
  return Object.assign(link, { url: through.href })
}

export async function startLink(
  to: { readonly port: number; readonly host?: string },
  first: Partial<LinkShape> = {},
): Promise<Link> {
  let shape: LinkShape = {
    delay_ms: 0,
    jitter_ms: 0,
    bytesPerSecond: Infinity,
    forgets_ms: Infinity,
    ...first,
  }
  const up = new Direction()
  const down = new Direction()
  const pairs = new Set<Pair>()
  let opened = 0
  let chains: Chains = { near: 0, far: 0 }
  let silent = false
  let refusing = false
  let flowing = Promise.withResolvers<void>()
  flowing.resolve()

  /** Arrival time of bytes that enter now. */
  const arrival = (direction: Direction, bytes: number): number => {
    const now = performance.now()
    const sent = Math.max(now, direction.free_at) + (bytes / shape.bytesPerSecond) * 1_000
    direction.free_at = sent
    return sent + shape.delay_ms + Math.random() * shape.jitter_ms
  }

  const isForgotten = (pair: Pair): boolean => performance.now() - pair.active_at > shape.forgets_ms

  /** In order, `notBefore` a moment. */
  function carry(
    pair: Pair,
    way: 'up' | 'down',
    from: Socket,
    to: () => Socket | undefined,
    notBefore: number,
  ): void {
    const [direction, back] = way === 'up' ? [up, down] : [down, up]
    const [here, there] = way === 'up' ? (['near', 'far'] as const) : (['far', 'near'] as const)
    let last: Promise<void> = Promise.resolve()
    let onWay = 0
    let due = notBefore
    const deliver = (bytes: number, act: (target: Socket) => void): void => {
      const when = (due = Math.max(due, arrival(direction, bytes)))
      last = last.then(async () => {
        await until(when)
        await flowing.promise
        const target = to()
        if (!pair.lost && target) act(target)
      })
    }
    const goOn = (): void => {
      if (from.isPaused() && onWay < window_bytes / 2) from.resume()
    }
    from.on('data', (chunk: Buffer) => {
      if (isForgotten(pair)) pair.lost = true
      pair.active_at = performance.now()
      if (pair.lost) return
      onWay += chunk.length
      if (onWay > window_bytes) from.pause()
      const size = shape.bytesPerSecond === Infinity ? chunk.length : piece_bytes
      for (let start = 0; start < chunk.length; start += size) {
        const piece = chunk.subarray(start, start + size)
        direction.count(piece.length, back)
        const counted = chains
        const length = counted[here] + 1
        deliver(piece.length, (target) => {
          counted[there] = Math.max(counted[there], length)
          // The callback comes when the target has taken the bytes, so a slow reader fills the window.
          target.write(piece, () => {
            onWay -= piece.length
            goOn()
          })
        })
      }
    })
    from.on('end', () => {
      direction.wire += header_bytes
      back.wire += header_bytes
      deliver(0, (target) => target.end())
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      if (!from.readableEnded) deliver(0, (target) => target.resetAndDestroy())
      if (pair.near.destroyed && (pair.far?.destroyed ?? true)) pairs.delete(pair)
    })
  }

  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (near) => {
    opened++
    near.setNoDelay(true)
    const pair: Pair = { near, far: undefined, lost: silent, active_at: performance.now() }
    pairs.add(pair)
    // SYN, SYN and ACK, ACK: the server has the connection after one and a half round trips.
    const begins = performance.now() + 3 * shape.delay_ms
    chains.near += 2
    up.wire += 2 * header_bytes
    down.wire += header_bytes
    carry(pair, 'up', near, () => pair.far, begins)
    const begin = async (): Promise<void> => {
      await until(begins)
      await flowing.promise
      near.resume()
      if (pair.lost || near.destroyed) return
      const far = net.connect({
        port: to.port,
        host: to.host ?? '127.0.0.1',
        allowHalfOpen: true,
        noDelay: true,
      })
      pair.far = far
      carry(pair, 'down', far, () => near, 0)
    }
    if (refusing) near.resetAndDestroy()
    else void begin()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const forget = (reset: boolean): void => {
    for (const pair of pairs) {
      pair.lost = true
      if (!reset) continue
      pair.near.resetAndDestroy()
      pair.far?.resetAndDestroy()
      pairs.delete(pair)
    }
  }
  return {
    host: '127.0.0.1',
    port,
    up,
    down,
    get opened() {
      return opened
    },
    get passing() {
      return [...pairs].filter((pair) => !pair.lost && !isForgotten(pair)).length
    },
    countRoundTrips() {
      const counted = (chains = { near: 0, far: 0 })
      return () => Math.floor(counted.far / 2)
    },
    shape: (change) => void (shape = { ...shape, ...change }),
    stall() {
      flowing = Promise.withResolvers<void>()
    },
    resume() {
      silent = false
      flowing.resolve()
    },
    cut: () => forget(true),
    silence() {
      silent = true
      forget(false)
    },
    refuse: (on) => void (refusing = on),
    async [Symbol.asyncDispose]() {
      flowing.resolve()
      forget(true)
      server.close()
      await once(server, 'close')
    },
  }
}
