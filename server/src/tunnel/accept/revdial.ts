// Version 1 of the tunnel: a WebSocket with lines of JSON. For each stream we send the address of a pick-up,
// to which the agent connects with a WebSocket of its own; there it is an HTTP server, and after `GET
// /ssh/<id>` the bytes are SSH. A pick-up's address is a secret that works once and for some seconds. Two
// rules of real agents: the end of the request's head is the end of a message (what follows in it is lost),
// and nothing is sent before the agent's SSH server has spoken.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { keepAlive_ms, ping_ms, tunnelPaths, type TunnelMessage } from '@hawser/contract/tunnel'
import { SocketLost } from '@hawser/mux'
import type { HeldName } from '../../bus/bus.ts'
import type { Meter } from '../meter.ts'
import { connectByHttp } from '../targets.ts'
import { Unreachable, type Tunnel, type TunnelDevice, type TunnelEnd } from '../tunnel.ts'

/** As long as agents try. */
const pickUp_ms = 20_000
const longestLine_bytes = 4_096
/** Lines that wait for an agent who does not read, far beyond the concurrent requests. */
const mostUnsaid_bytes = 64 * 1024
/** Streams of one tunnel that wait for their pick-up. */
const mostWaiting = 64

export const pickUpName = (id: string): string => `pickup.${id}`

/** The WebSocket of a pick-up, and the socket under it. */
export interface StreamSocket {
  readonly stream: Duplex
  readonly socket: Duplex
}

/** Pick-ups of all tunnels that are being waited for, by their secret. */
export interface PickUps {
  expect(accept: (picked: StreamSocket) => void): { readonly id: string } & HeldName
  has(id: string): boolean
  /** Takes the WebSocket that came for this id; undefined when nobody waits for it. */
  claim(id: string): ((picked: StreamSocket) => void) | undefined
}

/** `hold` lets other nodes know that the pick-up is waited for here: an agent may bring it to any of them. */
export function pickUps(hold: (name: string) => HeldName): PickUps {
  const expected = new Map<string, (picked: StreamSocket) => void>()
  return {
    expect(accept) {
      const id = randomBytes(16).toString('hex')
      const held = hold(pickUpName(id))
      expected.set(id, accept)
      return {
        id,
        known: () => held.known(),
        [Symbol.dispose]() {
          held[Symbol.dispose]()
          expected.delete(id)
        },
      }
    },
    has: (id) => expected.has(id),
    claim(id) {
      const accept = expected.get(id)
      expected.delete(id)
      return accept
    },
  }
}

export const controlPing = { every_ms: keepAlive_ms, timeout_ms: ping_ms }

export function revdialTunnel(device: TunnelDevice, control: Duplex, waiting: PickUps, meter: Meter): Tunnel {
  const refusals = new Map<string, (why: Error) => void>()
  const ended = Promise.withResolvers<TunnelEnd | undefined>()
  const say = (line: TunnelMessage): void => {
    if (control.destroyed) return
    if (control.writableLength > mostUnsaid_bytes)
      return void control.destroy(new Error('The agent does not read its tunnel.'))
    control.write(`${JSON.stringify(line)}\n`)
  }

  const timer = setInterval(() => say({ command: 'keep-alive' }), keepAlive_ms)
  say({ command: 'keep-alive' })
  readLines(control, (line) => {
    if (line.command === 'pickup-failed')
      refusals.get(line.connPath)?.(new Unreachable('The agent could not connect back.'))
  })
  let failure: Error | undefined
  control.on('error', (error) => (failure ??= error))
  control.once('close', () => {
    clearInterval(timer)
    for (const refuse of refusals.values()) refuse(new Unreachable('The tunnel is gone.'))
    ended.resolve(endOf(failure))
  })

  async function pickUp(signal: AbortSignal): Promise<StreamSocket> {
    if (refusals.size >= mostWaiting) throw new Unreachable('The agent is busy.')
    const arrived = Promise.withResolvers<StreamSocket>()
    using expected = waiting.expect(arrived.resolve)
    const connPath = `${tunnelPaths.pickUp}?revdial.dialer=${expected.id}`
    const limit = AbortSignal.any([signal, AbortSignal.timeout(pickUp_ms)])
    const stop = (): void =>
      arrived.reject(new Unreachable('The agent did not connect back.', { cause: limit.reason }))
    limit.addEventListener('abort', stop, { once: true })
    refusals.set(connPath, arrived.reject)
    try {
      await Promise.race([expected.known(), arrived.promise])
      limit.throwIfAborted()
      say({ command: 'conn-ready', connPath })
      // Agents count only these lines; the original sends one after every request.
      say({ command: 'keep-alive' })
      return await arrived.promise
    } finally {
      limit.removeEventListener('abort', stop)
      refusals.delete(connPath)
    }
  }

  async function pickUpStream(signal: AbortSignal): Promise<Duplex> {
    if (control.destroyed) throw new Unreachable('The tunnel is gone.')
    const { stream, socket } = await pickUp(signal)
    meter.session(stream)
    meter.carry(socket)
    stream.on('error', () => undefined)
    return stream
  }

  return {
    device,
    meter,
    async openTarget(target, signal) {
      const stream = await pickUpStream(signal)
      try {
        await connectByHttp(stream, target, signal)
        return stream
      } catch (error) {
        stream.destroy()
        throw error
      }
    },
    async openSsh(id, signal) {
      const stream = await pickUpStream(signal)
      // In a message of its own: the promise resolves when that message has left.
      await new Promise<void>((resolve, reject) => {
        stream.write(`GET /ssh/${id} HTTP/1.1\r\nHost: \r\nUser-Agent: Hawser\r\n\r\n`, (error) =>
          error ? reject(error) : resolve(),
        )
      })
      return stream
    },
    close() {
      control.destroy()
    },
    ended: ended.promise,
  }
}

/** 1006: the WebSocket ended without a close frame. */
function endOf(error: Error | undefined): TunnelEnd | undefined {
  if (error === undefined) return { ending: 'closed' }
  const lost = error instanceof SocketLost && error.code === 1006
  return { ending: lost ? 'lost' : 'broken', detail: error.message }
}

/** Lines that are no JSON, or too long, end the tunnel; unknown ones are ignored. */
function readLines(control: Duplex, onLine: (line: TunnelMessage) => void): void {
  let rest = Buffer.alloc(0)
  const take = (chunk: Buffer): void => {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a)) {
      if (end > longestLine_bytes) throw new Error('A line of the tunnel is too long.')
      const parsed: unknown = JSON.parse(bytes.toString('utf8', 0, end))
      if (typeof parsed === 'object' && parsed !== null && 'command' in parsed)
        onLine(parsed as TunnelMessage)
      bytes = bytes.subarray(end + 1)
    }
    if (bytes.length > longestLine_bytes) throw new Error('A line of the tunnel is too long.')
    // A copy: the beginning of a line must not retain the whole read.
    rest = Buffer.from(bytes)
  }
  control.on('data', (chunk: Buffer) => {
    try {
      take(chunk)
    } catch (error) {
      control.destroy(error as Error)
    }
  })
}
