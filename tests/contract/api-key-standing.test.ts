// What an API key is worth and when it stops: it never outranks the present role of the member who made it,
// never outlives that membership, stands for its own namespace only, and is refused on what is for people.
import { describe, expect, test } from 'vitest'
import { operations } from '@hawser/contract'
import type { Role } from '@hawser/contract/access'
import { call } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { day_ms, hour_ms } from '../../server/src/kit/clock.ts'
import { hashOf } from '../../server/src/kit/secrets.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { statusOf } from './people.ts'

const { owner, administrator, tenant, otherTenant } = sample
let made = 0

async function signIn(service: Service, { username, password }: { username: string; password: string }) {
  return (await service.api().users.login({ body: { username, password } })).body
}

/** A new key of a person, with the person's own client and one that uses the key. */
async function newKey(
  service: Service,
  person: { username: string; password: string },
  wanted: { role?: Role; days?: -1 | 30 | 365 } = {},
) {
  const api = service.api({ token: (await signIn(service, person)).token })
  const role = wanted.role === undefined ? {} : { role: wanted.role }
  const { body } = await api.apiKeys.create({
    body: { name: `key-${++made}`, expires_at: wanted.days ?? -1, ...role },
  })
  return { api, name: body.name, key: body.id, use: service.api({ apiKey: body.id }) }
}

describe('an API key', () => {
  test('works on what its role allows, reads and writes', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { use } = await newKey(service, administrator, { role: 'operator' })
    expect((await use.devices.list({})).status).toBe(200)
    expect(
      (await use.devices.update({ params: { uid: sample.device }, body: { name: 'crane-9' } })).status,
    ).toBe(200)
    expect(await statusOf(use.devices.remove({ params: { uid: sample.device } }))).toBe(403)
  })

  test('never outranks the present role of the member who made it', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { use } = await newKey(service, administrator)
    const chief = service.api({ token: (await signIn(service, owner)).token })
    const setRole = (role: Role) =>
      chief.namespaces.updateMember({ params: { tenant, uid: administrator.id }, body: { role } })
    const accept = () => statusOf(use.devices.accept({ params: { uid: sample.pendingDevice } }))
    await setRole('observer')
    expect(await statusOf(use.devices.list({}))).toBe(200)
    expect(await accept()).toBe(403)
    await setRole('operator')
    expect(await accept()).toBe(200)
    expect(await statusOf(use.devices.remove({ params: { uid: sample.pendingDevice } }))).toBe(403)
    await setRole('administrator')
    expect(await statusOf(use.devices.remove({ params: { uid: sample.pendingDevice } }))).toBe(200)
  })

  test('dies when its maker leaves, and stays dead when the maker comes back', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { use } = await newKey(service, administrator)
    const chief = service.api({ token: (await signIn(service, owner)).token })
    await chief.namespaces.removeMember({ params: { tenant, uid: administrator.id } })
    expect(await statusOf(use.devices.list({}))).toBe(401)
    await chief.namespaces.addMember({
      params: { tenant },
      body: { identifier: administrator.email, role: 'administrator' },
    })
    expect(await statusOf(use.devices.list({}))).toBe(401)
  })

  test('dies with the user who made it', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { use } = await newKey(service, administrator)
    await service.rooms.stores.users.remove(administrator.id)
    expect(await statusOf(use.devices.list({}))).toBe(401)
  })

  test('outlives the tokens of its maker', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { use, api } = await newKey(service, administrator)
    await api.users.update({ body: { password: 'a-new-rope', current_password: administrator.password } })
    expect(await statusOf(use.devices.list({}))).toBe(200)
  })

  test('expires when it was said to, and never with -1', async () => {
    await using service = await startService()
    await buildWorld(service)
    const month = await newKey(service, administrator, { days: 30 })
    const year = await newKey(service, administrator, { days: 365 })
    const ever = await newKey(service, administrator)
    const nextYear = new Date(service.clock.now())
    nextYear.setUTCFullYear(nextYear.getUTCFullYear() + 1)
    const wait_ms = nextYear.getTime() - service.clock.now()
    const statuses = () => Promise.all([month, year, ever].map(({ use }) => statusOf(use.devices.list({}))))
    service.clock.forward(30 * day_ms - hour_ms)
    expect(await statuses()).toEqual([200, 200, 200])
    service.clock.forward(hour_ms)
    expect(await statuses()).toEqual([401, 200, 200])
    service.clock.forward(wait_ms - 30 * day_ms - hour_ms)
    expect(await statuses()).toEqual([401, 200, 200])
    service.clock.forward(hour_ms)
    expect(await statuses()).toEqual([401, 401, 200])
  })

  test('is refused at the very next request after it was deleted, and takes a new role at once', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { api, name, use } = await newKey(service, administrator)
    const accept = () => statusOf(use.devices.accept({ params: { uid: sample.device } }))
    expect(await accept()).toBe(200)
    await api.apiKeys.update({ params: { key: name }, body: { role: 'observer' } })
    expect(await accept()).toBe(403)
    await api.apiKeys.update({ params: { key: name }, body: { name: 'renamed', role: 'operator' } })
    expect(await accept()).toBe(200)
    await api.apiKeys.remove({ params: { key: 'renamed' } })
    expect(await accept()).toBe(401)
  })

  test('is named in the news of its change, by the name that its sessions know', async () => {
    await using service = await startService()
    await buildWorld(service)
    const told: unknown[] = []
    using hearing = service.rooms.bus.hear('apiKey.changed', (news) => void told.push(news))
    void hearing
    const { api, name } = await newKey(service, administrator)
    const update = (key: string, body: object) => api.apiKeys.update({ params: { key }, body })
    await update(name, { name })
    expect(told).toEqual([])
    await update(name, { role: 'observer' })
    await update(name, { name: 'renamed' })
    await api.apiKeys.remove({ params: { key: 'renamed' } })
    expect(told).toEqual([name, name, 'renamed'].map((one) => ({ tenant_id: sample.tenant, name: one })))
  })

  test('goes first when a token comes with it', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { key } = await newKey(service, administrator, { role: 'observer' })
    const { token } = await signIn(service, owner)
    const both = service.api({ token, apiKey: key })
    expect(await statusOf(both.devices.list({}))).toBe(200)
    expect(await statusOf(both.devices.remove({ params: { uid: sample.device } }))).toBe(403)
    expect(await statusOf(both.users.refresh({}))).toBe(403)
    expect(await statusOf(service.api({ token, apiKey: 'no-such-key' }).devices.list({}))).toBe(401)
  })

  test('is refused with 403 on every user route and on every write of API keys', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { key } = await newKey(service, owner)
    const closed = operations.filter(
      ({ id, op }) =>
        op.access.who === 'user' ||
        (id.startsWith('apiKeys.') && op.method !== 'GET') ||
        id === 'namespaces.remove',
    )
    expect(closed.map(({ id }) => id)).toEqual(
      expect.arrayContaining([
        'users.refresh',
        'users.token',
        'users.update',
        'mfa.enable',
        'mfa.disable',
        'mfa.generate',
        'namespaces.create',
      ]),
    )
    for (const { id, op } of closed) {
      const answer = await call(op, op.example, { url: service.url, apiKey: key })
      expect([answer.status, answer.body], id).toEqual([403, { message: expect.any(String) as string }])
    }
    expect(await statusOf(service.api({ apiKey: key }).apiKeys.list({}))).toBe(200)
  })

  test('stands for its own namespace only', async () => {
    await using service = await startService()
    await buildWorld(service)
    // Its maker is a member of both; the key is not.
    await service.rooms.namespaces.join(otherTenant, administrator.id, 'administrator')
    const { use } = await newKey(service, administrator)
    const { body, total } = await use.namespaces.list({})
    expect([total, body.map((namespace) => namespace.tenant_id)]).toEqual([1, [tenant]])
    expect(await statusOf(use.namespaces.get({ params: { tenant: otherTenant } }))).toBe(404)
    expect(await statusOf(use.namespaces.edit({ params: { tenant: otherTenant }, body: {} }))).toBe(404)
  })

  test('is shown once and kept as a hash', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { api, key, name } = await newKey(service, administrator)
    expect(JSON.stringify((await api.apiKeys.list({})).body)).not.toContain(key)
    const row = await service.rooms.stores.of(tenant).apiKeys.find(name)
    expect(row?.hash).toBe(hashOf(key))
  })
})
