// Bytes in quantity, and many at once, through the real server and the real agent, each a process of its own,
// so that what they hold in memory can be seen: it stays within bounds, whoever is slow, and nothing is lost.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { setUp, startProgram, temporaryFolder, type Program } from './program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 60_000 })

const MiB = 1024 * 1024
const where = folder()
const data = temporaryFolder()
let person: Awaited<ReturnType<typeof makePerson>> | undefined
let server: Program
let agent: Agent
let sshPort: number
let api: Awaited<ReturnType<typeof setUp>>['api']

beforeAll(async () => {
  if (process.getuid?.() === 0) person = await makePerson()
  server = await startProgram({ folder: data.path, env: { HAWSER_DRAIN: '2' } })
  sshPort = Number((await server.logged('ssh.listening'))['port'])
  const owner = await setUp(server)
  api = owner.api
  await keygen(where, 'olga', '-t', 'ed25519')
  await api.publicKeys.create({
    body: {
      data: Buffer.from(where.read('olga.pub')).toString('base64'),
      name: 'olga',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })
  agent = await startAgent(
    { url: server.url, tenant_id: owner.tenant, accept: (uid) => api.devices.accept({ params: { uid } }) },
    { hostname: 'winch' },
  )
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await person?.[Symbol.asyncDispose]()
  data[Symbol.dispose]()
  where[Symbol.dispose]()
})

const args = (...options: string[]): string[] => [
  ...quietArgs(sshPort, ...options, 'LogLevel=INFO'),
  '-i',
  where.file('olga'),
  `${person?.name ?? 'pilot'}@harbour.winch@127.0.0.1`,
]
const resident = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

test('a client that stops reading while a gibibyte streams makes the device wait, and nobody hold it in memory', async () => {
  // Something of the kind has passed before, so that what is measured is not what is loaded at the first
  // time.
  await run('ssh', [...args(), `head -c ${32 * MiB} /dev/zero`])
  const before = { server: resident(server.child.pid!), agent: resident(agent.pid) }
  const child = spawn('ssh', [...args(), `head -c ${1024 * MiB} /dev/zero`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let got = 0
  const first = await once(child.stdout, 'readable').then(() => child.stdout.read() as Buffer)
  got += first.length
  // Nobody reads: the windows fill up and then nothing moves. How long that takes does not matter, only that
  // it ends.
  let last = ''
  const worst = { server: 0, agent: 0 }
  for (let still = 0; still < 5;) {
    await pause(200)
    worst.server = Math.max(worst.server, resident(server.child.pid!) - before.server)
    worst.agent = Math.max(worst.agent, resident(agent.pid) - before.agent)
    const ticks = readFileSync(`/proc/${agent.pid}/stat`, 'utf8').split(' ').slice(13, 15).join()
    still = ticks === last ? still + 1 : 0
    last = ticks
  }
  expect(worst.server).toBeLessThan(32)
  expect(worst.agent).toBeLessThan(32)
  // Then the client reads on, and gets all of it.
  const closed = once(child, 'close')
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) got += chunk.length
  expect((await closed)[0]).toBe(0)
  expect(got).toBe(1024 * MiB)
})

/** Bytes that can be made on both sides without a file: AES of zeros, as openssl makes it. */
const stream = (bytes: number): string =>
  `openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv ${'0'.repeat(32)} -in /dev/zero 2>/dev/null | head -c ${bytes}`

test('five gibibytes pass with keys renewed on the way, and every byte is the same', async () => {
  const source = stream(5 * 1024 * MiB)
  const quoted = args('RekeyLimit=256M').map((arg) => `'${arg}'`)
  const received = await run('bash', [
    '-c',
    `set -o pipefail; ssh ${quoted.join(' ')} "${source}" | sha256sum`,
  ])
  expect(received).toMatchObject({ status: 0 })
  const { stdout } = await run('sh', ['-c', `${source} | sha256sum`])
  expect(received.stdout.toString()).toBe(stdout.toString())
})

test('a copy upwards is the same on the device, too', async () => {
  const source = stream(512 * MiB)
  const quoted = args('RekeyLimit=64M').map((arg) => `'${arg}'`)
  const { stdout } = await run('sh', ['-c', `${source} | ssh ${quoted.join(' ')} sha256sum`])
  expect(stdout.toString()).toBe((await run('sh', ['-c', `${source} | sha256sum`])).stdout.toString())
})

test('two hundred sessions at once on one device are all served, and all have their own end', async () => {
  const control = `ControlPath=${where.file('control')}`
  // Twenty connections with ten sessions each: what a client shares, and what it does not.
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, async (_, connection) => {
      const master = [...args(`${control}-${connection}`, 'ControlMaster=auto', 'ControlPersist=60')]
      const first = await run('ssh', [...master, 'exit 100'])
      const others = await Promise.all(
        Array.from({ length: 9 }, (__, index) =>
          run('ssh', [...master, `echo ${connection}-${index}; exit ${index}`]),
        ),
      )
      await run('ssh', [...args(`${control}-${connection}`), '-O', 'exit'])
      return [first.status, ...others.map(({ status, stdout }) => `${stdout.toString().trim()} ${status}`)]
    }),
  )
  expect(outcomes).toEqual(
    Array.from({ length: 20 }, (_, connection) => [
      100,
      ...Array.from({ length: 9 }, (__, index) => `${connection}-${index} ${index}`),
    ]),
  )
})

test('a command that ends at once has said all it had to say, with its status, every time', async () => {
  for (let turn = 0; turn < 30; turn += 1) {
    const { status, stdout } = await run('ssh', [...args(), 'seq 20000; exit 9'])
    expect(status).toBe(9)
    expect(stdout.length).toBe(108_894)
  }
})

test('a server that is told to stop lets sessions end by themselves for a while, then tells the others why', async () => {
  const quick = spawn('ssh', [...args(), 'echo begun; sleep 1; echo done'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const slow = spawn('ssh', [...args(), 'echo begun; exec sleep 60'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [said, complaint] = ['', '']
  quick.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  slow.stderr.on('data', (chunk: Buffer) => void (complaint += chunk.toString()))
  await Promise.all([once(quick.stdout, 'data'), once(slow.stdout, 'data')])
  server.child.kill('SIGTERM')
  const [[quickStatus], [slowStatus]] = (await Promise.all([once(quick, 'close'), once(slow, 'close')])) as [
    [number],
    [number],
  ]
  expect([quickStatus, said]).toEqual([0, 'begun\ndone\n'])
  expect(slowStatus).toBe(255)
  expect(complaint).toContain('The server is stopping.')
  expect((await server.ended).code).toBe(0)
})
