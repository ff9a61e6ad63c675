// An SSH client that has keys and keeps to no rule after that, for attacks on the transport and on channels:
// it speaks to a port with our own transport, sends whatever message it likes, and can stop reading.
import { once } from 'node:events'
import net from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { allAlgorithms, type Algorithms } from '../../ssh/src/algorithms.ts'
import { Message } from '../../ssh/src/messages.ts'
import { writeKexInit } from '../../ssh/src/transport/kexinit.ts'
import type { Transport } from '../../ssh/src/transport/transport.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { rudeTransport } from '../../ssh/test/pairs.ts'

export interface RudeClient extends Disposable {
  readonly transport: Transport
  readonly socket: net.Socket
  /** Every message of a service that came since the login. */
  readonly received: Buffer[]
  /**
   * So many messages, as fast as the socket takes them; false when the server has closed before the last one.
   */
  flood(count: number, make: (at: number) => Writer): Promise<boolean>
  /** Logs in without a proof, where that is enough. */
  logIn(user?: string): Promise<void>
  /** From now on nothing is read, but that the server closed. */
  readNothing(): void
  readonly closed: Promise<void>
}

/** Messages at a time, so that the attacker does not meet its own bounds on what waits. */
const atOnce = 500

export async function rudeClient(port: number, algorithms: Algorithms = allAlgorithms): Promise<RudeClient> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const transport = await rudeTransport(socket, algorithms)
  const received: Buffer[] = []
  let ownFault: Error | undefined
  void transport.ended.then((how) => {
    if (how.by === 'us') ownFault = how
  })
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
  let taken = false
  /** Lifts the bounds for strangers from our own side. */
  const take = (): void => {
    if (taken) return
    taken = true
    transport.takeOver(
      (payload) => void received.push(Buffer.from(payload)),
      () => undefined,
    )
  }

  /** What was sent has left, unless the server has closed. */
  const written = async (): Promise<void> => {
    await turn()
    if (!socket.writableNeedDrain || socket.destroyed) return
    const drained = Promise.withResolvers<void>()
    socket.once('drain', drained.resolve)
    await Promise.race([drained.promise, closed])
  }

  return {
    transport,
    socket,
    received,
    closed,
    async flood(count, make) {
      take()
      for (let sent = 0; sent < count; sent += 1) {
        if (ownFault) throw ownFault
        if (socket.destroyed || socket.writableEnded) return false
        transport.send(make(sent))
        if (sent % atOnce === atOnce - 1 || transport.congested) await written()
      }
      await written()
      return !socket.destroyed
    },
    async logIn(user = 'olga') {
      transport.send(message(Message.serviceRequest).string('ssh-userauth'))
      transport.send(message(Message.authRequest).string(user).string('ssh-connection').string('none'))
      for (let type = 0; type !== Message.authSuccess;) type = (await transport.receive())[0]!
      take()
    },
    readNothing() {
      socket.removeAllListeners('data')
      socket.pause()
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** A wish for new keys, as the first message of an exchange that goes no further. */
export function kexInit(): Writer {
  return writeKexInit('client', allAlgorithms)
}

/** A message of no known kind, which every server answers with one of its own. */
export function unknown(): Writer {
  return message(150)
}
