// Replicas of live journals in the bucket, so that another node can finish a journal when the node that
// writes it is lost. Once a second a node uploads what was appended since, in pieces
// `<tenant>/<session>/<channel>.part/<offset>`. A small piece is uploaded again, together with what follows,
// until it is large enough for an object of its own. So a journal costs at most one request a second, no
// request while nothing is written, and few objects. When the bucket is down, the replica falls behind, and
// no session waits: the whole journal is on the disk of its node.
import { open } from 'node:fs/promises'
import type { JournalName } from '../journal.ts'
import { part_bytes, type Bucket } from './s3.ts'

export interface ReplicaParts {
  bucket: Bucket
  /** `<tenant>/<session>/<channel>` */
  keyOf(name: JournalName): string
  fileOf(name: JournalName): string
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

export interface Replicas extends AsyncDisposable {
  /** `ready`: whether other nodes would find the replica; until then nothing is uploaded. */
  follow(name: JournalName, ready: () => Promise<boolean>): void
  /** The journal has grown to this length. */
  grown(name: JournalName, length: number): void
  /** The journal is complete. A large one, whose upload takes long, is replicated to its end first. */
  finish(name: JournalName): Promise<void>
  /** False: there is none. */
  fetch(name: JournalName, file: string): Promise<boolean>
  remove(name: JournalName): Promise<void>
}

const every_ms = 1_000
const longestWait_ms = 60_000
const putsAtOnce = 8
const enough_bytes = 64 * 1024
const most_bytes = 4 * 1024 * 1024

interface Replica {
  readonly name: JournalName
  readonly ready: () => Promise<boolean>
  length: number
  /** How much of the journal is in the bucket. */
  stored: number
  /** Where the last piece begins. */
  piece: number
  putting: Promise<void> | undefined
}

export function replicas({ bucket, keyOf, fileOf, onDelayed }: ReplicaParts): Replicas {
  const live = new Map<string, Replica>()
  const behind = new Set<Replica>()
  let timer: NodeJS.Timeout | undefined
  let wait_ms = every_ms
  let round = Promise.resolve()
  let over = false

  const folderOf = (name: JournalName): string => `${keyOf(name)}.part/`

  async function catchUp(one: Replica): Promise<void> {
    if (!(await one.ready())) return
    await using file = await open(fileOf(one.name), 'r')
    while (one.stored < one.length) {
      const end = Math.min(one.length, one.piece + most_bytes)
      const bytes = Buffer.allocUnsafe(end - one.piece)
      await file.read(bytes, 0, bytes.length, one.piece)
      await bucket.put(`${folderOf(one.name)}${String(one.piece).padStart(15, '0')}`, bytes)
      one.stored = end
      if (bytes.length >= enough_bytes) one.piece = end
    }
  }

  async function once(): Promise<void> {
    const all = [...behind]
    behind.clear()
    let failed = false
    const next = async (): Promise<void> => {
      for (let one = all.pop(); one; one = all.pop()) {
        const { name } = one
        if (!live.has(keyOf(name))) continue
        try {
          await (one.putting = failed ? undefined : catchUp(one))
        } catch (error) {
          if (!failed) onDelayed(error as Error, name, wait_ms)
          failed = true
        }
        one.putting = undefined
        if (one.stored < one.length && live.has(keyOf(name))) behind.add(one)
      }
    }
    await Promise.all(Array.from({ length: putsAtOnce }, next))
    wait_ms = failed ? Math.min(longestWait_ms, wait_ms * 2) : every_ms
    timer = undefined
    if (behind.size > 0) later()
  }

  function later(): void {
    if (over) return
    timer ??= setTimeout(() => void (round = once()), wait_ms)
    timer.unref()
  }

  const pieces = (name: JournalName) => bucket.list(folderOf(name), true)

  return {
    follow: (name, ready) =>
      void live.set(keyOf(name), { name, ready, length: 0, stored: 0, piece: 0, putting: undefined }),
    grown(name, length) {
      const one = live.get(keyOf(name))
      if (!one) return
      one.length = length
      behind.add(one)
      later()
    },
    async finish(name) {
      const one = live.get(keyOf(name))
      if (!one) return
      live.delete(keyOf(name))
      behind.delete(one)
      // No piece may be uploaded after the pieces were removed.
      await one.putting?.catch(() => undefined)
      if (one.stored > 0 && one.length > part_bytes) await catchUp(one).catch(() => undefined)
    },
    async fetch(name, target) {
      const found = await pieces(name)
      if (found.length === 0) return false
      await using file = await open(target, 'w', 0o600)
      let length = 0
      for (const { key, bytes } of found) {
        // Pieces are uploaded in order, so whatever follows a gap is not trustworthy.
        if (Number(key.slice(folderOf(name).length)) !== length) break
        const read = bytes === 0 ? Buffer.alloc(0) : await bucket.read(key, 0, bytes)
        await file.write(read, 0, read.length, length)
        length += read.length
      }
      await file.datasync()
      return length > 0
    },
    async remove(name) {
      for (const { key } of await pieces(name)) await bucket.remove(key)
    },
    async [Symbol.asyncDispose]() {
      over = true
      clearTimeout(timer)
      await round
    },
  }
}
