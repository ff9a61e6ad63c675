// Which tunnel leads to which device. A device has one owner: a newer tunnel takes over only when it has
// proved that its agent holds the device's key, because whoever knows a device's identity can get its token;
// until then the older one stays. The one that is displaced is closed, and only when the last is gone is the
// device offline. Once the key was proved, every tunnel must prove it before it is the device's. A tunnel proves itself by a signature that we ask for over it; with agents that know
// nothing of that, by the host key of their SSH server, which is the same key. With several nodes a device
// has one owner among all of them: whoever becomes it takes a number from the database, the highest one
// counts, and the others are told to let go.
import { hangUp_ms } from '@hawser/contract/tunnel'
import type { Tunnel, TunnelDevice, TunnelEnding, TunnelOrigin } from './tunnel.ts'

/** Under which the node that has a device's tunnel is found. */
export const deviceName = (uid: string): string => `device.${uid}`

export interface RegistryParts {
  /** Proof by an SSH key exchange over the tunnel. */
  probe(tunnel: Tunnel, signal: AbortSignal): Promise<boolean>
  /** It has become ours, or gave another sign of life. */
  up(device: TunnelDevice, number: number): void
  down(device: TunnelDevice, number: number): Promise<void>
  proved(device: TunnelDevice): Promise<void>
  /** Its agent holds the device's key, in whichever way that was proved. */
  recognised(
    device: TunnelDevice,
    tunnel: { readonly source?: string | undefined; readonly reports: boolean },
  ): Promise<void>
  /** A number higher than that of every tunnel of the device before. */
  claim(device: TunnelDevice): Promise<number>
  /** Another node has its tunnel. */
  isElsewhere(uid: string): Promise<boolean>
  /** It is ours; returns what is to be undone when it is not any more. */
  held(device: TunnelDevice, number: number): Disposable
  /** It is another node's now. */
  moved(device: TunnelDevice): void
  /** The tunnel is the device's from now on. */
  onOpened?(device: TunnelDevice, origin: TunnelOrigin | undefined): void
  /** A tunnel that was the device's has ended, or one that could not prove itself was refused. */
  onClosed?(device: TunnelDevice, closed: ClosedTunnel): void
  onError(what: string, device: TunnelDevice, error: unknown): void
}

export interface ClosedTunnel {
  readonly ending: TunnelEnding
  readonly detail: string | undefined
  /** The agent had said nothing for too long. */
  readonly silent?: boolean | undefined
  /** How long it was the device's. */
  readonly lasted_ms: number
}

/** A tunnel that is its device's. */
interface Owner {
  readonly tunnel: Tunnel
  readonly number: number
  readonly opened_at: number
  /** Undone when the tunnel is not the device's any more. */
  held: Disposable | undefined
  /** Why the registry closes it; undefined while it does not. */
  ending: TunnelEnding | undefined
}

export interface Registry {
  /** Judges a new tunnel, and closes it if it may not have the device. True: it is the device's now. */
  offer(tunnel: Tunnel, origin?: TunnelOrigin): Promise<boolean>
  /** The device's tunnel, unless a newer one is known than ours. */
  find(uid: string, least?: number): Tunnel | undefined
  all(): Iterable<Tunnel>
  /**
   * A sign of life through a tunnel; one that has not become the device's, or is not any more, says nothing
   * about it.
   */
  seen(device: TunnelDevice): void
  /**
   * Ends the tunnel of a device that may no longer have one. The agent first ends all that
   * runs for people, within a bound; until then the tunnel is for nothing else.
   */
  drop(uid: string, why: string): void
  /** The device keeps its tunnel, and ends all that runs on it for people. */
  hangUp(uid: string): void
  /** Another node has a newer tunnel of the device. */
  yield(uid: string, number: number): void
  readonly size: number
  /** Lets all tunnels go, spread over so long: agents come back at once. */
  drain(over_ms: number): Promise<void>
}

const proof_ms = 15_000

export function registry(parts: RegistryParts): Registry {
  const owners = new Map<string, Owner>()
  /**
   * Tunnels that are being judged, by device and by token: a newer one makes an older one with the same token
   * give way, and no other. The rate of admission and `proof_ms` limit how many there are.
   */
  const candidates = new Map<string, Map<string, Tunnel>>()

  const close = (owner: Owner | undefined, ending: TunnelEnding, why: string): void => {
    if (!owner) return
    owner.ending ??= ending
    owner.tunnel.close(why)
  }
  /** Resolves when the agent has ended everything, or after `hangUp_ms`; never rejects. */
  const hangUp = async (tunnel: Tunnel): Promise<void> => {
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, hangUp_ms)
    // An agent that takes no order still reads the goodbyes of sessions that were sent before a ping.
    const told = tunnel.hangUp ? tunnel.hangUp(AbortSignal.timeout(hangUp_ms)) : tunnel.roundTrip?.()
    await Promise.race([told?.catch(() => undefined), limit.promise])
    clearTimeout(timer)
  }
  const refuse = (tunnel: Tunnel, why: string): void => {
    parts.onClosed?.(tunnel.device, { ending: 'unproved', detail: why, lasted_ms: 0 })
    tunnel.close(why)
  }

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

  /** Not needed to begin with, but an agent that can prove itself binds the device to that for good. */
  async function bind(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<void> {
    const { device } = tunnel
    const proof = await tunnel.prove?.(AbortSignal.timeout(proof_ms)).catch(() => undefined)
    if (proof === false) {
      const owner = owners.get(device.uid)
      const why = 'The agent does not hold the device’s key.'
      return owner?.tunnel === tunnel ? close(owner, 'unproved', why) : tunnel.close(why)
    }
    if (proof) await parts.proved(device)
    const probed = async (): Promise<boolean> =>
      parts.probe(tunnel, AbortSignal.timeout(proof_ms)).catch(() => false)
    if (device.wantsProof && (proof ?? (await probed()))) await recognise(tunnel, origin)
  }

  async function own(tunnel: Tunnel, origin: TunnelOrigin | undefined): Promise<void> {
    const { device } = tunnel
    const { uid } = device
    const number = await parts.claim(device)
    const before = owners.get(uid)
    if (before && before.number > number) return tunnel.close('A newer tunnel of the device took over.')
    before?.held?.[Symbol.dispose]()
    const ours: Owner = {
      tunnel,
      number,
      opened_at: performance.now(),
      held: undefined,
      ending: undefined,
    }
    // Programs that were started before the device was set back, while its agent was away.
    if (device.unaccepted) void hangUp(tunnel)
    owners.set(uid, ours)
    // Ours before it is told: the news reach us too, and are then no news.
    ours.held = parts.held(device, number)
    close(before, 'replaced', 'A newer tunnel of the device took over.')
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
    const { uid, mustProve, isFirstProof, token = '' } = tunnel.device
    const needsProof = mustProve || isFirstProof === false || owners.has(uid)
    // While it cannot be found out whether another node has a tunnel of the device, one may.
    if (!needsProof && !(await parts.isElsewhere(uid).catch(() => true))) {
      await own(tunnel, origin)
      return bind(tunnel, origin)
    }
    const judged = candidates.get(uid) ?? new Map<string, Tunnel>()
    candidates.set(uid, judged)
    judged.get(token)?.close('A newer tunnel of the device came.')
    judged.set(token, tunnel)
    const good = await isProved(tunnel, origin)
    if (judged.get(token) !== tunnel) return tunnel.close('A newer tunnel of the device came.')
    judged.delete(token)
    if (judged.size === 0) candidates.delete(uid)
    if (good) await own(tunnel, origin)
    else refuse(tunnel, 'The agent does not hold the device’s key.')
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
      const judged = candidates.get(uid)
      for (const tunnel of judged?.values() ?? []) tunnel.close(why)
      judged?.clear()
      candidates.delete(uid)
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
    async drain(over_ms) {
      const judged = [...candidates.values()].flatMap((tunnels) => [...tunnels.values()])
      const leaving = [...owners.values(), ...judged]
      const step_ms = over_ms / Math.max(1, leaving.length)
      const begun = performance.now()
      for (const [index, one] of leaving.entries()) {
        const wait_ms = begun + index * step_ms - performance.now()
        if (wait_ms > 10) await new Promise((resolve) => setTimeout(resolve, wait_ms))
        const why = 'The server is stopping.'
        if ('tunnel' in one) close(one, 'stopping', why)
        else one.close(why)
      }
    },
  }
}
