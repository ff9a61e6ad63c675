// The agent's own updates. The server's answer to Auth device asks for one; every decision is the agent's: it
// checks the release against the key that it has pinned, fetches, unpacks and tries it, waits until no session
// is open, and starts the launcher, which runs the new agent. The new agent counts once its tunnel is up. If
// the tunnel never comes up, the launcher restores this agent, which then reports the failure.
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentAnswer, AgentReport } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import { messageOf } from '../message-of.ts'
import { pinnedTrust } from './pinned-trust.ts'
import type { Place } from './place.ts'
import { checkRelease, checkSignature, ReleaseRefused } from './trust.ts'

export interface Updates {
  report(): AgentReport
  /** Calls back when the report has changed, until it is disposed. One listener at a time. */
  watch(changed: () => void): Disposable
  told(answer: AgentAnswer | undefined): void
  /** The tunnel is up. True: the agent on trial has proved itself, and the server should be notified. */
  connected(): boolean
  /** A session is open until this is disposed. */
  session(): Disposable
  /** Starts the installed agent, if there is one. Call it when this one has stopped. */
  finish(): void
}

export interface UpdateParts {
  readonly server: string
  readonly keyFile: string
  readonly place: Place
  log(event: Record<string, unknown>): void
  readonly signal: AbortSignal
  stop(): void
  readonly limits?: UpdateLimits
}

export interface UpdateLimits {
  /** How long an update waits for sessions, before it ends them. */
  readonly sessions_ms: number
  /** The pauses between attempts to fetch. After the last one the update has failed. */
  readonly retries_ms: readonly number[]
}

const minute_ms = 60_000
const usualLimits: UpdateLimits = {
  sessions_ms: 24 * 60 * minute_ms,
  retries_ms: [1, 5, 15, 60, 60].map((minutes) => minutes * minute_ms),
}
const longestReason = 200

export function deviceUpdates(parts: UpdateParts): Updates {
  const { place, log, signal, limits = usualLimits } = parts
  const trust = pinnedTrust(parts.keyFile, place, log)
  const sessions = openSessions()
  let phase: AgentReport['phase']
  /** The current request, or the latest. */
  let request: string | undefined
  /** A build is staged; `finish` starts it. */
  let staged = false
  let changed: (() => void) | undefined

  const enter = (next: AgentReport['phase']): void => {
    phase = next
    changed?.()
  }

  async function install(signed: NonNullable<AgentAnswer['release']>, wanted: string): Promise<void> {
    const pinned = trust.now()
    if (!pinned || request === wanted || pinned.failed?.request === wanted) return
    request = wanted
    let build = place.own?.build ?? ''
    try {
      const release = checkSignature(signed, pinned.key)
      ;({ build } = release)
      if (build === place.own?.build) return
      checkRelease(release, { version: place.own?.version ?? '', arch: process.arch }, pinned)
      enter('fetching')
      log({ event: 'update.begun', version: release.version, build })
      if (!place.has(build)) {
        const { bring } = await import('./bring.ts')
        await bring(release, { server: parts.server, place, retries_ms: limits.retries_ms, log, signal })
      }
      enter('waiting')
      if (sessions.count() > 0) log({ event: 'update.waiting', sessions: sessions.count() })
      await sessions.ended(limits.sessions_ms, signal)
      if (signal.aborted) return
      trust.tries(release, wanted)
      place.stage(build)
      staged = true
      log({ event: 'update.restarting', version: release.version, build })
      parts.stop()
    } catch (error) {
      if (signal.aborted) return
      const why = messageOf(error)
      if (error instanceof ReleaseRefused) log({ level: 'error', event: 'update.refused', why })
      const failed = { build, request: wanted, reason: why.slice(0, longestReason) }
      log({ level: 'warn', event: 'update.failed', ...failed })
      trust.failed(failed)
      enter(undefined)
    }
  }

  return {
    report() {
      const { key, failed } = trust.now() ?? {}
      const now = place.trying() === undefined ? phase : 'trying'
      return defined({ build: place.own?.build, ability: trust.ability(), key, phase: now, failed })
    },
    watch(callback) {
      changed = callback
      return { [Symbol.dispose]: () => void (changed = undefined) }
    },
    told(answer) {
      if (!answer || place.ability() !== 'self' || !trust.accepts(answer)) return
      if (answer.release && answer.request !== undefined && phase === undefined)
        void install(answer.release, answer.request)
    },
    connected() {
      const build = place.trying()
      if (build === undefined) return false
      place.confirm()
      trust.succeeded()
      log({ event: 'update.done', version: place.own?.version, build })
      return true
    },
    session: sessions.open,
    finish() {
      // The process keeps its number, so that no service notices.
      if (staged) process.execve?.(place.launcher, [place.launcher], { ...process.env })
    },
  }
}

function openSessions() {
  let count = 0
  let idle: PromiseWithResolvers<void> | undefined
  return {
    count: () => count,
    open(): Disposable {
      count += 1
      const open = new DisposableStack()
      open.defer(() => {
        count -= 1
        if (count === 0) idle?.resolve()
      })
      return open
    },
    /** Resolves when the last session has ended, or after the longest wait. */
    async ended(longest_ms: number, signal: AbortSignal): Promise<void> {
      if (count === 0) return
      idle = Promise.withResolvers()
      const done = new AbortController()
      const stop = AbortSignal.any([signal, done.signal])
      const limit = sleep(longest_ms, undefined, { signal: stop }).catch(() => undefined)
      await Promise.race([idle.promise, limit])
      done.abort()
      idle = undefined
    },
  }
}
