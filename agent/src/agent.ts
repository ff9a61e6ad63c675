// The agent's main loop: enrol, hold the tunnel, reconnect when it is lost. The agent waits longer after each
// failure, at least as long as the server asks for, with jitter. When the server refuses its token, it enrols
// again. While the tunnel is up the agent makes no other connection, unless the server
// takes no reports there.
import type { Duplex } from 'node:stream'
import type { AgentAnswer } from '@hawser/contract/agents'
import type { Feature } from '@hawser/contract/tunnel'
import { ResumableStream, UpgradeFailed } from '@hawser/mux'
import { backoff } from './backoff.ts'
import type { AgentConfig } from './config.ts'
import { enrolment, Refused, type Enrolled } from './enrol.ts'
import { facts, type Facts } from './facts.ts'
import { inTime, isOrder } from './hang-up.ts'
import type { IdleMemory } from './idle-memory.ts'
import { loadIdentity } from './identity.ts'
import { keptTerminals } from './kept-terminals.ts'
import { connectionReport, leavingReason, type Loss } from './leaving.ts'
import { discardIdentity, isCopied } from './machine.ts'
import { pingInterval } from './ping-interval.ts'
import type { WatchedReport } from './report.ts'
import { resumableStreams } from './resumable-streams.ts'
import type { SshdOptions } from './sshd.ts'
import { pinServerKey } from './server-key.ts'
import { holdTunnel } from './tunnel.ts'
import type { Updates } from './update/updates.ts'

export type Log = (event: Record<string, unknown>) => void

/** How often the device enrols again to report, to a server that takes no reports through the tunnel. */
const beat_ms = 30_000

/** A device that is not this machine, such as a container on it. */
export interface ServedDevice {
  facts(): Facts
  /** Calls back when it is called something else, until it is disposed. */
  watch?(changed: () => void): Disposable
  /** The server has taken a report about it, or takes none. */
  known?(): void
  serve(
    stream: Duplex,
    shared: Pick<
      SshdOptions,
      | 'hostKeys'
      | 'approveKey'
      | 'deviceName'
      | 'keepalive_ms'
      | 'signal'
      | 'loggedIn'
      | 'kept'
      | 'awaySince'
      | 'log'
    >,
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
  /** The server's key for approvals, pinned. */
  let serverKey: Buffer | undefined
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
      approveKey: keyApproval(
        config.server,
        () => device!,
        () => serverKey,
      ),
    }
  }
  const serve = async (stream: Duplex, ending: AbortSignal): Promise<void> => {
    const loggedIn = (): Disposable => {
      const open = new DisposableStack()
      open.use(memory.session())
      open.use(updates?.session())
      return open
    }
    const { serveOne, ...shared } = await (parts ??= load())
    // A stream that outlives the tunnel may be without a word for long; its tunnel is checked instead.
    const keepalive_ms = stream instanceof ResumableStream ? 0 : config.keepalive_ms
    const deviceName = device!.name
    const { awaySince } = watchAway(stream, kept.check)
    const session = { deviceName, keepalive_ms, signal: ending, loggedIn, kept, awaySince, log }
    await serveOne(stream, { ...shared, ...session })
    memory.called()
  }

  const resumable = resumableStreams(serve, signal)
  const kept = keptTerminals(signal)

  const beat = async (): Promise<void> => {
    try {
      device = await enrol()
    } catch (error) {
      // The tunnel notices it too; the next beat tries again.
      log({ level: 'debug', event: 'beat.failed', why: messageOf(error) })
    }
  }

  const interval = pingInterval(config.longestPing_s)
  /** How long the last tunnel had been idle when it was lost, until the network has answered or failed. */
  let lostAfter_ms: number | undefined
  /** How the last tunnel was lost. */
  let loss: Loss | undefined
  const isMachine = served === undefined
  /** The server's last word about updates, which counts again when an update has come to its end. */
  let answer: AgentAnswer | undefined
  const told = served?.facts ?? facts
  const reports: WatchedReport = {
    report() {
      const waiting = kept.waiting()
      return {
        info: told(),
        ...(served ? { hostname: config.preferredHostname } : {}),
        ...(updates ? { agent: updates.report() } : {}),
        ...(waiting ? { kept: waiting } : {}),
      }
    },
    told(news) {
      if (device) device = { ...device, name: news.name ?? device.name, status: news.status ?? device.status }
      answer = news.agent ?? answer
      updates?.told(answer)
      memory.called()
      served?.known?.()
    },
    watch(changed) {
      const watching = new DisposableStack()
      watching.use(kept.watch(changed))
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

  const up = (shared: ReadonlySet<Feature>): void => {
    pause.reset()
    // The server answered at once: something on the way had dropped the idle connection.
    if (lostAfter_ms !== undefined) interval.lost(lostAfter_ms)
    lostAfter_ms = undefined
    log({ event: 'tunnel.up', uid: device!.uid, device: `${device!.namespace}.${device!.name}` })
    const isNew = updates?.connected() === true
    if (shared.has('report')) return
    served?.known?.()
    if (isNew) void beat()
    beating = setInterval(() => void beat(), beat_ms * (0.9 + Math.random() / 5))
  }

  while (!signal.aborted) {
    let asked_s: number | undefined
    try {
      if (!device) {
        device = await enrol()
        serverKey = pinServerKey(config.keyFile, config.server, device.approval_key)
        if (!serverKey && device.approval_key !== undefined)
          log({
            level: 'warn',
            event: 'server-key.changed',
            message:
              'The server has another key for approvals than before, so every login by key asks the server. If that is right, remove the file that ends in .server beside the key.',
          })
        log({ event: 'device.enrolled', uid: device.uid, device: `${device.namespace}.${device.name}` })
      }
      const parts = {
        server: config.server,
        features: config.features,
        key: identity.key,
        serve,
        resumable,
        reports,
        interval,
        connection: () => connectionReport(loss, isMachine),
        leaving: () => leavingReason(signal.reason, isMachine),
        isHangUp: (signature: unknown, nonce: string) =>
          isOrder(signature, { uid: device!.uid, nonce }, serverKey),
        async hangUp() {
          const ending = [...kept.hangUp(), ...resumable.closeAll()]
          const message = 'The server no longer accepts this device; its sessions have been ended.'
          if (ending.length > 0) log({ level: 'warn', event: 'sessions.ended', message })
          await inTime(ending)
        },
        onLost: (why: string) => void (loss = { why, at: performance.now() }),
        log,
      }
      lostAfter_ms = await holdTunnel(parts, device, signal, up)
    } catch (error) {
      if (signal.aborted) break
      lostAfter_ms = undefined
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

/**
 * Notes since when a resumable stream has been without a tunnel, and calls `changed` when it
 * loses or gets one.
 */
function watchAway(stream: Duplex, changed: () => void): { awaySince(): number | undefined } {
  let since: number | undefined
  const note = (at: number | undefined): void => {
    since = at
    changed()
  }
  if (stream instanceof ResumableStream)
    stream.on('away', () => note(performance.now())).on('back', () => note(undefined))
  return { awaySince: () => since }
}

async function thisMachine(config: AgentConfig, log: Log): Promise<ServedDevice['serve']> {
  const [{ serveSsh }, { usersOf }] = await Promise.all([import('./sshd.ts'), import('./users.ts')])
  const users = usersOf(config.singleUserPassword, log)
  return async (stream, shared) => serveSsh(stream, { ...shared, users, compression: config.compression })
}

function messageOf(error: unknown): string {
  // When several addresses were tried, each has its own error, and the error for all of them has no message.
  return error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error)
}
