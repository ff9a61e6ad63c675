// What the agent of the tarball holds in memory while it waits, after its start and after sessions. The bound
// is wide: `npm run bench -- memory agent` measures it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { folder } from '../../ssh/test/programs.ts'
import { sharedWay } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'
import { builtAgent, builtAgents } from '../harness/built-agent.ts'

const way = sharedWay()
const where = folder()
afterAll(() => where[Symbol.dispose]())
const most_mb = 50

function held_mb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024
}

test('an idle agent gives back what its start and its sessions took', async () => {
  await builtAgents()
  execFileSync('tar', ['-C', where.file('.'), '-xzf', builtAgent()])
  await using agent = await startAgent(way.service, {
    hostname: 'small',
    program: [where.file('hawser-agent/bin/hawser-agent')],
  })
  expect(held_mb(agent.pid)).toBeGreaterThan(most_mb)
  const idle = { timeout: 60_000, interval: 500 }
  await expect.poll(() => held_mb(agent.pid), idle).toBeLessThan(most_mb)
  const there = { device: agent.name }
  for (let sessions = 0; sessions < 5; sessions++) expect((await way.ssh('true', there)).status).toBe(0)
  const { stdout } = await way.ssh('head -c 100000000 /dev/zero', there)
  expect(stdout.length).toBe(100_000_000)
  await expect.poll(() => held_mb(agent.pid), idle).toBeLessThan(most_mb)
  expect((await way.ssh('exit 9', there)).status).toBe(9)
}, 240_000)
