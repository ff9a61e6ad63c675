// The agent for arm64, made on whatever machine this is, runs: under QEMU, on the C library that devices have,
// with the libatomic that the tarball carries. The npm registry is asked for its parts once.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { version } from '../../packages/bundle.ts'
import { makeTarball } from '../../packages/tarball.ts'
import { folder } from '../../ssh/test/programs.ts'

/** The registry may be slow, and QEMU is. */
const fetching_ms = 300_000
const libraries = '/usr/aarch64-linux-gnu'

test(
  'the agent for arm64 says who it is',
  async () => {
    using where = folder()
    const { warnings } = await makeTarball('agent', 'arm64', where.file('agent.tar.gz'))
    expect(warnings).toEqual([])
    execFileSync('tar', ['-C', where.file('.'), '-xzf', where.file('agent.tar.gz')])
    const at = (name: string): string => where.file(`hawser-agent/${name}`)
    expect(existsSync(at('lib/libatomic.so.1'))).toBe(true)
    const run = (word: string) =>
      spawnSync(
        'qemu-aarch64-static',
        ['-L', libraries, '-E', `LD_LIBRARY_PATH=${at('lib')}`, at('bin/node'), at('app/main.mjs'), word],
        { encoding: 'utf8', env: { PATH: process.env['PATH'] } },
      )
    expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' })
    expect(JSON.parse(run('info').stdout)).toMatchObject({ arch: 'arm64', version: `hawser-${version}` })
  },
  fetching_ms,
)
