// A stream to a device's SSH server, for agents with the feature `resume`, which outlives the tunnel: after a
// break it continues on the device's next tunnel, on any node. It ends at once if the agent no longer knows
// it, else with the namespace's grace time or the budget for streams that break again and again
// (resume-budget.ts). If the session ends while the device is away, the agent is notified when it is back, so
// that no program stays behind.
import { randomBytes } from 'node:crypto'
import {
  mostGrace_s,
  protocols,
  type ResumableHead,
  type ResumeAnswer,
  type ResumeRequest,
} from '@hawser/contract/tunnel'
import { multistream, ResumableMemory, ResumableStream, StreamLost } from '@hawser/mux'
import type { Arrivals } from './arrivals.ts'
import { resumeBudget } from './resume-budget.ts'
import type { RemoteTunnel } from './tunnel.ts'

export type { ResumableStream } from '@hawser/mux'

/** The parts that all such streams of a node share. */
export interface ResumableParts {
  arrivals: Pick<Arrivals, 'listen'>
  memory: ResumableMemory
  /** Streams whose sessions have ended while their devices are away. */
  readonly left: Set<string>
  /** Whether this node has stopped: then no stream is continued or opened. */
  isOver(): boolean
}

/** For all streams of one node: some hundred at full speed. Each namespace has a share. */
export const resumableMemory = (): ResumableMemory => new ResumableMemory(256 * 1024 * 1024)

/** For the agent to answer an attempt to continue. */
const attempt_ms = 10_000
/** After an attempt that failed although there is a tunnel. */
const retry_ms = 1_000
/** News of a tunnel can be lost. */
const look_ms = 15_000
const longestAnswer_bytes = 256
/** Streams of ended sessions that wait for their devices; further ones end with their grace time. */
const mostLeft = 1_000

export interface ResumableOpening {
  readonly uid: string
  readonly tenant_id: string
  readonly id: string
  /** How long it waits for the next tunnel. */
  readonly grace_s: number
  /** On any node. */
  findTunnel(): Promise<RemoteTunnel | undefined>
}

/** Undefined when the agent does not support resumption. Throws when the tunnel is gone. */
export async function openResumable(
  parts: ResumableParts,
  tunnel: RemoteTunnel,
  { uid, tenant_id, id, grace_s, findTunnel }: ResumableOpening,
  signal: AbortSignal,
): Promise<ResumableStream | undefined> {
  if (!tunnel.carry || !tunnel.features?.has('resume')) return undefined
  const secret = randomBytes(32).toString('hex')
  const grace_ms = Math.min(grace_s, mostGrace_s) * 1000
  const head: ResumableHead = { id, secret, grace_s: grace_ms / 1000 }
  const carrier = await tunnel.carry(protocols.resumable, JSON.stringify(head), signal)
  const stream = new ResumableStream({
    grace_ms,
    memory: parts.memory,
    owner: tenant_id,
    onStalled: () => void findTunnel().then((found) => found?.check?.(), ignore),
  })
  stream.attach(carrier, undefined, requireReply(carrier, protocols.resumable))
  const budget = resumeBudget(stream)
  stream.on('back', budget.attached)
  stream.on('away', () => {
    const pause_ms = budget.lost()
    if (pause_ms === undefined) {
      stream.emit('unsteady')
      stream.destroy(new StreamLost('The connection broke again and again, and nothing passed.'))
    } else void comeBack(pause_ms)
  })
  let searching = false
  let next_ms = 0

  /** Looks for the next tunnel; the first attempt waits, unless the device has a new tunnel before. */
  async function comeBack(first_ms: number): Promise<void> {
    next_ms = first_ms
    if (searching) return
    searching = true
    const until = performance.now() + grace_ms
    let wake: () => void = ignore
    using _ = parts.arrivals.listen(uid, () => wake())
    using leaving = new DisposableStack()
    const leave = (): void => {
      if (stream.attached || parts.left.size >= mostLeft) return
      parts.left.add(id)
      leaving.defer(() => parts.left.delete(id))
    }
    stream.once('close', leave)
    leaving.defer(() => stream.off('close', leave))
    let woken = new Promise<void>((resolve) => (wake = resolve))
    while (isWanted() && performance.now() < until) {
      if (next_ms > 0) {
        // A server that ends does not wait for devices to return.
        const timer = setTimeout(() => wake(), next_ms).unref()
        await woken
        clearTimeout(timer)
        if (!isWanted()) break
      }
      woken = new Promise<void>((resolve) => (wake = resolve))
      const again_ms = await attempt().catch(() => retry_ms * (0.5 + Math.random()))
      if (again_ms === undefined) break
      next_ms = again_ms
    }
    searching = false
    if (!parts.isOver() && !stream.destroyed && !stream.attached) void comeBack(next_ms)
  }

  /** Either somebody uses the stream, or the agent must learn that nobody does. */
  const isWanted = (): boolean =>
    !parts.isOver() && (stream.destroyed ? parts.left.has(id) : !stream.attached)

  /** Undefined when there is nothing more to do; otherwise how long to wait before the next attempt. */
  async function attempt(): Promise<number | undefined> {
    const next = await findTunnel()
    if (!next?.carry || !next.features?.has('resume')) return look_ms
    if (!isWanted()) return undefined
    const limit = AbortSignal.timeout(attempt_ms)
    const over = stream.destroyed ? ({ over: true } as const) : {}
    const request: ResumeRequest = { id, secret, ...stream.detach(), ...over }
    const found = await next.carry(protocols.resume, JSON.stringify(request), limit)
    try {
      await requireReply(found, protocols.resume, limit)
      const answer = JSON.parse(await multistream.readLine(found, longestAnswer_bytes, limit)) as ResumeAnswer
      if ('unknown' in answer) {
        found.destroy()
        stream.destroy(new StreamLost('The device no longer has the session.'))
        return undefined
      }
      // The agent still believes in the ended session.
      if (stream.destroyed) throw new StreamLost('The session has ended.')
      stream.attach(found, answer)
      return undefined
    } catch (error) {
      found.destroy()
      next.check?.()
      throw error
    }
  }

  return stream
}

async function requireReply(
  carrier: Parameters<typeof multistream.readReply>[0],
  protocol: string,
  signal?: AbortSignal,
): Promise<void> {
  if (!(await multistream.readReply(carrier, protocol, signal)))
    throw new StreamLost('The agent does not continue streams.')
}

const ignore = (): void => undefined
