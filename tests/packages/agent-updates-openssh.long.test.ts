// The agent as people have it, on a bare Debian: brought by install.sh from the server's own tarball, kept
// running by our service script, reached by the real OpenSSH. The server is given a newer build; the agent
// fetches all of it by itself, a session that is open lives to its end, and the new agent comes back. One
// that cannot come back is replaced by the former.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { version } from '@hawser/contract/version'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import { buildText } from '../../packages/tarball.ts'
import { folder, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { buildOf } from '../harness/agent-release.ts'
import { builtAgent, builtAgents } from '../harness/built-agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { bareRoot, type BareRoot } from './bare-root.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const execute = promisify(execFile)

describe.runIf(isRoot)(`an agent on a bare Debian (${onlyAsRoot})`, () => {
  const opened = new AsyncDisposableStack()
  let [bare, service, owner, where, served]: [BareRoot, Service, Client, Folder, string] = [] as never
  let [uid, built] = ['', '']
  beforeAll(async () => {
    await builtAgents()
    served = mkdtempSync(path.join(os.tmpdir(), 'hawser-served-'))
    opened.defer(() => rmSync(served, { recursive: true, force: true }))
    built = path.join(served, 'built')
    copyFileSync(builtAgent(), built)
    copyFileSync(built, archive())
    bare = opened.use(await bareRoot())
    const env = { HAWSER_URL: '', HAWSER_SSH_FAILURE_LIMIT: '0/60' }
    service = opened.use(await startService({ env, agents: served }))
    await service.rooms.updates.decide()
    const world = await buildWorld(service)
    owner = service.api({ token: await world.token('owner') })
    where = opened.use(folder())
    await keygen(where, 'olga', '-t', 'ed25519')
    const data = Buffer.from(where.read('olga.pub')).toString('base64')
    const anywhere = { hostname: '.*' }
    await owner.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: anywhere } })
    await bare.run(['useradd', '--create-home', '--shell', '/bin/bash', 'pilot'])
    mkdirSync(path.join(bare.folder, 'usr/local/bin'), { recursive: true })
    copyFileSync('/bin/busybox', path.join(bare.folder, 'usr/local/bin/wget'))
    const query = `tenant_id=${sample.tenant}&preferred_hostname=bollard&preferred_identity=test-bollard`
    const script = await (await fetch(`${service.url}/install.sh?${query}`)).text()
    const installed = await bare.run(['sh', '-s'], { input: script })
    if (installed.status !== 0) throw new Error(installed.stderr)
    // A new agent has twenty seconds here to connect.
    const settings = path.join(bare.folder, 'etc/hawser-agent.env')
    writeFileSync(settings, `${readFileSync(settings, 'utf8')}HAWSER_UPDATE_WAIT=20\n`)
    await bare.run(['hawser-agent-service', 'restart'])
    uid = await eventually(async () => {
      const { body } = await owner.devices.list({ query: { status: 'pending' } })
      const found = body.find(({ name }) => name === 'bollard')
      if (!found) throw new Error('it has not enrolled')
      return found.uid
    }, 60_000)
    await owner.devices.accept({ params: { uid } })
  })
  afterAll(async () => opened.disposeAsync())

  const archive = () => path.join(served, `hawser-agent-linux-${process.arch}.tar.gz`)
  const device = async (): Promise<Device> => (await owner.devices.get({ params: { uid } })).body
  const until = async (check: (device: Device) => void): Promise<void> =>
    eventually(async () => check(await device()), 200_000)
  const ssh = (command: string): string[] => [
    ...quietArgs(service.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
    `pilot@${sample.namespace}.bollard@127.0.0.1`,
    command,
  ]

  /**
   * The same agent as another build, changed by the work, takes the place of the one that is offered. The
   * server runs in this process, so nothing here may hold it up.
   */
  async function offer(build: string, change: (agent: string) => void = () => undefined): Promise<void> {
    const work = mkdtempSync(path.join(served, 'work-'))
    await execute('tar', ['-C', work, '-xzf', built])
    const agent = path.join(work, 'hawser-agent')
    writeFileSync(path.join(agent, 'BUILD'), buildText(version, build))
    change(agent)
    const { stdout } = await execute('find', ['hawser-agent', '-type', 'f'], { cwd: work })
    const names = stdout.trim().split('\n').toSorted()
    const packed = path.join(work, 'archive')
    await execute('tar', ['-C', work, '--format=ustar', '-I', 'gzip -1', '-cf', packed, ...names])
    renameSync(packed, archive())
    rmSync(work, { recursive: true })
  }

  test('updates itself while a session is open, which lives to its end', async () => {
    await until((now) => expect([now.online, now.agent?.state]).toEqual([true, 'current']))
    const session = spawn('ssh', ssh('echo begun; read line; echo "heard $line"'), {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let heard = ''
    session.stdout.on('data', (chunk: Buffer) => void (heard += chunk.toString()))
    await eventually(() => expect(heard).toBe('begun\n'))
    await offer(buildOf('b'))
    await service.rooms.updates.decide()
    expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 1 })
    await service.rooms.updates.decide()
    await until((now) => expect(now.agent?.reason).toBe('It waits until its sessions have ended.'))
    // Others are let in meanwhile, and the first session still is what it was.
    expect((await run('ssh', ssh('echo too'))).stdout.toString()).toBe('too\n')
    session.stdin.end('the bell\n')
    const [status] = (await once(session, 'exit')) as [number]
    expect([status, heard]).toEqual([0, 'begun\nheard the bell\n'])
    await until((now) => expect(now.agent).toMatchObject({ build: buildOf('b'), state: 'current' }))
    await until((now) => expect(now.online).toBe(true))
    expect((await run('ssh', ssh('echo back'))).stdout.toString()).toBe('back\n')
    // The Node is kept once: both agents have the same.
    const nodes = ['bin/node', `updates/${buildOf('b')}/bin/node`].map((name) => `/opt/hawser-agent/${name}`)
    const { stdout } = await bare.run(['stat', '-c', '%i', ...nodes])
    expect(new Set(stdout.toString().trim().split('\n')).size).toBe(1)
  })

  test('one that does not come up is replaced by the one before', async () => {
    await offer(buildOf('c'), (agent) => {
      const main = path.join(agent, 'app/main.mjs')
      renameSync(main, path.join(agent, 'app/real.mjs'))
      writeFileSync(main, "if (process.argv.length > 2) await import('./real.mjs')\nelse while (true);\n")
    })
    await service.rooms.updates.decide()
    expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 1 })
    await service.rooms.updates.decide()
    await until((now) => expect(now.agent).toMatchObject({ build: buildOf('b'), state: 'failed' }))
    expect((await device()).agent?.reason).toBe('it had not connected after 20 seconds')
    await until((now) => expect(now.online).toBe(true))
    expect((await run('ssh', ssh('echo back'))).stdout.toString()).toBe('back\n')
  })

  test('an updated agent tells its status, installs itself again, and is removed without a trace', async () => {
    const said = async (...words: string[]): Promise<string> => {
      const { status, stdout, stderr } = await bare.run(['hawser-agent', ...words])
      expect(status, stderr).toBe(0)
      return stdout.toString()
    }
    expect(await said('status')).toContain(`connected as ${sample.namespace}.bollard`)
    expect(await said('install', '--keepalive', '45')).toContain('already accepted')
    // What was an update is now what was installed.
    const read = (name: string): string => readFileSync(path.join(bare.folder, name), 'utf8')
    expect(read('opt/hawser-agent/BUILD')).toBe(buildText(version, buildOf('b')))
    expect(readdirSync(path.join(bare.folder, 'opt/hawser-agent/updates'))).toEqual([])
    await until((now) => expect([now.online, now.agent?.build]).toEqual([true, buildOf('b')]))
    await said('uninstall', '--purge')
    const left = globSync('{etc,opt,run,usr/local,var/log}/**/*hawser*', { cwd: bare.folder })
    expect(left).toEqual([])
  })
})
