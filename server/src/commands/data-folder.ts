// Checks a data folder before anything is opened; problems are sentences with the path and what to do.
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'

/** The files that the server writes to at every start. */
const files = ['hawser.db', 'hawser.db-wal', 'hawser.db-shm', 'master.key']
const { R_OK, W_OK, X_OK } = constants

/** Throws the sentence. A folder that does not exist yet needs a place in which it can be created. */
export function checkDataFolder(folder: string, use: 'read' | 'write' = 'write'): void {
  const rights = use === 'read' ? R_OK : R_OK | W_OK
  const there = nearest(folder)
  if (!statSync(there).isDirectory())
    refuse(`${there} is a file, not a folder: set HAWSER_DATA to a folder, or move the file away.`)
  check(there, rights | X_OK, folder)
  for (const name of files) {
    const file = path.join(folder, name)
    if (existsSync(file)) check(file, rights, folder)
  }
  const [database, key] = [path.join(folder, 'hawser.db'), path.join(folder, 'master.key')]
  // SQLite would take an empty file for a new database, and the start would make a new installation.
  if (existsSync(key) && existsSync(database) && statSync(database).size === 0)
    refuse(`${database} is empty, although ${key} is there. ${restoreAdvice(folder)}`)
}

/** The sentence for a database that SQLite cannot read; undefined for any other error. */
export function damagedDatabase(error: unknown, folder: string): string | undefined {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined
  // SQLITE_CORRUPT and SQLITE_NOTADB.
  if (!(error instanceof Error) || (code !== 11 && code !== 26)) return undefined
  return `${path.join(folder, 'hawser.db')} is damaged (${error.message}). ${restoreAdvice(folder)}`
}

const restoreAdvice = (folder: string): string =>
  `Stop the server, move ${folder} away, and restore a backup with \`hawser admin restore <folder>\`.`

function refuse(message: string): never {
  throw new Failure('invalid', { message })
}

/** The path itself, or the closest folder above it that exists. */
function nearest(place: string): string {
  return existsSync(place) || path.dirname(place) === place ? place : nearest(path.dirname(place))
}

function check(place: string, rights: number, folder: string): void {
  try {
    accessSync(place, rights)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EROFS')
      refuse(
        `${place} is on a read-only file system: mount it writable, or set HAWSER_DATA to another folder.`,
      )
    if (code !== 'EACCES' && code !== 'EPERM') refuse(`${message}: see HAWSER_DATA.`)
    const [owner, user] = [userName(statSync(place).uid), userName(process.geteuid?.() ?? 0)]
    if (owner === user)
      refuse(`${place} may not be read and written by its owner ${user}: chmod -R u+rwX ${folder}`)
    refuse(
      `${place} belongs to ${owner}, and this process runs as ${user}: run it as ${owner}, ` +
        `or set HAWSER_DATA to a folder of ${user} (chown -R ${user} ${folder} makes this one theirs).`,
    )
  }
}

function userName(uid: number): string {
  const accounts = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : []
  const found = accounts.map((line) => line.split(':')).find(([, , id]) => id === String(uid))
  return found?.[0] ?? `user ${uid}`
}
