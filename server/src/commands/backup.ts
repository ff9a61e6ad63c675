// Backup and restore of a server on SQLite: a folder with the database as of one moment, the master key,
// without which its secrets cannot be read, and the recordings. The server may run; a second backup into the
// folder copies only new recordings. Restoring needs a data folder without a database, so it overwrites
// nothing. PostgreSQL and object stores have their own tools.
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import type { Config } from '../config.ts'
import { audit, theAdministrator } from '../domain/audit/audit.ts'
import { systemClock } from '../kit/clock.ts'
import { hasMasterKey, masterKey } from '../kit/secrets.ts'
import { checkSqlite, copySqlite } from '../storage/dialects/sqlite-copy.ts'
import { openDatabase } from '../storage/database.ts'
import { stores } from '../storage/stores.ts'

const database = 'hawser.db'
const keyFile = 'master.key'
const recordings = 'recordings'

function refuse(message: string): never {
  throw new Failure('invalid', { message })
}

export function backup(config: Config, folder: string): string[] {
  if (config.HAWSER_DATABASE)
    refuse('The database is PostgreSQL: back it up with pg_dump, and keep the master key.')
  const from = path.join(config.HAWSER_DATA, database)
  if (!existsSync(from)) refuse(`There is no database in ${config.HAWSER_DATA}; see HAWSER_DATA.`)
  if (!hasMasterKey(config.HAWSER_DATA, config.HAWSER_SECRET))
    refuse(`There is no master key in ${config.HAWSER_DATA}; see HAWSER_DATA.`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const to = path.join(folder, database)
  copySqlite(from, to)
  // A backup that cannot be read must show now, not when it is needed.
  checkBackup(to, 'Look at the disk, and make another.')
  masterKey(config.HAWSER_DATA, config.HAWSER_SECRET)
  const lines = [`${to}: ${statSync(to).size} bytes`]
  if (config.HAWSER_SECRET)
    lines.push('The master key is in HAWSER_SECRET: keep it, the backup is of no use without it.')
  else {
    copyFileSync(path.join(config.HAWSER_DATA, keyFile), path.join(folder, keyFile))
    chmodSync(path.join(folder, keyFile), 0o600)
    lines.push(`${path.join(folder, keyFile)}: keep it secret`)
  }
  if (config.HAWSER_RECORDINGS.startsWith('s3:')) lines.push(`Recordings are in ${config.HAWSER_RECORDINGS}.`)
  else {
    const source = config.HAWSER_RECORDINGS || path.join(config.HAWSER_DATA, recordings)
    if (existsSync(source)) {
      copyNew(source, path.join(folder, recordings))
      lines.push(`${path.join(folder, recordings)}: the recordings`)
    } else lines.push('There are no recordings.')
  }
  return lines
}

/** A copy of the same size is the same file: a recording only grows until it is finished. */
function copyNew(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: (source, target) =>
      !(existsSync(target) && statSync(source).isFile() && statSync(source).size === statSync(target).size),
  })
}

/** Names the backup: an error of SQLite would be taken for one about the database of the data folder. */
function checkBackup(file: string, advice: string): void {
  try {
    checkSqlite(file)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    refuse(`The backup ${file} is damaged (${why}). ${advice}`)
  }
}

/** Readers of the audit log see that it was taken back to an earlier moment. */
async function noteRestored(folder: string): Promise<void> {
  const now = (): string => new Date(systemClock.now()).toISOString()
  await using opened = await openDatabase({ url: '', folder, now, onError: () => undefined })
  await audit({ stores: stores(opened), clock: systemClock }).event(theAdministrator, {
    action: 'admin.command',
    target: { kind: 'command', id: 'restore', name: 'restore' },
  })
}

export async function restore(config: Config, folder: string): Promise<string[]> {
  if (config.HAWSER_DATABASE) refuse('The database is PostgreSQL: restore it with its own tools.')
  const from = path.join(folder, database)
  if (!existsSync(from)) refuse(`${folder} is no backup: there is no ${database} in it.`)
  const to = path.join(config.HAWSER_DATA, database)
  if (existsSync(to))
    refuse(
      `${config.HAWSER_DATA} has a database already; move it away first, or set HAWSER_DATA to another folder.`,
    )
  checkBackup(from, 'Nothing was restored: take an older backup.')
  mkdirSync(config.HAWSER_DATA, { recursive: true, mode: 0o700 })
  const key = path.join(folder, keyFile)
  if (existsSync(key)) {
    copyFileSync(key, path.join(config.HAWSER_DATA, keyFile))
    chmodSync(path.join(config.HAWSER_DATA, keyFile), 0o600)
  } else if (!config.HAWSER_SECRET)
    refuse('The backup has no master key: set HAWSER_SECRET to the one that it was made with.')
  if (existsSync(path.join(folder, recordings)) && !config.HAWSER_RECORDINGS.startsWith('s3:'))
    cpSync(
      path.join(folder, recordings),
      config.HAWSER_RECORDINGS || path.join(config.HAWSER_DATA, recordings),
      { recursive: true, preserveTimestamps: true },
    )
  // The index is rebuilt from the recordings.
  for (const end of ['', '-wal', '-shm'])
    rmSync(path.join(config.HAWSER_DATA, `search.db${end}`), { force: true })
  // The database comes last: without it the folder still counts as empty, and the command can be repeated.
  const draft = path.join(config.HAWSER_DATA, 'restoring')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  copySqlite(from, path.join(draft, database))
  await noteRestored(draft)
  renameSync(path.join(draft, database), to)
  rmSync(draft, { recursive: true, force: true })
  return [`Restored into ${config.HAWSER_DATA}; start the server with \`npm start\` or \`hawser serve\`.`]
}
