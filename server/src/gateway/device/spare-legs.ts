// Spare legs: after a login the gateway dials another leg to the same device, for the next login, which saves
// a round trip. The agent has proved its identity on it, and nobody has logged in. A spare leg is given away
// once, whatever becomes of the login: nothing of one person reaches another. It grants nothing: every login
// is judged first (login.ts), and the device demands its proof as usual. There is at most one for a device
// and a bounded number on a node, for some minutes. While it waits the agent pings as often as in a session.
import { spareLeg_ms, type Feature } from '@hawser/contract/tunnel'
import type { Unauthenticated } from '@hawser/ssh'
import type { Reachable } from '../../domain/access/logins.ts'
import type { ResumableStream } from '../../tunnel/resumable.ts'

type Device = Reachable['device']

/** A leg whose agent has proved its identity, and on which nobody has logged in yet. */
export interface OpenLeg {
  readonly client: Unauthenticated
  /** The features that both ends support. */
  readonly features: ReadonlySet<Feature>
  readonly dialled_ms: number
  /** The stream under the leg, if it outlives the tunnel. */
  readonly resumable: ResumableStream | undefined
  /** Called at the login: the leg may then outlive its tunnel. */
  keep(): void
}

export interface SpareLegs extends Disposable {
  has(device: Device): boolean
  /**
   * Hands the spare leg to the caller. Undefined if there is none with this `grace_s`, which the namespace may
   * have changed.
   */
  take(device: Device, grace_s: number): Promise<OpenLeg> | undefined
  /** Dials a spare leg, unless there is one. `grace_s`: how long a leg in use waits for a tunnel. */
  refill(device: Device, grace_s: number): void
  drop(whose: (device: Pick<Device, 'uid' | 'tenant_id'>) => boolean): void
  readonly size: number
  isReady(uid: string): boolean
}

export interface SpareLegParts {
  dial(device: Device, grace_s: number, signal: AbortSignal): Promise<OpenLeg>
  readonly limits?: { readonly most: number; readonly kept_ms: number }
}

interface Spare {
  readonly device: Device
  readonly grace_s: number
  readonly leg: Promise<OpenLeg>
  isReady: boolean
  readonly ending: AbortController
  readonly timer: NodeJS.Timeout
}

/** Each leg takes some tens of kilobytes. */
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
  /** The spare leg, if its device still has the same key. */
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
