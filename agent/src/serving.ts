// Serves the SSH connections of a device. What they need is loaded with the first one: most devices are idle most
// of the time, and their memory is scarce.
import type { KeyObject } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ResumableStream } from '@hawser/mux'
import type { AgentConfig } from './config.ts'
import type { DetachedTerminals } from './detached-terminals.ts'
import type { EnrolledDevice } from './enrolled-device.ts'
import type { Facts } from './facts.ts'
import type { IdleMemory } from './idle-memory.ts'
import type { SshdOptions } from './sshd.ts'
import type { Updates } from './update/updates.ts'

/** A device that is not this machine, such as a container on it. */
export interface ServedDevice {
  facts(): Facts
  /** Calls back when the device is renamed, until it is disposed. */
  watch?(changed: () => void): Disposable
  /** The server has a report about the device, or takes none. */
  known?(): void
  /** Its own network addresses, for web services. Absent or empty: they do not reach it. */
  addresses?(): Promise<readonly string[]>
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
      | 'detached'
      | 'awaySince'
      | 'log'
    >,
  ): Promise<void>
}

/** A session is open until this is disposed: memory is not freed, and no update starts the agent again. */
export function openSession(memory: IdleMemory, updates: Updates | undefined): Disposable {
  const open = new DisposableStack()
  open.use(memory.session())
  open.use(updates?.session())
  return open
}

interface ServingParts {
  readonly config: AgentConfig
  readonly key: KeyObject
  readonly served: ServedDevice | undefined
  readonly device: EnrolledDevice
  readonly detached: DetachedTerminals
  readonly memory: IdleMemory
  readonly updates: Updates | undefined
  log(event: Record<string, unknown>): void
}

export function sshServing(parts: ServingParts): (stream: Duplex, signal: AbortSignal) => Promise<void> {
  const { config, served, device, detached, memory, updates, log } = parts
  const load = async () => {
    const [{ keyApproval }, { hostKeysOf }, serveOne] = await Promise.all([
      import('./key-approval.ts'),
      import('./host-keys.ts'),
      served ? served.serve : thisMachine(config, log),
    ])
    const approveKey = keyApproval(config.server, device.now, device.serverKey)
    return { serveOne, hostKeys: await hostKeysOf(parts.key), approveKey }
  }
  let loaded: ReturnType<typeof load> | undefined
  const loggedIn = () => openSession(memory, updates)
  return async (stream, signal) => {
    const { serveOne, ...shared } = await (loaded ??= load())
    // A stream that outlives its tunnel may be silent for long; the tunnel is checked instead.
    const keepalive_ms = stream instanceof ResumableStream ? 0 : config.keepalive_ms
    const { name: deviceName } = device.now()
    const { awaySince } = watchAway(stream, detached.check)
    const session = { deviceName, keepalive_ms, signal, loggedIn, detached, awaySince, log }
    await serveOne(stream, { ...shared, ...session })
    memory.called()
  }
}

/** Calls `changed` when a resumable stream loses or gets a tunnel. */
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

async function thisMachine(config: AgentConfig, log: SshdOptions['log']): Promise<ServedDevice['serve']> {
  const [{ serveSsh }, { usersOf }] = await Promise.all([import('./sshd.ts'), import('./users.ts')])
  const users = usersOf(config.singleUserPassword, log)
  return async (stream, shared) => serveSsh(stream, { ...shared, users, compression: config.compression })
}
