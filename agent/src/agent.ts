// The agent's main loop: enrol, hold the tunnel, reconnect when it is lost. The agent waits longer after each
// failure, at least as long as the server requests, with jitter. When the server refuses its token, the agent
// enrols again. While the tunnel is up the agent makes no other connection, unless the server takes no reports
// there.
import type { AgentAnswer } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import type { Feature } from '@hawser/contract/tunnel'
import { UpgradeFailed } from '@hawser/mux'
import { backoff } from './backoff.ts'
import type { AgentConfig } from './config.ts'
import { detachedTerminals, type DetachedTerminals } from './detached-terminals.ts'
import { enrolment, Refused } from './enrol.ts'
import { enrolledDevice, type EnrolledDevice } from './enrolled-device.ts'
import { facts } from './facts.ts'
import { inTime, isOrder } from './hang-up.ts'
import type { IdleMemory } from './idle-memory.ts'
import { loadIdentity } from './identity.ts'
import { connectionReport, leavingReason, type Loss } from './leaving.ts'
import { discardIdentity, isCopied } from './machine.ts'
import { messageOf } from './message-of.ts'
import { pingInterval } from './ping-interval.ts'
import type { WatchedReport } from './report.ts'
import { resumableStreams } from './resumable-streams.ts'
import { servicesOf } from './services.ts'
import { openSession, sshServing, type ServedDevice } from './serving.ts'
import { holdTunnel, type TunnelParts } from './tunnel.ts'
import type { Updates } from './update/updates.ts'

export type Log = (event: Record<string, unknown>) => void

/** How often the device enrols again to report, to a server without reports through the tunnel. */
const beat_ms = 30_000

interface Reporting {
  readonly config: AgentConfig
  readonly served: ServedDevice | undefined
  readonly device: EnrolledDevice
  readonly detached: DetachedTerminals
  readonly memory: IdleMemory
  readonly updates: Updates | undefined
}

function reporting({ config, served, device, detached, memory, updates }: Reporting): WatchedReport {
  /** The server's latest answer about updates, which counts again when an update has ended. */
  let answer: AgentAnswer | undefined
  return {
    report: () => ({
      info: (served?.facts ?? facts)(),
      ...defined({
        hostname: served && config.preferredHostname,
        agent: updates?.report(),
        kept: detached.waiting(),
      }),
    }),
    told(news) {
      device.told(news)
      answer = news.agent ?? answer
      updates?.told(answer)
      memory.called()
      served?.known?.()
    },
    watch(changed) {
      const watching = new DisposableStack()
      watching.use(detached.watch(changed))
      watching.use(served?.watch?.(changed))
      watching.use(
        updates?.watch(() => {
          updates.told(answer)
          changed()
        }),
      )
      return watching
    },
  }
}

export async function runAgent(
  config: AgentConfig,
  log: Log,
  signal: AbortSignal,
  memory: IdleMemory,
  served?: ServedDevice,
  updates?: Updates,
): Promise<void> {
  const isMachine = served === undefined
  if (isMachine && isCopied(config.keyFile)) treatCopy(config, log)
  const identity = loadIdentity(config.keyFile)
  const enrol = enrolment(config, identity, served?.facts, updates)
  const device = enrolledDevice(config, async () => enrol(signal).finally(memory.called), log)
  const pause = backoff()
  const interval = pingInterval(config.longestPing_s)
  let beating: NodeJS.Timeout | undefined
  /** How long the lost tunnel was idle, until the network has answered or failed. */
  let lostAfter_ms: number | undefined
  let loss: Loss | undefined

  const detached = detachedTerminals(signal)
  const serve = sshServing({ config, key: identity.key, served, device, detached, memory, updates, log })
  const resumable = resumableStreams(serve, signal)
  const reports = reporting({ config, served, device, detached, memory, updates })
  const session = () => openSession(memory, updates)
  const services = servicesOf({ config, served, device, session, log })

  function up(shared: ReadonlySet<Feature>): void {
    pause.reset()
    // The server answered at once: something on the way had dropped the idle connection.
    if (lostAfter_ms !== undefined) interval.lost(lostAfter_ms)
    lostAfter_ms = undefined
    log({ event: 'tunnel.up', ...device.names() })
    const isNew = updates?.connected() === true
    if (shared.has('report')) return
    served?.known?.()
    if (isNew) void device.renew()
    beating = setInterval(() => void device.renew(), beat_ms * (0.9 + Math.random() / 5))
  }

  const parts: TunnelParts = {
    server: config.server,
    features: config.features,
    key: identity.key,
    serve,
    resumable,
    services,
    reports,
    interval,
    connection: () => connectionReport(loss, isMachine),
    leaving: () => leavingReason(signal.reason, isMachine),
    isHangUp: async (signature, nonce) =>
      isOrder(signature, { uid: device.now().uid, nonce }, device.serverKey()),
    async hangUp() {
      const ending = [...detached.hangUp(), ...resumable.closeAll()]
      const message = 'The server no longer accepts this device; its sessions have been ended.'
      if (ending.length > 0) log({ level: 'warn', event: 'sessions.ended', message })
      await inTime(ending)
    },
    onLost: (why) => void (loss = { why, at: performance.now() }),
    log,
  }

  while (!signal.aborted) {
    let asked_s: number | undefined
    try {
      lostAfter_ms = await holdTunnel(parts, await device.enrolled(), signal, up)
    } catch (error) {
      if (signal.aborted) break
      lostAfter_ms = undefined
      log({ level: 'warn', event: 'connection.failed', why: messageOf(error) })
      // The device was removed or rejected, or the server is another one: the token is no longer valid.
      if (error instanceof UpgradeFailed && (error.status === 401 || error.status === 403)) device.forget()
      asked_s = requestedPause_s(error)
    } finally {
      clearInterval(beating)
    }
    if (!signal.aborted) await pause.wait(signal, asked_s).catch(() => undefined)
  }
}

/** The pause that the server requests with a refusal. */
function requestedPause_s(error: unknown): number | undefined {
  if (error instanceof Refused) return error.retryAfter_s
  return error instanceof UpgradeFailed ? Number(error.retryAfter) || 0 : undefined
}

/** A key copied from another machine is discarded if the settings say so. */
function treatCopy({ keyFile, resetCopied }: AgentConfig, log: Log): void {
  if (resetCopied) discardIdentity(keyFile)
  log({
    level: 'warn',
    event: resetCopied ? 'identity.reset' : 'identity.copied',
    message: resetCopied
      ? 'The key came from another machine, and HAWSER_RESET_COPIED_IDENTITY is set: this machine gets its own.'
      : 'The key was made on another machine, or the network card was replaced. If this is a copy of another device, run `hawser-agent reset-identity`; otherwise remove the file that ends in .machine next to the key.',
  })
  // Notes this machine as the owner of the next key.
  if (resetCopied) isCopied(keyFile)
}
