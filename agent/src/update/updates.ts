// The agent's own updates. The server's answer to Auth device asks for one; from then on everything is the
// agent's decision: it checks the release against the key it has pinned, fetches, unpacks and tries it, waits
// until no session is open, and starts the launcher, which runs the new agent. The new agent counts once its
// tunnel is up. If it never is, the launcher puts this one back, which then reports the failure.
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { AgentAnswer, AgentReport, UpdateAbility } from '@hawser/contract/agents'
import type { Release } from '@hawser/contract/releases'
import type { FetchFailed } from './fetch.ts'
import { readBuild, shareFile, type Place } from './place.ts'
import {
  checkRelease,
  checkSignature,
  followKeys,
  isUpdateKey,
  readTrust,
  ReleaseRefused,
  trustFile,
  writeTrust,
  type FailedUpdate,
  type Trust,
} from './trust.ts'

export interface Updates {
  /** What the server is told of it. */
  report(): AgentReport
  /** Calls back when the report has changed, until it is disposed. One at a time. */
  watch(changed: () => void): Disposable
  /** What the server says. */
  told(answer: AgentAnswer | undefined): void
  /** The tunnel is up. True: an agent that was being tried has come back well, and the server should know. */
  connected(): boolean
  /** A session is open until this is disposed. */
  session(): Disposable
  /** Becomes the agent that was installed, if one was. To be called when this one has stopped. */
  finish(): void
}

export interface UpdateParts {
  readonly server: string
  readonly keyFile: string
  readonly place: Place
  log(event: Record<string, unknown>): void
  readonly signal: AbortSignal
  /** Stops this agent, so that `finish` can follow. */
  stop(): void
  readonly limits?: UpdateLimits
}

export interface UpdateLimits {
  /** How long sessions may keep an update waiting; then it ends them. */
  readonly sessions_ms: number
  /** Between attempts to fetch. After the last one the update has failed. */
  readonly retries_ms: readonly number[]
}

const minute_ms = 60_000
const usualLimits: UpdateLimits = {
  sessions_ms: 24 * 60 * minute_ms,
  retries_ms: [1, 5, 15, 60, 60].map((minutes) => minutes * minute_ms),
}
/** What an archive becomes, beside itself, with a little to spare. */
const growth = 4
const spare_bytes = 32 * 1024 * 1024
const trial_ms = 60_000
const longestReason = 200

/** What an agent knows about its own updates. */
interface State {
  /** Undefined: the server has named no key yet. */
  trust: Trust | undefined
  /** Why nothing is installed: the file cannot be read, or the server has another key. */
  distrust: 'damaged' | 'other-key' | undefined
  phase: AgentReport['phase']
  /** The request that is being worked on, or was worked on last. */
  request: string | undefined
  /** Open sessions. */
  sessions: number
  /** Resolves when the last session ends. */
  idle: PromiseWithResolvers<void> | undefined
  /** A build was staged; `finish` starts it. */
  staged: boolean
  /** Wants to know when the report has changed. */
  changed: (() => void) | undefined
}

export function deviceUpdates(parts: UpdateParts): Updates {
  const { place, log, signal, limits = usualLimits } = parts
  const file = trustFile(parts.keyFile)
  const state: State = {
    trust: undefined,
    distrust: undefined,
    phase: undefined,
    request: undefined,
    sessions: 0,
    idle: undefined,
    staged: false,
    changed: undefined,
  }
  const ability = (): UpdateAbility => {
    const own = place.ability()
    return own === 'self' && state.distrust ? 'other-key' : own
  }

  const enter = (phase: State['phase']): void => {
    state.phase = phase
    state.changed?.()
  }
  const save = (trust: Trust): void => {
    state.trust = trust
    writeTrust(file, trust)
  }
  /** For what may be forgotten at the next start: a full disk must not keep the agent from its server. */
  const saveIfPossible = (trust: Trust): void => {
    try {
      save(trust)
    } catch (error) {
      log({ level: 'warn', event: 'update.not-saved', why: messageOf(error) })
    }
  }

  function refuse(kind: NonNullable<State['distrust']>, why: string): void {
    if (state.distrust !== kind) log({ level: 'error', event: 'update.refused', why })
    state.distrust = kind
  }

  try {
    state.trust = readTrust(file)
    const failed = state.trust && place.ability() === 'self' ? place.failed() : undefined
    if (failed && state.trust) {
      const { tried, ...rest } = state.trust
      save({ ...rest, failed: { ...failed, request: tried?.build === failed.build ? tried.request : '' } })
      place.forgetFailed()
      log({ level: 'warn', event: 'update.rolled-back', ...failed })
    }
  } catch (error) {
    refuse('damaged', messageOf(error))
  }

  /** Pins the first key, follows endorsed ones; false when the server's key is another. */
  function trusts(answer: AgentAnswer): boolean {
    if (state.distrust === 'damaged') return false
    if (!state.trust) {
      if (!isUpdateKey(answer.update_key)) return false
      const release = answer.release && readOwn(answer.release, answer.update_key)
      saveIfPossible({ key: answer.update_key, ...(release ? { released_at: release.released_at } : {}) })
      log({ event: 'update.key-pinned', key: answer.update_key })
      return true
    }
    const key = followKeys(state.trust.key, answer.endorsements)
    if (key !== answer.update_key) {
      refuse(
        'other-key',
        'the server has another update key than this device trusts; `hawser-agent install` trusts it',
      )
      return false
    }
    state.distrust = undefined
    if (key !== state.trust.key) {
      saveIfPossible({ ...state.trust, key })
      log({ event: 'update.key-followed', key })
    }
    return true
  }

  /**
   * The first answer describes what the server offers. If that is this agent, nothing older is taken later.
   */
  function readOwn(signed: NonNullable<AgentAnswer['release']>, key: string): Release | undefined {
    try {
      const release = checkSignature(signed, key)
      return release.build === place.own?.build ? release : undefined
    } catch {
      return undefined
    }
  }

  function fail(release: Pick<Release, 'build'>, request: string, reason: string): void {
    const failed: FailedUpdate = { build: release.build, request, reason: reason.slice(0, longestReason) }
    log({ level: 'warn', event: 'update.failed', ...failed })
    if (state.trust) saveIfPossible({ ...state.trust, failed })
    enter(undefined)
  }

  async function install(signed: NonNullable<AgentAnswer['release']>, request: string): Promise<void> {
    const { trust, request: before } = state
    if (!trust || before === request || trust.failed?.request === request) return
    state.request = request
    let build = place.own?.build ?? ''
    try {
      const release = checkSignature(signed, trust.key)
      ;({ build } = release)
      if (build === place.own?.build) return
      checkRelease(release, { version: place.own?.version ?? '', arch: process.arch }, trust)
      enter('fetching')
      log({ event: 'update.begun', version: release.version, build })
      if (!place.has(build)) await bring(release)
      enter('waiting')
      await untilIdle()
      if (signal.aborted) return
      // Before it is tried: whatever happens then, nothing older is installed, and a failure
      // names its request.
      save({
        key: state.trust?.key ?? trust.key,
        released_at: release.released_at,
        tried: { build, request },
      })
      place.stage(build)
      state.staged = true
      log({ event: 'update.restarting', version: release.version, build })
      parts.stop()
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ReleaseRefused)
        log({ level: 'error', event: 'update.refused', why: error.message })
      fail({ build }, request, messageOf(error))
    }
  }

  /** Fetches, unpacks and tries it; afterwards the place has the build. */
  async function bring(release: Release): Promise<void> {
    const need = release.size * growth + spare_bytes
    if (place.free_bytes() < need)
      throw new Error(`the disk is too full: ${megabytes(need)} MB are needed in ${place.updates}`)
    const [{ fetchArchive, FetchFailed: Failed }, { unpack }] = await Promise.all([
      import('./fetch.ts'),
      import('./unpack.ts'),
    ])
    const fetched = async (): Promise<string> => {
      for (const wait_ms of [...limits.retries_ms, undefined]) {
        try {
          return await fetchArchive(parts.server, release, place.updates, signal)
        } catch (error) {
          if (!(error instanceof Failed) || wait_ms === undefined) throw error
          log({ level: 'warn', event: 'update.interrupted', why: error.message })
          await sleep(pause_ms(error, wait_ms), undefined, { signal })
        }
      }
      throw new Error('it could not be fetched')
    }
    const archive = await fetched()
    const draft = place.draft()
    try {
      await unpack(archive, draft)
      const made = readBuild(draft)
      if (made?.build !== release.build || made.version !== release.version)
        throw new Error('the archive holds another agent than the release says')
      await tryOut(draft, release)
      await shareFile(path.join(path.dirname(place.launcher), 'node'), path.join(draft, 'bin/node'))
      place.keep(release.build)
    } finally {
      rmSync(draft, { recursive: true, force: true })
      rmSync(archive, { force: true })
    }
  }

  async function untilIdle(): Promise<void> {
    if (state.sessions === 0) return
    log({ event: 'update.waiting', sessions: state.sessions })
    state.idle = Promise.withResolvers()
    const done = new AbortController()
    const stop = AbortSignal.any([signal, done.signal])
    await Promise.race([
      state.idle.promise,
      sleep(limits.sessions_ms, undefined, { signal: stop }).catch(() => undefined),
    ])
    done.abort()
    state.idle = undefined
  }

  return {
    report: () => ({
      ...(place.own ? { build: place.own.build } : {}),
      ability: ability(),
      ...(state.trust ? { key: state.trust.key } : {}),
      ...(place.trying() !== undefined ? { phase: 'trying' } : state.phase ? { phase: state.phase } : {}),
      ...(state.trust?.failed ? { failed: state.trust.failed } : {}),
    }),
    watch(changed) {
      state.changed = changed
      return { [Symbol.dispose]: () => void (state.changed = undefined) }
    },
    told(answer) {
      if (!answer || place.ability() !== 'self' || !trusts(answer)) return
      if (answer.release && answer.request !== undefined && state.phase === undefined)
        void install(answer.release, answer.request)
    },
    connected() {
      const build = place.trying()
      if (build === undefined) return false
      place.confirm()
      if (state.trust) {
        const { key, released_at } = state.trust
        saveIfPossible({ key, ...(released_at === undefined ? {} : { released_at }) })
      }
      log({ event: 'update.done', version: place.own?.version, build })
      return true
    },
    session() {
      state.sessions += 1
      let isOpen = true
      return {
        [Symbol.dispose]: () => {
          if (!isOpen) return
          isOpen = false
          state.sessions -= 1
          if (state.sessions === 0) state.idle?.resolve()
        },
      }
    },
    finish() {
      // The process keeps its number, so that no service notices.
      if (state.staged) process.execve?.(place.launcher, [place.launcher], { ...process.env })
    },
  }
}

/** Runs the new program far enough to know that it starts on this system. */
async function tryOut(folder: string, release: Release): Promise<void> {
  const program = path.join(folder, 'bin/hawser-agent')
  const said = async (word: string): Promise<string> => {
    try {
      const { stdout } = await promisify(execFile)(program, [word], { timeout: trial_ms })
      return stdout.trim()
    } catch (error) {
      throw new Error(`the new agent does not start on this system: ${firstLine(messageOf(error))}`, {
        cause: error,
      })
    }
  }
  const version = await said('--version')
  if (version !== release.version) throw new Error(`the new agent says that it is ${firstLine(version)}`)
  await said('info')
}

const pause_ms = (error: FetchFailed, usual_ms: number): number =>
  Math.max((error.retryAfter_s ?? 0) * 1000, usual_ms * (0.75 + Math.random() / 2))

const megabytes = (bytes: number): number => Math.ceil(bytes / 1e6)

/** Printable, and no longer than a line. */
const firstLine = (text: string): string =>
  (text.split('\n').find((line) => line.trim() !== '') ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120)

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
