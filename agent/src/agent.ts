// The agent's life: enrol, hold the tunnel, come back when it is lost. It waits longer after each failure, as
// long as the server asks for, and never in step with others; a token that is refused is replaced by
// enrolling anew.
import type { Duplex } from 'node:stream'
import { UpgradeFailed } from '@hawser/mux'
import { backoff } from './backoff.ts'
import type { AgentConfig } from './config.ts'
import { enrolment, Refused, type Enrolled } from './enrol.ts'
import type { Facts } from './facts.ts'
import { loadIdentity } from './identity.ts'
import type { SshdOptions } from './sshd.ts'
import { holdTunnel } from './tunnel.ts'

export type Log = (event: Record<string, unknown>) => void

/** How often the device says that it is there, beside the tunnel's own pings. */
const beat_ms = 30_000

/** What is a device in place of this machine, such as a container on it. */
export interface Stand {
  facts(): Facts
  serve(
    stream: Duplex,
    shared: Pick<SshdOptions, 'hostKeys' | 'approveKey' | 'deviceName' | 'keepalive_ms' | 'signal' | 'log'>,
  ): Promise<void>
}

/** Resolves when the signal stops it. */
export async function runAgent(
  config: AgentConfig,
  log: Log,
  signal: AbortSignal,
  stand?: Stand,
): Promise<void> {
  const identity = loadIdentity(config.keyFile)
  const enrol = enrolment(config, identity, stand?.facts)
  const pause = backoff()
  let device: Enrolled | undefined
  let beating: NodeJS.Timeout | undefined

  /**
   * Loaded with the first connection: most devices wait for one most of the time, and memory is scarce there.
   */
  let parts: Promise<Pick<SshdOptions, 'hostKeys' | 'approveKey'> & { serveOne: Stand['serve'] }> | undefined
  const load = async () => {
    const [{ keyApproval }, { privateKeyFrom }, serveOne] = await Promise.all([
      import('./key-approval.ts'),
      import('@hawser/ssh'),
      stand ? stand.serve : thisMachine(config, log),
    ])
    return {
      serveOne,
      hostKeys: [privateKeyFrom(identity.key)],
      approveKey: keyApproval(config.server, () => device!),
    }
  }
  const serve = async (stream: Duplex, ending: AbortSignal): Promise<void> => {
    const { serveOne, ...shared } = await (parts ??= load())
    const { keepalive_ms } = config
    await serveOne(stream, { ...shared, deviceName: device!.name, keepalive_ms, signal: ending, log })
  }

  const beat = async (): Promise<void> => {
    try {
      device = await enrol(signal)
    } catch (error) {
      // The tunnel says it too; the next beat tries again.
      log({ level: 'debug', event: 'beat.failed', why: messageOf(error) })
    }
  }

  const up = (): void => {
    pause.reset()
    log({ event: 'tunnel.up', uid: device!.uid, device: `${device!.namespace}.${device!.name}` })
    if (!config.lowData) beating = setInterval(() => void beat(), beat_ms * (0.9 + Math.random() / 5))
  }

  while (!signal.aborted) {
    let asked_s: number | undefined
    try {
      if (!device) {
        device = await enrol(signal)
        log({ event: 'device.enrolled', uid: device.uid, device: `${device.namespace}.${device.name}` })
      }
      await holdTunnel({ server: config.server, key: identity.key, serve, log }, device, signal, up)
    } catch (error) {
      if (signal.aborted) break
      log({ level: 'warn', event: 'connection.failed', why: messageOf(error) })
      // The device was removed or rejected, or the server is another one: the token is no good any more.
      if (error instanceof UpgradeFailed && (error.status === 401 || error.status === 403)) device = undefined
      asked_s =
        error instanceof Refused
          ? error.retryAfter_s
          : error instanceof UpgradeFailed
            ? Number(error.retryAfter) || 0
            : undefined
    } finally {
      clearInterval(beating)
    }
    if (!signal.aborted) await pause.wait(signal, asked_s).catch(() => undefined)
  }
}

async function thisMachine(config: AgentConfig, log: Log): Promise<Stand['serve']> {
  const [{ serveSsh }, { usersOf }] = await Promise.all([import('./sshd.ts'), import('./users.ts')])
  const users = usersOf(config.singleUserPassword, log)
  return async (stream, shared) => serveSsh(stream, { ...shared, users })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
