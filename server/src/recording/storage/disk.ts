// Journals in a folder: `<tenant>/<first two of the session>/<session>/<channel>.journal`. A journal that is
// being written has an empty file of its name in `unfinished`, so that a start after a crash finds it without
// looking at all journals.
import {
  access,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  writeFile,
  type FileHandle,
} from 'node:fs/promises'
import path from 'node:path'
import type { JournalName } from '../journal.ts'
import type { Appending, JournalStorage, Reading } from './storage.ts'

const ending = '.journal'
const marks = 'unfinished'
const namePattern = /^([0-9a-f-]{36})\.([0-9a-f]{64})\.(\d{1,9})$/

export interface DiskStorage extends JournalStorage {
  fileOf(name: JournalName): string
  has(name: JournalName): Promise<boolean>
  adopt(name: JournalName, file: string): Promise<void>
}

export function diskStorage(folder: string): DiskStorage {
  const folderOf = ({ tenant_id, session_uid }: Omit<JournalName, 'channel'>): string => {
    // The ids come from our own tables; nevertheless nothing of another form may become a path.
    if (!namePattern.test(`${tenant_id}.${session_uid}.0`))
      throw new Error('a journal needs a namespace and a session')
    return path.join(folder, tenant_id, session_uid.slice(0, 2), session_uid)
  }
  const fileOf = (name: JournalName): string => path.join(folderOf(name), `${name.channel}${ending}`)
  const markOf = (name: JournalName): string =>
    path.join(folder, marks, `${name.tenant_id}.${name.session_uid}.${name.channel}`)

  function appending(name: JournalName, file: FileHandle, length: number): Appending {
    return {
      name,
      async append(bytes) {
        const total = bytes.reduce((sum, piece) => sum + piece.length, 0)
        const { bytesWritten } = await file.writev(bytes, length)
        // A nearly full disk writes only a part.
        if (bytesWritten < total)
          throw Object.assign(new Error('the disk took only a part'), { code: 'ENOSPC' })
        length += total
      },
      sync: () => file.datasync(),
      async cut(to) {
        await file.truncate(to)
        length = to
      },
      async close(finished) {
        await file.close()
        if (finished) await rm(markOf(name), { force: true })
      },
    }
  }

  function reading(file: FileHandle): Reading {
    return {
      size: async () => (await file.stat()).size,
      async at(offset, length) {
        const bytes = Buffer.allocUnsafe(length)
        let filled = 0
        while (filled < length) {
          const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled)
          if (bytesRead === 0) break
          filled += bytesRead
        }
        return bytes.subarray(0, filled)
      },
      [Symbol.asyncDispose]: () => file.close(),
    }
  }

  async function channels(where: string): Promise<number[]> {
    const files = await orNone(readdir(where))
    return files
      .filter((file) => /^\d{1,9}\.journal$/.test(file))
      .map((file) => Number(file.slice(0, -ending.length)))
      .toSorted((a, b) => a - b)
  }

  return {
    fileOf,
    has: (name) =>
      access(fileOf(name)).then(
        () => true,
        () => false,
      ),
    async adopt(name, file) {
      await makeFolder(path.join(folder, marks))
      await makeFolder(folderOf(name))
      await writeFile(markOf(name), '', { mode: 0o600 })
      await rename(file, fileOf(name))
      await Promise.all([folderOf(name), path.join(folder, marks)].map(syncFolder))
    },
    async create(wanted) {
      const where = folderOf(wanted)
      await makeFolder(path.join(folder, marks))
      await makeFolder(where)
      for (let channel = wanted.channel; ; channel++) {
        const name = { ...wanted, channel }
        // The mark first: a journal without one would never be closed.
        await writeFile(markOf(name), '', { mode: 0o600 })
        try {
          const file = await open(fileOf(name), 'wx', 0o600)
          // The folder holds the name of a file: without this a loss of power could take all that was synced.
          await Promise.all([where, path.join(folder, marks)].map(syncFolder))
          return appending(name, file, 0)
        } catch (error) {
          await rm(markOf(name), { force: true })
          if (codeOf(error) !== 'EEXIST') throw error
        }
      }
    },
    read: async (name) => reading(await open(fileOf(name), 'r')),
    async list(tenant_id, session_uid) {
      return (await channels(folderOf({ tenant_id, session_uid }))).map((channel) => ({
        tenant_id,
        session_uid,
        channel,
      }))
    },
    async used(tenant_id) {
      const where = path.join(folder, path.basename(tenant_id))
      let bytes = 0
      for (const name of await orNone(readdir(where, { recursive: true }))) {
        if (!name.endsWith(ending)) continue
        // The journal may have been removed in between.
        bytes += await stat(path.join(where, name)).then(
          ({ size }) => size,
          () => 0,
        )
      }
      return bytes
    },
    async remove(tenant_id, session_uid) {
      const where = folderOf({ tenant_id, session_uid })
      const found = await channels(where)
      await rm(where, { recursive: true, force: true })
      for (const channel of found) await rm(markOf({ tenant_id, session_uid, channel }), { force: true })
      // Removes folders that became empty; another journal may be created in between.
      for (const parent of [path.dirname(where), path.dirname(path.dirname(where))])
        await rmdir(parent).catch(() => undefined)
      return found.length
    },
    async unfinished() {
      return (await orNone(readdir(path.join(folder, marks)))).flatMap((file) => {
        const [, tenant_id, session_uid, channel] = namePattern.exec(file) ?? []
        return tenant_id && session_uid ? [{ tenant_id, session_uid, channel: Number(channel) }] : []
      })
    },
    async reopen(name) {
      const file = await open(fileOf(name), 'r+')
      const { size } = await file.stat()
      return { ...reading(file), ...appending(name, file, size) }
    },
    async discard(name) {
      await unlink(fileOf(name)).catch(orGone)
      await rm(markOf(name), { force: true })
      await rmdir(folderOf(name)).catch(() => undefined)
    },
  }
}

/** Creates a folder and syncs its parents, so that it survives a loss of power. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let at = folder; at.length >= first.length; at = path.dirname(at)) await syncFolder(path.dirname(at))
}

async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

function orGone(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}

async function orNone(names: Promise<string[]>): Promise<string[]> {
  return names.catch((error: unknown) => {
    orGone(error)
    return []
  })
}
