// A gateway in miniature: the real OpenSSH client, our server, our client, the real sshd, joined by the pipe.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { connect } from '../src/client.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import type { Side, Tap } from '../src/join-channels.ts'
import { pipe, type PipeOptions } from '../src/pipe.ts'
import { acceptConnection } from '../src/server.ts'
import { folder, freePort, keygen, quietArgs, run, startSshd, type Sshd } from './programs.ts'
import { hostKey } from './server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const where = folder()
let sshd: Sshd
beforeAll(async () => {
  await keygen(where, 'olga', '-t', 'ed25519')
  sshd = await startSshd(where, where.read('olga.pub'))
})
afterAll(async () => {
  await sshd[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

interface Gateway extends AsyncDisposable {
  readonly port: number
  readonly endings: Side[]
}

async function startGateway(options: PipeOptions = {}): Promise<Gateway> {
  const endings: Side[] = []
  const serving = new Set<Promise<void>>()
  const serve = async (socket: net.Socket): Promise<void> => {
    const all = { channelTypes: 'all', globalRequests: 'all' } as const
    await using near = await acceptConnection(socket, {
      ...all,
      hostKeys: [hostKey],
      methods: [],
      authenticate: async () => 'accept',
    })
    await using far = await connect(sshd.connect(), {
      ...all,
      user: sshd.user,
      proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
      checkHostKey: () => true,
    })
    endings.push((await pipe(near, far, options)).side)
  }
  const listener = net.createServer((socket) => {
    const served = serve(socket).finally(() => serving.delete(served))
    serving.add(served)
  })
  await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    endings,
    async [Symbol.asyncDispose]() {
      listener.close()
      await Promise.all(serving)
    },
  }
}

const ssh = async (gateway: Gateway, args: string[], input?: Buffer | string) =>
  run('ssh', [...quietArgs(gateway.port), 'x@127.0.0.1', ...args], input)

test('commands, their streams and their status pass', async () => {
  await using gateway = await startGateway()
  const { status, stdout, stderr } = await ssh(gateway, ['cat; echo err >&2; exit 4'], 'input')
  expect([status, stdout.toString(), stderr]).toEqual([4, 'input', 'err\n'])
  expect(gateway.endings).toEqual(['near'])
})

test('the last bytes of a command that ends at once are there, every time', async () => {
  await using gateway = await startGateway()
  for (let turn = 0; turn < 5; turn += 1) {
    const { stdout, status } = await ssh(gateway, ['head -c 300000 /dev/zero; exit 2'])
    expect([stdout.length, status]).toEqual([300_000, 2])
  }
})

test('much passes both ways at once', async () => {
  await using gateway = await startGateway()
  const bytes = randomBytes(16 * 1024 * 1024)
  const { stdout } = await ssh(gateway, ['cat'], bytes)
  expect(stdout.equals(bytes)).toBe(true)
})

test('files are copied by scp, both its ways, and by sftp', async () => {
  await using gateway = await startGateway()
  const bytes = randomBytes(3_000_001)
  where.write('original', bytes)
  const args = quietArgs(gateway.port).map((arg) => (arg === '-p' ? '-P' : arg))
  for (const way of [['-O'], []]) {
    const { status, stderr } = await run('scp', [
      ...args,
      ...way,
      where.file('original'),
      `x@127.0.0.1:${where.file('copy')}`,
    ])
    expect([status, stderr]).toEqual([0, ''])
    expect(readFileSync(where.file('copy')).equals(bytes)).toBe(true)
  }
  const { status } = await run(
    'sftp',
    [...args, '-b', '-', 'x@127.0.0.1'],
    `get ${where.file('copy')} ${where.file('again')}\n`,
  )
  expect(status).toBe(0)
  expect(readFileSync(where.file('again')).equals(bytes)).toBe(true)
})

test('ports are forwarded both ways through the pipe', async () => {
  await using gateway = await startGateway()
  const port = await freePort()
  // The port there leads to sshd itself, whose first line everybody knows.
  const args = [
    ...quietArgs(gateway.port, 'ExitOnForwardFailure=yes'),
    '-R',
    `127.0.0.1:${port}:127.0.0.1:${sshd.port}`,
  ]
  const { stdout } = await run('ssh', [
    ...args,
    'x@127.0.0.1',
    `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; head -c 7 <&3'`,
  ])
  expect(stdout.toString()).toBe('SSH-2.0')
  const direct = await run(
    'ssh',
    [...quietArgs(gateway.port), '-W', `127.0.0.1:${sshd.port}`, 'x@127.0.0.1'],
    'SSH-2.0-nobody\r\n',
  )
  expect(direct.stdout.toString()).toMatch(/^SSH-2\.0-OpenSSH/)
})

test('a tap sees output before it is passed on, and requests', async () => {
  const seen: string[] = []
  await using gateway = await startGateway({
    channel: () => ({
      allow: true,
      tap: {
        data: async (from, { bytes }) => void seen.push(`${from}: ${bytes.toString()}`),
        request: (from, request) => void seen.push(`${from} asks ${request.type}`),
      },
    }),
  })
  await ssh(gateway, ['cat'], 'words')
  expect(seen.filter((line) => !line.includes('env'))).toEqual([
    'near asks exec',
    'near: words',
    'far: words',
    expect.stringContaining('far asks exit-status'),
  ])
})

test('what is not allowed is refused, and the rest goes on', async () => {
  await using gateway = await startGateway({
    channel: (_, opening) => ({ allow: opening.type === 'session' }),
  })
  const { status } = await run(
    'ssh',
    [...quietArgs(gateway.port), '-W', `127.0.0.1:${sshd.port}`, 'x@127.0.0.1'],
    '',
  )
  expect(status).toBe(255)
  expect((await ssh(gateway, ['echo fine'])).stdout.toString()).toBe('fine\n')
})

test('when the far side dies the user is told, and gets 255', async () => {
  await using gateway = await startGateway({
    channel: () => ({
      allow: true,
      tap: {
        async ending(near, how) {
          if (how.lost) await near.write(Buffer.from('the device is gone\n'), 1)
        },
      },
    }),
  })
  const { status, stdout, stderr } = await ssh(gateway, ['echo before; sleep 1; kill -9 $PPID; sleep 60'])
  expect(stdout.toString()).toBe('before\n')
  expect(stderr).toContain('the device is gone')
  expect(status).toBe(255)
  expect(gateway.endings).toEqual(['far'])
})

test.each<[string, Tap]>([
  ['output', { data: (from) => fail(from === 'far') }],
  ['input', { data: (from) => fail(from === 'near') }],
  [
    'a request',
    {
      request(from) {
        fail(from === 'near')
        return undefined
      },
    },
  ],
  ['the end', { ending: () => fail(true) }],
])('a tap that fails on %s ends its channel and nothing else', async (_, tap) => {
  const taps = [tap, {}]
  using local = folder()
  await using gateway = await startGateway({ channel: () => ({ allow: true, tap: taps.shift() }) })
  const control = `ControlPath=${local.file('control')}`
  const first = await run(
    'ssh',
    [...quietArgs(gateway.port, control, 'ControlMaster=auto', 'ControlPersist=30'), 'x@127.0.0.1', 'cat'],
    'words',
  )
  expect(first.status).not.toBe(3)
  const second = await run('ssh', [...quietArgs(gateway.port, control), 'x@127.0.0.1', 'echo fine; exit 3'])
  expect([second.stdout.toString(), second.status]).toEqual(['fine\n', 3])
  await run('ssh', [...quietArgs(gateway.port, control), '-O', 'exit', 'x@127.0.0.1'])
})

function fail(really: boolean): void {
  if (really) throw new Error('the disk is full')
}
