// The agent's main loop: enrol, hold the tunnel, reconnect when it is lost. The agent waits longer after each
// failure, at least as long as the server asks for, with jitter. When the server refuses its token, it enrols
// again.
import type { Duplex } from 'node:stream'
import { UpgradeFailed } from '@hawser/mux'
import { backoff } from './backoff.ts'
import type { AgentConfig } from './config.ts'
import { enrolment, Refused, type Enrolled } from './enrol.ts'
import type { Facts } from './facts.ts'
import type { IdleMemory } from './idle-memory.ts'
import { loadIdentity } from './identity.ts'
import { discardIdentity, isCopied } from './machine.ts'
import type { SshdOptions } from './sshd.ts'
import { holdTunnel } from './tunnel.ts'
import type { Updates } from './update/updates.ts'

export type Log = (event: Record<string, unknown>) => void

/** How often the device enrols again to show that it is there, beside the tunnel's own pings. */
const beat_ms = 30_000

/** A device that is not this machine, such as a container on it. */
export interface ServedDevice {
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
  memory: IdleMemory,
  served?: ServedDevice,
  updates?: Updates,
): Promise<void> {
  if (!served && isCopied(config.keyFile)) {
    if (config.resetCopied) discardIdentity(config.keyFile)
    log({
      level: 'warn',
      event: config.resetCopied ? 'identity.reset' : 'identity.copied',
      message: config.resetCopied
        ? 'The key came from another machine, and HAWSER_RESET_COPIED_IDENTITY is set: this machine gets its own.'
        : 'The key was made on another machine, or the network card was replaced. If this is a copy of another device, run `hawser-agent reset-identity`; otherwise remove the file that ends in .machine beside the key.',
    })
    if (config.resetCopied) isCopied(config.keyFile)
  }
  const identity = loadIdentity(config.keyFile)
  const enrolOnce = enrolment(config, identity, served?.facts, updates)
  const enrol = (): Promise<Enrolled> => enrolOnce(signal).finally(memory.called)
  const pause = backoff()
  let device: Enrolled | undefined
  let beating: NodeJS.Timeout | undefined

  /** Loaded with the first connection: most devices wait most of the time, and their memory is scarce. */
  let parts:
    | Promise<Pick<SshdOptions, 'hostKeys' | 'approveKey'> & { serveOne: ServedDevice['serve'] }>
    | undefined
  const load = async () => {
    const [{ keyApproval }, { hostKeysOf }, serveOne] = await Promise.all([
      import('./key-approval.ts'),
      import('./host-keys.ts'),
      served ? served.serve : thisMachine(config, log),
    ])
    return {
      serveOne,
      hostKeys: await hostKeysOf(identity.key),
      approveKey: keyApproval(config.server, () => device!),
    }
  }
  const serve = async (stream: Duplex, ending: AbortSignal): Promise<void> => {
    using open = new DisposableStack()
    open.use(memory.session())
    open.use(updates?.session())
    const { serveOne, ...shared } = await (parts ??= load())
    const { keepalive_ms } = config
    await serveOne(stream, { ...shared, deviceName: device!.name, keepalive_ms, signal: ending, log })
  }

  const beat = async (): Promise<void> => {
    try {
      device = await enrol()
    } catch (error) {
      // The tunnel notices it too; the next beat tries again.
      log({ level: 'debug', event: 'beat.failed', why: messageOf(error) })
    }
  }

  const up = (): void => {
    pause.reset()
    log({ event: 'tunnel.up', uid: device!.uid, device: `${device!.namespace}.${device!.name}` })
    if (updates?.connected()) void beat()
    if (!config.lowData) beating = setInterval(() => void beat(), beat_ms * (0.9 + Math.random() / 5))
  }

  while (!signal.aborted) {
    let asked_s: number | undefined
    try {
      if (!device) {
        device = await enrol()
        log({ event: 'device.enrolled', uid: device.uid, device: `${device.namespace}.${device.name}` })
      }
      await holdTunnel({ server: config.server, key: identity.key, serve, log }, device, signal, up)
    } catch (error) {
      if (signal.aborted) break
      log({ level: 'warn', event: 'connection.failed', why: messageOf(error) })
      // The device was removed or rejected, or the server is another one: the token has become invalid.
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

async function thisMachine(config: AgentConfig, log: Log): Promise<ServedDevice['serve']> {
  const [{ serveSsh }, { usersOf }] = await Promise.all([import('./sshd.ts'), import('./users.ts')])
  const users = usersOf(config.singleUserPassword, log)
  return async (stream, shared) => serveSsh(stream, { ...shared, users })
}

function messageOf(error: unknown): string {
  // When several addresses were tried, each has its own error, and the error for all of them has no message.
  return error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error)
}
