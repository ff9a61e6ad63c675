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
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { JournalName } from '../journal.ts'
import { events, placeBefore, readEnd, readHeader } from '../reader.ts'
import { diskStorage } from './disk.ts'
import type { Appending, JournalStorage, Reading } from './storage.ts'
import { replicas as openReplicas } from './replicas.ts'
import { isGone, openBucket, type BucketParts } from './s3.ts'

/** The ledger of unfinished journals: which node may finish which. */
export interface Ledger {
  /** Makes the journal ours, unless a live node has it. `new`: no node had it. */
  take(name: JournalName): Promise<'new' | 'ours' | 'theirs'>
  /** Removes the entry of a journal that is in the bucket; false: the journal was not ours any more. */
  end(name: JournalName): Promise<boolean>
  /** Gives the journal up; a node that has its file may take it. */
  release(name: JournalName): Promise<unknown>
  /** Makes a few journals of lost nodes ours. */
  inherit(limit: number): Promise<JournalName[]>
  forget(tenant_id: string, session_uid: string): Promise<unknown>
}

export interface ObjectStorageParts extends BucketParts {
  /** The spool. */
  folder: string
  /** Present when there are several nodes. */
  ledger?: Ledger | undefined
  /** An upload failed and is retried. */
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

const uploadsAtOnce = 2
const firstWait_ms = 1_000
const longestWait_ms = 5 * 60_000
/** The pause between two questions whether another node has finished a journal. */
const theirs_ms = 10_000
/** How long the start of a recording waits for the ledger. */
const ledger_ms = 2_000
/** Journals of lost nodes that one round takes over. */
const mostInherited = 20
/**
 * A node that comes back uploads what it has beyond the finished journal if it is longer than this; less is
 * the usual delay of a replica.
 */
const spare_ms = 5_000
/** How long running uploads get when the server stops. */
const farewell_ms = 5_000
/** A reader that reads straight on gets larger ranges each time. */
const leastRead_bytes = 256 * 1024
const mostRead_bytes = 4 * 1024 * 1024
/** Sessions whose number of journals is cached. */
const mostRemembered = 10_000

export interface ObjectStorage extends JournalStorage, AsyncDisposable {
  /** Journals that wait for their upload. */
  readonly waiting: number
}

/** Another node finishes the journal. */
class OwnedElsewhere extends Error {}

export function objectStorage(parts: ObjectStorageParts): ObjectStorage {
  const { ledger } = parts
  const disk = diskStorage(parts.folder)
  const bucket = openBucket(parts)
  /** Replicas are downloaded to this folder first. */
  const downloads = path.join(parts.folder, 'landing')
  const waiting = new Map<string, JournalName>()
  const sending = new Map<string, { abort: AbortController; done: Promise<void> }>()
  /** Journals of this node that the ledger has an entry for. */
  const inLedger = new Set<string>()
  /** Journals that this node took over and has not downloaded yet. */
  const inheriting = new Map<string, JournalName>()
  /** Journals that this node took over and has downloaded. */
  const downloaded = new Set<string>()
  let inheritAgain_at = 0
  /** How many journals a session has had: uploaded ones leave no file behind. */
  const counts = new BoundedMap<string, number>(mostRemembered)
  let wait_ms = firstWait_ms
  let timer: NodeJS.Timeout | undefined
  let over = false

  const idOf = ({ tenant_id, session_uid, channel }: JournalName): string =>
    `${tenant_id}/${session_uid}/${channel}`
  const keyOf = (name: JournalName): string => `${idOf(name)}.journal`
  const replicas =
    ledger && openReplicas({ bucket, keyOf: idOf, fileOf: disk.fileOf, onDelayed: parts.onDelayed })

  async function listed(tenant_id: string, session_uid: string): Promise<number[]> {
    return (await bucket.list(`${tenant_id}/${session_uid}/`, false)).flatMap(({ key }) => {
      const [, channel] = /\/(\d{1,9})\.journal$/.exec(key) ?? []
      return channel === undefined ? [] : [Number(channel)]
    })
  }

  async function upload(name: JournalName, key: string, abort: AbortController): Promise<void> {
    const file = disk.fileOf(name)
    await bucket.upload(key, file, (await stat(file)).size, abort)
  }

  /** Uploads a journal; throws when the bucket does not have all of it afterwards. */
  async function send(name: JournalName, abort: AbortController): Promise<void> {
    await replicas?.finish(name)
    const whose = (await ledger?.take(name)) ?? 'ours'
    if (whose === 'theirs') throw new OwnedElsewhere('another node finishes it')
    if (whose === 'ours') {
      await upload(name, keyOf(name), abort)
      // Another node has finished it meanwhile.
      if (ledger && !(await ledger.end(name))) await sendBeside(name, abort)
    } else {
      if (await bucket.has(keyOf(name))) {
        // Another node has finished it before.
        if (await hasMore(name)) await sendBeside(name, abort)
      } else if (!inLedger.has(idOf(name))) await upload(name, keyOf(name), abort)
      // Otherwise another node has removed it.
      await ledger!.end(name)
    }
    await replicas?.remove(name)
    await disk.discard(name)
    inLedger.delete(idOf(name))
    downloaded.delete(idOf(name))
  }

  /** Whether our file has much more than the journal in the bucket. */
  async function hasMore(name: JournalName): Promise<boolean> {
    await using ours = await disk.read(name)
    await using theirs = await reading(name)
    // Two journals that share nothing but their number.
    if (JSON.stringify(await readHeader(ours)) !== JSON.stringify(await readHeader(theirs))) return true
    const [our, their] = [await readEnd(ours), await readEnd(theirs)]
    if (!our || !their || our.duration_ms - their.duration_ms <= spare_ms) return false
    const from = placeBefore(our.index, ({ time_ms }) => time_ms <= their.duration_ms)
    for await (const { time_ms } of events(ours, from))
      if (time_ms > their.duration_ms) return our.duration_ms - time_ms > spare_ms
    return false
  }

  /** Uploads a journal as a further channel of its session. */
  async function sendBeside(name: JournalName, abort: AbortController): Promise<void> {
    const { tenant_id, session_uid } = name
    let channel = Math.max(-1, ...(await listed(tenant_id, session_uid)))
    let other: JournalName
    do other = { ...name, channel: (channel += 1) }
    while ((await ledger?.take(other)) === 'theirs' || (await bucket.has(keyOf(other))))
    await upload(name, keyOf(other), abort)
    await ledger?.end(other)
  }

  function start(id: string, name: JournalName): void {
    const abort = new AbortController()
    const done = send(name, abort).then(
      () => {
        waiting.delete(id)
        wait_ms = firstWait_ms
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        waiting.delete(id)
        // The journal was removed meanwhile.
        if (isGone(error)) return
        if (error instanceof OwnedElsewhere) {
          setTimeout(() => later(name), theirs_ms).unref()
          return
        }
        parts.onDelayed(error as Error, name, wait_ms)
        // The journal goes to the end of the queue: one that can never be uploaded does not
        // hold up the others.
        waiting.set(id, name)
        timer ??= setTimeout(resume, wait_ms)
        timer.unref()
        wait_ms = Math.min(longestWait_ms, wait_ms * 2)
      },
    )
    sending.set(id, { abort, done })
    void done.finally(() => {
      sending.delete(id)
      pump()
    })
  }

  function pump(): void {
    for (const [id, name] of waiting) {
      // After a failure all uploads wait: the bucket is down for all of them.
      if (over || timer !== undefined || sending.size >= uploadsAtOnce) return
      if (!sending.has(id)) start(id, name)
    }
  }

  function resume(): void {
    timer = undefined
    pump()
  }

  function later(name: JournalName): void {
    waiting.set(idOf(name), name)
    pump()
  }

  /** Uploads the journal when it is finished. */
  const uploaded = <File extends Appending>(file: File): File => ({
    ...file,
    async close(finished) {
      await file.close(finished)
      if (finished) later(file.name)
      else await replicas?.finish(file.name)
    },
  })

  /** Replicates the journal while it is written. */
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

  /** Undefined: the ledger does not answer. */
  async function taken(name: JournalName): Promise<'new' | 'ours' | 'theirs' | undefined> {
    const late = Promise.withResolvers<undefined>()
    const impatience = setTimeout(() => late.resolve(undefined), ledger_ms)
    const asked = ledger!.take(name).catch(() => undefined)
    return Promise.race([asked, late.promise]).finally(() => clearTimeout(impatience))
  }

  /** Downloads the replica of a lost node's journal; false: there is nothing to finish. */
  async function download(name: JournalName): Promise<boolean> {
    // Our own file from before a restart is more complete than the replica, and is uploaded anyway.
    if (await disk.has(name)) return false
    if (await bucket.has(keyOf(name))) {
      // The journal was uploaded; only its ledger entry was left.
      if (await ledger!.end(name)) await replicas!.remove(name)
      return false
    }
    await mkdir(downloads, { recursive: true, mode: 0o700 })
    const file = path.join(downloads, `${name.session_uid}.${name.channel}`)
    if (await replicas!.fetch(name, file)) {
      await disk.adopt(name, file)
      downloaded.add(idOf(name))
      return true
    }
    await ledger!.release(name)
    return false
  }

  async function inherited(): Promise<JournalName[]> {
    if (!ledger || over || performance.now() < inheritAgain_at) return []
    if (inheriting.size < mostInherited)
      for (const name of await ledger.inherit(mostInherited)) inheriting.set(idOf(name), name)
    const here: JournalName[] = []
    for (const [id, name] of inheriting) {
      try {
        if (await download(name)) here.push(name)
        inheriting.delete(id)
      } catch (error) {
        parts.onDelayed(error as Error, name, theirs_ms)
        inheritAgain_at = performance.now() + theirs_ms
        break
      }
    }
    return here
  }

  async function reading(name: JournalName): Promise<Reading> {
    const size = await bucket.size(keyOf(name))
    let chunk: Buffer = Buffer.alloc(0)
    let chunkAt = 0
    let ahead_bytes = leastRead_bytes
    return {
      size: () => Promise.resolve(size),
      async at(offset, length) {
        const end = Math.min(size, offset + length)
        if (offset >= end) return Buffer.alloc(0)
        if (offset < chunkAt || end > chunkAt + chunk.length) {
          const straight = chunk.length > 0 && offset >= chunkAt && offset <= chunkAt + chunk.length
          ahead_bytes = straight ? Math.min(mostRead_bytes, ahead_bytes * 2) : leastRead_bytes
          chunk = await bucket.read(keyOf(name), offset, Math.min(size, Math.max(end, offset + ahead_bytes)))
          chunkAt = offset
        }
        return chunk.subarray(offset - chunkAt, end - chunkAt)
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  return {
    get waiting() {
      return waiting.size
    },
    async create(name, isOld) {
      const { tenant_id, session_uid } = name
      const known =
        counts.get(session_uid) ?? (isOld ? Math.max(-1, ...(await listed(tenant_id, session_uid))) + 1 : 0)
      for (let channel = Math.max(name.channel, known); ; channel += 1) {
        const file = await disk.create({ ...name, channel })
        ;({ channel } = file.name)
        const whose = ledger ? await taken(file.name) : 'ours'
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
        return reading(name)
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
      for (const [id, name] of waiting)
        if (name.session_uid === session_uid && name.tenant_id === tenant_id) waiting.delete(id)
      for (const [id, { abort, done }] of sending) {
        if (!id.startsWith(`${tenant_id}/${session_uid}/`)) continue
        abort.abort()
        await done
      }
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
      // The node that wrote it may come back with more.
      if (downloaded.delete(idOf(name))) await ledger?.release(name)
      else await ledger?.end(name)
    },
    inherited,
    async resume() {
      await rm(downloads, { recursive: true, force: true })
      const unfinished = new Set((await disk.unfinished()).map(idOf))
      for (const name of await spooled(parts.folder)) if (!unfinished.has(idOf(name))) later(name)
    },
    async [Symbol.asyncDispose]() {
      over = true
      clearTimeout(timer)
      const impatience = setTimeout(() => {
        for (const { abort } of sending.values()) abort.abort()
      }, farewell_ms)
      await Promise.all([...sending.values()].map(({ done }) => done))
      clearTimeout(impatience)
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
