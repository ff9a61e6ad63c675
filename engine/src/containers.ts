// The containers of an engine, listed and followed. An event is only a reason to list them again: the list is
// what counts, so that a missed event loses nothing, and a storm of events costs a few requests.
import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineFailure, type EngineClient } from './client.ts'

export interface Container {
  /** 64 hex digits. */
  readonly id: string
  readonly name: string
  readonly image: string
  /** Nothing can be started in a paused container, so it counts as not running. */
  readonly running: boolean
  readonly labels: Readonly<Record<string, string>>
}

export interface Found {
  /** Newest first, up to the bound. */
  readonly containers: readonly Container[]
  /** How many are beyond the bound. */
  readonly more: number
}

export interface EngineFacts {
  /** In Go's names: amd64, arm64 … */
  readonly arch: string
}

/** Far more than one engine usually runs; each costs a device. */
export const mostContainers = 1_000
/** The pause between two requests, however much happens. */
const rest_ms = 200
/** Also without news, to detect a connection that died silently. */
const atLeast_ms = 30_000
const longestLine_bytes = 64 * 1024

/** Names of Docker and, where they differ, podman. Events of programs inside are left out. */
const news = ['start', 'die', 'pause', 'unpause', 'destroy', 'rename', 'died', 'stop', 'remove']
const eventsPath = `/events?filters=${encodeURIComponent(JSON.stringify({ type: ['container'], event: news }))}`

/** Throws an EngineFailure unless an engine answers. */
export async function engineFacts(client: EngineClient): Promise<EngineFacts> {
  const { Arch, ApiVersion } = asObject(await client.json('GET', '/version'))
  if (typeof ApiVersion !== 'string') throw notAnEngine()
  return { arch: typeof Arch === 'string' ? Arch.slice(0, 32) : '' }
}

export async function engineInfo(client: EngineClient): Promise<Record<string, unknown>> {
  return asObject(await client.json('GET', '/info'))
}

export async function listContainers(client: EngineClient, most = mostContainers): Promise<Found> {
  const listed = await client.json('GET', '/containers/json?all=true')
  if (!Array.isArray(listed)) throw notAnEngine()
  const containers = listed.flatMap(readContainer)
  return { containers: containers.slice(0, most), more: Math.max(0, containers.length - most) }
}

/**
 * The addresses by which the machine of the engine reaches a container. None if the container shares the
 * network of the machine or of another container, or if the engine runs without root: its networks are hidden
 * from the machine, which may have others with the same addresses.
 */
export async function containerAddresses(client: EngineClient, container: string): Promise<string[]> {
  const [inspected, { SecurityOptions }] = await Promise.all([
    client.json('GET', `/containers/${container}/json`),
    engineInfo(client),
  ])
  const { HostConfig, NetworkSettings } = asObject(inspected)
  if (Array.isArray(SecurityOptions) && SecurityOptions.includes('name=rootless')) return []
  if (asObject(HostConfig)['NetworkMode'] === 'host') return []
  const networks = Object.values(asObject(asObject(NetworkSettings)['Networks'] ?? {}))
  return networks
    .map(asObject)
    .flatMap(({ IPAddress, GlobalIPv6Address }) => [IPAddress, GlobalIPv6Address])
    .filter((address): address is string => typeof address === 'string' && isIP(address) !== 0)
}

/** Lists containers now and after each event, until the signal or a failure ends it. */
export async function followContainers(
  client: EngineClient,
  {
    signal,
    poked,
    found,
  }: { signal: AbortSignal; poked: (ring: () => void) => Disposable; found: (all: Found) => Promise<void> },
): Promise<never> {
  const ending = new AbortController()
  const events = await client.stream(eventsPath, AbortSignal.any([signal, ending.signal]))
  let bell = Promise.withResolvers<void>()
  using _ = poked(() => bell.resolve())
  let lost: unknown
  const listening = (async () => {
    let length = 0
    for await (const chunk of events as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(0x0a)
      length = end < 0 ? length + chunk.length : chunk.length - end - 1
      if (length > longestLine_bytes)
        throw new EngineFailure('The engine sent an event line that is too long.')
      if (end >= 0) bell.resolve()
    }
    throw new EngineFailure('The engine ended the connection.')
  })().catch((error: unknown) => {
    lost =
      error instanceof EngineFailure
        ? error
        : new EngineFailure('The connection to the engine was lost.', { cause: error })
    bell.resolve()
  })
  try {
    for (;;) {
      bell = Promise.withResolvers<void>()
      if (lost) throw lost as Error
      const began = performance.now()
      await found(await listContainers(client))
      // An engine whose list changes all the time gets at most half of the time.
      const took_ms = performance.now() - began
      const patience = setTimeout(() => bell.resolve(), atLeast_ms)
      await bell.promise
      clearTimeout(patience)
      signal.throwIfAborted()
      if (!lost) await sleep(Math.max(rest_ms, took_ms), undefined, { signal })
    }
  } finally {
    ending.abort()
    events.destroy()
    await listening
  }
}

function readContainer(row: unknown): Container[] {
  const { Id, Names, Image, State, Labels } = (row ?? {}) as Record<string, unknown>
  if (typeof Id !== 'string' || !/^[0-9a-f]{12,64}$/.test(Id)) return []
  const names = Array.isArray(Names) ? Names.filter((name): name is string => typeof name === 'string') : []
  // Linked containers also have names of the form /other/alias.
  const name = (names.find((each) => !each.slice(1).includes('/')) ?? '').replace(/^\//, '')
  const labels = typeof Labels === 'object' && Labels !== null ? Object.entries(Labels) : []
  return [
    {
      id: Id,
      name: name === '' ? Id.slice(0, 12) : name.slice(0, 255),
      image: typeof Image === 'string' ? Image.slice(0, 255) : '',
      running: State === 'running',
      labels: Object.fromEntries(
        labels.filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
      ),
    },
  ]
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw notAnEngine()
}

const notAnEngine = (): EngineFailure => new EngineFailure('What answers there is not a container engine.')
