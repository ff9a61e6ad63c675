// Tags: which words can be one, the lists on devices, and renaming or removing a tag everywhere at once. Tags
// in the filters of public keys and firewall rules have tests of their own beside those.
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'

const refused = (status: number) => ({ status })
const tagsOf = async (place: Place, uid: string) =>
  (await place.observer.devices.get({ params: { uid } })).body.tags

const good = [
  'abc',
  'PIER',
  'pier-2',
  'a.b_c',
  'a%b',
  'back\\slash',
  '"quoted"',
  "it's",
  'größe',
  '日本語',
  '🚢🚢🚢',
  'x'.repeat(255),
  '...',
  '語'.repeat(255),
]
const bad = [
  '',
  'ab',
  '語語',
  'x'.repeat(256),
  '語'.repeat(256),
  'a b',
  ' abc',
  'abc ',
  'ab\tc',
  'ab\nc',
  'ab\u00a0c',
  'ab\u3000c',
  'a/b',
  'a@b',
  'a&b',
  'a:b',
  'abc/',
  'nul\0nul',
]

describe('words that can be a tag', () => {
  const place = sharedPlace()

  test.each(good)('%j', async (tag) => {
    const { uid } = await place.enrol()
    await place.operator.devices.addTag({ params: { uid }, body: { tag } })
    expect(await tagsOf(place, uid)).toEqual([tag])
    expect((await place.observer.tags.list()).body).toContain(tag)
    await place.operator.devices.setTags({ params: { uid }, body: { tags: [tag, 'other'] } })
    expect(await tagsOf(place, uid)).toEqual([tag, 'other'])
    await place.operator.devices.removeTag({ params: { uid, tag } })
    expect(await tagsOf(place, uid)).toEqual(['other'])
    await place.operator.tags.rename({ params: { tag: 'other' }, body: { tag: `${tag.slice(0, 8)}-new` } })
    await place.operator.tags.remove({ params: { tag: `${tag.slice(0, 8)}-new` } })
    expect(await tagsOf(place, uid)).toEqual([])
  })

  test.each(bad)('%j cannot', async (tag) => {
    const { uid } = await place.enrol()
    const calls = [
      place.operator.devices.addTag({ params: { uid }, body: { tag } }),
      place.operator.devices.setTags({ params: { uid }, body: { tags: [tag] } }),
      place.operator.devices.setTags({ params: { uid }, body: { tags: ['fine', tag] } }),
      place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag } }),
      place.administrator.publicKeys.addTag({
        params: { fingerprint: sample.taggedFingerprint },
        body: { tag },
      }),
      place.administrator.firewall.addTag({ params: { id: sample.taggedFirewallRule }, body: { tag } }),
    ]
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(refused(400))))
    expect(await tagsOf(place, uid)).toEqual([])
  })

  test.each([1, null, ['abc'], {}, true])('%j is no word at all', async (tag) => {
    const { uid } = await place.enrol()
    const response = await fetch(`${place.url}/api/devices/${uid}/tags`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': sample.apiKey },
      body: JSON.stringify({ tag }),
    })
    expect(response.status).toBe(400)
  })
})

describe('the tags of a device', () => {
  const place = sharedPlace()

  test('are added one by one, in order, up to three', async () => {
    const { uid } = await place.enrol()
    for (const tag of ['one', 'two', 'three'])
      await place.operator.devices.addTag({ params: { uid }, body: { tag } })
    expect(await tagsOf(place, uid)).toEqual(['one', 'two', 'three'])
    await expect(
      place.operator.devices.addTag({ params: { uid }, body: { tag: 'four' } }),
    ).rejects.toMatchObject(refused(403))
    // One that is there already is that first, also when there are three.
    await expect(
      place.operator.devices.addTag({ params: { uid }, body: { tag: 'one' } }),
    ).rejects.toMatchObject(refused(409))
    expect(await tagsOf(place, uid)).toEqual(['one', 'two', 'three'])
  })

  test('differ by letter case', async () => {
    const { uid } = await place.enrol()
    for (const tag of ['pier', 'Pier'])
      await place.operator.devices.addTag({ params: { uid }, body: { tag } })
    expect(await tagsOf(place, uid)).toEqual(['pier', 'Pier'])
  })

  test.each([
    ['no tag', []],
    ['four tags', ['one', 'two', 'three', 'four']],
    ['a tag twice', ['one', 'one']],
    ['a number', ['one', 2]],
    ['nothing', undefined],
    ['a word', 'one'],
  ])('cannot be replaced by %s', async (_, tags) => {
    const { uid } = await place.enrol()
    await place.operator.devices.setTags({ params: { uid }, body: { tags: ['before'] } })
    const body = { tags } as { tags: string[] }
    await expect(place.operator.devices.setTags({ params: { uid }, body })).rejects.toMatchObject(
      refused(400),
    )
    expect(await tagsOf(place, uid)).toEqual(['before'])
  })

  test('are taken off by name, and one that is not there is 404', async () => {
    const { uid } = await place.enrol()
    await place.operator.devices.setTags({ params: { uid }, body: { tags: ['one', 'two'] } })
    await place.operator.devices.removeTag({ params: { uid, tag: 'one' } })
    for (const tag of ['one', 'TWO', 'a b'])
      await expect(place.operator.devices.removeTag({ params: { uid, tag } })).rejects.toMatchObject(
        refused(404),
      )
    expect(await tagsOf(place, uid)).toEqual(['two'])
  })

  test('added at the same time are all there, and never more than three', async () => {
    const { uid } = await place.enrol()
    const calls = ['one', 'two', 'three', 'four', 'five'].map((tag) =>
      place.operator.devices.addTag({ params: { uid }, body: { tag } }),
    )
    const done = (await Promise.allSettled(calls)).filter(({ status }) => status === 'fulfilled')
    expect(done).toHaveLength(3)
    expect(await tagsOf(place, uid)).toHaveLength(3)
  })

  test('an observer may not change, and a key may', async () => {
    const { uid } = await place.enrol()
    await expect(
      place.observer.devices.addTag({ params: { uid }, body: { tag: 'one' } }),
    ).rejects.toMatchObject(refused(403))
    await expect(
      place.observer.devices.setTags({ params: { uid }, body: { tags: ['one'] } }),
    ).rejects.toMatchObject(refused(403))
    await place.key.devices.addTag({ params: { uid }, body: { tag: 'one' } })
    await expect(place.observer.devices.removeTag({ params: { uid, tag: 'one' } })).rejects.toMatchObject(
      refused(403),
    )
    expect(await tagsOf(place, uid)).toEqual(['one'])
  })
})

describe('more tags than the interface allows', () => {
  test('are allowed by a setting, up to its number', async () => {
    await using place = await startPlace({ env: { HAWSER_DEVICE_TAGS: '5' } })
    const params = { uid: sample.device }
    const tags = ['one', 'two', 'three', 'four']
    await place.operator.devices.setTags({ params, body: { tags } })
    await place.operator.devices.addTag({ params, body: { tag: 'five' } })
    await expect(place.operator.devices.addTag({ params, body: { tag: 'six' } })).rejects.toMatchObject({
      status: 403,
      message: 'The device already has 5 tags, the maximum.',
    })
    const more = [...tags, 'five', 'six']
    await expect(place.operator.devices.setTags({ params, body: { tags: more } })).rejects.toMatchObject({
      status: 400,
      message: 'tags: may have at most 5',
    })
    const { body } = await place.observer.devices.get({ params })
    expect(body.tags).toEqual([...tags, 'five'])
  })
})

describe('the tags of a namespace', () => {
  /** Everything that carries tags, and what it carries. */
  async function carried(place: Place) {
    const [devices, keys, rules] = await Promise.all([
      place.observer.devices.list({ query: { sort_by: 'created_at', order_by: 'asc' } }),
      place.observer.publicKeys.list(),
      place.observer.firewall.list(),
    ])
    return {
      devices: devices.body.map(({ tags }) => tags),
      keys: keys.body.map(({ filter }) => filter.tags),
      rules: rules.body.map(({ filter }) => filter.tags),
    }
  }

  test('are those of devices, public keys and firewall rules, each once', async () => {
    await using place = await startPlace()
    const listed = async () => {
      const { body, total } = await place.observer.tags.list()
      expect(total).toBe(body.length)
      return body.toSorted()
    }
    expect(await listed()).toEqual([sample.tag, sample.spareTag].toSorted())
    await place.operator.devices.setTags({ params: { uid: sample.pendingDevice }, body: { tags: ['crane'] } })
    expect(await listed()).toEqual(['crane', sample.tag, sample.spareTag].toSorted())
    // A key that still names it keeps a tag alive when the last device with it is gone.
    await place.administrator.publicKeys.addTag({
      params: { fingerprint: sample.taggedFingerprint },
      body: { tag: 'crane' },
    })
    await place.owner.devices.remove({ params: { uid: sample.pendingDevice } })
    expect(await listed()).toEqual(['crane', sample.tag, sample.spareTag].toSorted())
    await place.administrator.publicKeys.removeTag({
      params: { fingerprint: sample.taggedFingerprint, tag: 'crane' },
    })
    expect(await listed()).toEqual([sample.tag, sample.spareTag].toSorted())
    expect((await place.stranger.tags.list()).body).toEqual([])
  })

  test('are renamed everywhere at once', async () => {
    await using place = await startPlace()
    await place.operator.devices.setTags({
      params: { uid: sample.pendingDevice },
      body: { tags: ['crane', sample.tag] },
    })
    await place
      .enrol({ tenant_id: sample.otherTenant })
      .then(({ uid }) => place.stranger.devices.addTag({ params: { uid }, body: { tag: sample.tag } }))
    await place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag: 'jetty' } })
    expect(await carried(place)).toEqual({
      devices: [
        ['jetty', sample.spareTag],
        ['crane', 'jetty'],
      ],
      keys: [undefined, ['jetty']],
      rules: [undefined, ['jetty']],
    })
    expect((await place.observer.tags.list()).body.toSorted()).toEqual(['crane', 'jetty', sample.spareTag])
    expect((await place.stranger.tags.list()).body).toEqual([sample.tag])
    await expect(
      place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag: 'again' } }),
    ).rejects.toMatchObject(refused(404))
  })

  test('a name that another tag has is 409, and its own is 200', async () => {
    await using place = await startPlace()
    const before = await carried(place)
    await expect(
      place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag: sample.spareTag } }),
    ).rejects.toMatchObject(refused(409))
    await place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag: sample.tag } })
    expect(await carried(place)).toEqual(before)
  })

  test('are removed everywhere at once, and a filter that has none left matches nothing', async () => {
    await using place = await startPlace()
    await place.administrator.tags.remove({ params: { tag: sample.tag } })
    expect(await carried(place)).toEqual({
      devices: [[sample.spareTag], []],
      keys: [undefined, []],
      rules: [undefined, []],
    })
    expect((await place.observer.tags.list()).body).toEqual([sample.spareTag])
    await expect(place.operator.tags.remove({ params: { tag: sample.tag } })).rejects.toMatchObject(
      refused(404),
    )
  })

  test('deleting one switches off the active firewall rules that it leaves without any, and says so', async () => {
    await using place = await startPlace()
    const rule = async (active: boolean, tags: string[]): Promise<string> => {
      const fields = {
        action: 'deny' as const,
        priority: 7,
        source_ip: '.*',
        username: '.*',
        active,
        filter: { tags },
      }
      return (await place.administrator.firewall.create({ body: fields })).body.id
    }
    const [only, both, idle] = [
      await rule(true, [sample.tag]),
      await rule(true, [sample.tag, sample.spareTag]),
      await rule(false, [sample.tag]),
    ]
    const states = async () => {
      const { body } = await place.observer.firewall.list({ query: { per_page: 100 } })
      return Object.fromEntries(body.map(({ id, active, filter }) => [id, [active, filter.tags]]))
    }
    // Who may not write the rules may not switch them off either; nothing is changed.
    const before = [await states(), await carried(place)]
    await expect(place.operator.tags.remove({ params: { tag: sample.tag } })).rejects.toMatchObject({
      status: 403,
      message: `These firewall rules have no other tag and would become inactive, which takes an administrator: ${sample.taggedFirewallRule}, ${only}.`,
    })
    expect([await states(), await carried(place)]).toEqual(before)
    const { status, headers } = await place.administrator.tags.remove({ params: { tag: sample.tag } })
    expect(status).toBe(200)
    expect(headers.get('x-notice')).toBe(
      `These firewall rules had no other tag and are inactive now: ${sample.taggedFirewallRule}, ${only}.`,
    )
    expect(await states()).toEqual({
      [sample.firewallRule]: [true, undefined],
      [sample.taggedFirewallRule]: [false, []],
      [only]: [false, []],
      [both]: [true, [sample.spareTag]],
      [idle]: [false, []],
    })
    const line = place
      .log()
      .split('\n')
      .find((text) => text.includes('"firewall.deactivated"'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      tenant_id: sample.tenant,
      tag: sample.tag,
      rules: [sample.taggedFirewallRule, only],
    })
    const last = await place.administrator.tags.remove({ params: { tag: sample.spareTag } })
    expect(last.headers.get('x-notice')).toBe(
      `These firewall rules had no other tag and are inactive now: ${both}.`,
    )
  })

  test('deleting or renaming one that no rule needs says nothing', async () => {
    await using place = await startPlace()
    await place.operator.tags.rename({ params: { tag: sample.tag }, body: { tag: 'jetty' } })
    const { headers } = await place.operator.tags.remove({ params: { tag: sample.spareTag } })
    expect(headers.get('x-notice')).toBe('')
    const rule = (await place.observer.firewall.get({ params: { id: sample.taggedFirewallRule } })).body
    expect([rule.active, rule.filter.tags]).toEqual([true, ['jetty']])
    expect(place.log()).not.toContain('firewall.deactivated')
  })

  test('are changed by operators, not by observers, and not from another namespace', async () => {
    await using place = await startPlace()
    const before = await carried(place)
    const params = { tag: sample.tag }
    await expect(place.observer.tags.rename({ params, body: { tag: 'jetty' } })).rejects.toMatchObject(
      refused(403),
    )
    await expect(place.observer.tags.remove({ params })).rejects.toMatchObject(refused(403))
    await expect(place.stranger.tags.rename({ params, body: { tag: 'jetty' } })).rejects.toMatchObject(
      refused(404),
    )
    await expect(place.stranger.tags.remove({ params })).rejects.toMatchObject(refused(404))
    for (const tag of ['ab', 'a b', randomUUID()])
      await expect(place.operator.tags.remove({ params: { tag } })).rejects.toMatchObject(refused(404))
    expect(await carried(place)).toEqual(before)
  })
})
