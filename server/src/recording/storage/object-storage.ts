// Journals in an S3-compatible bucket. A node writes a live journal to a local folder, the spool, exactly as
// it would without a bucket. It uploads a finished journal in parts and deletes the file once the bucket has
// all of it. So a session never waits for the bucket: a failed upload is retried with growing pauses, and
// journals that a crash left in the spool are uploaded after the next start. Readers fetch ranges; a journal
// is never whole in memory. The server loads this module only when a bucket is configured.
//
// Several nodes: each has a spool of its own. A live journal has a replica in the bucket (see replicas.ts)
// and an entry in the ledger that names its node. When that node is lost, another node takes the entry,
// downloads the replica into its own spool and finishes the journal. Only the node that holds the entry
// uploads, and only the node that could remove the entry deletes the replica and the file. A node that comes
// back finds its journal finished without it, and uploads what it has beyond that as another channel.
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { JournalName } from '../journal.ts'
import { bucketJournal } from './bucket-journal.ts'
import { diskStorage } from './disk.ts'
import { finishedUpload } from './finished-journal.ts'
import { clearDownloads, inheritance, takeSoon, type Ledger } from './ledger.ts'
import type { Appending, JournalStorage } from './storage.ts'
import { replicas as openReplicas } from './replicas.ts'
import { isGone, openBucket, type BucketParts } from './s3.ts'
import { idOf, uploadQueue } from './upload-queue.ts'

export interface ObjectStorageParts extends BucketParts {
  folder: string
  /** Present when there are several nodes. */
  ledger?: Ledger | undefined
  /** An upload failed and is retried. */
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

const mostRemembered = 10_000

export interface ObjectStorage extends JournalStorage, AsyncDisposable {
  readonly waiting: number
}

export function objectStorage(parts: ObjectStorageParts): ObjectStorage {
  const { ledger } = parts
  const disk = diskStorage(parts.folder)
  const bucket = openBucket(parts)
  const inLedger = new Set<string>()
  /** How many journals a session has had: uploaded ones leave no file behind. */
  const counts = new BoundedMap<string, number>(mostRemembered)
  const keyOf = (name: JournalName): string => `${idOf(name)}.journal`
  const replicas =
    ledger && openReplicas({ bucket, keyOf: idOf, fileOf: disk.fileOf, onDelayed: parts.onDelayed })
  const inherited = replicas && inheritance({ ...parts, ledger, disk, bucket, replicas, keyOf })

  async function listed(tenant_id: string, session_uid: string): Promise<number[]> {
    return (await bucket.list(`${tenant_id}/${session_uid}/`, false)).flatMap(({ key }) => {
      const [, channel] = /\/(\d{1,9})\.journal$/.exec(key) ?? []
      return channel === undefined ? [] : [Number(channel)]
    })
  }

  const wasOurs = (name: JournalName): boolean => inLedger.has(idOf(name))
  const upload = finishedUpload({ disk, bucket, ledger, keyOf, wasOurs, listed })
  const uploads = uploadQueue({
    async send(name, abort) {
      await replicas?.finish(name)
      await upload(name, abort)
      await replicas?.remove(name)
      await disk.discard(name)
      inLedger.delete(idOf(name))
      inherited?.downloaded.delete(idOf(name))
    },
    onDelayed: parts.onDelayed,
  })

  const uploaded = <File extends Appending>(file: File): File => ({
    ...file,
    async close(finished) {
      await file.close(finished)
      if (finished) uploads.add(file.name)
      else await replicas?.finish(file.name)
    },
  })

  function replicated(file: Appending): Appending {
    if (!replicas) return file
    const id = idOf(file.name)
    let length = 0
    replicas.follow(file.name, async () => {
      if (!inLedger.has(id) && (await ledger.take(file.name)) !== 'theirs') inLedger.add(id)
      return inLedger.has(id)
    })
    return {
      ...file,
      async append(bytes) {
        await file.append(bytes)
        length += bytes.reduce((sum, piece) => sum + piece.length, 0)
        replicas.grown(file.name, length)
      },
    }
  }

  return {
    get waiting() {
      return uploads.waiting
    },
    async create(name, isOld) {
      const { tenant_id, session_uid } = name
      const known =
        counts.get(session_uid) ?? (isOld ? Math.max(-1, ...(await listed(tenant_id, session_uid))) + 1 : 0)
      for (let channel = Math.max(name.channel, known); ; channel += 1) {
        const file = await disk.create({ ...name, channel })
        ;({ channel } = file.name)
        const whose = ledger ? await takeSoon(ledger, file.name) : 'ours'
        if (whose !== 'theirs') {
          counts.set(session_uid, channel + 1)
          if (ledger && whose) inLedger.add(idOf(file.name))
          return uploaded(replicated(file))
        }
        // Another node has this number.
        await file.close(true)
        await disk.discard(file.name)
      }
    },
    async read(name) {
      try {
        return await disk.read(name)
      } catch (error) {
        if (!isGone(error)) throw error
        return bucketJournal(bucket, keyOf(name))
      }
    },
    async list(tenant_id, session_uid) {
      const here = await disk.list(tenant_id, session_uid)
      const there = await listed(tenant_id, session_uid)
      const channels = new Set([...here.map(({ channel }) => channel), ...there])
      return [...channels].toSorted((a, b) => a - b).map((channel) => ({ tenant_id, session_uid, channel }))
    },
    async used(tenant_id) {
      const sent = await bucket.list(`${tenant_id}/`, true)
      return sent.reduce((sum, { bytes }) => sum + bytes, await disk.used(tenant_id))
    },
    async remove(tenant_id, session_uid) {
      await uploads.cancel(tenant_id, session_uid)
      const here = await disk.list(tenant_id, session_uid)
      const there = await listed(tenant_id, session_uid)
      for (const { key } of await bucket.list(`${tenant_id}/${session_uid}/`, true)) await bucket.remove(key)
      await ledger?.forget(tenant_id, session_uid)
      await disk.remove(tenant_id, session_uid)
      return new Set([...here.map(({ channel }) => channel), ...there]).size
    },
    unfinished: disk.unfinished,
    reopen: async (name) => uploaded(await disk.reopen(name)),
    async discard(name) {
      await replicas?.finish(name)
      await disk.discard(name)
      inLedger.delete(idOf(name))
      // The node that wrote the journal may return with more.
      if (inherited?.downloaded.delete(idOf(name))) await ledger?.release(name)
      else await ledger?.end(name)
    },
    inherited: async () => (await inherited?.next()) ?? [],
    async resume() {
      await clearDownloads(parts.folder)
      const unfinished = new Set((await disk.unfinished()).map(idOf))
      for (const name of await spooled(parts.folder)) if (!unfinished.has(idOf(name))) uploads.add(name)
    },
    async [Symbol.asyncDispose]() {
      inherited?.[Symbol.dispose]()
      await uploads[Symbol.asyncDispose]()
      await replicas?.[Symbol.asyncDispose]()
      bucket[Symbol.dispose]()
    },
  }
}

/** Every journal in the folder: `<tenant>/<first two of the session>/<session>/<channel>.journal`. */
async function spooled(folder: string): Promise<JournalName[]> {
  const files = await readdir(folder, { recursive: true }).catch(() => [])
  return files.flatMap((file) => {
    const [, tenant_id, session_uid, channel] =
      /^([0-9a-f-]{36})\/[0-9a-f]{2}\/([0-9a-f]{64})\/(\d{1,9})\.journal$/.exec(
        file.split(path.sep).join('/'),
      ) ?? []
    return tenant_id && session_uid ? [{ tenant_id, session_uid, channel: Number(channel) }] : []
  })
}
