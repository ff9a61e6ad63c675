// A terminal of a browser as a test speaks it: the ticket, the WebSocket with the page's Origin, the
// messages. And a place to have one: a service, the real agent of a device, somebody who has an account
// there.
import os from 'node:os'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { FileNews, TerminalMessage, TerminalNews } from '@hawser/contract/terminals'
import { dialWebSocket, UpgradeFailed } from '@hawser/mux'
import { makePerson } from '../../agent/test/person.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service, type ServiceOptions } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

export interface Quarters extends AsyncDisposable {
  readonly service: Service
  readonly world: World
  readonly agent: Agent
  /** On the device. */
  readonly user: { readonly name: string; readonly password: string; readonly home: string }
}

const isRoot = process.getuid?.() === 0

export async function openQuarters(options: ServiceOptions = {}): Promise<Quarters> {
  await using opened = new AsyncDisposableStack()
  const service = opened.use(await startService(options))
  const world = await buildWorld(service)
  const person = isRoot ? opened.use(await makePerson()) : undefined
  const agent = opened.use(await startAgent(service))
  const user = person ?? { name: os.userInfo().username, password: 'pilot', home: os.homedir() }
  const whole = opened.move()
  return { service, world, agent, user, [Symbol.asyncDispose]: async () => whole.disposeAsync() }
}

/** One for all tests of a file. */
export function sharedQuarters(options?: ServiceOptions): () => Quarters {
  vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
  let opened: Quarters | undefined
  beforeAll(async () => void (opened = await openQuarters(options)))
  afterAll(() => opened?.[Symbol.asyncDispose]())
  return () => opened!
}

export interface Dialled extends Disposable {
  /** All output so far. */
  text(): string
  /** All text messages, in order; of old terminals none. */
  readonly news: TerminalNews[]
  /** Sends a message as JSON: a right one, or a wrong one. */
  say(message: TerminalMessage | object | null): void
  type(text: string): void
  send(message: string | Uint8Array): void
  /** Waits until it was shown. */
  until(pattern: string | RegExp): Promise<void>
  /** Waits for news of this kind: the uid of the session, the last sentence, or what to sign, in base64. */
  hear(kind: 'session' | 'end' | 'sign'): Promise<string>
  readonly closed: Promise<number>
  close(code?: number): void
  pause(): void
  resume(): void
}

export interface DialOptions {
  readonly cols?: number | string
  readonly rows?: number | string
  readonly headers?: Record<string, string>
}

export async function dial(
  { url }: Pick<Service, 'url'>,
  token: string,
  { cols = 80, rows = 24, headers = {} }: DialOptions = {},
): Promise<Dialled> {
  const address = `${url.replace('http', 'ws')}/ws/ssh?token=${token}&cols=${cols}&rows=${rows}`
  const socket = await dialWebSocket(address, { headers: { origin: url, ...headers } })
  const output: Buffer[] = []
  const news: TerminalNews[] = []
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  socket.on('message', (data, binary) => {
    const bytes = data as Buffer
    const text = binary ? '' : bytes.toString()
    // An old terminal shows plain text.
    if (text.startsWith('{"kind"')) news.push(JSON.parse(text) as TerminalNews)
    else output.push(bytes)
  })
  socket.resume()
  const text = (): string => Buffer.concat(output).toString()
  return {
    text,
    news,
    say: (message) => socket.send(JSON.stringify(message)),
    type: (typed) => socket.send(Buffer.from(typed)),
    send: (message) => socket.send(message),
    until: async (pattern) =>
      eventually(() =>
        typeof pattern === 'string' ? expect(text()).toContain(pattern) : expect(text()).toMatch(pattern),
      ),
    hear: async (kind) =>
      eventually(() => {
        const one = news.find((each) => each.kind === kind) ?? expect.unreachable()
        if (one.kind === 'session') return one.uid
        return one.kind === 'end' ? one.message : one.kind === 'sign' ? one.challenge : ''
      }),
    closed,
    close: (code) => socket.close(code),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    [Symbol.dispose]: () => socket.terminate(),
  }
}

/** What the server answered instead of opening a WebSocket. */
export async function refusal(
  service: Service,
  token: string,
  options: DialOptions = {},
): Promise<number | undefined> {
  try {
    using opened = await dial(service, token, options)
    void opened
    return undefined
  } catch (error) {
    if (error instanceof UpgradeFailed) return error.status
    throw error
  }
}

export const apiOf = async ({ service, world }: Quarters, who: Parameters<World['token']>[0] = 'observer') =>
  client({ url: service.url, token: await world.token(who) })

/** A ticket for a terminal on the device of the quarters. */
export async function ticket(
  quarters: Quarters,
  change: object = {},
  who: Parameters<World['token']>[0] = 'observer',
): Promise<string> {
  const { agent, user } = quarters
  const api = await apiOf(quarters, who)
  const body = { device: agent.uid, username: user.name, password: user.password, ...change }
  return (await api.terminals.open({ body })).body.token
}

/** A terminal whose shell is at work, and the uid of its session. */
export async function terminal(
  quarters: Quarters,
  options: DialOptions = {},
  change: object = {},
): Promise<[Dialled, string]> {
  const dialled = await dial(quarters.service, await ticket(quarters, change), options)
  return [dialled, await dialled.hear('session')]
}

/** Files beside a terminal, as a browser asks for them. */
export interface FilesLine extends Disposable {
  say(wish: object): void
  send(bytes: Uint8Array): void
  next(): Promise<FileNews>
  readonly got: Buffer[]
  readonly closed: Promise<unknown>
}

/** Files beside a terminal of the observer. */
export async function filesBeside(quarters: Quarters, session: string): Promise<FilesLine> {
  const { service } = quarters
  const api = await apiOf(quarters)
  const { token } = (await api.terminals.files({ body: { session } })).body
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/ws/ssh?token=${token}`, {
    headers: { origin: service.url },
  })
  socket.binaryType = 'arraybuffer'
  const news: FileNews[] = []
  const got: Buffer[] = []
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') news.push(JSON.parse(data) as FileNews)
    else got.push(Buffer.from(data as ArrayBuffer))
  })
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  return {
    say: (wish) => socket.send(JSON.stringify(wish)),
    send: (bytes) => socket.send(bytes),
    next: async () => {
      await eventually(() => expect(news.length).toBeGreaterThan(0))
      return news.shift()!
    },
    got,
    closed,
    [Symbol.dispose]: () => socket.close(),
  }
}

export const owner = sample.owner
