// What goes beside SSH, and so cannot pass the gateway: mosh wants UDP to the device, and X11 forwarding
// channels that the agent refuses. And what docs/guides/clients.md says to use instead: tmux, and an X
// display at the other end of -R. The gateway has another address than the device here, as it has in life.
import { randomBytes } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort, quietArgs, run, type Outcome } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const gateway = '127.0.0.2'
const port = await freePort()
const way = sharedWay({ HAWSER_SSH: `${gateway}:${port}` })

const args = (...settings: string[]): string[] =>
  quietArgs(port, ...settings, `IdentityFile=${way.where.file('olga')}`, 'BatchMode=yes')
const target = (): string => `${way.sshid()}@${gateway}`
const ssh = async (
  words: readonly string[],
  command: string,
  input?: string,
  env: Record<string, string> = {},
): Promise<Outcome> => run('ssh', [...args('LogLevel=INFO'), ...words, target(), command], input, env)
const onTerminal = (program: string, words: readonly string[]): Terminal =>
  openTerminal(program, [...words], { columns: 80, rows: 24, env: { LC_ALL: 'C.UTF-8' } })

test('mosh logs in, starts its server on the device, and hears nothing from it', async () => {
  using terminal = onTerminal('mosh', [`--ssh=ssh ${args().join(' ')}`, target()])
  await eventually(() => expect(terminal.shown()).toContain('Nothing received from server on UDP port'))
})

test('a session of tmux goes on when the connection is lost, and is there again', async () => {
  const name = `hawser-${randomBytes(4).toString('hex')}`
  const attach = (): Terminal =>
    onTerminal('ssh', [...args(), '-t', target(), `tmux -L ${name} new-session -A -s work`])
  {
    using terminal = attach()
    await eventually(() => expect(terminal.shown()).toContain('[work]'))
    terminal.type('echo high-$((40 + 2))-tide\r')
    await eventually(() => expect(terminal.shown()).toContain('high-42-tide'))
  }
  using terminal = attach()
  await eventually(() => expect(terminal.shown()).toContain('high-42-tide'))
  terminal.type('exit\r')
  expect(await terminal.ended).toBe(0)
})

describe('X11', () => {
  const display = `:${1000 + (process.pid % 1000)}`
  const socket = `/tmp/.X11-unix/X${display.slice(1)}`
  const env = (): Record<string, string> => ({ DISPLAY: display, XAUTHORITY: way.where.file('xauthority') })
  const server = { stop: async (): Promise<void> => undefined }

  beforeAll(async () => {
    const cookie = randomBytes(16).toString('hex')
    await run('xauth', ['-q', 'source', '-'], `add ${display} . ${cookie}\n`, env())
    const child = spawn('Xvfb', [display, '-nolisten', 'tcp', '-auth', way.where.file('xauthority')], {
      stdio: 'ignore',
    })
    server.stop = async () => {
      child.kill()
      await once(child, 'exit')
    }
    await eventually(async () => access(socket))
  })
  afterAll(async () => server.stop())

  test('-X is refused with a sentence, and the command runs', async () => {
    const { status, stdout, stderr } = await ssh(['-X'], 'echo "display: $DISPLAY"', undefined, env())
    expect([status, stdout.toString()]).toEqual([0, 'display: \n'])
    expect(stderr).toContain('X11 forwarding request failed on channel 0')
  })

  test('a program on the device shows its windows by way of -R, and only with the cookie', async () => {
    const there = `localhost:${10 + (process.pid % 1000)}`
    const forward = ['-R', `${6000 + Number(there.split(':')[1])}:${socket}`]
    const before = await ssh(forward, `DISPLAY=${there} xdpyinfo`, undefined, env())
    expect([before.status, before.stderr]).toEqual([1, expect.stringContaining('unable to open display')])
    const listed = (await run('xauth', ['list', display], undefined, env())).stdout.toString()
    const cookie = /\s([0-9a-f]{32})$/m.exec(listed)?.[1] ?? ''
    await ssh([], 'xauth -q source -', `add ${there} . ${cookie}\n`)
    const { status, stdout } = await ssh(forward, `DISPLAY=${there} xdpyinfo`, undefined, env())
    expect([status, stdout.toString()]).toEqual([0, expect.stringContaining(`name of display:    ${there}`)])
    await ssh([], `xauth -q remove ${there}`)
  })
})
