// Somebody has programs on a device when an administrator rejects or removes it, or deletes the namespace.
// The agent holds terminals over cuts and must not take this end for one: the programs are gone at once.
import { afterEach, beforeEach, test, vi } from 'vitest'
import { openRestarts, type Restarts } from '../clients/restarts.ts'
import { areGone, programsOn, ways } from './revoked.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeEach(async () => {
  restarts = await openRestarts()
})
afterEach(async () => restarts[Symbol.asyncDispose]())

test.each(Object.entries(ways))('%s: no program stays', async (_way, revoke) => {
  using programs = await programsOn(restarts)
  await revoke(restarts)
  await areGone(programs.pids)
})
