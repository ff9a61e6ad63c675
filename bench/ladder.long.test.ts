// Every rung of the ladder moves bytes in both directions and says what that has cost.
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { rungs } from './ladder-relay.ts'
import { rungPath } from './ladder.ts'

test.each(rungs)('the rung %s moves bytes down and up, and counts', async (rung) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  try {
    await using cleanUp = new AsyncDisposableStack()
    const one = await rungPath(folder, rung, undefined, cleanUp)
    for (const way of ['down', 'up'] as const) {
      await one.begin()
      await one.move(way, 2)
      const { cpu_ms, external_bytes = 0, heap_bytes, reads, writes } = await one.count()
      expect([cpu_ms, heap_bytes, reads, writes].every((figure) => Number(figure) > 0)).toBe(true)
      // Whatever the layers, the relay reads every byte into memory.
      expect(external_bytes).toBeGreaterThan(2 * 1024 * 1024)
    }
    expect(globSync('**/*.journal', { cwd: folder }).length).toBe(rung === 'recording' ? 1 : 0)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
