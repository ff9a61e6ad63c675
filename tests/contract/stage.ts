// Where the contract tests play: one server with the world of the examples and a few more callers in it (a
// key for every role, a stranger's key and device, a device that was rejected and one that is gone, somebody
// without a namespace). Every caller is signed in once; `reset` puts the world back as it was then. What the
// server keeps in memory beside the database (presence, verified tokens) grants nothing, so it may be older
// than the world.
import http from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { roles, type Role } from '@hawser/contract/access'
import { sample } from '@hawser/contract/examples'
import { iso } from '../../server/src/kit/clock.ts'
import { hashOf } from '../../server/src/kit/secrets.ts'
import { startService, type Service, type ServiceOptions } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { fingerprint, tablesOf, type Contents } from './tables.ts'

export interface Credential {
  readonly token?: string
  readonly apiKey?: string
}

export interface Cast {
  readonly nobody: Credential
  readonly owner: Credential
  readonly administrator: Credential
  readonly operator: Credential
  readonly observer: Credential
  /** Has a second factor; an observer. */
  readonly careful: Credential
  /** The owner of another namespace. */
  readonly stranger: Credential
  /** A user who is in no namespace. */
  readonly loner: Credential
  readonly key: Readonly<Record<Role, Credential>>
  /** A key of the other namespace, with the role of its owner. */
  readonly strangeKey: Credential
  /** The device of the examples. */
  readonly device: Credential
  /** Another device of the same namespace. */
  readonly otherDevice: Credential
  /** A device of the other namespace. */
  readonly strangeDevice: Credential
  readonly rejectedDevice: Credential
  readonly goneDevice: Credential
}

export interface Sent {
  readonly method: string
  /** With its parameters and its query, as it goes over the wire. */
  readonly path: string
  readonly by?: Credential
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is, with `type`; JSON unless stated. */
  readonly raw?: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The text read as JSON, where it is that. */
  readonly body: unknown
}

export interface Stage extends AsyncDisposable {
  readonly service: Service
  readonly world: World
  readonly cast: Cast
  send(sent: Sent): Promise<Got>
  /** Puts the world back. */
  reset(): Promise<void>
  /** Nobody has ever signed up; there is only the set-up code. */
  empty(): Promise<void>
  /** What the database holds, as one text that is the same as long as nothing lasting has changed. */
  fingerprint(): Promise<string>
}

/** For a group of tests: opened before the first, put back before each, closed after the last. */
export function onStage(open: () => Promise<Stage>): () => Stage {
  let stage: Stage | undefined
  const opened = (): Stage => {
    if (!stage) throw new Error('the stage is not open')
    return stage
  }
  beforeAll(async () => void (stage = await open()))
  beforeEach(() => opened().reset())
  afterAll(() => stage?.[Symbol.asyncDispose]())
  return opened
}

export async function openStage(options: ServiceOptions = {}): Promise<Stage> {
  const service = await startService({ ...options, env: { HAWSER_LOG: 'error', ...options.env } })
  try {
    const world = await buildWorld(service)
    const cast = await castOf(service, world)
    const tables = tablesOf(service.rooms)
    const first = await tables.read()
    const before = JSON.stringify(first)
    let same = first
    const agent = new http.Agent({ keepAlive: true })
    return {
      service,
      world,
      cast,
      send: (sent) => send(service.url, agent, sent),
      async reset() {
        const now = await tables.read()
        if (now === same) return
        if (JSON.stringify(now) === before) same = now
        else await tables.write(first)
      },
      empty: () => tables.write(emptied(first)),
      fingerprint: async () => fingerprint(await tables.read()),
      async [Symbol.asyncDispose]() {
        agent.destroy()
        await service[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await service[Symbol.asyncDispose]()
    throw error
  }
}

function emptied(contents: Contents): Contents {
  const nothing = Object.fromEntries(Object.keys(contents).map((table) => [table, []])) as unknown as Contents
  return { ...nothing, one_time_tokens: contents.one_time_tokens.filter((row) => row.kind === 'setup') }
}

async function castOf({ rooms, clock }: Service, world: World): Promise<Cast> {
  const { stores, tokens, users, rules } = rooms
  const now = iso(clock.now())

  const person = async (name: Parameters<World['token']>[0]): Promise<Credential> => ({
    token: await world.token(name),
  })
  const alone = { username: 'lena', password: sample.owner.password }
  await users.create({ ...alone, name: 'Lena', email: 'lena@example.com' }, true)
  const from = { kind: 'anonymous', source: '127.0.0.1', host: 'hawser.test', secure: false } as const
  const loner = await rules.users.login({ params: {}, query: {}, body: alone }, from)

  const key = async (tenant: string, created_by: string, role: Role, digit: string): Promise<Credential> => {
    const apiKey = sample.apiKey.replaceAll('1', digit)
    const row = { name: `as-${role}`, role, created_by, expires_in: -1, created_at: now, updated_at: now }
    await stores.of(tenant).apiKeys.insert({ ...row, hash: hashOf(apiKey) })
    return { apiKey }
  }
  const keys = await Promise.all(
    roles.map(async (role, index) => [role, await key(sample.tenant, sample.owner.id, role, `${index + 2}`)]),
  )

  const device = async (tenant: string, uid: string): Promise<Credential> => ({
    token: await tokens.forDevice({ uid, tenant }),
  })
  const enrolled = await stores.of(sample.tenant).devices.find(sample.device)
  if (!enrolled) throw new Error('the world has no device')
  const { id: _, tenant_id: __, ...row } = enrolled
  const [rejected, strange, gone] = ['d', 'e', 'f'].map((digit) => digit.repeat(64)) as [
    string,
    string,
    string,
  ]
  const barren = { ...row, tags: '[]' }
  await stores
    .of(sample.tenant)
    .devices.insert({ ...barren, uid: rejected, name: 'wreck', mac: '00:00:5e:00:53:cc', status: 'rejected' })
  await stores.of(sample.otherTenant).devices.insert({ ...barren, uid: strange })

  return {
    nobody: {},
    owner: await person('owner'),
    administrator: await person('administrator'),
    operator: await person('operator'),
    observer: await person('observer'),
    careful: await person('careful'),
    stranger: await person('stranger'),
    loner: { token: loner.answer.token },
    key: Object.fromEntries(keys) as Record<Role, Credential>,
    strangeKey: await key(sample.otherTenant, sample.stranger.id, 'owner', '9'),
    device: await device(sample.tenant, sample.device),
    otherDevice: await device(sample.tenant, sample.pendingDevice),
    strangeDevice: await device(sample.otherTenant, strange),
    rejectedDevice: await device(sample.tenant, rejected),
    goneDevice: await device(sample.tenant, gone),
  }
}

/** Not `fetch`: it tidies addresses up before it sends them, and these tests send some that are not tidy. */
function send(
  url: string,
  agent: http.Agent,
  { method, path, by = {}, json, raw, type, headers }: Sent,
): Promise<Got> {
  const body = raw ?? (json === undefined ? undefined : JSON.stringify(json))
  const { hostname, port } = new URL(url)
  const options = {
    method,
    hostname,
    port,
    path,
    agent,
    headers: {
      ...(by.token === undefined ? {} : { authorization: `Bearer ${by.token}` }),
      ...(by.apiKey === undefined ? {} : { 'x-api-key': by.apiKey }),
      ...(body === undefined
        ? {}
        : { 'content-type': type ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...headers,
    },
  }
  return new Promise((resolve, reject) => {
    const sent = http.request(options, (response) => {
      text(response).then((text) => resolve(read(response, text)), reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function read(response: http.IncomingMessage, text: string): Got {
  const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
  const isJson = /\bjson\b/.test(headers.get('content-type') ?? '') && text !== ''
  return {
    status: response.statusCode ?? 0,
    headers,
    text,
    body: isJson ? (JSON.parse(text) as unknown) : undefined,
  }
}
