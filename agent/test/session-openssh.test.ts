// Commands and shells without a terminal, run by the real OpenSSH client: what goes in comes in, what comes
// out is all of it, on the stream where it belongs, and how it ended is said as it was.
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ChannelRefused, SessionRefused, startSession, writeRequest, type Connection } from '@hawser/ssh'
import { describe, expect, test, vi } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { all, outputOf } from '../../ssh/test/reading.ts'
import { startDevice } from './device.ts'
import { inBothModes, type Place } from './modes.ts'
import { isRunning, whenGone } from './running.ts'
import { times } from '../../tests/harness/tier.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

async function overOneConnection(
  place: Place,
  options: string[],
  command: string,
  times: number,
): Promise<Buffer[]> {
  const socket = place.where.file('master')
  const target = 'nobody@127.0.0.1'
  const user = place.who.name
  const master = ['-M', '-S', socket, '-f', '-N', '-l', user, '127.0.0.1']
  expect((await run('ssh', [...place.args(), ...master])).status).toBe(0)
  try {
    const outputs: Buffer[] = []
    for (let time = 0; time < times; time += 1) {
      const { status, stdout } = await run('ssh', [
        ...place.args(),
        '-S',
        socket,
        ...options,
        target,
        command,
      ])
      expect(status).toBe(0)
      outputs.push(stdout)
    }
    return outputs
  } finally {
    await run('ssh', ['-S', socket, '-O', 'exit', target])
  }
}

inBothModes((place) => {
  describe('how it ended', () => {
    test.each([0, 1, 3, 127, 254])('a command that exits with %i', async (status) => {
      expect((await place.ssh(`exit ${status}`)).status).toBe(status)
    })

    test('a program that was killed: a signal, not a number', async () => {
      expect((await place.ssh('kill -9 $$')).status).toBe(255)
      await using connection = await place.connect()
      for (const signal of ['KILL', 'TERM', 'USR1']) {
        expect((await outputOf(connection, `kill -${signal} $$`)).exit).toEqual({
          type: 'exit-signal',
          signal,
          coreDumped: false,
          message: '',
        })
      }
    })

    test('a command that does not exist', async () => {
      const { status, stderr } = await place.ssh('no-such-program-anywhere')
      expect([status, stderr]).toEqual([127, expect.stringContaining('no-such-program-anywhere')])
    })
  })

  describe('output', () => {
    test('errors are apart from the rest', async () => {
      const { stdout, stderr } = await place.ssh('echo one; echo two >&2; echo three')
      expect([stdout.toString(), stderr]).toEqual(['one\nthree\n', 'two\n'])
    })

    test('much on both streams, in either order, dead-locks nobody', async () => {
      for (const order of ['>&2; head -c 2000000 /dev/zero', '; head -c 2000000 /dev/zero >&2']) {
        const { status, stdout, stderr } = await place.ssh(`head -c 2000000 /dev/zero ${order}`)
        expect([status, stdout.length, stderr.length]).toEqual([0, 2_000_000, 2_000_000])
      }
    })

    test('a quick command loses nothing of its end, time after time', async () => {
      const outputs = await overOneConnection(place, [], 'head -c 65536 /dev/zero', times(10, 100))
      expect(outputs.filter((output) => output.length !== 65_536)).toEqual([])
    })

    test('scripts write to /dev/stdout and /dev/stderr and read /dev/stdin as files', async () => {
      const { stdout, stderr } = await place.ssh('cat /dev/stdin > /dev/stdout; echo no >> /dev/stderr', {
        input: 'yes\n',
      })
      expect([stdout.toString(), stderr]).toEqual(['yes\n', 'no\n'])
    })

    test('what a program leaves running does not hold the session, and goes on', async () => {
      const { status, stdout } = await place.ssh('sleep 300 & echo $!')
      expect(status).toBe(0)
      const pid = Number(stdout.toString())
      expect(readFileSync(`/proc/${pid}/comm`, 'latin1')).toBe('sleep\n')
      process.kill(pid, 'SIGKILL')
    })

    test('what comes late from something left running still comes', async () => {
      const { stdout } = await place.ssh('(for i in 1 2 3; do sleep 0.3; echo $i; done) & echo 0')
      expect(stdout.toString()).toBe('0\n1\n2\n3\n')
    })
  })

  describe('input', () => {
    test('goes through unchanged to its end', async () => {
      const bytes = randomBytes(3_000_000)
      const { status, stdout } = await place.ssh('cat', { input: bytes })
      expect([status, stdout.equals(bytes)]).toEqual([0, true])
    })

    test('that nobody reads does not hold the session', async () => {
      expect((await place.ssh('exit 5', { input: Buffer.alloc(20_000_000) })).status).toBe(5)
    })

    test('that is closed early is no failure', async () => {
      const { status, stdout } = await place.ssh('head -c 10', { input: Buffer.alloc(20_000_000, 'x') })
      expect([status, stdout.toString()]).toEqual([0, 'xxxxxxxxxx'])
    })

    test('a shell without a terminal does what it is told, as a login shell', async () => {
      const { status, stdout, stderr } = await place.ssh(undefined, {
        input: 'shopt login_shell\necho err >&2\nexit 4\n',
      })
      expect([status, stderr]).toEqual([4, 'err\n'])
      expect(stdout.toString()).toMatch(/login_shell\s+on/)
    })
  })

  describe('the program', () => {
    test('is the user, in all groups, at home', async () => {
      const { stdout } = await place.ssh('id -u; id -g; id -G; pwd; umask')
      const [uid, gid, groups, home, mask] = stdout.toString().split('\n')
      expect([uid, gid, home, mask]).toEqual([
        String(place.who.uid),
        String(place.who.gid),
        place.who.home,
        '0022',
      ])
      expect(new Set(groups!.split(' ').map(Number))).toEqual(new Set(place.who.groups))
    })

    test('has the signals and limits of a login, not those of the agent', async () => {
      const { stdout } = await place.ssh(
        'grep -E "SigIgn|SigBlk" /proc/self/status; ulimit -S -n; ls /proc/self/fd | wc -l',
      )
      const [blocked, ignored, files, open] = stdout.toString().trim().split('\n')
      expect([blocked, ignored, files]).toEqual([
        'SigBlk:\t0000000000000000',
        'SigIgn:\t0000000000000000',
        '1024',
      ])
      // As many as any child of these tests has.
      expect(open).toBe(execFileSync('sh', ['-c', 'ls /proc/self/fd | wc -l'], { encoding: 'utf8' }).trim())
    })

    test('sees the variables of a login', async () => {
      const { stdout } = await place.ssh('env', { settings: ['SetEnv=HAWSER_CLIENT="2001:db8::7 4711"'] })
      const env = Object.fromEntries(
        stdout
          .toString()
          .split('\n')
          .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
      )
      const { name, home } = place.who
      expect(env).toMatchObject({
        HOME: home,
        USER: name,
        LOGNAME: name,
        SHELL: '/bin/bash',
        SHELLHUB_HOST: 'testing',
        HAWSER_DEVICE: 'testing',
      })
      expect(env).toMatchObject({
        SSH_CLIENT: '2001:db8::7 4711 22',
        SSH_CONNECTION: '2001:db8::7 4711 127.0.0.1 22',
      })
      expect(env['PATH']).toMatch(/\/usr\/bin/)
      expect(env['LANG']).toBeTruthy()
      expect(
        Object.keys(env).filter((variable) =>
          /^(HAWSER_CLIENT|TERM|SSH_TTY|SSH_AUTH_SOCK|MAIL|NODE|VITEST)/.test(variable),
        ),
      ).toEqual([])
    })

    test('gets of the client only what is on the list', async () => {
      const settings = [
        'LD_PRELOAD=/x.so',
        'PATH=/evil',
        'BASH_ENV=/evil',
        'FOO=1',
        'LANG=de_DE.UTF-8',
        'LC_TIME=C',
        'COLORTERM=truecolor',
      ]
      const { status, stdout } = await place.ssh('env', { settings: [`SetEnv=${settings.join(' ')}`] })
      const lines = stdout.toString().split('\n')
      expect(status).toBe(0)
      expect(lines).toEqual(expect.arrayContaining(['LANG=de_DE.UTF-8', 'LC_TIME=C', 'COLORTERM=truecolor']))
      expect(lines.filter((line) => /^(LD_PRELOAD|BASH_ENV|FOO)=|evil/.test(line))).toEqual([])
    })

    test('gets no value that could be a path', async () => {
      const { stdout } = await place.ssh('env', { settings: ['SetEnv=LANG=../../evil LC_ALL=C'] })
      expect(stdout.toString()).toContain('LC_ALL=C\n')
      expect(stdout.toString()).not.toContain('evil')
    })

    test('gets the signals that the client sends, and all that it started, too', async () => {
      await using connection = await place.connect()
      const command = `trap 'echo heard; exit 9' USR1; echo ready; while :; do sleep 0.1; done`
      const session = await startSession(connection, { program: { type: 'exec', command } })
      expect((await session.channel.read())?.bytes.toString()).toBe('ready\n')
      await session.signal('USR1')
      expect((await all(session.channel)).stdout.toString()).toBe('heard\n')
      expect(await session.exit).toEqual({ type: 'exit-status', status: 9 })

      const second = await startSession(connection, {
        program: { type: 'exec', command: 'sleep 300 & echo $!; wait' },
      })
      const pid = Number((await second.channel.read())?.bytes.toString())
      await second.signal('TERM')
      expect(await second.exit).toEqual({
        type: 'exit-signal',
        signal: 'TERM',
        coreDumped: false,
        message: '',
      })
      await whenGone(pid)
    })
  })

  test('many sessions at once on one connection', async () => {
    await using connection = await place.connect()
    const sessions = await Promise.all(
      Array.from({ length: times(40, 200) }, async () =>
        startSession(connection, { program: { type: 'exec', command: 'read line; echo $line' } }),
      ),
    )
    const answers = await Promise.all(
      sessions.map(async ({ channel, exit }, number) => {
        await channel.write(Buffer.from(`${number}\n`))
        const [{ stdout }, how] = [await all(channel), await exit]
        return [stdout.toString(), how]
      }),
    )
    expect(answers).toEqual(sessions.map((_, number) => [`${number}\n`, { type: 'exit-status', status: 0 }]))
  })

  test('closing one session leaves the others', async () => {
    await using connection = await place.connect()
    const [first, second] = await Promise.all(
      ['cat', 'cat'].map(async (command) => startSession(connection, { program: { type: 'exec', command } })),
    )
    await first!.channel.close('now')
    await second!.channel.write(Buffer.from('still here'))
    await second!.channel.end()
    expect((await all(second!.channel)).stdout.toString()).toBe('still here')
  })

  test('what there is not is refused, and the connection goes on', async () => {
    expect((await place.ssh('none', { options: ['-s'] })).stderr).toContain('subsystem request failed')
    await using connection = await place.connect()
    await expect(
      startSession(connection, { program: { type: 'subsystem', name: 'netconf' } }),
    ).rejects.toBeInstanceOf(SessionRefused)
    await expect(connection.open('x11')).rejects.toMatchObject({ reason: 3 })
    await expect(connection.open('tun@openssh.com')).rejects.toBeInstanceOf(ChannelRefused)
    const channel = await connection.open('session')
    const { name, payload } = writeRequest({
      type: 'x11-req',
      single: false,
      protocol: 'MIT-MAGIC-COOKIE-1',
      cookie: 'ab',
      screen: 0,
    })
    expect(await channel.request(name, payload, true)).toBe(false)
    expect(await channel.request('nonsense', Buffer.alloc(3), true)).toBe(false)
    await channel.close('now')
    expect((await outputOf(connection, 'echo on')).stdout.toString()).toBe('on\n')
  })

  test('a killed client takes its program along', async () => {
    const child = spawn('ssh', [...place.args(), `${place.who.name}@127.0.0.1`, 'echo $$; exec sleep 300'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const pid = Number(await new Promise<Buffer>((resolve) => void child.stdout.once('data', resolve)))
    expect(isRunning(pid)).toBe(true)
    child.kill('SIGKILL')
    await whenGone(pid)
  })

  test('a program that does not mind a hang-up is ended after a while', async () => {
    const connection = await place.connect()
    const pid = await started(connection, 'trap "" HUP; echo $$; while :; do sleep 1; done')
    await connection.end()
    await whenGone(pid, 20_000)
  })
})

test('the gateway hears a keepalive again and again, and one that answers nothing is given up', async () => {
  await using device = await startDevice({ keepalive_ms: 50 })
  const connection = await device.connect({ globalRequests: 'all', keepalive_ms: 0 })
  const heard: (string | boolean)[][] = []
  const unanswered = Promise.withResolvers<void>()
  const listen = async (): Promise<void> => {
    for await (const request of connection.requests) {
      heard.push([request.name, request.wantReply])
      if (request.name.startsWith('keepalive') && heard.length > 5) unanswered.resolve()
      else request.refuse()
    }
  }
  void listen()
  await unanswered.promise
  expect(
    heard.filter(([name]) => name === 'keepalive@hawser').every(([, wantReply]) => wantReply === true),
  ).toBe(true)
  expect(heard.map(([name]) => name)).toContain('keepalive@hawser')
  expect((await connection.ended).message).toBe('The peer does not answer.')
})

async function started(connection: Connection, command: string): Promise<number> {
  const { channel } = await startSession(connection, { program: { type: 'exec', command } })
  return Number((await channel.read())?.bytes.toString())
}
