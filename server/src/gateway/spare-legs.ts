// Spare legs: after a login the gateway dials another leg to the same device, for whoever comes next. The
// agent has proved on it that it is the device, and nobody has logged in, so the next login saves a round
// trip. A spare leg is given away once and never comes back, whatever becomes of the login: nothing of one
// person reaches another. It grants nothing: every login asks all questions first (login.ts), and the device
// asks for its proof as usual. There is one for a device at most and a bounded number on a node, for some
// minutes. While it waits the agent pings as often as in a session.
import { spareLeg_ms, type Feature } from '@hawser/contract/tunnel'
import type { Unauthenticated } from '@hawser/ssh'
import type { Reachable } from '../domain/access/logins.ts'
import type { ResumableStream } from '../tunnel/resumable.ts'

type Device = Reachable['device']

/** A leg whose agent has proved that it is the device, and on which nobody has logged in yet. */
export interface OpenLeg {
  readonly client: Unauthenticated
  /** The features that the agent supports, too. */
  readonly features: ReadonlySet<Feature>
  /** How long it took to open it. */
  readonly dialled_ms: number
  /** The stream under it, if it outlives the tunnel. */
  readonly resumable: ResumableStream | undefined
  /** Somebody has logged in: from now on the leg may outlive its tunnel. */
  keep(): void
}

export interface SpareLegs extends Disposable {
  /** Whether there is a spare leg to this device, or will be soon. */
  has(device: Device): boolean
  /**
   * The spare leg to this device, which is the caller's from now on; undefined if there is none that waits as
   * long for a tunnel: a namespace may have changed that.
   */
  take(device: Device, grace_s: number): Promise<OpenLeg> | undefined
  /**
   * Dials a spare leg, unless there is one. `grace_s`: how long it will wait for a tunnel, once it is in use.
   */
  refill(device: Device, grace_s: number): void
  /** Closes the spare legs to these devices. */
  drop(whose: (device: Pick<Device, 'uid' | 'tenant_id'>) => boolean): void
  /** How many are ready. */
  readonly size: number
  /** Whether the one to this device is ready. */
  isReady(uid: string): boolean
}

export interface SpareLegParts {
  /** The signal ends the leg. */
  dial(device: Device, grace_s: number, signal: AbortSignal): Promise<OpenLeg>
  readonly limits?: { readonly most: number; readonly kept_ms: number }
}

interface Spare {
  /** The device as it was when the leg was dialled. */
  readonly device: Device
  readonly grace_s: number
  readonly leg: Promise<OpenLeg>
  isReady: boolean
  readonly ending: AbortController
  /** Closes the leg when nobody has needed it. */
  readonly timer: NodeJS.Timeout
}

/** Each takes some tens of kilobytes. */
const usual = { most: 256, kept_ms: spareLeg_ms }

export function spareLegs({ dial, limits = usual }: SpareLegParts): SpareLegs {
  /** Spare legs by the uid of the device, oldest first. */
  const spares = new Map<string, Spare>()
  let isClosed = false

  const forget = (spare: Spare): void => {
    clearTimeout(spare.timer)
    if (spares.get(spare.device.uid) === spare) spares.delete(spare.device.uid)
  }
  const close = (spare: Spare): void => {
    forget(spare)
    spare.ending.abort()
  }
  /** The spare leg, if it leads to the device that is meant now: one that was made anew has another key. */
  const find = ({ uid, tenant_id, public_key }: Device): Spare | undefined => {
    const spare = spares.get(uid)
    if (!spare || (spare.device.tenant_id === tenant_id && spare.device.public_key === public_key))
      return spare
    close(spare)
    return undefined
  }

  return {
    has: (device) => find(device) !== undefined,
    take(device, grace_s) {
      const spare = find(device)
      if (spare && spare.grace_s !== grace_s) {
        close(spare)
        return undefined
      }
      if (spare) forget(spare)
      return spare?.leg
    },
    refill(device, grace_s) {
      if (isClosed || find(device)) return
      for (const oldest of spares.values()) {
        if (spares.size < limits.most) break
        close(oldest)
      }
      const ending = new AbortController()
      const leg = dial(device, grace_s, ending.signal)
      const timer = setTimeout(() => close(spare), limits.kept_ms).unref()
      const spare: Spare = { device, grace_s, leg, isReady: false, ending, timer }
      spares.set(device.uid, spare)
      leg.then(
        ({ client }) => {
          spare.isReady = true
          void client.transport.ended.then(() => forget(spare))
        },
        () => forget(spare),
      )
    },
    drop(whose) {
      for (const spare of spares.values()) if (whose(spare.device)) close(spare)
    },
    get size() {
      return [...spares.values()].filter(({ isReady }) => isReady).length
    },
    isReady: (uid) => spares.get(uid)?.isReady === true,
    [Symbol.dispose]() {
      isClosed = true
      for (const spare of spares.values()) close(spare)
    },
  }
}
