// What the gateway cannot read it does not pass on. A device that believes everything it is asked joins by a
// real `ssh -N -R`; a client with bytes of its own asks it, through the gateway, for a terminal, variables,
// forwards and channels in bodies that are too long, cut short, or followed by more than belongs to them.
// Nothing of it may arrive, in either direction.
import net, { type AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  acceptConnection,
  ChannelRefused,
  connect,
  fingerprintSha256,
  generatePrivateKey,
  localPair,
  pipe,
  writeRequest,
  type Channel,
  type Connection,
  type PipeOptions,
  type ServerConnection,
} from '@hawser/ssh'
import { Writer } from '../../ssh/src/wire.ts'
import { password, sharedHarbour } from '../clients/agentless.ts'
import type { Running } from '../clients/way.ts'

const harbour = sharedHarbour()

/** Says yes to everything, and notes it. */
interface Device extends AsyncDisposable {
  readonly port: number
  readonly fingerprint: string
  readonly asked: string[]
  /** The device's end of the last channel that was opened. */
  last: Channel | undefined
  connection: ServerConnection | undefined
}

async function credulous(): Promise<Device> {
  const hostKey = generatePrivateKey()
  const listener = net.createServer((socket) => void serve(socket).catch(() => socket.destroy()))
  const serve = async (socket: net.Socket): Promise<void> => {
    const connection = await acceptConnection(socket, {
      software: 'Credulous',
      hostKeys: [hostKey],
      methods: ['password'],
      authenticate: async (attempt) =>
        attempt.method === 'password' && attempt.password === password ? 'accept' : 'refuse',
      channelTypes: 'all',
      globalRequests: 'all',
    })
    device.connection = connection
    void (async () => {
      for await (const request of connection.requests) {
        device.asked.push(request.name)
        request.accept()
      }
    })()
    for await (const opening of connection.channels) {
      device.asked.push(opening.type)
      const channel = (device.last = opening.accept())
      void (async () => {
        for await (const request of channel.requests) {
          device.asked.push(request.type)
          request.reply(true)
        }
      })()
    }
  }
  await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
  const device: Device = {
    port: (listener.address() as AddressInfo).port,
    fingerprint: fingerprintSha256(hostKey.blob),
    asked: [],
    last: undefined,
    connection: undefined,
    async [Symbol.asyncDispose]() {
      await device.connection?.end()
      listener.close()
    },
  }
  return device
}

let device: Device
let line: Running
let client: Connection
beforeAll(async () => {
  device = await credulous()
  const joined = await harbour.accepted(device)
  line = joined.line
  client = await connect(net.connect(harbour.service.sshPort, '127.0.0.1'), {
    user: `olga@harbour.${joined.device.name}`,
    proofs: [{ method: 'password', password }],
    checkHostKey: () => true,
    channelTypes: 'all',
  })
})
afterAll(async () => {
  await client.end()
  await line[Symbol.asyncDispose]()
  await device[Symbol.asyncDispose]()
})

const body = (): Writer => new Writer(200_000)
const long = 'x'.repeat(65_600)
const size = (writer: Writer): Writer => writer.uint32(80).uint32(24).uint32(0).uint32(0)
const good = (request: Parameters<typeof writeRequest>[0]) => writeRequest(request).payload
const extra = (payload: Uint8Array) => Buffer.concat([payload, Buffer.of(0)])
const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map([[53, 1]]) }

describe('requests of a client about a session', () => {
  test.each<[string, string, Uint8Array]>([
    ['a terminal with a name of 65,600 bytes', 'pty-req', size(body().string(long)).string('').bytes()],
    [
      'a terminal whose modes are cut short',
      'pty-req',
      size(body().string('xterm'))
        .string(Buffer.of(53, 0, 0))
        .bytes(),
    ],
    ['a terminal without its modes', 'pty-req', size(body().string('xterm')).bytes()],
    ['a terminal and a byte', 'pty-req', extra(good({ type: 'pty-req', pty }))],
    [
      'LD_PRELOAD with a value of 65,600 bytes',
      'env',
      body().string('LD_PRELOAD').string(`/tmp/${long}`).bytes(),
    ],
    ['LD_PRELOAD without a value', 'env', body().string('LD_PRELOAD').bytes()],
    [
      'a harmless variable with a second pair behind it',
      'env',
      body().string('LANG').string('C').string('LD_PRELOAD').string('x').bytes(),
    ],
    ['an agent and a byte', 'auth-agent-req@openssh.com', Buffer.of(0)],
    ['X11 cut short', 'x11-req', body().boolean(true).string('MIT-MAGIC-COOKIE-1').bytes()],
    ['a window that is cut short', 'window-change', body().uint32(80).bytes()],
    ['a signal with a byte behind it', 'signal', extra(good({ type: 'signal', signal: 'INT' }))],
    ['a command with another one behind it', 'exec', body().string('true').string('false').bytes()],
    ['a command that is cut short', 'exec', body().uint32(100).raw(Buffer.from('true')).bytes()],
    ['a subsystem with a byte behind it', 'subsystem', extra(good({ type: 'subsystem', name: 'sftp' }))],
    ['a shell with a byte behind it', 'shell', Buffer.of(0)],
  ])('%s is refused', async (_, type, payload) => {
    await using channel = await client.open('session')
    device.asked.length = 0
    expect(await channel.request(type, payload, true)).toBe(false)
    // What can be read arrives, behind everything that was sent before it.
    expect(await channel.request('window-change', good({ type: 'window-change', size: pty }), true)).toBe(
      true,
    )
    expect(device.asked).toEqual(['window-change'])
  })

  test('what has no name here passes as it is', async () => {
    await using channel = await client.open('session')
    device.asked.length = 0
    expect(await channel.request('simple@putty.projects.tartarus.org', Buffer.from('anything'), true)).toBe(
      true,
    )
    expect(device.asked).toEqual(['simple@putty.projects.tartarus.org'])
  })
})

describe('channels and requests about the whole connection', () => {
  const forward = body().string('127.0.0.1').uint32(80).string('127.0.0.1').uint32(1)
  const direct = [...forward.bytes()]
  test.each<[string, string, Uint8Array]>([
    ['a session with a byte', 'session', Buffer.of(0)],
    ['a port with a byte behind it', 'direct-tcpip', Buffer.from([...direct, 0])],
    ['a port without its origin', 'direct-tcpip', body().string('127.0.0.1').uint32(80).bytes()],
    [
      'a host of 65,600 bytes',
      'direct-tcpip',
      body().string(long).uint32(80).string('127.0.0.1').uint32(1).bytes(),
    ],
    [
      'a socket file without the rest',
      'direct-streamlocal@openssh.com',
      body().string('/tmp/socket').bytes(),
    ],
  ])('%s is not opened', async (_, type, payload) => {
    device.asked.length = 0
    await expect(client.open(type, payload)).rejects.toThrow(ChannelRefused)
    expect(device.asked).toEqual([])
  })

  test.each<[string, string, Uint8Array]>([
    ['a port and a byte', 'tcpip-forward', extra(body().string('').uint32(0).bytes())],
    ['an address without a port', 'tcpip-forward', body().string('').bytes()],
    ['a forward that is no more wanted, cut short', 'cancel-tcpip-forward', body().string('').bytes()],
    [
      'a socket file and a byte',
      'streamlocal-forward@openssh.com',
      extra(body().string('/tmp/socket').bytes()),
    ],
  ])('%s is not forwarded', async (_, name, payload) => {
    device.asked.length = 0
    expect(await client.request(name, payload)).toBe(undefined)
    expect(device.asked).toEqual([])
  })

  test('they open and forward when they can be read', async () => {
    device.asked.length = 0
    await using _ = await client.open('direct-tcpip', Buffer.from(direct))
    expect(await client.request('tcpip-forward', body().string('').uint32(4_000).bytes())).toBeDefined()
    expect(device.asked).toEqual(['direct-tcpip', 'tcpip-forward'])
  })
})

test('a forwarded port is asked for nothing: no terminal, no program, no variable', async () => {
  const forward = body().string('127.0.0.1').uint32(80).string('127.0.0.1').uint32(1).bytes()
  await using channel = await client.open('direct-tcpip', forward)
  device.asked.length = 0
  for (const { name, payload } of [
    writeRequest({ type: 'pty-req', pty }),
    writeRequest({ type: 'env', name: 'LD_PRELOAD', value: '/tmp/x.so' }),
    writeRequest({ type: 'exec', command: 'true' }),
  ])
    expect(await channel.request(name, payload, true)).toBe(false)
  expect(device.asked).toEqual([])
})

describe('the other way round', () => {
  test('a device says how a program ended in words that can be read, or not at all', async () => {
    await using channel = await client.open('session')
    expect(await channel.request('shell', Buffer.alloc(0), true)).toBe(true)
    const heard = (async () => {
      const names: string[] = []
      for await (const { type } of channel.requests) names.push(type)
      return names
    })()
    await device.last?.request('exit-status', Buffer.of(0, 0, 0))
    await device.last?.request('exit-status', extra(good({ type: 'exit-status', status: 0 })))
    await device.last?.request('exit-signal', body().string(long).bytes())
    await device.last?.request('exit-status', good({ type: 'exit-status', status: 3 }))
    await device.last?.close()
    expect(await heard).toEqual(['exit-status'])
  })

  test('a device opens nothing that cannot be read', async () => {
    expect(await client.request('tcpip-forward', body().string('').uint32(4_001).bytes())).toBeDefined()
    const opened: string[] = []
    void (async () => {
      for await (const opening of client.channels) {
        opened.push(opening.type)
        void opening.accept().close()
      }
    })()
    const bound = body().string('').uint32(4_001).string('127.0.0.1').uint32(1).bytes()
    await expect(device.connection?.open('forwarded-tcpip', extra(bound))).rejects.toThrow(ChannelRefused)
    await expect(device.connection?.open('forwarded-tcpip', bound.subarray(0, -1))).rejects.toThrow(
      ChannelRefused,
    )
    await device.connection?.open('forwarded-tcpip', bound)
    expect(opened).toEqual(['forwarded-tcpip'])
  })
})

describe('a tap that throws forwards nothing', () => {
  const broken = (): never => {
    throw new Error('the tap is broken')
  }
  /** What reaches the far end, and the near end that asks. */
  function piped(options: PipeOptions) {
    const [mine, near] = localPair()
    const [far, theirs] = localPair()
    void pipe(near, far, options)
    const asked: string[] = []
    void (async () => {
      for await (const request of theirs.requests) {
        asked.push(request.name)
        request.accept()
      }
    })()
    void (async () => {
      for await (const opening of theirs.channels) {
        asked.push(opening.type)
        const channel = opening.accept()
        void (async () => {
          for await (const request of channel.requests) {
            asked.push(request.type)
            request.reply(true)
          }
        })()
      }
    })()
    return { mine, asked }
  }

  test('of what is asked of a channel, which is closed', async () => {
    const { mine, asked } = piped({ channel: () => ({ allow: true, tap: { request: broken } }) })
    const channel = await mine.open('session')
    const granted = await channel.request('shell', Buffer.alloc(0), true).catch(() => false)
    await channel.closed
    expect(granted).toBe(false)
    expect(asked).toEqual(['session'])
  })

  test('of channels, which are refused one by one', async () => {
    const { mine, asked } = piped({ channel: broken })
    for (const type of ['session', 'session']) await expect(mine.open(type)).rejects.toThrow(ChannelRefused)
    expect(asked).toEqual([])
  })

  test('of requests about the whole, which are refused one by one', async () => {
    const { mine, asked } = piped({ request: broken })
    for (const name of ['one@example.org', 'two@example.org'])
      expect(await mine.request(name)).toBe(undefined)
    expect(asked).toEqual([])
  })
})
