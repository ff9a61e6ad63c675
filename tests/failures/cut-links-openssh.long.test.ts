// A link that is cut a hundred times, at random moments, while people work on the device behind it: a shell
// in a terminal, copies of files both ways, a forward under load. Nothing is lost, doubled or out of order,
// and the recording is what was shown. In the other tests the agent or the server is killed, or a reader
// stops. CUTS says another number of cuts, and CUT_SEED repeats their moments.
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { mostGrace_s } from '@hawser/contract/tunnel'
import { freePort, quietArgs, run } from '../../ssh/test/programs.ts'
import { held_bytes, mib } from '../attacks/held.ts'
import { openTerminal } from '../clients/terminal.ts'
import { eventually, openWay, watch, type Way } from '../clients/way.ts'
import { randomFrom } from '../fuzz/fuzz.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startLink, type Link } from '../harness/link.ts'
import { setUp, startProgram, temporaryFolder } from './program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

const cuts = Number(process.env['CUTS'] ?? 100)
const seed = Number(process.env['CUT_SEED'] ?? Date.now() % 2 ** 31)
const copied_bytes = 100_000_000
/** Slow enough that a copy lasts for many cuts. */
const slow = { bytesPerSecond: 8 * mib }
const device = 'remote'

let way: Way
let link: Link
let agent: Agent

beforeAll(async () => {
  way = await openWay()
  link = await startLink({ port: Number(new URL(way.service.url).port) }, slow)
  agent = await startAgent(
    {
      url: `http://127.0.0.1:${link.port}`,
      tenant_id: sample.tenant,
      accept: (uid) => way.owner.devices.accept({ params: { uid } }),
    },
    { hostname: device },
  )
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await link[Symbol.asyncDispose]()
  await way[Symbol.asyncDispose]()
})

/** Something that goes on while the link is cut. */
interface Load extends AsyncDisposable {
  /** Lets it come to its end, and looks at what has come of it. */
  finish(): Promise<void>
}

/** Cuts the link so often: mostly some time after the device is back, now and then while it comes back. */
async function cutAgainAndAgain(): Promise<void> {
  const random = randomFrom(seed)
  let up: Promise<unknown> = Promise.resolve()
  for (let cut = 0; cut < cuts; cut++) {
    if (random(20) > 0) await up
    await eventually(() => expect(link.passing).toBeGreaterThan(0), 70_000, 1)
    await pause(random(2) === 0 ? random(50) : random(400))
    // A device may open ten tunnels in ten seconds of the server's clock; then it has to wait.
    way.service.clock.forward(1_000)
    up = agent.logged('tunnel.up')
    link.cut()
  }
  await up
}

const to = () => `${way.sshid({ device })}@127.0.0.1`

/** A shell in a terminal that counts. */
async function countingShell(): Promise<Load> {
  const stop = way.there('stop')
  const terminal = openTerminal('ssh', [...way.args(), to()], { columns: 90, rows: 30 })
  // Until the client has taken the terminal over, the terminal itself shows what is typed.
  await terminal.until(/(\$ )/)
  terminal.type(
    `unset HISTFILE; stty -echo; PS1=; i=0; echo be"gun"; while [ ! -e ${stop} ]; do ` +
      'echo "<$i>"; i=$((i+1)); sleep 0.02; done; echo "counted $i"; exit 7\n',
  )
  await terminal.until(/(<1>)/)
  const { uid } = await way.newest()
  return {
    async finish() {
      writeFileSync(stop, '')
      expect(await terminal.ended).toBe(7)
      const told = /\r\nThe connection to \S+ is interrupted; [^\r]*\r\n/g
      const shown = terminal.shown()
      const counted = shown.slice(shown.lastIndexOf('begun')).replace(told, '')
      const end = Number(/counted (\d+)/.exec(counted)?.[1])
      const numbers = Array.from({ length: end }, (_, index) => `<${index}>`)
      expect(counted.split('\r\n').slice(0, end + 2)).toEqual(['begun', ...numbers, `counted ${end}`])
      await eventually(async () =>
        expect((await way.owner.sessions.get({ params: { uid } })).body).toMatchObject({
          active: false,
          recorded: true,
        }),
      )
      const frames = (await way.owner.sessions.play({ params: { uid } })).body
      const played = frames.map(({ message }) => message).join('')
      // The client puts its own last line behind it.
      expect(played.split('\r\n')).toEqual(shown.slice(0, played.length).split('\r\n'))
      expect(played).toContain(`counted ${end}\r\n`)
    },
    async [Symbol.asyncDispose]() {
      terminal[Symbol.dispose]()
    },
  }
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** Copies a file again and again, over one connection, since a login during a cut fails rightly. */
async function copies(direction: 'up' | 'down'): Promise<Load> {
  const control = way.where.file(`control-${direction}`)
  const master = way.start(undefined, { device, flags: ['-N', '-M', '-S', control] })
  await eventually(() => expect(existsSync(control)).toBe(true))
  const [here, there] = [way.where.file(`here-${direction}`), way.there(`there-${direction}`)]
  const fill = direction === 'up' ? here : there
  await run('openssl', ['rand', '-out', fill, String(copied_bytes)])
  if (direction === 'down') await run('chmod', ['644', fill])
  const expected = await sha256(fill)
  const over = new AbortController()
  const copying = (async () => {
    do {
      const words = direction === 'up' ? [here, `${to()}:${there}`] : [`${to()}:${there}`, here]
      const args = way.args({ device, settings: [`ControlPath=${control}`] })
      const outcome = await run('scp', [...args.map((arg) => (arg === '-p' ? '-P' : arg)), '-q', ...words])
      expect(outcome).toMatchObject({ status: 0, stderr: '' })
      expect(await sha256(direction === 'up' ? there : here)).toBe(expected)
    } while (!over.signal.aborted)
  })()
  copying.catch(() => undefined)
  return {
    async finish() {
      over.abort()
      await copying
    },
    async [Symbol.asyncDispose]() {
      await master[Symbol.asyncDispose]()
    },
  }
}

/** A port of the client that leads to a server which the device reaches. */
async function forwardTo(serve: (socket: net.Socket) => void) {
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined)
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: target } = server.address() as AddressInfo
  const port = await freePort()
  const client = way.start(undefined, { device, flags: ['-N', '-L', `${port}:127.0.0.1:${target}`] })
  const sockets: net.Socket[] = []
  return {
    connect: () =>
      eventually(async () => {
        const socket = net.connect({ port, host: '127.0.0.1' })
        await once(socket, 'connect')
        sockets.push(socket)
        return socket
      }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await client[Symbol.asyncDispose]()
      server.close()
    },
  }
}

/** Random bytes through a forwarded port to a server that sends them back. */
async function echoes(): Promise<Load> {
  const arrived = createHash('sha256')
  const forward = await forwardTo((socket) => {
    socket.on('data', (chunk: Buffer) => arrived.update(chunk))
    socket.pipe(socket)
  })
  const socket = await forward.connect()
  const [sent, returned] = [createHash('sha256'), createHash('sha256')]
  let [sent_bytes, returned_bytes] = [0, 0]
  const random = randomFrom(seed)
  const over = new AbortController()
  const more = (): void => {
    while (!over.signal.aborted && sent_bytes - returned_bytes < 3 * mib && !socket.writableNeedDrain) {
      const chunk = randomBytes(1 + random(64 * 1024))
      sent.update(chunk)
      sent_bytes += chunk.length
      socket.write(chunk)
    }
  }
  socket.on('data', (chunk: Buffer) => {
    returned.update(chunk)
    returned_bytes += chunk.length
    more()
  })
  socket.on('drain', more)
  more()
  await eventually(() => expect(returned_bytes).toBeGreaterThan(0))
  return {
    async finish() {
      over.abort()
      socket.end()
      await once(socket, 'close')
      expect(returned_bytes).toBe(sent_bytes)
      const digest = sent.digest('hex')
      expect([arrived.digest('hex'), returned.digest('hex')]).toEqual([digest, digest])
    },
    [Symbol.asyncDispose]: () => forward[Symbol.asyncDispose](),
  }
}

/**
 * A server that can be killed, an agent of its own, and two programs, in a terminal and without one. The
 * server waits two seconds for a lost device, and so does the device for the server.
 */
async function killable(command: string, reconnect_grace_s = 2) {
  await using open = new AsyncDisposableStack()
  const data = open.use(temporaryFolder())
  const server = open.use(await startProgram({ folder: data.path }))
  const port = Number((await server.logged('ssh.listening'))['port'])
  const { api, tenant } = await setUp(server)
  await api.namespaces.edit({ params: { tenant }, body: { settings: { reconnect_grace_s } } })
  const key = Buffer.from(way.where.read('olga.pub')).toString('base64')
  const everywhere = { username: '.*', filter: { hostname: '.*' } }
  await api.publicKeys.create({ body: { data: key, name: 'olga', ...everywhere } })
  const accept = (uid: string) => api.devices.accept({ params: { uid } })
  const agent = open.use(
    await startAgent({ url: server.url, tenant_id: tenant, accept }, { hostname: 'lost' }),
  )
  const args = [
    ...quietArgs(port, 'LogLevel=INFO', 'BatchMode=yes', `IdentityFile=${way.where.file('olga')}`),
    `${way.user.name}@harbour.lost@127.0.0.1`,
  ]
  const inTerminal = open.use(watch('ssh', ['-tt', ...args]))
  inTerminal.child.stdin.write('echo pid"": $$; exec sleep 86400\n')
  const without = open.use(watch('ssh', [...args, `echo pid: $$; exec ${command}`]))
  const pids = await Promise.all([inTerminal, without].map((session) => session.until(/pid: (\d+)/)))
  const whole = open.move()
  return {
    server,
    agent,
    inTerminal,
    without,
    running: () => pids.filter(isRunning).length,
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  }
}

const isRunning = (pid: string): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits until a number does not change any more. */
async function standsStill(number: () => number): Promise<void> {
  for (let still = 0, last = number(); still < 5; last = number()) {
    await pause(100)
    still = number() === last ? still + 1 : 0
  }
}

const resident_bytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

test.concurrent(`${cuts} cuts lose, double and disorder nothing (CUT_SEED=${seed})`, async () => {
  await using open = new AsyncDisposableStack()
  const shell = open.use(await countingShell())
  const others = await Promise.all([copies('up'), copies('down'), echoes()])
  for (const load of others) open.use(load)
  await cutAgainAndAgain()
  link.shape({ bytesPerSecond: Infinity })
  await Promise.all([shell, ...others].map((load) => load.finish()))
})

test.concurrent('with a killed agent, terminals and pipes close, and clients get a sentence', async () => {
  // As with sshd, nobody is left to end a program that uses neither a terminal nor its input.
  await using all = await killable('cat')
  expect(all.running()).toBe(2)
  all.agent.kill('SIGKILL')
  expect(await all.without.status).toBe(255)
  expect(all.without.stderr()).toContain('The connection to harbour.lost was lost.')
  expect(await all.inTerminal.status).toBe(255)
  expect(all.inTerminal.stdout()).toContain('The connection to harbour.lost was lost.')
  await eventually(() => expect(all.running()).toBe(0))
})

test.concurrent('a server that is killed leaves nothing behind but terminals, and clients get a sentence', async () => {
  await using all = await killable('sleep 86400')
  expect(all.running()).toBe(2)
  await all.server.kill()
  for (const session of [all.without, all.inTerminal]) {
    expect(await session.status).toBe(255)
    expect(session.stderr()).toMatch(/closed by remote host|Connection reset by peer|Broken pipe/)
  }
  // The agent keeps the terminal for its person; it goes with the agent.
  await eventually(() => expect(all.running()).toBe(1))
  all.agent.kill('SIGTERM')
  await eventually(() => expect(all.running()).toBe(0))
})

test.concurrent('a server that is told to end does not wait for devices that are away', async () => {
  await using all = await killable('cat', mostGrace_s)
  all.agent.kill('SIGKILL')
  await all.inTerminal.until(/(is interrupted)/)
  // The device is to be told that this session is over, if it returns.
  all.without.child.kill('SIGKILL')
  await all.server.logged('session.ended')
  all.server.child.kill('SIGTERM')
  expect(await all.server.ended).toEqual({ code: 0, signal: null })
})

test.each(['device', 'client'] as const)(
  'when nobody reads at the end of the %s, memory stays bounded over cuts, and nothing is missing afterwards',
  async (reader) => {
    const accepted = Promise.withResolvers<net.Socket>()
    await using forward = await forwardTo((socket) => accepted.resolve(socket))
    const near = await forward.connect()
    near.write('x')
    const far = await accepted.promise
    await once(far, 'data')
    const [from, to] = reader === 'device' ? [near, far] : [far, near]
    to.pause()
    const before = { here: await held_bytes(), agent: resident_bytes(agent.pid) }
    const [sent, received] = [createHash('sha256'), createHash('sha256')]
    let [sent_bytes, received_bytes] = [0, 0]
    const more = (): void => {
      while (sent_bytes < 48 * mib && !from.writableNeedDrain) {
        const chunk = randomBytes(mib / 16)
        sent.update(chunk)
        sent_bytes += chunk.length
        from.write(chunk)
      }
    }
    from.on('drain', more)
    more()
    for (let turn = 0; turn < 3; turn++) {
      await standsStill(() => sent_bytes)
      const up = agent.logged('tunnel.up')
      link.cut()
      await up
    }
    await standsStill(() => sent_bytes)
    const held = { here: await held_bytes(), agent: resident_bytes(agent.pid) }
    expect(sent_bytes).toBeLessThan(32 * mib)
    expect(held.here - before.here).toBeLessThan(16 * mib)
    expect(held.agent - before.agent).toBeLessThan(32 * mib)
    to.on('data', (chunk: Buffer) => {
      received.update(chunk)
      received_bytes += chunk.length
    })
    to.resume()
    await eventually(() => expect(received_bytes).toBe(48 * mib), 60_000)
    expect(received.digest('hex')).toBe(sent.digest('hex'))
  },
)
