// Public keys of a namespace, with keys that the real ssh-keygen made: what is kept of a key, what is
// refused, which devices and login names it is for, and its tags.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { encodeFilter } from '@hawser/contract/filters'
import { keyFits } from '../../server/src/domain/access/firewall-rules.ts'
import { sharedPlace, startPlace } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

// Finding the primes of an RSA key takes as long as it takes.
vi.setConfig({ testTimeout: 120_000 })

const refused = (status: number) => ({ status })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

let folder: string
let made = 0
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'hawser-keys-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function sshKeygen(...args: string[]): string {
  try {
    return execFileSync('ssh-keygen', args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new Error('These tests need ssh-keygen: install the OpenSSH client.', { cause })
    throw cause
  }
}

/** A new public-key line, with a comment. */
function newKey(...args: string[]): string {
  const name = `key-${++made}`
  sshKeygen('-q', '-N', '', '-C', 'olga at work', '-f', name, ...(args.length > 0 ? args : ['-t', 'ed25519']))
  return readFileSync(path.join(folder, `${name}.pub`), 'utf8')
}

/** One key for all that is refused anyway. */
let spare: string | undefined
const unused = (): string => (spare ??= newKey())

function md5Of(line: string): string {
  writeFileSync(path.join(folder, 'listed.pub'), line)
  return sshKeygen('-l', '-E', 'md5', '-f', 'listed.pub').split(' ')[1]!.replace('MD5:', '')
}

function sha256Of(line: string): string {
  writeFileSync(path.join(folder, 'listed.pub'), line)
  return sshKeygen('-l', '-E', 'sha256', '-f', 'listed.pub').split(' ')[1]!
}

const wanted = (line: string, more: object = {}) => ({
  data: base64(line),
  filter: { hostname: '.*' },
  name: 'olga',
  username: '.*',
  ...more,
})

describe('a key', () => {
  const place = sharedPlace()
  const create = (body: ReturnType<typeof wanted>) => place.administrator.publicKeys.create({ body })

  test.each([
    ['ed25519', ['-t', 'ed25519']],
    ['RSA with 2048 bits', ['-t', 'rsa', '-b', '2048']],
    ['ECDSA with 256 bits', ['-t', 'ecdsa', '-b', '256']],
    ['ECDSA with 384 bits', ['-t', 'ecdsa', '-b', '384']],
    ['ECDSA with 521 bits', ['-t', 'ecdsa', '-b', '521']],
  ])(
    'of the kind %s is kept without its comment, under the fingerprint that ssh-keygen shows',
    async (_, args) => {
      const line = newKey(...args)
      const { body } = await create(
        wanted(line, { username: '^(root|deploy)$', filter: { hostname: '^crane' } }),
      )
      const fingerprint = md5Of(line)
      expect(body).toEqual({
        data: base64(line.split(' ').slice(0, 2).join(' ')),
        fingerprint,
        fingerprint_sha256: sha256Of(line),
        certificate_authority: false,
        tenant_id: sample.tenant,
        name: 'olga',
        filter: { hostname: '^crane' },
        username: '^(root|deploy)$',
        owner: '',
        owner_name: '',
      })
      const { body: listed } = await place.observer.publicKeys.list({ query: { per_page: 100 } })
      const { created_at, ...rest } = listed.find((key) => key.fingerprint === fingerprint)!
      expect(rest).toEqual(body)
      expect(Math.abs(Date.parse(created_at) - place.clock.now())).toBeLessThan(60_000)
    },
  )

  test('is the same key with other line ends and without its comment', async () => {
    const line = newKey()
    const [type, blob] = line.split(' ')
    await create(wanted(`${type} ${blob}\r\n`))
    await expect(create(wanted(line))).rejects.toMatchObject(refused(409))
  })

  test('that is there already is 409, also by another name; another namespace may have it too', async () => {
    const body = wanted(newKey())
    await create(body)
    await expect(create({ ...body, name: 'other' })).rejects.toMatchObject(refused(409))
    expect((await place.stranger.publicKeys.create({ body })).body.tenant_id).toBe(sample.otherTenant)
  })

  test.each<[string, () => string]>([
    ['RSA with 1024 bits', () => base64(newKey('-t', 'rsa', '-b', '1024'))],
    ['DSA', () => base64(dsa)],
    [
      'an RSA key that claims to be another kind',
      () => base64(newKey('-t', 'rsa', '-b', '2048').replace('ssh-rsa', 'ssh-ed25519')),
    ],
    ['a blob that is cut', () => base64(newKey().split(' ')[1]!.slice(0, 40))],
    ['a line whose blob is cut', () => base64(newKey().slice(0, 60))],
    ['a private key', () => base64(readFileSync(path.join(folder, (newKey(), `key-${made}`)), 'utf8'))],
    ['a sentence', () => base64('let me in')],
    ['nothing after decoding', () => base64('    ')],
    ['bytes', () => Buffer.from([0xff, 0xfe, 0, 1, 2, 3]).toString('base64')],
    ['a line that is not base64', () => newKey()],
    ['base64 without its padding', () => base64(`${newKey().trim()}xx`).replace(/=*$/, '')],
    ['nothing', () => ''],
  ])('is not %s', async (_, data) => {
    await expect(create(wanted('', { data: data() }))).rejects.toMatchObject(refused(400))
  })

  test.each([
    ['a username that is no pattern', { username: '(' }],
    ['an empty username', { username: '' }],
    ['a look-ahead, which RE2 does not have', { username: '(?=root)' }],
    ['a back reference', { username: '(a)\\1' }],
    ['a username that is too long', { username: 'x'.repeat(1025) }],
    ['a host name that is no pattern', { filter: { hostname: '[a-' } }],
    ['an empty host name', { filter: { hostname: '' } }],
    ['a pattern that is huge once it is written out', { filter: { hostname: '((a{100}){100}){100}' } }],
    ['both kinds of filter', { filter: { hostname: '.*', tags: [sample.tag] } }],
    ['neither kind of filter', { filter: {} }],
    ['no filter', { filter: undefined }],
    ['no tags', { filter: { tags: [] } }],
    ['four tags', { filter: { tags: ['one', 'two', 'three', 'four'] } }],
    ['a tag twice', { filter: { tags: [sample.tag, sample.tag] } }],
    ['a tag that is no tag', { filter: { tags: ['a b'] } }],
    ['no name', { name: undefined }],
    ['an empty name', { name: '' }],
  ])('is not taken with %s', async (_, more) => {
    const body = wanted(unused(), more)
    await expect(create(body)).rejects.toMatchObject(refused(400))
    const { data: __, ...change } = body
    const params = { fingerprint: sample.fingerprint }
    await expect(place.administrator.publicKeys.update({ params, body: change })).rejects.toMatchObject(
      refused(400),
    )
  })

  test('is not taken with a tag that nothing carries: 404', async () => {
    const body = wanted(unused(), { filter: { tags: ['nowhere'] } })
    await expect(create(body)).rejects.toMatchObject(refused(404))
    await expect(
      create({ ...body, filter: { tags: [sample.tag, 'nowhere'] } as never }),
    ).rejects.toMatchObject(refused(404))
    await create(wanted(newKey(), { filter: { tags: [sample.tag, sample.spareTag] } }))
  })

  test('with a pattern that ruins other engines is stored, and matched in no time', async () => {
    const patterns = ['^(a+)+$', '(a|a)*b', '(.*)*x', '([a-z]+)*[0-9]']
    for (const username of patterns)
      await create(wanted(newKey(), { username, filter: { hostname: username } }))
    const { body } = await place.observer.publicKeys.list({ query: { per_page: 100 } })
    const stored = body.filter((key) => patterns.includes(key.username))
    expect(stored).toHaveLength(patterns.length)
    const text = `${'a'.repeat(50_000)}!`
    for (const key of stored)
      expect(
        await keyFits(
          { username: key.username, filter: { hostname: key.filter.hostname! } },
          { username: text, device: { name: text, tags: [] } },
        ),
      ).toMatchObject({ applies: false })
  })
})

describe('changing and removing', () => {
  const place = sharedPlace()
  const change = { name: 'laptop', username: '^root$', filter: { tags: [sample.tag] } }

  test('an update replaces name, username and filter; the key, its fingerprint and its time stay', async () => {
    const { body: before } = await place.administrator.publicKeys.create({ body: wanted(newKey()) })
    const { data, fingerprint, fingerprint_sha256, tenant_id } = before
    const created_at = (await place.observer.publicKeys.list({ query: { per_page: 100 } })).body.find(
      (key) => key.fingerprint === fingerprint,
    )!.created_at
    place.clock.forward(5000)
    // Fields that are not for change are not looked at.
    const { body: after } = await place.administrator.publicKeys.update({
      params: { fingerprint },
      body: {
        ...change,
        data: 'AAAA',
        fingerprint: sample.fingerprint,
        tenant_id: sample.otherTenant,
      } as typeof change,
    })
    expect(after).toEqual({
      data,
      fingerprint,
      fingerprint_sha256,
      tenant_id,
      created_at,
      certificate_authority: false,
      ...change,
      owner: '',
      owner_name: '',
    })
    expect((await place.observer.publicKeys.list({ query: { per_page: 100 } })).body).toContainEqual(after)
  })

  test.each(['name', 'username', 'filter'] as const)('an update needs %s', async (field) => {
    const { [field]: _, ...body } = change
    const params = { fingerprint: sample.fingerprint }
    await expect(
      place.administrator.publicKeys.update({ params, body: body as typeof change }),
    ).rejects.toMatchObject(refused(400))
  })

  test('a removed key is gone, and can be added again', async () => {
    const line = newKey()
    const { body } = await place.administrator.publicKeys.create({ body: wanted(line) })
    const params = { fingerprint: body.fingerprint }
    await place.administrator.publicKeys.remove({ params })
    await expect(place.administrator.publicKeys.remove({ params })).rejects.toMatchObject(refused(404))
    await expect(place.administrator.publicKeys.update({ params, body: change })).rejects.toMatchObject(
      refused(404),
    )
    await place.administrator.publicKeys.create({ body: wanted(line) })
  })

  const calls: Record<string, (client: Client, fingerprint: string) => Promise<unknown>> = {
    update: (client, fingerprint) =>
      client.publicKeys.update({ params: { fingerprint }, body: { ...change, filter: { hostname: '.*' } } }),
    remove: (client, fingerprint) => client.publicKeys.remove({ params: { fingerprint } }),
    addTag: (client, fingerprint) =>
      client.publicKeys.addTag({ params: { fingerprint }, body: { tag: sample.spareTag } }),
    setTags: (client, fingerprint) =>
      client.publicKeys.setTags({ params: { fingerprint }, body: { tags: [sample.spareTag] } }),
    removeTag: (client, fingerprint) =>
      client.publicKeys.removeTag({ params: { fingerprint, tag: sample.tag } }),
  }

  test.each(Object.keys(calls))(
    '%s: a key of another namespace, an unknown and a malformed fingerprint are 404; an operator gets 403',
    async (name) => {
      const before = (await place.observer.publicKeys.list({ query: { per_page: 100 } })).body
      for (const fingerprint of [
        sample.taggedFingerprint,
        'ff:'.repeat(15) + 'ff',
        'harbour',
        sample.taggedFingerprint.toUpperCase(),
      ])
        await expect(calls[name]!(place.stranger, fingerprint)).rejects.toMatchObject(refused(404))
      await expect(calls[name]!(place.operator, sample.taggedFingerprint)).rejects.toMatchObject(refused(403))
      expect((await place.observer.publicKeys.list({ query: { per_page: 100 } })).body).toEqual(before)
    },
  )

  test('observers may not add keys', async () => {
    for (const client of [place.observer, place.operator])
      await expect(client.publicKeys.create({ body: wanted(unused()) })).rejects.toMatchObject(refused(403))
    expect((await place.key.publicKeys.create({ body: wanted(newKey()) })).status).toBe(200)
  })
})

describe('tags of a key', () => {
  const place = sharedPlace()
  const params = { fingerprint: sample.taggedFingerprint }
  const api = () => place.administrator.publicKeys
  const filterOf = async (fingerprint: string) =>
    (await place.observer.publicKeys.list()).body.find((key) => key.fingerprint === fingerprint)?.filter

  test('are added, replaced and taken off', async () => {
    await place.operator.devices.setTags({
      params: { uid: sample.pendingDevice },
      body: { tags: ['third', 'fourth'] },
    })
    await api().addTag({ params, body: { tag: sample.spareTag } })
    await api().addTag({ params, body: { tag: 'third' } })
    expect(await filterOf(params.fingerprint)).toEqual({ tags: [sample.tag, sample.spareTag, 'third'] })
    await expect(api().addTag({ params, body: { tag: 'fourth' } })).rejects.toMatchObject(refused(403))
    await expect(api().addTag({ params, body: { tag: sample.tag } })).rejects.toMatchObject(refused(409))
    await api().setTags({ params, body: { tags: ['fourth', sample.tag] } })
    expect(await filterOf(params.fingerprint)).toEqual({ tags: ['fourth', sample.tag] })
    await api().removeTag({ params: { ...params, tag: 'fourth' } })
    expect(await filterOf(params.fingerprint)).toEqual({ tags: [sample.tag] })
  })

  test('must be in use somewhere in the namespace', async () => {
    await expect(api().addTag({ params, body: { tag: 'nowhere' } })).rejects.toMatchObject(refused(404))
    await expect(api().setTags({ params, body: { tags: [sample.tag, 'nowhere'] } })).rejects.toMatchObject(
      refused(404),
    )
    await expect(api().removeTag({ params: { ...params, tag: 'nowhere' } })).rejects.toMatchObject(
      refused(404),
    )
  })

  test.each([[[]], [['one', 'two', 'three', 'four']], [['one', 'one']]])(
    'cannot be replaced by %j',
    async (tags) => {
      await expect(api().setTags({ params, body: { tags } })).rejects.toMatchObject(refused(400))
    },
  )

  test('a key with a host name filter has none: 400', async () => {
    const byName = { fingerprint: sample.fingerprint }
    await expect(api().addTag({ params: byName, body: { tag: sample.tag } })).rejects.toMatchObject(
      refused(400),
    )
    await expect(api().setTags({ params: byName, body: { tags: [sample.tag] } })).rejects.toMatchObject(
      refused(400),
    )
    await expect(api().removeTag({ params: { ...byName, tag: sample.tag } })).rejects.toMatchObject(
      refused(400),
    )
    expect(await filterOf(sample.fingerprint)).toEqual({ hostname: '.*' })
  })

  test('when the last one is taken off, the key fits no device', async () => {
    await using own = await startPlace()
    await own.administrator.publicKeys.removeTag({ params: { ...params, tag: sample.tag } })
    const key = (await own.observer.publicKeys.list()).body.find(
      ({ fingerprint }) => fingerprint === params.fingerprint,
    )!
    expect(key.filter).toEqual({ tags: [] })
    for (const tags of [[], [sample.tag]])
      expect(
        await keyFits(
          { username: key.username, filter: { tags: key.filter.tags! } },
          { username: 'root', device: { name: 'crane', tags } },
        ),
      ).toMatchObject({ applies: false })
  })
})

describe.each(oneDatabase)('lists, on %s', (_, options) => {
  const place = sharedPlace(options)

  test('are oldest first, in pages, and of the own namespace only', async () => {
    const lines = [newKey(), newKey(), newKey()]
    for (const [index, line] of lines.entries()) {
      place.clock.forward(1000)
      await place.administrator.publicKeys.create({
        body: wanted(line, {
          name: `Key ${index} 50%`,
          filter: index === 0 ? { tags: [sample.tag] } : { hostname: `^crane-${index}` },
        }),
      })
    }
    const { body, total } = await place.observer.publicKeys.list()
    expect(total).toBe(5)
    expect(body.map(({ created_at }) => created_at)).toEqual(
      body.map(({ created_at }) => created_at).toSorted(),
    )
    expect(body.slice(2).map(({ fingerprint }) => fingerprint)).toEqual(lines.map(md5Of))
    const paged = []
    for (const page of [1, 2, 3])
      paged.push(...(await place.observer.publicKeys.list({ query: { page, per_page: 2 } })).body)
    expect(paged).toEqual(body)
    expect((await place.stranger.publicKeys.list()).total).toBe(0)
  })

  test.each<[string, 'contains' | 'eq' | 'ne' | 'gt' | 'lt', unknown, number]>([
    ['name', 'contains', 'KEY', 3],
    ['name', 'contains', '50%', 3],
    ['name', 'eq', 'laptop', 2],
    ['name', 'ne', 'laptop', 3],
    ['username', 'eq', '.*', 5],
    ['fingerprint', 'eq', sample.fingerprint, 1],
    ['filter.hostname', 'contains', 'CRANE', 2],
    ['tenant_id', 'eq', sample.otherTenant, 0],
    ['created_at', 'gt', '2000-01-01', 5],
    ['created_at', 'lt', '2000-01-01', 0],
  ])('with a filter on %s %s %j have %i keys', async (name, operator, value, count) => {
    const filter = encodeFilter([{ type: 'property', params: { name, operator, value } }])
    const { body, total } = await place.observer.publicKeys.list({ query: { filter } })
    expect([body.length, total]).toEqual([count, count])
  })

  test('with a filter on something else are refused', async () => {
    for (const name of ['password', 'filter', 'online']) {
      const filter = encodeFilter([{ type: 'property', params: { name, operator: 'eq', value: 'x' } }])
      await expect(place.observer.publicKeys.list({ query: { filter } })).rejects.toMatchObject(refused(400))
    }
  })
})

// Made once by ssh-keygen: newer versions can no longer make such keys.
const dsa = `ssh-dss ${[
  'AAAAB3NzaC1kc3MAAACBAIB6q6E3P+o7InFDq+yKzMIWmRcpYrWg0bw2YpFy3MUtQU3E386C0LA0VaDqotllZY7Y5OLvm2usJaIXJC/cfdaL/r5yp6heLa/5',
  'SiphOe42sK8mRqktE/mtFWG+WP+zEVZJTtLVl25Keyw1KVCBBEjPjSzpJwpdKv7CDUPVXv/BAAAAFQC/MK5muM/hNZSgT1qcjfoJMYDhBwAAAIASXxncmzYJ',
  'lGFr8eMbQTfzO8i2uoJp8QF+6l/54OwWgDZ2SJRK9TgKr1/lrhoXncDYlwd3AaNZLE7lOfEW5Cjw7BWl/31Z8hl5GyVV4Kq4IopBPOiIWuKA1q2f8Wsj2WfW',
  'j0LQgJEi3BNMwYTk9V3/nla7hxExS1W4l8wfljDvpgAAAIAlt6ITBCfF7HGUrRxesgJAJnRghu/lwqJonGieFRN3KR+v+J9YgxaTBSu7lj/ajv0u0ywIis+a',
  'emMC/ZdB32gDNNlg30w+5HSIA55zvZe8MIxkE7dv2iTjpmT0Ev1xW5HXGOZ6+fP4LQ7pRW2BM25WI8ZboTn35o/6pvgW5nHxiw==',
].join('')} old crane`
