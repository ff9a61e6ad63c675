// A server with services, a real agent, and a browser that is only as clever as a test needs: it sends
// requests with the Host of a service to the server's port, and remembers cookies for each host.
import http, { type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import type net from 'node:net'
import { afterAll, beforeAll } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { startAgent, type Agent } from './agent.ts'
import { startPlace, type Place } from './place.ts'
import type { ServiceOptions } from './service.ts'

export const servicesDomain = 'services.test'
export const hostOf = (address: string): string => `${address}.${servicesDomain}`

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  readonly text: string
}

export interface Asking {
  readonly path?: string
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
}

export interface Browser {
  /** By host. */
  readonly cookies: Map<string, Map<string, string>>
  ask(host: string, asking?: Asking): Promise<Answer>
  /** Opens the service as somebody who is signed in at the console; the answer to the first page. */
  open(address: string, as: Client, path?: string): Promise<Answer>
}

/** What a browser sends with a page that a person opens. */
export const navigating = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

export function newBrowser(url: string): Browser {
  const { port } = new URL(url)
  const cookies = new Map<string, Map<string, string>>()

  async function ask(host: string, asking: Asking = {}): Promise<Answer> {
    const { path = '/', method = 'GET', headers = {}, body } = asking
    const own = [...(cookies.get(host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await new Promise<Answer>((resolve, reject) => {
      const request = http.request({
        port,
        path,
        method,
        agent: false,
        headers: { host, ...(own === '' ? {} : { cookie: own }), ...headers },
      })
      request.once('error', reject)
      request.once('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('error', reject)
        response.once('end', () => {
          const whole = Buffer.concat(chunks)
          const { statusCode = 0 } = response
          resolve({ status: statusCode, headers: response.headers, body: whole, text: whole.toString() })
        })
      })
      request.end(body)
    })
    for (const cookie of answer.headers['set-cookie'] ?? []) {
      const [pair = '', ...attributes] = cookie.split(';')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      const jar = cookies.get(host) ?? new Map<string, string>()
      cookies.set(host, jar)
      if (attributes.some((attribute) => /max-age=0/i.test(attribute))) jar.delete(name)
      else jar.set(name, value)
    }
    return answer
  }

  return {
    cookies,
    ask,
    async open(address, as, path = '/') {
      const host = hostOf(address)
      const sent = await ask(host, { path, headers: navigating })
      if (sent.status !== 302) return sent
      const way = new URL(sent.headers.location ?? '')
      const { body } = await as.services.open({
        body: {
          address,
          state: way.searchParams.get('state') ?? '',
          path: way.searchParams.get('path') ?? '/',
        },
      })
      const back = new URL(body.url)
      const returned = await ask(host, { path: `${back.pathname}${back.search}`, headers: navigating })
      if (returned.status !== 302) return returned
      return ask(host, { path: returned.headers.location ?? '/', headers: navigating })
    },
  }
}

export interface ServicesPlace extends Place {
  readonly agent: Agent
  browser(): Browser
  /** A service of the agent's device. */
  serve(
    port: number,
    more?: Omit<Parameters<Client['services']['create']>[0]['body'], 'device_uid' | 'name' | 'port'>,
  ): Promise<{ readonly id: string; readonly address: string; readonly host: string }>
}

export async function startServices(
  options: ServiceOptions = {},
  agentEnv: Readonly<Record<string, string>> = {},
): Promise<ServicesPlace> {
  const place = await startPlace({
    ...options,
    env: { HAWSER_SERVICES_DOMAIN: servicesDomain, ...options.env },
  })
  const agent = await startAgent(place, { env: agentEnv })
  const end = place[Symbol.asyncDispose].bind(place)
  return Object.assign(place, {
    agent,
    browser: () => newBrowser(place.url),
    async serve(port: number, more: object = {}) {
      const { body } = await place.administrator.services.create({
        body: { device_uid: agent.uid, name: `port ${port}`, port, ...more },
      })
      return { id: body.id, address: body.address, host: hostOf(body.address) }
    },
    async [Symbol.asyncDispose]() {
      await agent[Symbol.asyncDispose]()
      await end()
    },
  })
}

export function sharedServices(
  options: ServiceOptions = {},
  agentEnv: Readonly<Record<string, string>> = {},
): ServicesPlace {
  let started: ServicesPlace | undefined
  beforeAll(async () => {
    started = await startServices(options, agentEnv)
  })
  afterAll(async () => started?.[Symbol.asyncDispose]())
  return new Proxy({} as ServicesPlace, {
    get: (_, name) => Reflect.get(started ?? {}, name) as unknown,
  })
}

/** A program on the device: the handler answers at a free port until it is disposed. */
export async function startProgram(
  handler: http.RequestListener,
  prepare: (server: http.Server) => void = () => undefined,
): Promise<{ readonly port: number; readonly server: http.Server } & AsyncDisposable> {
  const server = http.createServer(handler)
  prepare(server)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as net.AddressInfo).port,
    server,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
