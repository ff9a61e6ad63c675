// Notices that two machines use one device's identity, as copies of an SD card do: each takes the tunnel from
// the other, again and again. A device that lost its link does so once, so only after some takeovers in a
// minute is the present tunnel asked for a sign. If it answers, it stays, the newcomer is refused with a
// growing time to wait, and members are notified; if not, the newcomer takes over. Only machines that have
// proved the device's key count, because strangers can get a token for it; a newcomer without proof is let
// in, to prove the key or to be refused. Our own agents name their process, so one that reconnects is never
// taken for two. A rival, with another credential, never takes over from a tunnel that answers.
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../kit/bounded-map.ts'
import { minute_ms, second_ms, type Clock } from '../kit/clock.ts'
import type { Tunnel, TunnelDevice } from './tunnel.ts'

export interface TunnelSource {
  readonly address: string
  /** Identifies the agent's process; empty from other agents. */
  readonly instance: string
  /** The token of the tunnel; undefined: the key was proved before. */
  readonly token?: string | undefined
  /** Came with another credential than the present tunnel, and takes over only from a silent one. */
  readonly isRival?: boolean
}

export interface ConflictReport {
  /** Milliseconds since 1970. */
  readonly began_at: number
  readonly seen_at: number
  /** The addresses of the tunnel that stays, and of the one that was refused. */
  readonly addresses: readonly [string, string]
}

export interface ConflictParts {
  readonly clock: Clock
  /** On this node. */
  find(uid: string): Tunnel | undefined
  /** On another node. */
  elsewhere(uid: string): Promise<Pick<Tunnel, 'openSsh'> | undefined>
  /** Whether an agent answers over the tunnel, by an SSH key exchange. */
  probe(tunnel: Tunnel, signal: AbortSignal): Promise<boolean>
  /** Two machines are at it; `first` when that is new. */
  onConflict(device: TunnelDevice, report: ConflictReport, first: boolean): void
}

export interface SourceAdmission {
  /** Admitting took seconds, and the device may have been rejected since. */
  readonly waited: boolean
  /** The newcomer has proved the key and taken over. */
  took(): void
}

export interface Conflicts {
  /** Throws a Failure if the newcomer has to wait, because another machine has the device's tunnel. */
  admit(device: TunnelDevice, from: TunnelSource): Promise<SourceAdmission>
  opened(tunnel: Tunnel, from: TunnelSource): void
}

/** A device whose tunnel was taken over lately. */
interface Suspicion {
  /** Times of takeovers within the last minute. */
  taken_at: number[]
  /** The machines that took it over, by process or by token. */
  readonly machines: BoundedMap<string, true>
  /** When a conflict was first seen; undefined: none so far. */
  began_at: number | undefined
  /** When a newcomer was last refused. */
  seen_at: number
  refusals: number
}

const suspicious = 3
const window_ms = minute_ms
const sign_ms = 4 * second_ms
/** A conflict is over after this silence. */
const quiet_ms = 15 * minute_ms
const waits_s = [15, 30, 60, 120, 300]
const mostSuspicions = 10_000
/** Per device; each has proved its key. */
const mostMachines = 16

const sentence =
  'Another machine is connected with this device’s identity. If this one is a copy of it, run `hawser-agent reset-identity` here.'

export function conflicts(parts: ConflictParts): Conflicts {
  const { clock } = parts
  const sources = new WeakMap<Tunnel, TunnelSource>()
  const suspicions = new BoundedMap<string, Suspicion>(mostSuspicions)

  async function answers(tunnel: Tunnel): Promise<boolean> {
    const signal = AbortSignal.timeout(sign_ms)
    const refused = new Promise<false>((resolve) =>
      signal.addEventListener('abort', () => resolve(false), { once: true }),
    )
    const asked = (async () => (await tunnel.prove?.(signal)) ?? (await parts.probe(tunnel, signal)))()
    return Promise.race([asked.catch(() => false), refused])
  }

  /** While other nodes cannot be asked, everybody but a rival may come. */
  const elsewhere = async (uid: string, isRival: boolean): ReturnType<ConflictParts['elsewhere']> =>
    parts.elsewhere(uid).catch((error: unknown) => {
      if (isRival) throw error
      return undefined
    })

  /** Not stored before something is known of the device. */
  const suspicionOf = (suspect: string): Suspicion => {
    const now = clock.now()
    const known = suspicions.get(suspect)
    const over = known?.began_at !== undefined && now - known.seen_at > quiet_ms
    const suspicion: Suspicion =
      known && !over
        ? known
        : {
            taken_at: [],
            machines: new BoundedMap(mostMachines),
            began_at: undefined,
            seen_at: 0,
            refusals: 0,
          }
    suspicion.taken_at = suspicion.taken_at.filter((at) => now - at < window_ms)
    return suspicion
  }

  /** Takes the tunnel from nobody, or from one that does not answer. */
  const uncounted = (waited: boolean): SourceAdmission => ({ waited, took: () => undefined })

  const rules: Conflicts = {
    opened: (tunnel, from) => void sources.set(tunnel, from),
    async admit(device, from) {
      const { uid } = device
      const { isRival = false } = from
      const here = parts.find(uid)
      const before = here && sources.get(here)
      if (before && before.instance !== '' && before.instance === from.instance) return uncounted(false)
      const remote = here ? undefined : await elsewhere(uid, isRival)
      if (!here && !remote) return uncounted(false)
      const now = clock.now()
      // Rivals are counted apart: they must not make anybody suspect the device itself.
      const suspect = isRival ? `${uid} rivals` : uid
      const machine = from.token === undefined ? undefined : from.instance || from.token
      const took = (): void => {
        const suspicion = suspicionOf(suspect)
        suspicion.taken_at.push(clock.now())
        if (machine !== undefined) suspicion.machines.set(machine, true)
        suspicions.set(suspect, suspicion)
      }
      const suspicion = suspicionOf(suspect)
      const isNew = machine !== undefined && !suspicion.machines.has(machine)
      const isQuiet = suspicion.began_at === undefined && suspicion.taken_at.length < suspicious
      if (!isRival && (isNew || isQuiet)) return { waited: false, took }
      suspicions.set(suspect, suspicion)
      const holder = here ?? (remote && overNodes(device, remote))
      if (!holder || !(await answers(holder)))
        // The device may have come back while a rival waited for an answer of its former tunnel.
        return isRival && parts.find(uid) !== here ? rules.admit(device, from) : uncounted(true)
      const first = suspicion.began_at === undefined
      suspicion.began_at ??= now
      suspicion.seen_at = clock.now()
      const retryAfter = waits_s[Math.min(suspicion.refusals, waits_s.length - 1)] ?? 0
      suspicion.refusals += 1
      const addresses = [before?.address ?? 'another node', from.address] as const
      parts.onConflict(device, { began_at: suspicion.began_at, seen_at: suspicion.seen_at, addresses }, first)
      throw new Failure('conflict', { message: sentence, retryAfter })
    },
  }
  return rules
}

/** The tunnel on another node, for a probe. */
const overNodes = (device: TunnelDevice, remote: Pick<Tunnel, 'openSsh'>): Tunnel => ({
  device,
  openSsh: remote.openSsh.bind(remote),
  close: () => undefined,
  ended: Promise.resolve(undefined),
})
