// The executable for arm64, made on whatever machine this is, runs: under QEMU, on the C library that devices
// have and without libatomic. The npm registry is asked for its parts once.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { executable } from '../../packages/executables.ts'

/** The registry may be slow, and QEMU is. */
const fetching_ms = 300_000
const libraries = '/usr/aarch64-linux-gnu'

test(
  'the agent for arm64 says who it is',
  async () => {
    const agent = await executable('agent', 'arm64')
    expect(existsSync(`${libraries}/lib/libatomic.so.1`)).toBe(false)
    const run = (word: string) =>
      spawnSync('qemu-aarch64-static', ['-L', libraries, agent, word], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'] },
      })
    expect(run('--version')).toMatchObject({ status: 0, stdout: '0.1.0\n', stderr: '' })
    expect(JSON.parse(run('info').stdout)).toMatchObject({ arch: 'arm64', version: 'hawser-0.1.0' })
  },
  fetching_ms,
)
