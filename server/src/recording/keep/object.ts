// Journals in an S3-compatible store. While one is being written it lies in a folder here, the spool, as it would without a
// store; when it is finished it is sent there in parts, and its file goes once the store has all of it. So a session never
// waits for the store: what cannot be sent waits on the disk and is tried again, ever more slowly, and what a crash left is
// sent after the next start. Reading asks for ranges; a journal is never whole in memory. Loaded only when a store is set.
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { DeleteObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { Failure } from '@hawser/contract/failures'
import type { JournalName } from '../journal.ts'
import { diskKeep } from './disk.ts'
import type { Appending, Keep, Reading } from './keep.ts'

export interface ObjectParts {
  /** s3://bucket/prefix */
  address: string
  /** Empty: Amazon's own. */
  endpoint: string
  region: string
  /** Both empty: as the environment of the machine has them. */
  accessKey: string
  secretKey: string
  /** The spool. */
  folder: string
  /** It could not be sent, and is tried again. */
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

/** Of an upload: so much, twice, is in memory. */
const part_bytes = 8 * 1024 * 1024
const uploadsAtOnce = 2
const firstWait_ms = 1_000
const longestWait_ms = 5 * 60_000
/** Uploads that are under way when the server stops get so long. */
const farewell_ms = 5_000
/** A reader that goes straight on is given more with each question. */
const leastRead_bytes = 256 * 1024
const mostRead_bytes = 4 * 1024 * 1024
/** Sessions whose number of journals is remembered. */
const mostRemembered = 10_000

export interface ObjectKeep extends Keep, AsyncDisposable {
  /** Journals that wait to be sent. */
  readonly waiting: number
}

export function objectKeep(parts: ObjectParts): ObjectKeep {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(parts.address) ?? []
  const disk = diskKeep(parts.folder)
  const store = new S3Client({
    region: parts.region,
    ...(parts.endpoint ? { endpoint: parts.endpoint, forcePathStyle: true } : {}),
    ...(parts.accessKey ? { credentials: { accessKeyId: parts.accessKey, secretAccessKey: parts.secretKey } } : {}),
    // Stores that are not Amazon's know no checksums in trailers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 30_000 },
  })
  const waiting = new Map<string, JournalName>()
  const sending = new Map<string, { abort: AbortController; done: Promise<void> }>()
  /** How many journals a session has had: those that were sent leave no file behind. */
  const counts = new Map<string, number>()
  let wait_ms = firstWait_ms
  let timer: NodeJS.Timeout | undefined
  let over = false

  const idOf = ({ tenant_id, session_uid, channel }: JournalName): string => `${tenant_id}/${session_uid}/${channel}`
  const folderKey = (tenant_id: string, session_uid: string): string => `${prefix ? `${prefix}/` : ''}${tenant_id}/${session_uid}/`
  const keyOf = ({ tenant_id, session_uid, channel }: JournalName): string => `${folderKey(tenant_id, session_uid)}${channel}.journal`

  function remember({ session_uid, channel }: JournalName): void {
    counts.delete(session_uid)
    counts.set(session_uid, channel + 1)
    const [oldest] = counts.size > mostRemembered ? counts.keys() : []
    if (oldest !== undefined) counts.delete(oldest)
  }

  async function listed(tenant_id: string, session_uid: string): Promise<number[]> {
    const channels: number[] = []
    let token: string | undefined
    do {
      const page = await asked(() =>
        store.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: folderKey(tenant_id, session_uid),
            ...(token === undefined ? {} : { ContinuationToken: token }),
          }),
        ),
      )
      for (const { Key = '' } of page.Contents ?? []) {
        const [, channel] = /\/(\d{1,9})\.journal$/.exec(Key) ?? []
        if (channel !== undefined) channels.push(Number(channel))
      }
      token = page.IsTruncated ? page.NextContinuationToken : undefined
    } while (token !== undefined)
    return channels
  }

  /** Sends one; throws when the store does not have all of it afterwards. */
  async function send(name: JournalName, abort: AbortController): Promise<void> {
    const file = disk.fileOf(name)
    const { size } = await stat(file)
    const Body = createReadStream(file, { highWaterMark: 1024 * 1024 })
    try {
      const params = { Bucket: bucket, Key: keyOf(name), Body, ContentType: 'application/octet-stream' }
      await new Upload({ client: store, params, partSize: part_bytes, queueSize: 1, abortController: abort }).done()
    } finally {
      Body.destroy()
    }
    const { ContentLength } = await store.send(new HeadObjectCommand({ Bucket: bucket, Key: keyOf(name) }))
    if (ContentLength !== size) throw new Error(`the store has ${ContentLength} bytes of ${size}`)
    await disk.discard(name)
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
        // Deleted meanwhile: there is nothing to send.
        waiting.delete(id)
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return
        parts.onDelayed(error as Error, name, wait_ms)
        // At the end of those that wait: one that can never be sent does not hold up the others.
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
      // After a failure everybody waits: the store is away for all.
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

  /** Is sent when it is finished. */
  const sent = <File extends Appending>(file: File): File => ({
    ...file,
    async close(finished) {
      await file.close(finished)
      if (finished) later(file.name)
    },
  })

  async function reading(name: JournalName): Promise<Reading> {
    const { ContentLength: size = 0 } = await asked(() => store.send(new HeadObjectCommand({ Bucket: bucket, Key: keyOf(name) })))
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
          const last = Math.min(size, Math.max(end, offset + ahead_bytes)) - 1
          const { Body } = await asked(() =>
            store.send(new GetObjectCommand({ Bucket: bucket, Key: keyOf(name), Range: `bytes=${offset}-${last}` })),
          )
          chunk = Buffer.from(await Body!.transformToByteArray())
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
      const known = counts.get(session_uid) ?? (isOld ? Math.max(-1, ...(await listed(tenant_id, session_uid))) + 1 : 0)
      const file = await disk.create({ ...name, channel: Math.max(name.channel, known) })
      remember(file.name)
      return sent(file)
    },
    async read(name) {
      try {
        return await disk.read(name)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
        return reading(name)
      }
    },
    async list(tenant_id, session_uid) {
      const here = await disk.list(tenant_id, session_uid)
      const there = await listed(tenant_id, session_uid)
      const channels = new Set([...here.map(({ channel }) => channel), ...there])
      return [...channels].toSorted((a, b) => a - b).map((channel) => ({ tenant_id, session_uid, channel }))
    },
    async remove(tenant_id, session_uid) {
      for (const [id, name] of waiting) if (name.session_uid === session_uid && name.tenant_id === tenant_id) waiting.delete(id)
      for (const [id, { abort, done }] of sending) {
        if (!id.startsWith(`${tenant_id}/${session_uid}/`)) continue
        abort.abort()
        await done
      }
      const here = await disk.list(tenant_id, session_uid)
      const there = await listed(tenant_id, session_uid)
      for (const channel of there)
        await asked(() => store.send(new DeleteObjectCommand({ Bucket: bucket, Key: keyOf({ tenant_id, session_uid, channel }) })))
      await disk.remove(tenant_id, session_uid)
      return new Set([...here.map(({ channel }) => channel), ...there]).size
    },
    unfinished: disk.unfinished,
    reopen: async (name) => sent(await disk.reopen(name)),
    discard: disk.discard,
    async resume() {
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
      store.destroy()
    },
  }
}

/** What the store answers; what it does not is a failure with a name. */
async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
    if (status === 404) throw Object.assign(new Error('the store has no such recording', { cause }), { code: 'ENOENT' })
    throw new Failure('unavailable', { message: 'The store of recordings cannot be reached.', retryAfter: 10, cause })
  }
}

/** Every journal in the folder: `<tenant>/<first two of the session>/<session>/<channel>.journal`. */
async function spooled(folder: string): Promise<JournalName[]> {
  const files = await readdir(folder, { recursive: true }).catch(() => [])
  return files.flatMap((file) => {
    const [, tenant_id, session_uid, channel] =
      /^([0-9a-f-]{36})\/[0-9a-f]{2}\/([0-9a-f]{64})\/(\d{1,9})\.journal$/.exec(file.split(path.sep).join('/')) ?? []
    return tenant_id && session_uid ? [{ tenant_id, session_uid, channel: Number(channel) }] : []
  })
}
