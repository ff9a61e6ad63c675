// The worker that reads lists and counts from the SQLite file, so that a slow filter delays only its caller.
// Thanks to WAL each query sees the last commit; the worker cannot write.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { pragmas, statements } from './sqlite-statements.ts'

const database = new DatabaseSync((workerData as { file: string }).file, { readOnly: true })
database.exec(pragmas)
const prepared = statements(database)

parentPort!.on('message', ({ id, sql, parameters }: { id: number; sql: string; parameters: unknown[] }) => {
  try {
    parentPort!.postMessage({ id, rows: prepared.run(sql, parameters).rows })
  } catch (error) {
    const errcode = error instanceof Error && 'errcode' in error ? error.errcode : undefined
    parentPort!.postMessage({ id, error: error instanceof Error ? error.message : String(error), errcode })
  }
})
