// Takes a session over from the agent that keeps its terminal. The gateway logs in to the account with a key of its
// own, as for a login by public key, proves with a secret that only this installation can make that the terminal is
// one of its own, and has the session as if its client had been lost a moment ago: held, for the person who opened it.
// Whichever gateway had the terminal before loses it: an agent gives it to one alone.
import { detachText, detachVariable, attachSubsystem, type DetachedHead } from '@hawser/contract/tunnel'
import { writeRequest, type Channel, type SessionRequest } from '@hawser/ssh'
import type { Reachable } from '../../domain/access/logins.ts'
import type { DetachedSession, DetachedSessions } from '../../domain/sessions/detached-sessions.ts'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import { newUid } from '../../kit/ids.ts'
import type { Log } from '../../kit/log.ts'
import { deviceLeg, type DeviceLeg, type DeviceLegParts } from '../device/device-leg.ts'
import type { Reattached } from './terminal.ts'

export interface Handed {
  readonly channel: Channel
  readonly columns: number
  readonly rows: number
  /** The last output, which the server may not have seen. */
  readonly output: Buffer
  /** Whether `output` is all there ever was, at this size. */
  readonly isWhole: boolean
}

export interface TakeOverParts extends DeviceLegParts {
  detached: Pick<DetachedSessions, 'claim' | 'take'>
  detachSecret(session_uid: string): string
  /** Resolves when the node has let the session go, or does not answer. */
  letGo(node: string, session_uid: string, by: Reattached): Promise<void>
  run(session: DetachedSession, to: Reachable, record: LiveSession, leg: DeviceLeg, handed: Handed): void
  log: Log
}

/** `over`: the terminal is gone. */
export type TakenOver = 'held' | 'over' | 'elsewhere'

/** For the agent to hand the terminal over. */
const handOver_ms = 30_000
/** The most output that an agent keeps of a terminal; a longer head is refused. */
const mostOutput_bytes = 1024 * 1024

/**
 * `by`: a person reattaches here, from whichever node has the session; absent: unless another node has it.
 */
export async function takeOver(
  parts: TakeOverParts,
  to: Reachable,
  session_uid: string,
  stopping: AbortSignal,
  by?: Reattached,
): Promise<TakenOver> {
  const { device } = to
  const claimed = await parts.detached[by ? 'take' : 'claim'](device, session_uid)
  if (!claimed) return 'over'
  if (claimed.state === 'elsewhere') return 'elsewhere'
  const { session } = claimed
  if (by && claimed.state === 'left' && session.node !== '') await parts.letGo(session.node, session_uid, by)
  // The stop of the server ends only takeovers in progress; a restored session ends like every other.
  const onItsWay = new AbortController()
  const giveUp = (): void => onItsWay.abort()
  stopping.addEventListener('abort', giveUp, { once: true })
  if (stopping.aborted) giveUp()
  const grace_s = to.namespace.reconnect_grace_s
  const leg = deviceLeg({ ...parts, grace_s }, device, newUid(), onItsWay.signal)
  const handed = await requestTerminal(leg, session, parts.detachSecret(session_uid))
    .catch((error: unknown) => {
      leg.end()
      // The record stays open: the device may be back soon, and another node may have its tunnel then.
      if (claimed.state === 'left') claimed.record.leave(new Date(session.until).toISOString())
      throw error
    })
    .finally(() => stopping.removeEventListener('abort', giveUp))
  if (claimed.state === 'over' || !handed) {
    // Closing a terminal hangs its program up.
    await handed?.channel.close('now')
    leg.end()
    if (claimed.state === 'left') claimed.record.finish()
    const known = handed !== undefined
    parts.log.info({ event: 'session.lost', session: session_uid, device: device.uid, known })
    return 'over'
  }
  parts.run(session, to, claimed.record, leg, handed)
  parts.log.info({ event: 'session.restored', session: session_uid, device: device.uid })
  return 'held'
}

/** Undefined: the agent no longer has it. */
async function requestTerminal(
  leg: DeviceLeg,
  { uid, username }: DetachedSession,
  secret: string,
): Promise<Handed | undefined> {
  if ((await leg.publicKey(username)) !== 'accepted')
    throw new Error('The device rejected the login of the server.')
  const late = setTimeout(() => leg.end(), handOver_ms)
  try {
    const channel = await leg.connection().open('session')
    const ask = async (request: SessionRequest): Promise<boolean> => {
      const { name, payload } = writeRequest(request)
      return channel.request(name, payload, true)
    }
    const asked = [
      ask({ type: 'env', name: detachVariable, value: detachText({ id: uid, secret, grace_s: 1 }) }),
      ask({ type: 'subsystem', name: attachSubsystem }),
    ]
    if ((await Promise.all(asked)).includes(false)) return undefined
    const { columns, rows, bytes, whole } = readHead((await channel.read())?.bytes)
    return { channel, columns, rows, output: await readOutput(channel, bytes), isWhole: whole }
  } finally {
    clearTimeout(late)
  }
}

function readHead(bytes: Buffer | undefined): Required<DetachedHead> {
  const { columns, rows, bytes: stored = 0, whole } = JSON.parse(String(bytes)) as Partial<DetachedHead>
  const isSize = (one: unknown): one is number =>
    Number.isInteger(one) && Number(one) > 0 && Number(one) < 65_536
  if (!isSize(columns) || !isSize(rows))
    throw new Error('The device did not report the size of the terminal.')
  if (!Number.isInteger(stored) || stored < 0 || stored > mostOutput_bytes)
    throw new Error('The device did not report the size of its stored output.')
  return { columns, rows, bytes: stored, whole: whole === true }
}

async function readOutput(channel: Channel, bytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let left = bytes; left > 0;) {
    const chunk = await channel.read()
    if (!chunk) break
    pieces.push(Buffer.from(chunk.bytes))
    left -= chunk.bytes.length
  }
  return Buffer.concat(pieces)
}
