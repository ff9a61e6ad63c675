// The two ends of bench/ladder.ts: a client and a device, joined by a relay (bench/ladder-relay.ts), with as
// many layers on their sides as the rung has. The device dials the relay, as agents do. The connection stands
// while bytes are moved, so that setting it up costs nothing that is measured.
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { dialBytes, openMux } from '@hawser/mux'
import { receiveSession, startSession, type Channel } from '../ssh/src/index.ts'
import { acceptLeg, dialLeg, has, shell, type RelayPorts, type Rung } from './ladder-relay.ts'

/** A source and a sink of bytes. */
interface End {
  send(piece: Buffer): Promise<void>
  receive(bytes: number): Promise<void>
}

export interface Ends {
  move(way: 'down' | 'up', mibs: number): Promise<void>
}

/** Lines of a build, because a recorder reads what it records; 64 KiB, Node's read from a pipe. */
const piece = Buffer.alloc(
  64 * 1024,
  Array.from(
    { length: 400 },
    (_, at) => `\u001b[${31 + (at % 6)}m[${at}]\u001b[0m compiling module-${at} ${'.'.repeat(at % 40)}\r\n`,
  ).join(''),
)
const piecesOfMib = (1024 * 1024) / piece.length

export async function openEnds(rung: Rung, ports: RelayPorts): Promise<Ends> {
  const [near, far] = await Promise.all([openNear(rung, ports.near), openFar(rung, ports.far)])
  return {
    async move(way, mibs) {
      const [source, target] = way === 'down' ? [far, near] : [near, far]
      const received = target.receive(mibs * piecesOfMib * piece.length)
      for (let count = 0; count < mibs * piecesOfMib; count++) await source.send(piece)
      await received
    },
  }
}

async function openNear(rung: Rung, port: number): Promise<End> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  if (!has(rung, 'legs')) return streamEnd(socket)
  return channelEnd((await startSession(await dialLeg(socket), shell)).channel)
}

async function openFar(rung: Rung, port: number): Promise<End> {
  if (rung === 'tcp') return streamEnd(net.connect({ port, host: '127.0.0.1', noDelay: true }))
  const carrier = await dialBytes(`ws://127.0.0.1:${port}`)
  if (!has(rung, 'yamux')) return streamEnd(carrier)
  const stream = await first(openMux(carrier, { role: 'server' }).incoming)
  if (!has(rung, 'leg')) return streamEnd(stream)
  const channel = (await first((await acceptLeg(stream)).channels)).accept()
  await receiveSession(channel, () => true)
  return channelEnd(channel)
}

async function first<T>(all: AsyncIterable<T>): Promise<T> {
  // Leaving a loop early would end what it iterates over.
  const next = await all[Symbol.asyncIterator]().next()
  if (next.done === true) throw new Error('the relay has left')
  return next.value
}

function streamEnd(stream: Duplex): End {
  return {
    async send(bytes) {
      if (!stream.write(bytes)) await once(stream, 'drain')
    },
    receive(bytes) {
      const { promise, resolve } = Promise.withResolvers<void>()
      let left = bytes
      const take = (chunk: Buffer): void => {
        left -= chunk.length
        if (left > 0) return
        stream.off('data', take)
        resolve()
      }
      stream.on('data', take)
      return promise
    },
  }
}

function channelEnd(channel: Channel): End {
  return {
    send: (bytes) => channel.write(bytes),
    async receive(bytes) {
      for (let left = bytes; left > 0;) {
        const chunk = await channel.read()
        if (!chunk) throw new Error('the relay has closed the channel')
        left -= chunk.bytes.length
      }
    },
  }
}
