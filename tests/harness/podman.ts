// The other engine with Docker's interface: Debian's podman, as a service on a socket in a folder of its own,
// with runc and without network or systemd. It has the face of the engine in docker.ts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { run } from '../../ssh/test/programs.ts'
import { image, importImage, isThere, type Docker } from './docker.ts'

const settings = `[containers]
netns="none"
default_ulimits=["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager="cgroupfs"
runtime="runc"
events_logger="file"
`

export async function startPodman(): Promise<Docker> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-podman-'))
  const at = (name: string): string => path.join(folder, name)
  writeFileSync(at('containers.conf'), settings)
  const env = { CONTAINERS_CONF: at('containers.conf') }
  const own = ['--root', at('root'), '--runroot', at('run'), '--tmpdir', at('tmp')]
  const socket = `unix://${at('podman.sock')}`
  const service = spawn('podman', [...own, 'system', 'service', '--time', '0', socket], {
    stdio: 'ignore',
    env: { ...process.env, ...env },
  })
  const ended = once(service, 'exit')
  while (!(await isThere(at('podman.sock')))) {
    if (service.exitCode !== null) throw new Error(`podman ended with ${service.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  async function podman(...words: string[]): Promise<string> {
    const { status, stdout, stderr } = await run('podman', [...own, ...words], undefined, env)
    if (status !== 0) throw new Error(`podman ${words.join(' ')}: ${stderr}`)
    return stdout.toString().trim()
  }
  const ready: Docker = {
    folder,
    socket,
    port: 0,
    tls: undefined,
    docker: podman,
    container: async (name, { image: of = image, flags = [] } = {}) =>
      podman(
        'run',
        '-d',
        '--network',
        'none',
        '--stop-signal',
        'KILL',
        '--name',
        name,
        ...flags,
        of,
        'sleep',
        '1000000',
      ),
    async kill() {
      service.kill('SIGTERM')
      await ended
    },
    start: async () => undefined,
    async [Symbol.asyncDispose]() {
      await podman('rm', '-fa', '-t', '0').catch(() => undefined)
      await this.kill()
      // podman has to unmount the rest.
      await run('podman', [...own, 'system', 'reset', '-f'], undefined, env)
      // Monitors of programs stay for minutes, in case somebody asks for an exit status.
      for (const pid of ours(folder)) process.kill(pid, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
  try {
    await importImage(ready, image, [])
  } catch (error) {
    await ready[Symbol.asyncDispose]()
    throw error
  }
  return ready
}

/** Processes with the folder in their arguments. */
function ours(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return pid > 1 && pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
      } catch {
        return false
      }
    })
}
