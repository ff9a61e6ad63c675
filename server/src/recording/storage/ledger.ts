// The ledger of unfinished journals on several nodes, and the journals of lost nodes that this node takes over:
// it downloads their replicas into its own spool, where they are finished like its own.
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { JournalName } from '../journal.ts'
import type { DiskStorage } from './disk.ts'
import type { Replicas } from './replicas.ts'
import type { Bucket } from './s3.ts'
import { idOf } from './upload-queue.ts'

export interface Ledger {
  /** Makes the journal ours, unless a live node has it. `new`: no node had it. */
  take(name: JournalName): Promise<'new' | 'ours' | 'theirs'>
  /** Removes the entry of a journal that is in the bucket; false: the journal was no longer ours. */
  end(name: JournalName): Promise<boolean>
  /** Gives the journal up; a node that has its file may take it. */
  release(name: JournalName): Promise<unknown>
  /** Takes over a few journals of lost nodes. */
  inherit(limit: number): Promise<JournalName[]>
  forget(tenant_id: string, session_uid: string): Promise<unknown>
}

/** How long the start of a recording waits for the ledger. */
const ledger_ms = 2_000
const mostInherited = 20
const again_ms = 10_000

/** As `take`; undefined: the ledger does not answer in time. */
export async function takeSoon(
  ledger: Ledger,
  name: JournalName,
): Promise<'new' | 'ours' | 'theirs' | undefined> {
  const late = Promise.withResolvers<undefined>()
  const impatience = setTimeout(() => late.resolve(undefined), ledger_ms)
  const asked = ledger.take(name).catch(() => undefined)
  return Promise.race([asked, late.promise]).finally(() => clearTimeout(impatience))
}

/** Replicas are downloaded to this folder of the spool first. */
const downloadsOf = (folder: string): string => path.join(folder, 'landing')

/** Removes downloads that a crash cut off. */
export const clearDownloads = (folder: string): Promise<void> =>
  rm(downloadsOf(folder), { recursive: true, force: true })

interface InheritanceParts {
  ledger: Ledger
  disk: DiskStorage
  bucket: Bucket
  replicas: Replicas
  folder: string
  keyOf(name: JournalName): string
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

/** Takes over the journals of lost nodes. */
export function inheritance(parts: InheritanceParts) {
  const { ledger, disk, bucket, replicas, keyOf } = parts
  const downloads = downloadsOf(parts.folder)
  /** Journals taken over, but not downloaded yet. */
  const inheriting = new Map<string, JournalName>()
  const downloaded = new Set<string>()
  let inheritAgain_at = 0
  let over = false

  /** False: there is nothing to finish. */
  async function download(name: JournalName): Promise<boolean> {
    // Our own file from before a restart is more complete than the replica, and is uploaded anyway.
    if (await disk.has(name)) return false
    if (await bucket.has(keyOf(name))) {
      // The journal was uploaded; only its ledger entry was left.
      if (await ledger.end(name)) await replicas.remove(name)
      return false
    }
    await mkdir(downloads, { recursive: true, mode: 0o700 })
    const file = path.join(downloads, `${name.session_uid}.${name.channel}`)
    if (await replicas.fetch(name, file)) {
      await disk.adopt(name, file)
      downloaded.add(idOf(name))
      return true
    }
    await ledger.release(name)
    return false
  }

  return {
    downloaded,
    async next(): Promise<JournalName[]> {
      if (over || performance.now() < inheritAgain_at) return []
      if (inheriting.size < mostInherited)
        for (const name of await ledger.inherit(mostInherited)) inheriting.set(idOf(name), name)
      const here: JournalName[] = []
      for (const [id, name] of inheriting) {
        try {
          if (await download(name)) here.push(name)
          inheriting.delete(id)
        } catch (error) {
          parts.onDelayed(error as Error, name, again_ms)
          inheritAgain_at = performance.now() + again_ms
          break
        }
      }
      return here
    },
    [Symbol.dispose]: () => void (over = true),
  }
}
