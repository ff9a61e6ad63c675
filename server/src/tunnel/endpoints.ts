// Where agents come in: requests for a WebSocket at the tunnel's three addresses. Refusing costs an agent ten
// seconds, while one that is accepted and then closed is back at once: so everything that can be refused is
// refused here, before the WebSocket. New tunnels are let in at a steady rate (see admission.ts), because
// after a restart all agents come together.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { tunnelPaths } from '@hawser/contract/tunnel'
import { acceptBytes, UpgradeFailed, type BytesOptions } from '@hawser/mux'
import type { Limiter } from '../kit/limiter.ts'
import { controlPing, pickUpName, pickUps, revdialTunnel } from './accept/revdial.ts'
import { yamuxTunnel } from './accept/yamux.ts'
import type { Admission } from './admission.ts'
import type { Registry } from './registry.ts'
import type { Tunnel, TunnelDevice } from './tunnel.ts'

export interface Doorway {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

export interface DoorParts {
  registry: Registry
  /** New tunnels of all devices together. */
  admission: Admission
  /** New tunnels of one device: one that is not let stay is back at once. */
  perDevice: Limiter
  /** Lets other nodes find what is here under this name. */
  hold(name: string): Disposable
  onError(device: TunnelDevice, error: unknown): void
}

export interface TunnelDoors {
  /** A tunnel that was made elsewhere; the same limits hold for it. */
  bring(tunnel: Tunnel): Promise<void>
  /** Throws a Failure when too many come, or this one too often; it says when to come back. */
  inTurn(uid: string): void
  /** An agent's tunnel, of the device that its token names and whose turn it is. */
  enter(device: TunnelDevice, path: string, doorway: Doorway): Promise<void>
  /** A stream of a version 1 tunnel: its address is the credential. */
  pickUp(doorway: Doorway): Promise<void>
  /** The name of the pick-up on the bus, if it is not for a tunnel of ours. */
  pickUpElsewhere(doorway: Doorway): string | undefined
}

/** For whoever opens tunnels too often. */
const pause_s = 10

export function tunnelDoors(parts: DoorParts): TunnelDoors {
  const waiting = pickUps(parts.hold)
  const inTurn = (uid: string): void => {
    if (parts.perDevice.take(uid) > 0)
      throw new Failure('tooMany', { message: 'The device opens tunnels too often.', retryAfter: pause_s })
    const retryAfter = parts.admission.enter()
    if (retryAfter > 0)
      throw new Failure('unavailable', { message: 'Too many devices come at once; come back.', retryAfter })
  }
  const offer = async (tunnel: Tunnel): Promise<void> =>
    parts.registry.offer(tunnel).catch((error: unknown) => {
      parts.onError(tunnel.device, error)
      tunnel.close('The tunnel could not be entered.')
    })
  return {
    inTurn,
    async bring(tunnel) {
      inTurn(tunnel.device.uid)
      await offer(tunnel)
    },
    async enter(device, path, doorway) {
      const seen = (): void => parts.registry.seen(device)
      const tunnel =
        path === tunnelPaths.streams
          ? yamuxTunnel(device, acceptOrRefuse(doorway), seen)
          : revdialTunnel(device, acceptOrRefuse(doorway, { ping: controlPing, onPong: seen }), waiting)
      await offer(tunnel)
    },
    pickUpElsewhere({ request }) {
      const id = dialerIn(request)
      return waiting.has(id) || !/^[0-9a-f]{32}$/.test(id) ? undefined : pickUpName(id)
    },
    async pickUp(doorway) {
      const take = waiting.claim(dialerIn(doorway.request))
      if (!take) throw new Failure('invalid', { message: 'unknown dialer' })
      take(acceptOrRefuse(doorway))
    },
  }
}

const dialerIn = (request: IncomingMessage): string =>
  new URL(request.url ?? '', 'http://tunnel').searchParams.get('revdial.dialer') ?? ''

/** What is no proper request for a WebSocket is answered as bad input. */
function acceptOrRefuse({ request, socket, head }: Doorway, options?: BytesOptions): Duplex {
  try {
    return acceptBytes(request, socket, head, options)
  } catch (cause) {
    if (cause instanceof UpgradeFailed) throw new Failure('invalid', { message: cause.message, cause })
    throw cause
  }
}
