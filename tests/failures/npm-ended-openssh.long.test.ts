// `npm start`, `npm run agent` and `npm run demo`, ended by the number of the process that the shell told:
// npm's. Whether npm is told to end or killed, what it has started ends a moment later; Ctrl-C drains once.
// And the demo's ssh command, pasted as it is, asks nothing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { isRoot } from '../../agent/test/device.ts'
import { freePort, run as runProgram } from '../../ssh/test/programs.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { root, temporaryFolder } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

interface Started extends AsyncDisposable {
  readonly npm: ReturnType<typeof spawn>
  readonly exited: Promise<unknown[]>
  said(): string
  /** Waits until it has printed this. */
  saw(pattern: RegExp): Promise<void>
  /** Waits until no process of it is left. */
  gone(): Promise<void>
}

/** Runs a script of package.json in a process group of its own. */
function start(script: string, env: Readonly<Record<string, string>>): Started {
  const npm = spawn('npm', ['run', '-s', script], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const group = -(npm.pid ?? 0)
  let said = ''
  for (const stream of [npm.stdout, npm.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const isGone = (): boolean => {
    try {
      return !process.kill(group, 0)
    } catch {
      return true
    }
  }
  return {
    npm,
    exited: once(npm, 'exit'),
    said: () => said,
    async saw(pattern) {
      await expect.poll(() => said, { timeout: 120_000 }).toMatch(pattern)
    },
    async gone() {
      await expect.poll(isGone, { timeout: 30_000 }).toBe(true)
    },
    async [Symbol.asyncDispose]() {
      if (!isGone()) process.kill(group, 'SIGKILL')
    },
  }
}

async function serverSettings(data: string): Promise<Record<string, string>> {
  const [http, ssh] = [await freePort(), await freePort()]
  return {
    HAWSER_HTTP: `127.0.0.1:${http}`,
    HAWSER_SSH: `127.0.0.1:${ssh}`,
    HAWSER_DATA: data,
    HAWSER_DRAIN: '0',
  }
}

const signals = ['SIGTERM', 'SIGKILL'] as const

test.each(signals)('%s for the npm of `npm start` ends the server in good order', async (signal) => {
  using folder = temporaryFolder()
  await using started = start('start', await serverSettings(folder.path))
  await started.saw(/"event":"server.ready"/)
  started.npm.kill(signal)
  await started.saw(/"event":"server.stopped"/)
  await started.gone()
})

test('Ctrl-C, which reaches npm, the starter and the server at once, drains once', async () => {
  using folder = temporaryFolder()
  await using started = start('start', await serverSettings(folder.path))
  await started.saw(/"event":"server.ready"/)
  process.kill(-(started.npm.pid ?? 0), 'SIGINT')
  await started.exited
  await started.gone()
  expect(started.said().match(/"event":"server.stopping"/g)).toHaveLength(1)
  expect(started.said()).toContain('"event":"server.stopped"')
})

test.each(signals)('%s for the npm of `npm run agent` ends the agent', async (signal) => {
  using folder = temporaryFolder()
  await using service = await startService()
  await buildWorld(service)
  await using started = start('agent', {
    HAWSER_SERVER_ADDRESS: service.url,
    HAWSER_TENANT_ID: sample.tenant,
    HAWSER_PRIVATE_KEY: path.join(folder.path, 'device.key'),
    HAWSER_PREFERRED_HOSTNAME: 'crane',
    ...(isRoot ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$test$no-password-fits-this' }),
  })
  await started.saw(/"event":"tunnel.up"/)
  started.npm.kill(signal)
  await started.gone()
})

test.each(signals)(
  'the ssh line of the demo asks nothing, and %s for its npm ends everything',
  async (signal) => {
    using folder = temporaryFolder()
    const TMPDIR = path.join(folder.path, 'temporary')
    mkdirSync(TMPDIR)
    await using started = start('demo', { ...(await serverSettings(folder.path)), TMPDIR })
    await started.saw(/Ctrl-C ends it/)
    const [, ...words] = (/ssh -i .*/.exec(started.said())?.[0] ?? '').split(' ')
    // In batch mode a question would be a refusal; the key of the server is checked.
    const { status, stdout, stderr } = await runProgram('ssh', [
      '-F',
      'none',
      '-o',
      'BatchMode=yes',
      ...words,
      'echo there',
    ])
    expect([status, stdout.toString()], stderr).toEqual([0, 'there\n'])
    started.npm.kill(signal)
    await started.gone()
    expect(readdirSync(TMPDIR).filter((name) => name.startsWith('hawser-demo'))).toEqual([])
  },
)
