// Brings the agent of a release onto the device: fetches the archive, unpacks it, tries whether the new program
// starts on this system, and gives it its place. Loaded with the first update.
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Release } from '@hawser/contract/releases'
import { messageOf } from '../message-of.ts'
import { fetchArchive, FetchFailed } from './fetch.ts'
import { readBuild, shareFile, type Place } from './place.ts'
import { unpack } from './unpack.ts'

interface BringParts {
  readonly server: string
  readonly place: Place
  /** The pauses between attempts to fetch. */
  readonly retries_ms: readonly number[]
  log(event: Record<string, unknown>): void
  readonly signal: AbortSignal
}

/** The size of an unpacked archive, together with the archive, in sizes of the archive. */
const growth = 4
const spare_bytes = 32 * 1024 * 1024
const trial_ms = 60_000

/** Fetches, unpacks and tries the release; afterwards the place has its build. */
export async function bring(
  release: Release,
  { server, place, retries_ms, log, signal }: BringParts,
): Promise<void> {
  const need = release.size * growth + spare_bytes
  if (place.free_bytes() < need)
    throw new Error(`the disk is too full: ${megabytes(need)} MB are needed in ${place.updates}`)
  const fetched = async (): Promise<string> => {
    for (const wait_ms of [...retries_ms, undefined]) {
      try {
        return await fetchArchive(server, release, place.updates, signal)
      } catch (error) {
        if (!(error instanceof FetchFailed) || wait_ms === undefined) throw error
        log({ level: 'warn', event: 'update.interrupted', why: error.message })
        await sleep(pause_ms(error, wait_ms), undefined, { signal })
      }
    }
    throw new Error('the archive could not be fetched')
  }
  const archive = await fetched()
  const draft = place.draft()
  try {
    await unpack(archive, draft)
    const made = readBuild(draft)
    if (made?.build !== release.build || made.version !== release.version)
      throw new Error('the archive does not contain the agent of the release')
    await tryOut(draft, release)
    await shareFile(path.join(path.dirname(place.launcher), 'node'), path.join(draft, 'bin/node'))
    place.keep(release.build)
  } finally {
    rmSync(draft, { recursive: true, force: true })
    rmSync(archive, { force: true })
  }
}

/** Runs the new program far enough to show that it starts on this system. */
async function tryOut(folder: string, release: Release): Promise<void> {
  const program = path.join(folder, 'bin/hawser-agent')
  const outputOf = async (word: string): Promise<string> => {
    try {
      const { stdout } = await promisify(execFile)(program, [word], { timeout: trial_ms })
      return stdout.trim()
    } catch (error) {
      throw new Error(`the new agent does not start on this system: ${firstLine(messageOf(error))}`, {
        cause: error,
      })
    }
  }
  const version = await outputOf('--version')
  if (version !== release.version) throw new Error(`the new agent reports version ${firstLine(version)}`)
  await outputOf('info')
}

const pause_ms = (error: FetchFailed, usual_ms: number): number =>
  Math.max((error.retryAfter_s ?? 0) * 1000, usual_ms * (0.75 + Math.random() / 2))

const megabytes = (bytes: number): number => Math.ceil(bytes / 1e6)

const firstLine = (text: string): string =>
  (text.split('\n').find((line) => line.trim() !== '') ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120)
