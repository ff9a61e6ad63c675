// Which tunnel leads to which device. A device has one owner. A newer tunnel takes over only when it has
// proved that its agent holds the device's key, because anyone who knows a device's identity can get its
// token. The displaced tunnel is closed, and only when the last is gone is the device offline. Once the key
// was proved, every tunnel must prove it: by a signature that we request over it, or with older agents by the
// host key of their SSH server, which is the same key. Among several nodes a new owner takes a number from
// the database; the highest one counts, and the others let go.
import { hangUp_ms } from '@hawser/contract/tunnel'
import type { Tunnel, TunnelDevice, TunnelEnding, TunnelOrigin } from './tunnel.ts'

/** The name by which nodes find the one that has a device's tunnel. */
export const deviceName = (uid: string): string => `device.${uid}`

export interface RegistryParts {
  /** Proof by an SSH key exchange over the tunnel. */
  probe(tunnel: Tunnel, signal: AbortSignal): Promise<boolean>
  /** The device has become ours, or gave another sign of life. */
  up(device: TunnelDevice, number: number): void
  down(device: TunnelDevice, number: number): Promise<void>
  proved(device: TunnelDevice): Promise<void>
  /** The agent has proved, in either way, that it holds the device's key. */
  recognised(
    device: TunnelDevice,
    tunnel: { readonly source?: string | undefined; readonly reports: boolean },
  ): Promise<void>
  /** A number higher than that of every tunnel of the device before. */
  claim(device: TunnelDevice): Promise<number>
  isElsewhere(uid: string): Promise<boolean>
  /** The device is ours; returns what is to be undone when it no longer is. */
  held(device: TunnelDevice, number: number): Disposable
  /** Another node owns this tunnel now. */
  moved(device: TunnelDevice): void
  onOpened?(device: TunnelDevice, origin: TunnelOrigin | undefined): void
  /** A tunnel that was the device's has ended, or one that could not prove itself was refused. */
  onClosed?(device: TunnelDevice, closed: ClosedTunnel): void
  onError(what: string, device: TunnelDevice, error: unknown): void
}

export interface ClosedTunnel {
  readonly ending: TunnelEnding
  readonly detail: string | undefined
  /** The agent was silent for too long. */
  readonly silent?: boolean | undefined
  /** How long the tunnel was the device's. */
  readonly lasted_ms: number
}

interface Owner {
  readonly tunnel: Tunnel
  readonly number: number
  readonly opened_at: number
  /** Undone when the tunnel is no longer the device's. */
  held: Disposable | undefined
  /** Why the registry closes it; undefined while it does not. */
  ending: TunnelEnding | undefined
}

export interface Registry {
  /** Judges a new tunnel, and closes it if it may not have the device. True: it has become the device's. */
  offer(tunnel: Tunnel, origin?: TunnelOrigin): Promise<boolean>
  /** Undefined when a newer tunnel than ours is known. */
  find(uid: string, least?: number): Tunnel | undefined
  all(): Iterable<Tunnel>
  /** A sign of life through a tunnel. It counts only while the tunnel is the device's. */
  seen(device: TunnelDevice): void
  /**
   * Ends the tunnel of a device that may no longer have one. The agent first ends all that runs for people,
   * within a bound; until then the tunnel is for nothing else.
   */
  drop(uid: string, why: string): void
  /** The device keeps its tunnel, and ends all that runs on it for people. */
  hangUp(uid: string): void
  /** Another node has a newer tunnel of the device. */
  yield(uid: string, number: number): void
  readonly size: number
  /** Closes all tunnels, spread over this time, because agents reconnect at once. */
  drain(over_ms: number): Promise<void>
}

const proof_ms = 15_000
const noKey = 'The agent does not hold the device’s key.'

function close(owner: Owner, ending: TunnelEnding, why: string): void {
  owner.ending ??= ending
  owner.tunnel.close(why)
}

async function closeAll(leaving: readonly (Owner | Tunnel)[], over_ms: number): Promise<void> {
  const step_ms = over_ms / Math.max(1, leaving.length)
  const begun = performance.now()
  for (const [index, one] of leaving.entries()) {
    const wait_ms = begun + index * step_ms - performance.now()
    if (wait_ms > 10) await new Promise((resolve) => setTimeout(resolve, wait_ms))
    const why = 'The server is stopping.'
    if ('tunnel' in one) close(one, 'stopping', why)
    else one.close(why)
  }
}

/** Resolves when the agent has ended everything, or after `hangUp_ms`; never rejects. */
async function hangUp(tunnel: Tunnel): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, hangUp_ms)
  // An agent that takes no order still reads the goodbyes of sessions that were sent before a ping.
  const told = tunnel.hangUp ? tunnel.hangUp(AbortSignal.timeout(hangUp_ms)) : tunnel.roundTrip?.()
  await Promise.race([told?.catch(() => undefined), limit.promise])
  clearTimeout(timer)
}

/**
 * Tunnels under judgement, by device and by token: a newer one replaces only an older one with the same
 * token. The rate of admission and `proof_ms` limit how many there are.
 */
function candidates() {
  const judged = new Map<string, Map<string, Tunnel>>()
  return {
    enter(tunnel: Tunnel): void {
      const { uid, token = '' } = tunnel.device
      const its = judged.get(uid) ?? new Map<string, Tunnel>()
      judged.set(uid, its)
      its.get(token)?.close('A newer tunnel of the device came.')
      its.set(token, tunnel)
    },
    /** False: a newer one has taken its place. */
    leave(tunnel: Tunnel): boolean {
      const { uid, token = '' } = tunnel.device
      const its = judged.get(uid)
      if (its?.get(token) !== tunnel) return false
      its.delete(token)
      if (its.size === 0) judged.delete(uid)
      return true
    },
    drop(uid: string, why: string): void {
      for (const tunnel of judged.get(uid)?.values() ?? []) tunnel.close(why)
      judged.delete(uid)
    },
    all: (): Tunnel[] => [...judged.values()].flatMap((its) => [...its.values()]),
  }
}

/** Whether the agent at a tunnel holds the key of its device. */
function proofs(parts: RegistryParts) {
  const recognise = (tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<void> =>
    parts.recognised(tunnel.device, { source: origin?.source, reports: tunnel.incoming !== undefined })

  async function isProved(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<boolean> {
    const signal = AbortSignal.timeout(proof_ms)
    try {
      const signed = await tunnel.prove?.(signal)
      if (signed) await parts.proved(tunnel.device)
      const good = signed ?? (await parts.probe(tunnel, signal))
      if (good) await recognise(tunnel, origin)
      return good
    } catch (error) {
      parts.onError('tunnel.unproved', tunnel.device, error)
      return false
    }
  }

  /**
   * Takes the proof of an agent that need not prove itself, and must do so from then on. False: the proof is
   * wrong.
   */
  async function bind(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<boolean> {
    const { device } = tunnel
    const proof = await tunnel.prove?.(AbortSignal.timeout(proof_ms)).catch(() => undefined)
    if (proof === false) return false
    if (proof) await parts.proved(device)
    const probed = async (): Promise<boolean> =>
      parts.probe(tunnel, AbortSignal.timeout(proof_ms)).catch(() => false)
    if (device.wantsProof && (proof ?? (await probed()))) await recognise(tunnel, origin)
    return true
  }

  return { isProved, bind }
}

export function registry(parts: RegistryParts): Registry {
  const owners = new Map<string, Owner>()
  const judged = candidates()
  const { isProved, bind } = proofs(parts)

  async function own(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<void> {
    const { device } = tunnel
    const { uid } = device
    const number = await parts.claim(device)
    const before = owners.get(uid)
    if (before && before.number > number) return tunnel.close('A newer tunnel of the device took over.')
    before?.held?.[Symbol.dispose]()
    const ours: Owner = { tunnel, number, opened_at: performance.now(), held: undefined, ending: undefined }
    // Programs that were started before the device was set back, while its agent was away.
    if (device.unaccepted) void hangUp(tunnel)
    owners.set(uid, ours)
    // Set before the news is sent, because it reaches this node, too.
    ours.held = parts.held(device, number)
    if (before) close(before, 'replaced', 'A newer tunnel of the device took over.')
    parts.up(device, number)
    parts.onOpened?.(device, origin)
    void tunnel.ended.then(async (end) => {
      parts.onClosed?.(device, {
        ending: ours.ending ?? end?.ending ?? 'closed',
        detail: end?.detail,
        silent: end?.silent,
        lasted_ms: performance.now() - ours.opened_at,
      })
      const owner = owners.get(uid)
      if (owner?.tunnel !== tunnel) return
      owners.delete(uid)
      owner.held?.[Symbol.dispose]()
      try {
        await parts.down(device, number)
      } catch (error) {
        parts.onError('tunnel.down', device, error)
      }
    })
  }

  async function judge(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<void> {
    const { uid, mustProve, isFirstProof } = tunnel.device
    const needsProof = mustProve || isFirstProof === false || owners.has(uid)
    // While it is unknown whether another node has a tunnel of the device, one may.
    if (!needsProof && !(await parts.isElsewhere(uid).catch(() => true))) {
      await own(tunnel, origin)
      if (await bind(tunnel, origin)) return
      const owner = owners.get(uid)
      return owner?.tunnel === tunnel ? close(owner, 'unproved', noKey) : tunnel.close(noKey)
    }
    judged.enter(tunnel)
    const good = await isProved(tunnel, origin)
    if (!judged.leave(tunnel)) return tunnel.close('A newer tunnel of the device came.')
    if (good) return own(tunnel, origin)
    parts.onClosed?.(tunnel.device, { ending: 'unproved', detail: noKey, lasted_ms: 0 })
    tunnel.close(noKey)
  }

  return {
    async offer(tunnel, origin) {
      await judge(tunnel, origin)
      return owners.get(tunnel.device.uid)?.tunnel === tunnel
    },
    find(uid, least = 0) {
      const owner = owners.get(uid)
      return owner && owner.number >= least && !owner.ending ? owner.tunnel : undefined
    },
    all: () => [...owners.values()].map(({ tunnel }) => tunnel),
    seen(device) {
      const owner = owners.get(device.uid)
      if (owner?.tunnel.device === device) parts.up(device, owner.number)
    },
    drop(uid, why) {
      judged.drop(uid, why)
      const owner = owners.get(uid)
      if (!owner || owner.ending) return
      owner.ending = 'revoked'
      const { tunnel } = owner
      if (!tunnel.hangUp && !tunnel.roundTrip) return tunnel.close(why)
      void hangUp(tunnel).then(() => tunnel.close(why))
    },
    hangUp(uid) {
      const owner = owners.get(uid)
      if (owner && !owner.ending) void hangUp(owner.tunnel)
    },
    yield(uid, number) {
      const owner = owners.get(uid)
      if (!owner || owner.number >= number) return
      owners.delete(uid)
      owner.held?.[Symbol.dispose]()
      parts.moved(owner.tunnel.device)
      close(owner, 'moved', 'A newer tunnel of the device took over, on another node.')
    },
    get size() {
      return owners.size
    },
    drain: (over_ms) => closeAll([...owners.values(), ...judged.all()], over_ms),
  }
}
