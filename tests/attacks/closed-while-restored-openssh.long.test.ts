// An administrator closes a session while the server, just started again, takes its terminal back from the
// device. A device that answers slowly makes that moment as long as it likes. The shell is hung up, and
// nobody comes back to it.
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { begin, openRestarts, restored, type Restarts } from '../clients/restarts.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeAll(async () => {
  restarts = await openRestarts()
})
afterAll(async () => restarts[Symbol.asyncDispose]())

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

test('a session that is closed while it comes back ends', async () => {
  using terminal = restarts.sit()
  const pid = Number(await begin(terminal))
  const [session] = await restarts.list()
  await restarts.isKept(session!.uid)
  await restarts.stop('SIGKILL')
  {
    // Somebody closes it at the moment at which the server has taken its record over.
    using database = new DatabaseSync(path.join(restarts.data, 'hawser.db'))
    database.exec(`create trigger close_it after update of node on sessions when new.active = 1 begin
      update sessions set active = 0 where uid = new.uid; end`)
  }
  await restarts.start()
  await restored(restarts)
  expect((await restarts.api().sessions.get({ params: { uid: session!.uid } })).body.active).toBe(false)
  await eventually(() => expect(isRunning(pid)).toBe(false))
  using again = restarts.sit()
  expect(Number(await begin(again))).not.toBe(pid)
  expect(again.shown()).not.toContain('still there')
})
