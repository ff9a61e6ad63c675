// Many at once: people who are on one device at the same time, and clients that have many channels in one
// connection, as OpenSSH's own sharing (ControlMaster) has. Editors have a file of their own.
import { describe, expect, test } from 'vitest'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { eventually, sharedWay, watch, type Running, type Way } from './way.ts'

const way = sharedWay()

const active = async (): Promise<number> => {
  const { body } = await way.owner.sessions.list({ query: { per_page: 100 } })
  return body.filter((session) => session.active && session.device_uid === way.agent.uid).length
}
/** All of them wait for input at the same time; then each is told the number that it is to end with. */
async function allAtOnce(clients: readonly Running[]): Promise<void> {
  await Promise.all(clients.map(async (client) => client.until(/begun/)))
  expect(clients.every(({ child }) => child.exitCode === null)).toBe(true)
  for (const [number, { child }] of clients.entries()) child.stdin.end(`${number + 1}\n`)
  expect(await Promise.all(clients.map(async ({ status }) => status))).toEqual(
    clients.map((_, number) => number + 1),
  )
  expect(clients.map((client) => client.stdout())).toEqual(
    clients.map((_, number) => `begun\nI am ${number + 1}\n`),
  )
}
const waiting = 'echo begun; read number; echo "I am $number"; exit $number'

test('sixteen sessions at the same time on one device, each with its own end', async () => {
  await using clients = new AsyncDisposableStack()
  const all = Array.from({ length: 16 }, () => clients.use(way.start(waiting)))
  await Promise.all(all.map(async (client) => client.until(/begun/)))
  expect(await active()).toBe(16)
  await allAtOnce(all)
  await eventually(async () => expect(await active()).toBe(0))
})

interface Master extends AsyncDisposable {
  /** A client that uses the connection of the master. */
  start(command: string): Running
  ssh(command: string): Promise<Outcome>
  /** Tells the master something (-O); what it answers. */
  command(...words: string[]): Promise<string>
  readonly socket: string
}

let masters = 0
async function openMaster({ args, sshid, where, start }: Way, device?: string): Promise<Master> {
  // Each has its own: a master that is stopped while it leaves lets its socket lie, and the next one would
  // not take its place.
  const socket = where.file(`master-${(masters += 1)}`)
  const to = device === undefined ? {} : { device }
  const target = `${sshid(to)}@127.0.0.1`
  // Only what shares it: nobody can connect alone.
  const shared = [...args({ settings: ['ControlMaster=no', `ControlPath=${socket}`, 'ProxyCommand=false'] })]
  const running = start(undefined, {
    ...to,
    settings: ['ControlMaster=yes', `ControlPath=${socket}`],
    flags: ['-N'],
  })
  await eventually(async () => expect((await run('ssh', [...shared, '-O', 'check', target])).status).toBe(0))
  return {
    socket,
    start: (command) => watch('ssh', [...shared, target, command]),
    ssh: async (command) => run('ssh', [...shared, target, command]),
    async command(...words) {
      const { status, stdout, stderr } = await run('ssh', [...shared, '-O', ...words, target])
      expect([status, stderr]).toEqual([0, ''])
      return stdout.toString().trim()
    },
    async [Symbol.asyncDispose]() {
      await run('ssh', [...shared, '-O', 'exit', target])
      await running[Symbol.asyncDispose]()
    },
  }
}

describe('one connection for many (ControlMaster)', () => {
  test('ten channels work side by side in one session of the records', async () => {
    await using master = await openMaster(way)
    await using clients = new AsyncDisposableStack()
    const all = Array.from({ length: 10 }, () => clients.use(master.start(waiting)))
    await allAtOnce(all)
    expect(await active()).toBe(1)
  })

  test('one that is killed takes nobody else along, and its program ends', async () => {
    await using master = await openMaster(way)
    await using killed = master.start('echo "begun $$"; exec sleep 600')
    await using other = master.start('echo begun; exec cat')
    const pid = await killed.until(/begun (\d+)/)
    await other.until(/begun/)
    killed.child.kill('SIGKILL')
    const { stdout } = await master.ssh(`while kill -0 ${pid} 2>/dev/null; do sleep 0.05; done; echo gone`)
    expect(stdout.toString()).toBe('gone\n')
    other.child.stdin.end('still here\n')
    expect(await other.status).toBe(0)
    expect(other.stdout()).toBe('begun\nstill here\n')
  })

  test('when the master leaves, all who share it are told', async () => {
    const master = await openMaster(way)
    await using client = master.start('echo begun; exec cat')
    await client.until(/begun/)
    await master[Symbol.asyncDispose]()
    expect(await client.status).toBe(255)
    await eventually(async () => expect(await active()).toBe(0))
  })

  test('files go through it while commands run', async () => {
    await using master = await openMaster(way)
    await using client = master.start(waiting)
    await client.until(/begun/)
    const sharing = ['-o', `ControlPath=${master.socket}`, '-o', 'ProxyCommand=false', '-F', 'none', '-q']
    const { status, stderr } = await run('scp', [
      ...sharing,
      '-P',
      String(way.service.sshPort),
      way.where.file('olga.pub'),
      `${way.sshid()}@127.0.0.1:${way.there('shared')}`,
    ])
    expect([status, stderr]).toEqual([0, ''])
    await allAtOnce([client])
  })

  test('forwards come and go on it', async () => {
    using echo = await startEcho()
    await using master = await openMaster(way)
    const left = await freePort()
    const to = `127.0.0.1:${echo.port}`
    const listens = async (port: number): Promise<void> => whenListening({ port, host: '127.0.0.1' })
    await master.command('forward', '-L', `127.0.0.1:${left}:${to}`)
    const right = Number(await master.command('forward', '-R', `0:${to}`))
    for (const port of [left, right])
      expect((await roundTrip(port, Buffer.from('hello'))).toString()).toBe('hello')
    await master.command('cancel', '-L', `127.0.0.1:${left}:${to}`)
    await master.command('cancel', '-R', `0:${to}`)
    for (const port of [left, right])
      await eventually(async () => expect(listens(port)).rejects.toThrow('ECONNREFUSED'))
    expect((await master.ssh('echo still here')).stdout.toString()).toBe('still here\n')
  })

  test.each([1, 2] as const)(
    'also to a device of the field, with a tunnel of version %i',
    async (version) => {
      await using old = await way.oldAgent(version)
      await using master = await openMaster(way, old.name)
      await using clients = new AsyncDisposableStack()
      const logins = old.seen.attempts.length
      await allAtOnce(Array.from({ length: 5 }, () => clients.use(master.start(waiting))))
      expect(old.seen.attempts).toHaveLength(logins)
    },
  )
})
