// Everybody who knows a device's MAC address, public key and namespace can get a token for it. A stranger used
// up the device's own budgets with that: dials with such a token, and calls of Auth device from a few
// addresses. The device got 429 at every attempt to come back. Each token and each address now has a budget of
// its own, and a tunnel that is being judged gives way to no tunnel with another token.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { tunnelPaths } from '@hawser/contract/tunnel'
import { UpgradeFailed } from '@hawser/mux'
import { eventually } from '../harness/eventually.ts'
import { dialGo } from '../harness/go-socket.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startPlace, type Place } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let place: Place
beforeAll(async () => {
  place = await startPlace({ env: { HAWSER_DEVICE_RATE_LIMIT: '20/10' } })
})
afterAll(() => place[Symbol.asyncDispose]())

const device = async (uid: string) => (await place.observer.devices.get({ params: { uid } })).body

/** Calls Auth device from an address, with nothing but what every member can read. */
async function authFrom(source: string, uid: string): Promise<{ status: number; token: string }> {
  const { public_key, identity, tenant_id, info, name } = await device(uid)
  const response = await fetch(`${place.url}/api/devices/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': source },
    body: JSON.stringify({ info, hostname: name, identity, public_key, tenant_id }),
  })
  const { token = '' } = (await response.json()) as { token?: string }
  return { status: response.status, token }
}

/** Opens a tunnel that never answers; gives the status. */
async function dial(token: string, source: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': source }
  try {
    const socket = await dialGo(`${place.url}${tunnelPaths.streams}`, { headers })
    socket.on('error', () => undefined)
    socket.resume()
    return 101
  } catch (error) {
    if (!(error instanceof UpgradeFailed)) throw error
    return error.status ?? 0
  }
}

/** Dials until the server has had enough. */
async function dialOut(token: string, source: string): Promise<void> {
  let last = 101
  for (let count = 0; count < 40 && last !== 429; count += 1) last = await dial(token, source)
  expect(last).toBe(429)
}

const proved = async (uid: string) =>
  eventually(async () => {
    const row = await place.rooms.stores.of(sample.tenant).devices.find(uid)
    expect(row?.proved_token ?? '').not.toBe('')
  })

test.each([1, 2] as const)(
  'a stranger who dials without end keeps no device away: tunnel version %i',
  async (version) => {
    await using agent = await startOldAgent(place, {
      version,
      tenant_id: sample.tenant,
      hostname: `crane-${version}`,
      retry_ms: 200,
    })
    const { uid } = agent
    await proved(uid)
    const { token: far } = await authFrom('203.0.113.66', uid)
    const { token: near } = await authFrom('127.0.0.1', uid)
    // The windows of the budgets do not move on while the clock stands still.
    using _ = place.clock.stop()
    place.clock.forward(60_000)
    await dialOut(far, '203.0.113.66')
    // A neighbour of the device shares its address.
    await dialOut(near, '127.0.0.1')
    const before = agent.seen.dials.length
    const tunnel = place.reach.tunnels.find(uid)
    agent.cut()
    await eventually(() => {
      const now = place.reach.tunnels.find(uid)
      expect(now).toBeDefined()
      expect(now).not.toBe(tunnel)
    })
    expect(agent.seen.dials.slice(before)).toEqual(['up'])
    expect((await device(uid)).online).toBe(true)
  },
)

test('a device that starts anew gets its token and its tunnel while strangers use up theirs', async () => {
  const options = { version: 2, tenant_id: sample.tenant, hostname: 'gantry' } as const
  const first = await startOldAgent(place, options)
  const { uid } = first
  await proved(uid)
  await first[Symbol.asyncDispose]()
  using _ = place.clock.stop()
  place.clock.forward(60_000)
  for (let address = 1; address <= 5; address += 1) {
    let last = 200
    for (let count = 0; count < 40 && last === 200; count += 1)
      last = (await authFrom(`203.0.113.${address}`, uid)).status
    expect(last).toBe(429)
  }
  await using again = await startOldAgent(place, options)
  expect(again.uid).toBe(uid)
  await eventually(async () => expect((await device(uid)).online).toBe(true))
})

test('many tokens of one device give one address no more tunnels than a few devices may open', async () => {
  await using agent = await startOldAgent(place, { version: 2, tenant_id: sample.tenant, hostname: 'winch' })
  await proved(agent.uid)
  using _ = place.clock.stop()
  place.clock.forward(60_000)
  const tokens: string[] = []
  for (let count = 0; count < 8; count += 1) {
    // Another caller in between, so that the next one gets a token of its own.
    await authFrom('203.0.113.200', agent.uid)
    tokens.push((await authFrom('203.0.113.201', agent.uid)).token)
  }
  expect(new Set(tokens).size).toBe(8)
  const statuses: number[] = []
  for (const token of tokens)
    for (let count = 0; count < 8; count += 1) statuses.push(await dial(token, '203.0.113.201'))
  expect(statuses.filter((status) => status !== 429).length).toBeLessThanOrEqual(30)
})
