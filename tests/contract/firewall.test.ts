// Firewall rules as members manage them. How rules decide about a connection is in
// server/src/domain/access/firewall-rules.test.ts.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { decide, type DeviceFilter } from '../../server/src/domain/access/firewall-rules.ts'
import { sharedPlace, startPlace } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
type Rule = Parameters<Client['firewall']['create']>[0]['body']
const rule: Rule = {
  action: 'deny',
  active: true,
  filter: { hostname: '^crane' },
  priority: 5,
  source_ip: '^192\\.0\\.2\\.',
  username: '^root$',
}

describe('a rule', () => {
  const place = sharedPlace()
  const api = () => place.administrator.firewall

  test('is kept as it was given, under a decimal number sent as text', async () => {
    const { body } = await api().create({ body: rule })
    expect(body).toEqual({
      ...rule,
      id: expect.stringMatching(/^[1-9][0-9]*$/) as unknown,
      tenant_id: sample.tenant,
    })
    expect((await place.observer.firewall.get({ params: { id: body.id } })).body).toEqual(body)
    const inactive = {
      ...rule,
      active: false,
      priority: 0,
      action: 'allow' as const,
      filter: { tags: [sample.tag] },
    }
    const { body: second } = await api().create({ body: inactive })
    expect(second).toMatchObject(inactive)
    expect(second.id).not.toBe(body.id)
  })

  test('is replaced whole by an update, and the answer is the new rule', async () => {
    const { body: before } = await api().create({ body: rule })
    const next: Rule = {
      action: 'allow',
      active: false,
      filter: { tags: [sample.spareTag] },
      priority: 77,
      source_ip: '.*',
      username: 'deploy',
    }
    const { body: after } = await api().update({
      params: { id: before.id },
      body: { ...next, id: '1', tenant_id: sample.otherTenant } as Rule,
    })
    expect(after).toEqual({ ...next, id: before.id, tenant_id: sample.tenant })
    expect((await place.observer.firewall.get({ params: { id: before.id } })).body).toEqual(after)
  })

  test('that is removed is gone, and its number is not given again', async () => {
    const { body } = await api().create({ body: rule })
    const params = { id: body.id }
    await api().remove({ params })
    await expect(place.observer.firewall.get({ params })).rejects.toMatchObject(refused(404))
    await expect(api().remove({ params })).rejects.toMatchObject(refused(404))
    expect(Number((await api().create({ body: rule })).body.id)).toBeGreaterThan(Number(body.id))
  })

  test.each(Object.keys(rule))('needs %s', async (field) => {
    const { [field as keyof Rule]: _, ...body } = rule
    await expect(api().create({ body: body as Rule })).rejects.toMatchObject(refused(400))
    await expect(
      api().update({ params: { id: sample.firewallRule }, body: body as Rule }),
    ).rejects.toMatchObject(refused(400))
  })

  test.each<[string, object]>([
    ['another action', { action: 'drop' }],
    ['an action in capitals', { action: 'ALLOW' }],
    ['active as a word', { active: 'true' }],
    ['a priority below nought', { priority: -1 }],
    ['half a priority', { priority: 1.5 }],
    ['a priority as text', { priority: '1' }],
    ['a priority beyond what is kept', { priority: 2 ** 31 }],
    ['an empty address', { source_ip: '' }],
    ['an address that is no pattern', { source_ip: '*' }],
    ['an empty username', { username: '' }],
    ['a username that is no pattern', { username: 'a(' }],
    ['a look-behind, which RE2 does not have', { username: '(?<=a)b' }],
    ['a host name that is no pattern', { filter: { hostname: '[' } }],
    ['a pattern that is huge once it is written out', { source_ip: '(((x{50}){50}){50})' }],
    ['both kinds of filter', { filter: { hostname: '.*', tags: [sample.tag] } }],
    ['neither kind of filter', { filter: {} }],
    ['a filter that is none', { filter: null }],
    ['no tags', { filter: { tags: [] } }],
    ['four tags', { filter: { tags: ['one', 'two', 'three', 'four'] } }],
    ['a tag twice', { filter: { tags: [sample.tag, sample.tag] } }],
  ])('is not taken with %s', async (_, more) => {
    const body = { ...rule, ...more }
    await expect(api().create({ body })).rejects.toMatchObject(refused(400))
    await expect(api().update({ params: { id: sample.firewallRule }, body })).rejects.toMatchObject(
      refused(400),
    )
  })

  test('is not taken with a tag that nothing carries: 404', async () => {
    const body = { ...rule, filter: { tags: [sample.tag, 'nowhere'] } }
    await expect(api().create({ body })).rejects.toMatchObject(refused(404))
    await expect(api().update({ params: { id: sample.firewallRule }, body })).rejects.toMatchObject(
      refused(404),
    )
  })

  test('the limits themselves are taken', async () => {
    for (const priority of [0, 2 ** 31 - 1])
      expect((await api().create({ body: { ...rule, priority } })).body.priority).toBe(priority)
  })

  test('with a pattern that ruins other engines is stored and decides in no time', async () => {
    const { body } = await api().create({
      body: { ...rule, username: '^(a+)+$', source_ip: '(.*)*x', filter: { hostname: '(a|a)*b' } },
    })
    const text = `${'a'.repeat(50_000)}!`
    const stored = { ...body, filter: body.filter as DeviceFilter }
    expect(
      await decide([stored], { source_ip: `${text}x`, username: text, device: { name: text, tags: [] } }),
    ).toEqual({
      allowed: true,
      rule: null,
      unrunnable: [],
    })
  })
})

describe('who may', () => {
  const place = sharedPlace()
  const calls: Record<string, (client: Client, id: string) => Promise<unknown>> = {
    get: (client, id) => client.firewall.get({ params: { id } }),
    update: (client, id) => client.firewall.update({ params: { id }, body: rule }),
    remove: (client, id) => client.firewall.remove({ params: { id } }),
    addTag: (client, id) => client.firewall.addTag({ params: { id }, body: { tag: sample.spareTag } }),
    setTags: (client, id) => client.firewall.setTags({ params: { id }, body: { tags: [sample.spareTag] } }),
    removeTag: (client, id) => client.firewall.removeTag({ params: { id }, body: { tag: sample.tag } }),
  }

  test.each(Object.keys(calls))(
    '%s: a rule of another namespace, an unknown and a malformed id are 404',
    async (name) => {
      const before = (await place.observer.firewall.list()).body
      for (const id of [
        sample.taggedFirewallRule,
        '999999',
        '0',
        '01',
        '-1',
        '1.0',
        '1e1',
        'one',
        '65f000000000000000000001',
        '9'.repeat(16),
      ])
        await expect(calls[name]!(place.stranger, id)).rejects.toMatchObject(refused(404))
      expect((await place.observer.firewall.list()).body).toEqual(before)
    },
  )

  test.each(Object.keys(calls).filter((name) => name !== 'get'))('%s: an operator gets 403', async (name) => {
    const before = (await place.observer.firewall.list()).body
    await expect(calls[name]!(place.operator, sample.taggedFirewallRule)).rejects.toMatchObject(refused(403))
    expect((await place.observer.firewall.list()).body).toEqual(before)
  })

  test('operators may not add rules; keys of an administrator may', async () => {
    await expect(place.operator.firewall.create({ body: rule })).rejects.toMatchObject(refused(403))
    expect((await place.key.firewall.create({ body: rule })).status).toBe(200)
  })
})

describe('tags of a rule', () => {
  const params = { id: sample.taggedFirewallRule }

  test('are added, replaced and taken off, each by the body', async () => {
    await using place = await startPlace()
    const api = place.administrator.firewall
    const filter = async () => (await place.observer.firewall.get({ params })).body.filter
    await place.operator.devices.setTags({
      params: { uid: sample.pendingDevice },
      body: { tags: ['third', 'fourth'] },
    })
    await api.addTag({ params, body: { tag: sample.spareTag } })
    await api.addTag({ params, body: { tag: 'third' } })
    expect(await filter()).toEqual({ tags: [sample.tag, sample.spareTag, 'third'] })
    await expect(api.addTag({ params, body: { tag: 'fourth' } })).rejects.toMatchObject(refused(403))
    await expect(api.addTag({ params, body: { tag: sample.tag } })).rejects.toMatchObject(refused(409))
    await expect(api.removeTag({ params, body: { tag: 'fourth' } })).rejects.toMatchObject(refused(404))
    const one = await api.removeTag({ params, body: { tag: sample.spareTag } })
    expect(one.headers.get('x-notice')).toBe('')
    expect(await filter()).toEqual({ tags: [sample.tag, 'third'] })
    await api.setTags({ params, body: { tags: ['fourth'] } })
    expect(await filter()).toEqual({ tags: ['fourth'] })
    await expect(api.setTags({ params, body: { tags: ['fourth', 'nowhere'] } })).rejects.toMatchObject(
      refused(404),
    )
    await expect(api.addTag({ params, body: { tag: 'nowhere' } })).rejects.toMatchObject(refused(404))
    for (const tags of [[], ['one', 'two', 'three', 'four'], ['fourth', 'fourth']])
      await expect(api.setTags({ params, body: { tags } })).rejects.toMatchObject(refused(400))
    await expect(api.removeTag({ params, body: {} as { tag: string } })).rejects.toMatchObject(refused(400))
    const last = await api.removeTag({ params, body: { tag: 'fourth' } })
    expect(await filter()).toEqual({ tags: [] })
    // An active rule that matches nothing would look as if it denied something.
    expect(last.headers.get('x-notice')).toBe(
      `These firewall rules had no other tag and are inactive now: ${params.id}.`,
    )
    expect(place.log()).toContain('"firewall.deactivated"')
    const stored = (await place.observer.firewall.get({ params })).body
    expect(stored.active).toBe(false)
    const connection = {
      source_ip: '192.0.2.7',
      username: 'root',
      device: { name: 'crane-1', tags: ['fourth'] },
    }
    expect(
      await decide([{ ...stored, action: 'deny', filter: stored.filter as DeviceFilter }], connection),
    ).toEqual({
      allowed: true,
      rule: null,
      unrunnable: [],
    })
  })

  test('a rule with a host name filter has none: 400', async () => {
    await using place = await startPlace()
    const api = place.administrator.firewall
    const byName = { id: sample.firewallRule }
    await expect(api.addTag({ params: byName, body: { tag: sample.tag } })).rejects.toMatchObject(
      refused(400),
    )
    await expect(api.setTags({ params: byName, body: { tags: [sample.tag] } })).rejects.toMatchObject(
      refused(400),
    )
    await expect(api.removeTag({ params: byName, body: { tag: sample.tag } })).rejects.toMatchObject(
      refused(400),
    )
  })
})

describe.each(oneDatabase)('the list, on %s', (_, options) => {
  const place = sharedPlace(options)

  test('is in the order in which rules are asked: lowest priority first, older first among equals', async () => {
    for (const priority of [30, 1, 0, 12, 1, 2, 9])
      await place.administrator.firewall.create({ body: { ...rule, priority } })
    const { body, total } = await place.observer.firewall.list()
    expect(total).toBe(9)
    expect(body.map(({ priority }) => priority)).toEqual([0, 1, 1, 1, 1, 2, 9, 12, 30])
    const equals = body.filter(({ priority }) => priority === 1).map(({ id }) => Number(id))
    expect(equals).toEqual(equals.toSorted((a, b) => a - b))
    const paged = []
    for (const page of [1, 2, 3, 4])
      paged.push(...(await place.observer.firewall.list({ query: { page, per_page: 3 } })).body)
    expect(paged).toEqual(body)
    expect((await place.stranger.firewall.list()).total).toBe(0)
  })
})
