// How much room a disk has, checked every two seconds. Below the low-water mark it is `low`, and heavy
// writers stop. When it is `full`, a reserve file of a few megabytes is given up for the small writes without
// which nobody could sign in and delete something. It is `ok` again once there is room, no write has failed
// for some seconds, and the reserve is made anew.
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { open, rename, statfs } from 'node:fs/promises'
import path from 'node:path'

export const diskStates = ['ok', 'low', 'full'] as const
export type DiskState = (typeof diskStates)[number]

export interface Disk extends Disposable {
  readonly state: DiskState
  readonly free_bytes: number
  /** 0 while there is none. */
  readonly reserve_bytes: number
  /** False when not even the reserve is left. */
  readonly writable: boolean
  /** A write found no room. True if there was a reserve, which makes room for the next one. */
  wasFull(): boolean
  look(): Promise<void>
}

export interface DiskParts {
  folder: string
  /** 0: the disk is never low. */
  low_bytes: number
  /** 0: there is no reserve. */
  reserve_bytes: number
  onChange(state: DiskState, free_bytes: number): void
  onError(error: unknown): void
}

const look_ms = 2_000
/** With less than this it is full, unless writes have failed before. */
const full_bytes = 4 * 1024 * 1024
/** Signing in takes a few pages of the database. */
const least_bytes = 256 * 1024
/** This long after a failed write, the next one is expected to fail. */
const failed_ms = 10_000
/**
 * The reserve is not made again this long after a write found no room: free space is not always ours
 * (quotas).
 */
const calm_ms = 10_000
const piece_bytes = 1024 * 1024

export async function watchDisk(parts: DiskParts): Promise<Disk> {
  const { folder, low_bytes, reserve_bytes } = parts
  const reserve = path.join(folder, 'reserve')
  const enough_bytes = Math.max(low_bytes, 2 * full_bytes)
  let state: DiskState = 'ok'
  let free_bytes = 0
  let failed_at = -Infinity
  let noRoom_at = -Infinity
  let hasReserve = false
  let complained = false
  let looking: Promise<void> | undefined

  /** True if there was one. */
  function giveUpReserve(): boolean {
    hasReserve = false
    if (!existsSync(reserve)) return false
    rmSync(reserve, { force: true })
    return true
  }

  /** Random bytes take their room whatever the file system does with zeros. */
  async function makeReserve(): Promise<void> {
    hasReserve = reserve_bytes > 0 && existsSync(reserve)
    if (reserve_bytes === 0 || hasReserve) return
    const draft = `${reserve}.new`
    const piece = randomBytes(Math.min(piece_bytes, reserve_bytes))
    const file = await open(draft, 'w', 0o600)
    try {
      for (let written = 0; written < reserve_bytes;) written += (await file.write(piece)).bytesWritten
      await file.sync()
    } catch (error) {
      // An incomplete reserve would take the last room.
      rmSync(draft, { force: true })
      noRoom_at = performance.now()
      throw error
    } finally {
      await file.close()
    }
    await rename(draft, reserve)
    hasReserve = true
  }

  const lacksRoom = (): boolean => performance.now() - noRoom_at < calm_ms

  const become = (next: DiskState): void => {
    if (next === state) return
    state = next
    parts.onChange(state, free_bytes)
  }

  async function measure(): Promise<void> {
    // A folder that is not there yet will be on the disk of its parent.
    const { bavail, bsize } = await statfs(folder).catch(() => statfs(path.dirname(folder)))
    free_bytes = bavail * bsize
  }

  /** A failure is reported once; the state stays as it was. */
  function failed(error: unknown): void {
    if (!complained) parts.onError(error)
    complained = true
  }

  async function judge(): Promise<void> {
    await measure()
    if (free_bytes < full_bytes) {
      if (giveUpReserve()) await measure()
      return become('full')
    }
    const missing_bytes = existsSync(reserve) ? 0 : reserve_bytes
    if (free_bytes >= enough_bytes + missing_bytes) {
      if (lacksRoom()) return
      await makeReserve()
      await measure()
      // A write may have failed since.
      if (lacksRoom()) giveUpReserve()
      else become('ok')
      return
    }
    // A full disk stays full until there is room for the reserve, or it would be eaten up bit by bit.
    if (state !== 'full' && free_bytes < low_bytes) become('low')
  }

  const look = (): Promise<void> =>
    (looking ??= judge()
      .catch(failed)
      .finally(() => (looking = undefined)))
  if (reserve_bytes > 0) rmSync(`${reserve}.new`, { force: true })
  await look()
  const timer = setInterval(() => void look(), look_ms)
  timer.unref()

  return {
    get state() {
      return state
    },
    get free_bytes() {
      return free_bytes
    },
    get reserve_bytes() {
      return hasReserve ? reserve_bytes : 0
    },
    get writable() {
      return performance.now() - failed_at > failed_ms && (state !== 'full' || free_bytes >= least_bytes)
    },
    wasFull() {
      noRoom_at = performance.now()
      const hadReserve = giveUpReserve()
      if (!hadReserve) failed_at = performance.now()
      become('full')
      void look()
      return hadReserve
    },
    look,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
