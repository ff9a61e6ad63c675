// The endpoints for agents: WebSocket upgrades at the three addresses of tunnels. An agent whose upgrade is
// refused waits ten seconds; one whose WebSocket is closed comes back at once. So the server refuses before
// the upgrade whatever it can. New tunnels come at a steady rate (see admission.ts), because all agents come
// back together after a restart.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import {
  features,
  featuresHeader,
  instanceHeader,
  nonceHeader,
  sharedFeatures,
  tunnelPaths,
  type TargetAddress,
} from '@hawser/contract/tunnel'
import { acceptBytes, UpgradeFailed, type AcceptOptions } from '@hawser/mux'
import type { HeldName } from '../bus/bus.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import { controlPing, pickUpName, pickUps, revdialTunnel } from './accept/revdial.ts'
import { yamuxTunnel } from './accept/yamux.ts'
import type { Admission } from './admission.ts'
import type { Conflicts, TunnelSource } from './conflicts.ts'
import { Meter } from './meter.ts'
import type { Registry } from './registry.ts'
import type { Tunnel, TunnelDevice, TunnelOrigin } from './tunnel.ts'

export interface UpgradeRequest {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  readonly from: { readonly source: string }
}

export interface TunnelEndpointParts {
  registry: Registry
  /** Refuses a second machine with the same identity. */
  conflicts: Conflicts
  /** New tunnels of all devices together. */
  admission: Admission
  /** New tunnels with one token of a device: an agent whose tunnel is closed comes back at once. */
  perToken: Limiter
  /** New tunnels of one device from one address, with any token. */
  perDevice: Limiter
  /** Signs orders for an agent that sent this nonce. */
  sign: {
    hangUp(uid: string, nonce: string): string
    target(uid: string, nonce: string, target: TargetAddress): string
  }
  /** Lets other nodes find this one by the name. */
  hold(name: string): HeldName
  onError(device: TunnelDevice, error: unknown): void
}

/** Strangers can get tokens of the device; its own must not share a budget with theirs. */
export interface TunnelDial {
  readonly uid: string
  readonly token: string
  readonly source: string
}

/** For a tunnel that another module has opened. */
export interface TunnelArrival extends Pick<TunnelSource, 'isRival'> {
  /** Throws a Failure if the device may no longer connect. */
  recheck(): Promise<unknown>
}

export interface TunnelEndpoints {
  /** Takes such a tunnel under the same limits. False: closed, because it did not become the device's. */
  bring(tunnel: Tunnel, origin: TunnelOrigin, arrival: TunnelArrival): Promise<boolean>
  /** Throws a Failure with the time to wait when too many tunnels are opened, or this device opens too many. */
  admit(dial: TunnelDial): void
  /**
   * Opens the tunnel of the device that the token names and that was admitted. `recheck` throws a Failure if
   * the device may no longer connect.
   */
  enter(
    device: TunnelDevice,
    path: string,
    upgrade: UpgradeRequest,
    recheck: () => Promise<unknown>,
  ): Promise<void>
  /** A stream of a version 1 tunnel: its address is the credential. */
  pickUp(upgrade: UpgradeRequest): Promise<void>
  /** The name of the pick-up on the bus, if it is not for a tunnel of ours. */
  pickUpElsewhere(upgrade: UpgradeRequest): string | undefined
}

/** Any device may send the header. */
const longestInstance = 64
/** The time to wait for a device that opens tunnels too often. */
const pause_s = 10

export function tunnelEndpoints(parts: TunnelEndpointParts): TunnelEndpoints {
  const waiting = pickUps(parts.hold)
  const admit = ({ uid, token, source }: TunnelDial): void => {
    if (
      parts.perToken.take(`${uid} ${token}`) > 0 ||
      parts.perDevice.take(`${uid} ${neighbourhood(source)}`) > 0
    )
      throw beyond(deviceLimits.tunnels, pause_s)
    const retryAfter = parts.admission.enter()
    if (retryAfter > 0) throw beyond(deviceLimits.tunnelsOfAll, retryAfter)
  }
  const offer = async (tunnel: Tunnel, origin: TunnelOrigin): Promise<boolean> =>
    parts.registry.offer(tunnel, origin).catch((error: unknown) => {
      parts.onError(tunnel.device, error)
      tunnel.close('The tunnel could not be entered.')
      return false
    })
  return {
    admit,
    async bring(tunnel, origin, { isRival = false, recheck }) {
      const { uid } = tunnel.device
      const from = { address: origin.source ?? '', instance: '', isRival }
      // Rivals have their own limit, so that they do not use up the device's.
      admit({ uid, token: isRival ? 'rivals' : '', source: from.address })
      const { waited, took } = await parts.conflicts.admit(tunnel.device, from)
      if (waited) await recheck()
      parts.conflicts.opened(tunnel, from)
      const isOwn = await offer(tunnel, origin)
      if (isOwn) took()
      return isOwn
    },
    async enter(device, path, upgrade, recheck) {
      const instance = upgrade.request.headers[instanceHeader]
      const from = {
        address: upgrade.from.source,
        instance: typeof instance === 'string' ? instance.slice(0, longestInstance) : '',
        token: device.token ?? '',
      }
      const { waited, took } = await parts.conflicts.admit(device, from)
      if (waited) await recheck()
      const seen = (): void => parts.registry.seen(device)
      const asked = upgrade.request.headers[featuresHeader]
      const answer = asked === undefined ? {} : { [featuresHeader]: features.join(', ') }
      const nonce = nonceOf(upgrade.request)
      const meter = new Meter()
      const tunnel =
        path === tunnelPaths.streams
          ? yamuxTunnel(
              device,
              acceptOrRefuse(upgrade, { headers: answer }),
              seen,
              sharedFeatures(asked),
              meter,
              nonce === undefined
                ? undefined
                : {
                    hangUp: () => parts.sign.hangUp(device.uid, nonce),
                    target: (target) => parts.sign.target(device.uid, nonce, target),
                  },
            )
          : revdialTunnel(
              device,
              acceptOrRefuse(upgrade, { ping: controlPing, onPong: seen }),
              waiting,
              meter,
            )
      meter.carry(upgrade.socket)
      parts.conflicts.opened(tunnel, from)
      const via = path === tunnelPaths.streams ? 'v2' : 'v1'
      if (await offer(tunnel, { via, source: from.address })) took()
    },
    pickUpElsewhere({ request }) {
      const id = dialerIn(request)
      return waiting.has(id) || !/^[0-9a-f]{32}$/.test(id) ? undefined : pickUpName(id)
    },
    async pickUp(upgrade) {
      const take = waiting.claim(dialerIn(upgrade.request))
      if (!take) throw new Failure('invalid', { message: 'unknown dialer' })
      take({ stream: acceptOrRefuse(upgrade), socket: upgrade.socket })
    },
  }
}

/** Undefined: the agent sent no valid one, and takes no order to hang up. */
export function nonceOf({ headers }: IncomingMessage): string | undefined {
  const nonce = headers[nonceHeader]
  return typeof nonce === 'string' && /^[0-9a-f]{32,64}$/.test(nonce) ? nonce : undefined
}

const dialerIn = (request: IncomingMessage): string =>
  new URL(request.url ?? '', 'http://tunnel').searchParams.get('revdial.dialer') ?? ''

/** Answers a malformed upgrade as bad input. */
function acceptOrRefuse({ request, socket, head }: UpgradeRequest, options?: AcceptOptions): Duplex {
  try {
    return acceptBytes(request, socket, head, options)
  } catch (cause) {
    if (cause instanceof UpgradeFailed) throw new Failure('invalid', { message: cause.message, cause })
    throw cause
  }
}
