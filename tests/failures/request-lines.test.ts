// What whoever runs the server reads about sign-ins and about callers who may not do what they tried: the
// person or the key, their role, where they come from, and why. No line has a password, not even one that was
// typed into the field for the name. A flood of refused requests is cut.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket } from '@hawser/mux'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import type { Line } from './program.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let service: Service
let world: World
beforeAll(async () => {
  service = await startService({ env: { HAWSER_LOG: 'info' } })
  world = await buildWorld(service)
})
afterAll(async () => service[Symbol.asyncDispose]())

let last = 0
/** A source of its own for each test, as the trusted proxy on this machine names it. */
const newSource = (): string => `198.51.100.${(last += 1)}`

const linesFrom = (source: string): Line[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes(`"source":"${source}"`))
    .map((line) => JSON.parse(line) as Line)

function from(source: string, headers: Record<string, string> = {}) {
  return async (path: string, body?: object): Promise<Response> =>
    fetch(`${service.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-real-ip': source, 'content-type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
}

/** The lines about the source, once there are so many. */
const lines = async (source: string, count: number): Promise<Line[]> =>
  eventually(() => {
    const found = linesFrom(source)
    expect(found).toHaveLength(count)
    return found
  })

describe('a sign-in is one line', () => {
  test('that names the person who is in', async () => {
    const source = newSource()
    const { username, password } = sample.owner
    const answer = await from(source)('/api/login', { username: username.toUpperCase(), password })
    expect(answer.status).toBe(200)
    expect(await lines(source, 1)).toMatchObject([
      {
        event: 'sign-in.accepted',
        username,
        method: 'password',
        reqId: answer.headers.get('x-request-id'),
      },
    ])
  })

  test('that names the person whose password was wrong, and says when the lock came', async () => {
    const source = newSource()
    const { username } = sample.operator
    const call = from(source)
    for (let attempt = 0; attempt < 4; attempt += 1)
      await call('/api/login', { username, password: `wrong ${attempt}` })
    const found = await lines(source, 4)
    expect(found).toMatchObject(
      ['password', 'password', 'locked', 'locked'].map((reason) => ({
        event: 'sign-in.refused',
        reason,
        username,
      })),
    )
    expect(JSON.stringify(found)).not.toContain('wrong')
  })

  test('without the name that nobody has, because it may be a password', async () => {
    const source = newSource()
    await from(source)('/api/login', { username: 'correct-horse-battery', password: 'olga' })
    const [line] = await lines(source, 1)
    expect(line).toMatchObject({ event: 'sign-in.refused', reason: 'unknown-user' })
    expect(line).not.toHaveProperty('username')
    expect(service.log()).not.toContain('correct-horse')
  })

  test('for each factor: the challenge, a wrong code and the right one', async () => {
    const source = newSource()
    const { username, password } = sample.careful
    const call = from(source)
    const token = (await call('/api/login', { username, password })).headers.get('x-mfa-token')
    await call('/api/user/mfa/auth', { token, code: '000000' })
    await call('/api/user/mfa/auth', { token, code: world.totp(sample.mfaSecret) })
    expect(await lines(source, 3)).toMatchObject([
      { event: 'sign-in.challenged', username, method: 'password' },
      { event: 'sign-in.refused', username, method: 'second-factor', reason: 'code' },
      { event: 'sign-in.accepted', username, method: 'second-factor' },
    ])
  })
})

describe('who may not do what they tried is one line', () => {
  test('with the user and the role, for reading, too', async () => {
    const source = newSource()
    const call = from(source, { authorization: `Bearer ${await world.token('observer')}` })
    const read = await call(`/api/sessions/${sample.session}/play`)
    expect(read.status).toBe(403)
    expect(await lines(source, 1)).toMatchObject([
      {
        event: 'request.answered',
        level: 'info',
        operation: 'sessions.play',
        status: 403,
        reason: 'roleTooLow',
        by: sample.observer.username,
        role: 'observer',
        tenant_id: sample.tenant,
        reqId: read.headers.get('x-request-id'),
      },
    ])
  })

  test('with the name of the API key', async () => {
    const source = newSource()
    const call = from(source, { 'x-api-key': sample.apiKey })
    expect((await call('/api/namespaces', { name: 'another' })).status).toBe(403)
    expect(await lines(source, 1)).toMatchObject([
      { status: 403, reason: 'apiKeyRefused', by: `key ${sample.apiKeyName}`, role: 'administrator' },
    ])
    expect(service.log()).not.toContain(sample.apiKey)
  })

  test('with the device that called as a person', async () => {
    const source = newSource()
    const call = from(source, { authorization: `Bearer ${await world.deviceToken()}` })
    expect((await call('/api/devices')).status).toBe(403)
    expect(await lines(source, 1)).toMatchObject([{ reason: 'deviceRefused', by: sample.device }])
  })

  test('on a WebSocket, too', async () => {
    const source = newSource()
    const address = `${service.url.replace('http', 'ws')}/api/sessions/${sample.session}/live`
    const headers = { 'x-real-ip': source, authorization: `Bearer ${await world.token('observer')}` }
    await expect(dialWebSocket(address, { headers })).rejects.toThrow()
    expect(await lines(source, 1)).toMatchObject([
      {
        event: 'upgrade.refused',
        status: 403,
        reason: 'roleTooLow',
        by: sample.observer.username,
        role: 'observer',
      },
    ])
  })
})

test('who has no token is refused without a name, and a flood of such requests is cut', async () => {
  const source = newSource()
  const call = from(source)
  for (let request = 0; request < 60; request += 1)
    expect((await call(`/api/devices/${sample.device}/accept`, {})).status).toBeGreaterThanOrEqual(400)
  for (let request = 0; request < 60; request += 1)
    expect((await call('/api/namespaces', { name: 'mine' })).status).toBe(401)
  const found = await lines(source, 20)
  expect(found.at(-1)).toMatchObject({ event: 'request.answered', status: 401, reason: 'unauthenticated' })
  expect(found.at(-1)).not.toHaveProperty('by')
  // Others are not silenced by it.
  const other = newSource()
  await from(other)('/api/login', { username: sample.owner.username, password: 'wrong' })
  await lines(other, 1)
})
