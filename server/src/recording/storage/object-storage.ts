// Journals in an S3-compatible store. While one is being written it lies in a folder here, the spool, as it
// would without a store; when it is finished it is sent there in parts, and its file goes once the store has
// all of it. So a session never waits for the store: what cannot be sent waits on the disk and is tried
// again, ever more slowly, and what a crash left is sent after the next start. Reading asks for ranges; a
// journal is never whole in memory. Loaded only when a store is set.
//
// Of several nodes each has a spool of its own. A journal that goes on has a shadow in the store (see
// shadows.ts) and a line in the ledger that says whose it is; when its node is lost another one takes the
// line, brings the shadow into its own spool and finishes it there. Whoever has the line sends, and only who
// could strike it out afterwards removes the shadow and its file: a node that comes back finds that its
// journal was finished without it, and keeps what it has beyond that beside it.
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { JournalName } from '../journal.ts'
import { events, placeBefore, readEnd, readHeader } from '../reader.ts'
import { diskKeep } from './disk.ts'
import type { Appending, Keep, Reading } from './storage.ts'
import { shadows as openShadows } from './replicas.ts'
import { isGone, objectStore, type StoreParts } from './s3.ts'

/** Which node may finish a journal. */
export interface Ledger {
  /** It is ours from now on, unless it is that of another node that lives. `new`: it was nobody's. */
  take(name: JournalName): Promise<'new' | 'ours' | 'theirs'>
  /** It is in the store; false: it was not ours any more. */
  end(name: JournalName): Promise<boolean>
  /** Whoever has its file may take it. */
  release(name: JournalName): Promise<unknown>
  /** Some of nodes that are gone; they are ours then. */
  inherit(limit: number): Promise<JournalName[]>
  forget(tenant_id: string, session_uid: string): Promise<unknown>
}

export interface ObjectParts extends StoreParts {
  /** The spool. */
  folder: string
  /** There are other nodes. */
  ledger?: Ledger | undefined
  /** It could not be sent, and is tried again. */
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

const uploadsAtOnce = 2
const firstWait_ms = 1_000
const longestWait_ms = 5 * 60_000
/** Until it is asked again whether another node has finished one. */
const theirs_ms = 10_000
/** For the ledger, when somebody waits for a journal to begin. */
const ledger_ms = 2_000
/** Journals of lost nodes that are taken over at a time. */
const mostInherited = 20
/**
 * What a lost node has beyond the shadow of its journal is kept if it is more than this; less is the shadow's
 * delay.
 */
const spare_ms = 5_000
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

class OfAnother extends Error {}

export function objectKeep(parts: ObjectParts): ObjectKeep {
  const { ledger } = parts
  const disk = diskKeep(parts.folder)
  const store = objectStore(parts)
  /** Where journals of others are brought before they are whole. */
  const landing = path.join(parts.folder, 'landing')
  const waiting = new Map<string, JournalName>()
  const sending = new Map<string, { abort: AbortController; done: Promise<void> }>()
  /** Those of ours of which the ledger knows. */
  const noted = new Set<string>()
  /** Journals of others that are ours now, until they are here; and those that were brought here. */
  const inheriting = new Map<string, JournalName>()
  const brought = new Set<string>()
  let inheritAgain_at = 0
  /** How many journals a session has had: those that were sent leave no file behind. */
  const counts = new BoundedMap<string, number>(mostRemembered)
  let wait_ms = firstWait_ms
  let timer: NodeJS.Timeout | undefined
  let over = false

  const idOf = ({ tenant_id, session_uid, channel }: JournalName): string =>
    `${tenant_id}/${session_uid}/${channel}`
  const keyOf = (name: JournalName): string => `${idOf(name)}.journal`
  const shadows =
    ledger && openShadows({ store, keyOf: idOf, fileOf: disk.fileOf, onDelayed: parts.onDelayed })

  async function listed(tenant_id: string, session_uid: string): Promise<number[]> {
    return (await store.list(`${tenant_id}/${session_uid}/`, false)).flatMap(({ key }) => {
      const [, channel] = /\/(\d{1,9})\.journal$/.exec(key) ?? []
      return channel === undefined ? [] : [Number(channel)]
    })
  }

  async function upload(name: JournalName, key: string, abort: AbortController): Promise<void> {
    const file = disk.fileOf(name)
    await store.upload(key, file, (await stat(file)).size, abort)
  }

  /** Sends one; throws when the store does not have all of it afterwards. */
  async function send(name: JournalName, abort: AbortController): Promise<void> {
    await shadows?.finish(name)
    const whose = (await ledger?.take(name)) ?? 'ours'
    if (whose === 'theirs') throw new OfAnother('another node finishes it')
    if (whose === 'ours') {
      await upload(name, keyOf(name), abort)
      // Another one has finished it meanwhile.
      if (ledger && !(await ledger.end(name))) await sendBeside(name, abort)
    } else {
      if (await store.has(keyOf(name))) {
        // Another one has finished it before.
        if (await hasMore(name)) await sendBeside(name, abort)
      } else if (!noted.has(idOf(name))) await upload(name, keyOf(name), abort)
      // Else: another one has removed it.
      await ledger!.end(name)
    }
    await shadows?.remove(name)
    await disk.discard(name)
    noted.delete(idOf(name))
    brought.delete(idOf(name))
  }

  /** Whether ours goes on for long behind the end of what the store has. */
  async function hasMore(name: JournalName): Promise<boolean> {
    await using ours = await disk.read(name)
    await using theirs = await reading(name)
    // Two that have nothing but the number in common.
    if (JSON.stringify(await readHeader(ours)) !== JSON.stringify(await readHeader(theirs))) return true
    const [our, their] = [await readEnd(ours), await readEnd(theirs)]
    if (!our || !their || our.duration_ms - their.duration_ms <= spare_ms) return false
    const from = placeBefore(our.index, ({ time_ms }) => time_ms <= their.duration_ms)
    for await (const { time_ms } of events(ours, from))
      if (time_ms > their.duration_ms) return our.duration_ms - time_ms > spare_ms
    return false
  }

  /** As another recorded terminal of its session. */
  async function sendBeside(name: JournalName, abort: AbortController): Promise<void> {
    const { tenant_id, session_uid } = name
    let channel = Math.max(-1, ...(await listed(tenant_id, session_uid)))
    let other: JournalName
    do other = { ...name, channel: (channel += 1) }
    while ((await ledger?.take(other)) === 'theirs' || (await store.has(keyOf(other))))
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
        // Deleted meanwhile: there is nothing to send.
        if (isGone(error)) return
        if (error instanceof OfAnother) {
          setTimeout(() => later(name), theirs_ms).unref()
          return
        }
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
      else await shadows?.finish(file.name)
    },
  })

  /** Has a shadow while it is written. */
  function followed(file: Appending): Appending {
    if (!shadows) return file
    const id = idOf(file.name)
    let length = 0
    shadows.follow(file.name, async () => {
      if (!noted.has(id) && (await ledger.take(file.name)) !== 'theirs') noted.add(id)
      return noted.has(id)
    })
    return {
      ...file,
      async append(bytes) {
        await file.append(bytes)
        length += bytes.reduce((sum, piece) => sum + piece.length, 0)
        shadows.grown(file.name, length)
      },
    }
  }

  /** Undefined: the ledger cannot be asked now. */
  async function taken(name: JournalName): Promise<'new' | 'ours' | 'theirs' | undefined> {
    const late = Promise.withResolvers<undefined>()
    const impatience = setTimeout(() => late.resolve(undefined), ledger_ms)
    const asked = ledger!.take(name).catch(() => undefined)
    return Promise.race([asked, late.promise]).finally(() => clearTimeout(impatience))
  }

  /** Brings the shadow of a lost node's journal here; false: there is nothing to finish. */
  async function bring(name: JournalName): Promise<boolean> {
    // Our own from before a restart is better than its shadow, and is sent from here.
    if (await disk.has(name)) return false
    if (await store.has(keyOf(name))) {
      // It was sent, and only its line was left.
      if (await ledger!.end(name)) await shadows!.remove(name)
      return false
    }
    await mkdir(landing, { recursive: true, mode: 0o700 })
    const file = path.join(landing, `${name.session_uid}.${name.channel}`)
    if (await shadows!.fetch(name, file)) {
      await disk.adopt(name, file)
      brought.add(idOf(name))
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
        if (await bring(name)) here.push(name)
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
    const size = await store.size(keyOf(name))
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
          chunk = await store.read(keyOf(name), offset, Math.min(size, Math.max(end, offset + ahead_bytes)))
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
          if (ledger && whose) noted.add(idOf(file.name))
          return sent(followed(file))
        }
        // Another node has the number.
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
      const sent = await store.list(`${tenant_id}/`, true)
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
      for (const { key } of await store.list(`${tenant_id}/${session_uid}/`, true)) await store.remove(key)
      await ledger?.forget(tenant_id, session_uid)
      await disk.remove(tenant_id, session_uid)
      return new Set([...here.map(({ channel }) => channel), ...there]).size
    },
    unfinished: disk.unfinished,
    reopen: async (name) => sent(await disk.reopen(name)),
    async discard(name) {
      await shadows?.finish(name)
      await disk.discard(name)
      noted.delete(idOf(name))
      // Whoever it was brought from may have more of it.
      if (brought.delete(idOf(name))) await ledger?.release(name)
      else await ledger?.end(name)
    },
    inherited,
    async resume() {
      await rm(landing, { recursive: true, force: true })
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
      await shadows?.[Symbol.asyncDispose]()
      store[Symbol.dispose]()
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
