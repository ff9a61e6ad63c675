// The agent for arm64, made on whatever machine this is and fetched from a server on it, runs: under QEMU, on
// the C library that devices have, with the libatomic that the tarball carries. It enrols and
// is connected. The npm registry is asked for its parts once.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { version } from '../../packages/bundle.ts'
import { makeTarball, tarballName } from '../../packages/tarball.ts'
import { folder } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

/** The registry may be slow, and QEMU is. */
const fetching_ms = 300_000
const libraries = '/usr/aarch64-linux-gnu'

test(
  'the agent for arm64 says who it is, enrols and is connected',
  async () => {
    using where = folder()
    const name = tarballName('agent', 'arm64')
    const { warnings } = await makeTarball('agent', 'arm64', where.file(`agents/${name}`))
    expect(warnings).toEqual([])
    await using service = await startService({ agents: where.file('agents') })
    const world = await buildWorld(service)
    const fetched = await fetch(`${service.url}/agent/${name}`)
    where.write('agent.tar.gz', Buffer.from(await fetched.arrayBuffer()))
    execFileSync('tar', ['-C', where.file('.'), '-xzf', where.file('agent.tar.gz')])
    const at = (name: string): string => where.file(`hawser-agent/${name}`)
    expect(existsSync(at('lib/libatomic.so.1'))).toBe(true)
    const words = ['-L', libraries, '-E', `LD_LIBRARY_PATH=${at('lib')}`, at('bin/node'), at('app/main.mjs')]
    const run = (word: string) =>
      spawnSync('qemu-aarch64-static', [...words, word], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'] },
      })
    expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' })
    expect(JSON.parse(run('info').stdout)).toMatchObject({ arch: 'arm64', version: `hawser-${version}` })

    await using agent = await startAgent(service, { program: ['qemu-aarch64-static', ...words] })
    const owner = service.api({ token: await world.token('owner') })
    const { body: device } = await owner.devices.get({ params: { uid: agent.uid } })
    expect(device).toMatchObject({ online: true, info: { arch: 'arm64' } })
  },
  fetching_ms,
)
