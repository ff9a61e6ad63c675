// An engine that lies, stutters or continues without end, as a real server on loopback: what is asked ends in a
// sentence, what is held is bounded, and what was lost is found again.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { engineClient, type EngineClient } from '../src/client.ts'
import { containerAddresses, followContainers, listContainers, type Found } from '../src/containers.ts'
import { startExec } from '../src/exec.ts'
import { supervise } from '../src/supervise.ts'

interface FakeEngine extends AsyncDisposable {
  readonly client: EngineClient
  readonly port: number
  close(): Promise<void>
}

async function engine(
  answers: Record<string, http.RequestListener>,
  { port = 0, hijack }: { port?: number; hijack?: (socket: Socket) => void } = {},
): Promise<FakeEngine> {
  const server = http.createServer((request, response) => {
    const answer = answers[request.url!.split('?')[0]!]
    if (answer) answer(request, response)
    else response.writeHead(404).end('{"message":"no such thing"}')
  })
  server.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    socket.on('error', () => undefined)
    hijack?.(socket as Socket)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const at = (server.address() as AddressInfo).port
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  return {
    client: engineClient({
      endpoint: () => ({ host: '127.0.0.1', port: at, name: 'engine' }),
      answer_ms: 1_000,
    }),
    port: at,
    close,
    [Symbol.asyncDispose]: close,
  }
}

const json =
  (body: unknown): http.RequestListener =>
  (_request, response) =>
    void response.end(JSON.stringify(body))
const silent: http.RequestListener = (_request, response) => response.flushHeaders()
const id = (number: number): string => number.toString(16).padStart(64, '0')
const container = (number: number, more: object = {}) => ({
  Id: id(number),
  Names: [`/c${number}`],
  Image: 'i',
  State: 'running',
  ...more,
})
const never = () => ({ [Symbol.dispose]: () => undefined })

describe('the list of containers', () => {
  test('is read as far as it makes sense, and not beyond a bound', async () => {
    const odd = [
      null,
      7,
      {},
      { Id: '../x' },
      { Id: id(900), Names: null },
      container(901, { Names: ['/other/alias', '/own'], State: 'paused' }),
    ]
    await using fake = await engine({
      '/containers/json': json([...odd, ...Array.from({ length: 20 }, (_, number) => container(number))]),
    })
    const { containers, more } = await listContainers(fake.client, 10)
    expect([containers.length, more]).toEqual([10, 12])
    expect(containers[0]).toMatchObject({ name: id(900).slice(0, 12), running: false })
    expect(containers[1]).toMatchObject({ name: 'own', running: false })
  })

  test.each([
    ['is no list', json({}), 'What answers there is not a container engine.'],
    [
      'is no JSON',
      (_: unknown, response: http.ServerResponse) => void response.end('<html>'),
      'What answers there is not a container engine.',
    ],
    [
      'never ends',
      (_: unknown, response: http.ServerResponse) => void response.write('['),
      'The engine did not answer in time.',
    ],
    ['never comes', () => undefined, 'The engine did not answer in time.'],
  ] as const)('that %s is a failure', async (_, answer, sentence) => {
    await using fake = await engine({ '/containers/json': answer })
    await expect(listContainers(fake.client)).rejects.toThrow(sentence)
  })
})

describe('the addresses of a container', () => {
  const read = async (inspected: unknown, info: unknown = { SecurityOptions: ['name=seccomp'] }) => {
    await using fake = await engine({ '/containers/c/json': json(inspected), '/info': json(info) })
    return await containerAddresses(fake.client, 'c')
  }
  const networks = (NetworkMode: string, Networks?: unknown) => ({
    HostConfig: { NetworkMode },
    NetworkSettings: { Networks },
  })
  const bridge = { IPAddress: '172.17.0.2', GlobalIPv6Address: 'fd00::2' }

  test('are those on its own networks', async () => {
    const back = { IPAddress: '10.1.0.2', GlobalIPv6Address: '' }
    expect(await read(networks('bridge', { bridge, back }))).toEqual(['172.17.0.2', 'fd00::2', '10.1.0.2'])
    expect(
      await read(networks('default', { odd: { IPAddress: 'example.com', GlobalIPv6Address: 7 } })),
    ).toEqual([])
    await expect(read({})).rejects.toThrow('What answers there is not a container engine.')
    await expect(read(networks('bridge', { bridge: null }))).rejects.toThrow()
  })

  test('are none if it shares a network, has none, or belongs to an engine without root', async () => {
    expect(await read(networks('host', { host: bridge }))).toEqual([])
    expect(await read(networks('container:d', {}))).toEqual([])
    expect(await read(networks('none'))).toEqual([])
    const rootless = { SecurityOptions: ['name=seccomp,profile=builtin', 'name=rootless'] }
    expect(await read(networks('bridge', { bridge }), rootless)).toEqual([])
  })
})

describe('news', () => {
  const follow = (
    fake: FakeEngine,
    found: (all: Found) => void = () => undefined,
    signal = new AbortController().signal,
  ) => followContainers(fake.client, { signal, poked: never, found: async (all) => found(all) })

  test('in a line without end end the connection', async () => {
    const endless: http.RequestListener = (_request, response) => {
      const sending = setInterval(() => response.write('x'.repeat(50_000)), 1)
      response.once('close', () => clearInterval(sending))
    }
    await using fake = await engine({ '/events': endless, '/containers/json': json([]) })
    await expect(follow(fake)).rejects.toThrow('The engine sent an event line that is too long.')
  })

  test('that end are a failure', async () => {
    await using fake = await engine({
      '/events': (_request, response) => void response.end('{}\n'),
      '/containers/json': json([]),
    })
    await expect(follow(fake)).rejects.toThrow('The engine ended the connection.')
  })

  test('make the list be asked for again, a storm of them few times', async () => {
    let events: http.ServerResponse | undefined
    let asked = 0
    await using fake = await engine({
      '/events': (_request, response) => {
        events = response
        response.flushHeaders()
      },
      '/containers/json': (request, response) =>
        json(Array.from({ length: ++asked }, (_, number) => container(number)))(request, response),
    })
    const stopping = new AbortController()
    const seen: number[] = []
    const following = follow(fake, ({ containers }) => seen.push(containers.length), stopping.signal)
    following.catch(() => undefined)
    await eventually(() => expect(seen).toEqual([1]))
    for (let line = 0; line < 500; line += 1) events!.write('{"status":"start"}\n')
    await eventually(() => expect(seen.length).toBeGreaterThan(1))
    stopping.abort()
    await expect(following).rejects.toThrow()
    expect(seen.length).toBeLessThan(10)
  })
})

describe('a supervised engine', () => {
  const good = {
    '/version': json({ ApiVersion: '1.41', Arch: 'arm64' }),
    '/events': silent,
    '/containers/json': json([container(1)]),
  }

  test('is said to be lost and found again, with its containers', async () => {
    const fake = await engine(good)
    const told: string[] = []
    const endpoint = () => ({ host: '127.0.0.1', port: fake.port, name: 'engine' })
    await using _ = supervise({
      open: (signal) => engineClient({ endpoint, signal }),
      found: async ({ containers }, { arch }) => void told.push(`${containers.length} ${arch}`),
      lost: async () => void told.push('lost'),
      state: async (state, message) => void told.push(`${state} ${message}`),
      onError: () => undefined,
      first_ms: 20,
      most_ms: 50,
    })
    await eventually(() => expect(told).toEqual(['1 arm64', 'connected ']))
    await fake.close()
    await eventually(() =>
      expect(told.slice(2, 4)).toEqual(['lost', 'failed The engine cannot be reached (ECONNREFUSED).']),
    )
    await using again = await engine(good, { port: fake.port })
    await eventually(() => expect(told.slice(-2)).toEqual(['1 arm64', 'connected ']))
    expect(again.port).toBe(fake.port)
  })

  test('that breaks off for a moment is not lost', async () => {
    let events: http.ServerResponse | undefined
    const told: string[] = []
    await using fake = await engine({
      ...good,
      '/events': (_request, response) => {
        events = response
        response.flushHeaders()
      },
    })
    await using _ = supervise({
      open: () => fake.client,
      found: async () => void told.push('found'),
      lost: async () => void told.push('lost'),
      state: async (state) => void told.push(state),
      onError: () => undefined,
      first_ms: 20,
    })
    await eventually(() => expect(told).toEqual(['found', 'connected']))
    events!.destroy()
    await eventually(() => expect(told).toEqual(['found', 'connected', 'found']))
  })

  test('that hangs is left at once', async () => {
    await using fake = await engine({ '/version': () => undefined })
    const endpoint = () => ({ host: '127.0.0.1', port: fake.port, name: 'engine' })
    const supervised = supervise({
      open: (signal) => engineClient({ endpoint, signal, answer_ms: 600_000 }),
      found: async () => undefined,
      lost: async () => undefined,
      state: async () => undefined,
      onError: () => undefined,
    })
    await supervised[Symbol.asyncDispose]()
  })
})

describe('a program', () => {
  const frame = (stream: number, text: string): Buffer => {
    const head = Buffer.alloc(8)
    head[0] = stream
    head.writeUInt32BE(Buffer.byteLength(text), 4)
    return Buffer.concat([head, Buffer.from(text)])
  }
  const answers = {
    '/containers/c/exec': json({ Id: 'abc' }),
    '/exec/abc/json': json({ Running: false, ExitCode: 9 }),
  }

  test('has its outputs apart, however their frames are cut', async () => {
    const bytes = Buffer.concat([frame(1, 'out'), frame(2, 'err'), frame(1, ''), frame(1, 'put')])
    await using fake = await engine(answers, {
      hijack(socket) {
        const send = (at: number): void =>
          void (at < bytes.length
            ? socket.write(bytes.subarray(at, at + 1), () => setImmediate(send, at + 1))
            : socket.end())
        socket.setNoDelay(true)
        send(0)
      },
    })
    const exec = await startExec(
      fake.client,
      { container: 'c', command: ['x'], user: 'root' },
      AbortSignal.timeout(10_000),
    )
    const heard = ['', '']
    for await (const { stream, bytes: piece } of exec.output) heard[stream] += piece.toString()
    expect(heard).toEqual(['output', 'err'])
    expect(await exec.exit()).toBe(9)
  })

  test('whose engine vanishes has no exit that anybody knows', async () => {
    await using fake = await engine(
      { '/containers/c/exec': json({ Id: 'abc' }) },
      { hijack: (socket) => void socket.destroy() },
    )
    const exec = await startExec(
      fake.client,
      { container: 'c', command: ['x'], user: 'root' },
      AbortSignal.timeout(10_000),
    )
    for await (const _ of exec.output);
    await expect(exec.exit()).rejects.toThrow('The engine answered with status 404.')
  })

  test.each([json({}), json({ Id: '../../x' }), json('abc')])(
    'with no proper id is not started',
    async (created) => {
      await using fake = await engine({ '/containers/c/exec': created })
      await expect(
        startExec(fake.client, { container: 'c', command: ['x'], user: 'root' }, AbortSignal.timeout(10_000)),
      ).rejects.toThrow('What answers there is not a container engine.')
    },
  )
})
