// A consistent copy of a SQLite database that may be in use, in one file, whole or not at all.
import { renameSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export function copySqlite(from: string, to: string): void {
  const draft = `${to}.part`
  rmSync(draft, { force: true })
  const database = new DatabaseSync(from, { readOnly: true })
  try {
    database.prepare('vacuum into ?').run(draft)
  } finally {
    database.close()
  }
  renameSync(draft, to)
}

export function checkSqlite(file: string): void {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const [row] = database.prepare('pragma quick_check(1)').all() as { quick_check: string }[]
    if (row?.quick_check !== 'ok') throw new Error(row?.quick_check ?? 'no answer')
  } finally {
    database.close()
  }
}
