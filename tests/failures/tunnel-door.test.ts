// Where agents come in: what can be refused is refused before the WebSocket, with a status and when to come
// back, because an agent that is let in and closed is back at once.
import http from 'node:http'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { until } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000 })

interface Knocked {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly message: string
}

/** A request for a WebSocket. */
function request(
  service: Service,
  path: string,
  token?: string,
  change: Record<string, string> = {},
): http.ClientRequest {
  const { port } = new URL(service.url)
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...change,
  }
  return http.get({ host: '127.0.0.1', port, path, headers, agent: false })
}

/** Asks for a WebSocket; what was answered, and the connection is over. */
async function knock(...given: Parameters<typeof request>): Promise<Knocked> {
  const asked = request(...given)
  const answer = await Promise.race([
    once(asked, 'response').then(([response]) => response as http.IncomingMessage),
    (once(asked, 'upgrade') as Promise<[http.IncomingMessage, Duplex]>).then(([response, socket]) => {
      socket.destroy()
      return response
    }),
  ])
  let body = ''
  if (answer.statusCode !== 101) for await (const chunk of answer) body += String(chunk)
  const { message = '' } = (body ? JSON.parse(body) : {}) as { message?: string }
  return { status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'], message }
}

const enrol = async (service: Service, hostname: string): Promise<string> => {
  const { body } = await service.api().devices.auth({
    body: {
      info: {},
      hostname,
      identity: { mac: hostname },
      public_key: `key of ${hostname}`,
      tenant_id: sample.tenant,
    },
  })
  return body.token
}

test.each(['/ssh/connection', '/agent/connection'])(
  '%s is for devices with a good token, and for WebSockets',
  async (path) => {
    await using service = await startService()
    const world = await buildWorld(service)
    expect((await knock(service, path)).status).toBe(401)
    expect((await knock(service, path, 'nonsense')).status).toBe(401)
    expect((await knock(service, path, await world.token('owner'))).status).toBe(403)
    const token = await enrol(service, 'crane')
    expect((await knock(service, path, token, { 'sec-websocket-version': '12' })).status).toBe(400)
    expect((await knock(service, path, token)).status).toBe(101)
  },
)

test('above the rate agents are told to come back, and the others are let in later', async () => {
  await using service = await startService({ env: { HAWSER_TUNNEL_RATE_LIMIT: '2/60' } })
  await buildWorld(service)
  const answers: Knocked[] = []
  for (const name of ['one', 'two', 'three'])
    answers.push(await knock(service, '/agent/connection', await enrol(service, name)))
  expect(answers.map(({ status }) => status)).toEqual([101, 101, 503])
  expect(Number(answers[2]!.retryAfter)).toBeGreaterThan(0)
  service.clock.forward(60_000)
  expect((await knock(service, '/agent/connection', await enrol(service, 'three'))).status).toBe(101)
})

test('one device that opens tunnels without end is slowed down alone', async () => {
  await using service = await startService()
  await buildWorld(service)
  const [noisy, quiet] = [await enrol(service, 'noisy'), await enrol(service, 'quiet')]
  const statuses: number[] = []
  for (let turn = 0; turn < 12; turn += 1)
    statuses.push((await knock(service, '/agent/connection', noisy)).status)
  expect(statuses.filter((status) => status === 101)).toHaveLength(10)
  expect(statuses.at(-1)).toBe(429)
  expect((await knock(service, '/agent/connection', quiet)).status).toBe(101)
})

test('a pick-up that nobody waits for is refused', async () => {
  await using service = await startService()
  const { status, message } = await knock(service, `/ssh/revdial?revdial.dialer=${'0'.repeat(32)}`)
  expect([status, message]).toEqual([400, 'unknown dialer'])
})

test('a rejected device is refused, and loses the tunnel that it has', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await using agent = await startOldAgent(service, {
    version: 2,
    tenant_id: sample.tenant,
    hostname: 'refused',
  })
  await service
    .api({ token: await world.token('operator') })
    .devices.setStatus({ params: { uid: agent.uid, status: 'reject' } })
  await agent.lost
  expect((await knock(service, '/agent/connection', agent.token)).status).toBe(401)
})

test('a device that is rejected while it waits for the sign of its other tunnel is refused', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const operator = service.api({ token: await world.token('operator') })
  const options = { version: 2, tenant_id: sample.tenant, hostname: 'copied' } as const
  await using first = await startOldAgent(service, options)
  const { uid, token } = first
  let tunnel = await until(() => service.reach.tunnels.find(uid))
  // Tunnels that prove the key and take over from each other until the next one has to wait.
  await using others = new AsyncDisposableStack()
  for (let turn = 0; turn < 3; turn += 1) {
    others.use(await startOldAgent(service, { ...options, begun: first }))
    const before = tunnel
    tunnel = await until(() => [service.reach.tunnels.find(uid)].find((now) => now && now !== before))
  }
  // The last one no longer answers.
  const silence = () => new Promise<never>(() => undefined)
  Object.assign(tunnel, { prove: silence, openSsh: silence })
  const waiting = knock(service, '/agent/connection', token)
  const early = await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 500, 'it waits'))])
  expect(early).toBe('it waits')
  await operator.devices.setStatus({ params: { uid, status: 'reject' } })
  expect((await waiting).status).toBe(401)
})
