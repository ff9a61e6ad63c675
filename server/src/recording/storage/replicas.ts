// The shadow of a journal that goes on: what was written of it so far, in the store, so that another node can
// bring it to its end when the one that writes it is lost. Once a second what has come since is put there, as
// pieces `<tenant>/<session>/<channel>.part/<offset>`. A small piece is put again with what follows until it
// is worth an object of its own, so that a journal costs at most one request a second, none while nothing is
// shown, and few objects. A store that is away slows nobody: the shadow falls behind, and the journal is
// whole on its node's disk all the same.
import { open } from 'node:fs/promises'
import type { JournalName } from '../journal.ts'
import { part_bytes, type ObjectStore } from './s3.ts'

export interface ShadowParts {
  store: ObjectStore
  /** `<tenant>/<session>/<channel>` */
  keyOf(name: JournalName): string
  fileOf(name: JournalName): string
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

export interface Shadows extends AsyncDisposable {
  /** `ready`: whether others would find it; until then nothing is sent. */
  follow(name: JournalName, ready: () => Promise<boolean>): void
  /** So much of it can be read by now. */
  grown(name: JournalName, length: number): void
  /** It is written to its end. What takes long to send is put there as a shadow to its end, too. */
  finish(name: JournalName): Promise<void>
  /** Writes what the store has of it into a file; false: nothing. */
  fetch(name: JournalName, file: string): Promise<boolean>
  remove(name: JournalName): Promise<void>
}

const every_ms = 1_000
const longestWait_ms = 60_000
const putsAtOnce = 8
/** A piece of so much is left as it is, and the next one begins. */
const enough_bytes = 64 * 1024
const most_bytes = 4 * 1024 * 1024

interface Followed {
  readonly name: JournalName
  readonly ready: () => Promise<boolean>
  /** Of the journal; of that, in the store; and where the last piece begins. */
  length: number
  stored: number
  piece: number
  putting: Promise<void> | undefined
}

export function shadows({ store, keyOf, fileOf, onDelayed }: ShadowParts): Shadows {
  const followed = new Map<string, Followed>()
  const behind = new Set<Followed>()
  let timer: NodeJS.Timeout | undefined
  let wait_ms = every_ms
  let round = Promise.resolve()
  let over = false

  const folderOf = (name: JournalName): string => `${keyOf(name)}.part/`

  async function catchUp(one: Followed): Promise<void> {
    if (!(await one.ready())) return
    await using file = await open(fileOf(one.name), 'r')
    while (one.stored < one.length) {
      const end = Math.min(one.length, one.piece + most_bytes)
      const bytes = Buffer.allocUnsafe(end - one.piece)
      await file.read(bytes, 0, bytes.length, one.piece)
      await store.put(`${folderOf(one.name)}${String(one.piece).padStart(15, '0')}`, bytes)
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
        if (!followed.has(keyOf(name))) continue
        try {
          await (one.putting = failed ? undefined : catchUp(one))
        } catch (error) {
          if (!failed) onDelayed(error as Error, name, wait_ms)
          failed = true
        }
        one.putting = undefined
        if (one.stored < one.length && followed.has(keyOf(name))) behind.add(one)
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

  const pieces = (name: JournalName) => store.list(folderOf(name), true)

  return {
    follow: (name, ready) =>
      void followed.set(keyOf(name), { name, ready, length: 0, stored: 0, piece: 0, putting: undefined }),
    grown(name, length) {
      const one = followed.get(keyOf(name))
      if (!one) return
      one.length = length
      behind.add(one)
      later()
    },
    async finish(name) {
      const one = followed.get(keyOf(name))
      if (!one) return
      followed.delete(keyOf(name))
      behind.delete(one)
      // Nothing may be put after the pieces were removed.
      await one.putting?.catch(() => undefined)
      if (one.stored > 0 && one.length > part_bytes) await catchUp(one).catch(() => undefined)
    },
    async fetch(name, target) {
      const found = await pieces(name)
      if (found.length === 0) return false
      await using file = await open(target, 'w', 0o600)
      let length = 0
      for (const { key, bytes } of found) {
        // They are put one after the other; behind a gap nothing can be believed.
        if (Number(key.slice(folderOf(name).length)) !== length) break
        const read = bytes === 0 ? Buffer.alloc(0) : await store.read(key, 0, bytes)
        await file.write(read, 0, read.length, length)
        length += read.length
      }
      await file.datasync()
      return length > 0
    },
    async remove(name) {
      for (const { key } of await pieces(name)) await store.remove(key)
    },
    async [Symbol.asyncDispose]() {
      over = true
      clearTimeout(timer)
      await round
    },
  }
}
