// Search over recordings, on both databases: what was shown is found with its context and its moment, by
// those who may play it, until it is deleted. A crash, a lost index or a switch only delays that.
import { rmSync, existsSync, mkdtempSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { bothDatabases, sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { startService } from '../harness/service.ts'

const found = async (place: Place, query: Record<string, string | number | boolean> & { text: string }) => {
  const { body } = await place.administrator.recordings.find({ query })
  return body
}
const lines = async (place: Place, query: Parameters<typeof found>[1]) =>
  (await found(place, query)).hits.map(({ text }) => text)

describe.each(bothDatabases)('%s', (_, options) => {
  const place = sharedPlace(options)

  test('what was shown is found with its context, its moment and where it was, and a player can jump there', async () => {
    const uid = await recordSession(place.rooms, {
      lines: ['one\r\ntwo\r\n', '\u001b[1mneedle\u001b[0m in the hay\r\n', 'four\r\nfive\r\nsix\r\n'],
    })
    const [hit] = await eventually(async () => {
      const { hits } = await found(place, { text: '"needle in" ha*' })
      expect(hits).toHaveLength(1)
      return hits
    })
    expect(hit).toMatchObject({
      session_uid: uid,
      channel: 0,
      device_uid: sample.device,
      username: 'root',
      text: 'needle in the hay',
      matches: [
        [0, 9],
        [14, 16],
      ],
      command: null,
      before: ['one', 'two'],
      after: ['four', 'five'],
    })
    const window = await place.administrator.recordings.window({
      params: { uid, channel: '0' },
      query: { at: hit?.time_ms ?? -1 },
    })
    expect(Buffer.from(window.body.screen, 'base64').toString()).toContain('needle')
  })

  test('whoever looks into a recording is in the audit log, once for all that they see of it', async () => {
    const uid = await recordSession(place.rooms, { lines: ['mooring\r\n'] })
    const params = { uid, channel: '0' }
    for (const at of [0, 1]) await place.administrator.recordings.window({ params, query: { at } })
    await place.administrator.recordings.filmstrip({ params, query: {} })
    await place.administrator.recordings.search({ params, query: { text: 'mooring' } })
    const { body } = await place.owner.audit.list({ query: { target: uid, limit: 10 } })
    expect(body.entries).toMatchObject([
      { action: 'recording.played', actor: { name: sample.administrator.username } },
    ])
  })

  test('what the index still has of a recording that is none any more is not found', async () => {
    const uid = await recordSession(place.rooms, { lines: ['flotsam\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'flotsam' })).toEqual(['flotsam']))
    await place.rooms.stores.of(sample.tenant).sessions.save(uid, { recorded: 0 })
    expect(await lines(place, { text: 'flotsam' })).toEqual([])
  })

  test('filters and pages, newest first', async () => {
    const { owner, rooms } = place
    const other = await place.accepted('lighthouse')
    await owner.devices.addTag({ params: { uid: other.uid }, body: { tag: sample.tag } })
    const long = Array.from({ length: 70 }, (__, line) => `anchor ${line}\r\n`)
    await recordSession(place.rooms, { lines: long })
    place.clock.forward(86_400_000)
    const later = new Date(rooms.clock.now()).toISOString()
    await recordSession(place.rooms, {
      device: other.uid,
      username: 'keeper',
      lines: ['$ ', 'anchor of the lighthouse\r\n'],
    })
    await eventually(async () =>
      expect((await found(place, { text: 'anchor', limit: 100 })).hits).toHaveLength(71),
    )
    expect(await lines(place, { text: 'anchor', device: 'lighthouse' })).toEqual([
      '$ anchor of the lighthouse',
    ])
    expect(await lines(place, { text: 'anchor', device: other.uid })).toHaveLength(1)
    expect(await lines(place, { text: 'anchor', username: 'keeper' })).toHaveLength(1)
    expect(await lines(place, { text: 'anchor', from: later })).toHaveLength(1)
    expect(await lines(place, { text: 'anchor', to: later, limit: 100 })).toHaveLength(70)
    const tagged = await lines(place, { text: 'lighthouse', tag: sample.tag })
    expect(tagged).toEqual(['$ anchor of the lighthouse'])
    expect(await lines(place, { text: 'lighthouse', tag: 'nothing' })).toEqual([])
    const seen: string[] = []
    let after: string | null = ''
    while (after !== null) {
      const page: Awaited<ReturnType<typeof found>> = await found(place, {
        text: 'anchor',
        limit: 9,
        ...(after === '' ? {} : { after }),
      })
      seen.push(...page.hits.map(({ text }) => text))
      after = page.next
    }
    expect(seen).toEqual(['$ anchor of the lighthouse', ...long.map((line) => line.trim()).toReversed()])
  })

  test('lines are found by the person who opened the session, by name or id', async () => {
    const { id } = (await place.owner.users.namespaceToken({ params: { tenant: sample.tenant } })).body
    const olga = { id, name: sample.owner.username }
    await recordSession(place.rooms, { person: olga, lines: ['cormorant one\r\n'] })
    await recordSession(place.rooms, {
      person: { id: 'deploy', name: 'deploy' },
      lines: ['cormorant two\r\n'],
    })
    await recordSession(place.rooms, { lines: ['cormorant three\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'cormorant' })).toHaveLength(3))
    // A recording is not found for a moment when a round indexes it again.
    const of = (person: string, expected: readonly object[]) =>
      eventually(async () =>
        expect((await found(place, { text: 'cormorant', person })).hits).toMatchObject(expected),
      )
    await of(sample.owner.username, [{ text: 'cormorant one', person: { kind: 'user', ...olga } }])
    await of(id, [{ text: 'cormorant one' }])
    await of('deploy', [{ text: 'cormorant two' }])
    expect(await lines(place, { text: 'cormorant', person: 'nobody' })).toEqual([])
    expect(await lines(place, { text: 'cormorant', person: id.slice(0, 10) })).toEqual([])
  })

  test('lines are found by whoever joined the session and typed then, and say so', async () => {
    const id = await place.rooms.stores.users.findByUsername(sample.operator.username)
    const oskar = { type: 'typist', by: sample.operator.username, id: id!.id } as const
    const uid = await recordSession(place.rooms, {
      person: { id: 'somebody', name: 'somebody' },
      lines: [
        '$ echo petrel before\r\npetrel before\r\n$ ',
        oskar,
        'echo petrel joined\r\n',
        'petrel joined\r\n$ ',
        { type: 'typist', by: 'somebody' },
        'echo petrel after\r\npetrel after\r\n',
        // Somebody without an account whose name is the same.
        { type: 'typist', by: sample.operator.username },
        'petrel last\r\n',
      ],
      between: () => place.clock.forward(1_000),
    })
    await eventually(async () => expect(await lines(place, { text: 'petrel', limit: 100 })).toHaveLength(7))
    const joined = ['petrel joined', '$ echo petrel joined']
    for (const person of [sample.operator.username, oskar.id]) {
      const { hits } = await found(place, { text: 'petrel', person })
      expect(hits.map(({ text }) => text)).toEqual(joined)
      expect(hits).toMatchObject([
        { typist: oskar.by, person: { id: 'somebody' } },
        { typist: oskar.by, command: { text: 'echo petrel joined' } },
      ])
    }
    expect(await lines(place, { text: 'petrel', person: oskar.id, commands: true })).toEqual(joined.slice(1))
    // Whoever opened the session finds all of it.
    const { hits } = await found(place, { text: 'petrel', person: 'somebody', limit: 100 })
    expect(hits.map(({ typist }) => typist)).toEqual(['', '', '', oskar.by, oskar.by, '', ''])
    await place.owner.sessions.removeRecording({ params: { uid } })
    expect(await lines(place, { text: 'petrel', person: oskar.id })).toEqual([])
  })

  test('a recording that is deleted, with its session, device or namespace, is not found any more', async () => {
    const { owner, rooms } = place
    const one = await recordSession(place.rooms, { lines: ['gannet one\r\n'] })
    const lost = await place.accepted('lost')
    await recordSession(place.rooms, { device: lost.uid, lines: ['gannet two\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'gannet' })).toHaveLength(2))
    await owner.sessions.removeRecording({ params: { uid: one } })
    expect(await lines(place, { text: 'gannet' })).toEqual(['gannet two'])
    await owner.devices.remove({ params: { uid: lost.uid } })
    expect(await lines(place, { text: 'gannet' })).toEqual([])
    // Nor is it in the index.
    await rooms.background.settled()
    const query = { terms: [{ words: ['gannet'], prefix: false }] }
    const raw = { tenant_id: sample.tenant, query, commands: false, limit: 10 }
    await eventually(async () => expect((await rooms.search.find(raw)).hits).toEqual([]))
  })

  test('a namespace can switch it off, which removes everything, and on again', async () => {
    await recordSession(place.rooms, { lines: ['canary\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'canary' })).toHaveLength(1))
    const edit = (search: boolean) =>
      place.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { search } } })
    await edit(false)
    await expect(found(place, { text: 'canary' })).rejects.toMatchObject({ status: 409 })
    const query = { terms: [{ words: ['canary'], prefix: false }] }
    const raw = { tenant_id: sample.tenant, query, commands: false, limit: 10 }
    await eventually(async () => expect((await place.rooms.search.find(raw)).hits).toEqual([]))
    await recordSession(place.rooms, { lines: ['canary again\r\n'] })
    await edit(true)
    await eventually(async () => expect(await lines(place, { text: 'canary' })).toHaveLength(2))
  })

  test('another namespace finds nothing of it, and lower roles may not ask', async () => {
    await recordSession(place.rooms, { lines: ['heron\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'heron' })).toHaveLength(1))
    const query = { text: 'heron' }
    expect((await place.stranger.recordings.find({ query })).body).toEqual({
      hits: [],
      next: null,
      waiting: 0,
      failed: 0,
    })
    for (const who of [place.operator, place.observer])
      await expect(who.recordings.find({ query })).rejects.toMatchObject({ status: 403 })
    await expect(place.nobody.recordings.find({ query })).rejects.toMatchObject({ status: 401 })
    await expect(place.device.recordings.find({ query })).rejects.toMatchObject({ status: 403 })
  })

  test('a query that cannot be run is refused with a sentence', async () => {
    for (const text of ['***', '"open', 'x*'])
      await expect(found(place, { text })).rejects.toMatchObject({ status: 400 })
    await expect(found(place, { text: 'x', from: 'yesterday!' })).rejects.toMatchObject({ status: 400 })
    await expect(found(place, { text: 'x', device: 'nobody' })).rejects.toMatchObject({ status: 404 })
    for (const text of [`'); drop table sessions; --`, '" OR 1=1', 'a AND b NEAR(c)', '%_', '\\'.repeat(3)])
      await found(place, { text: `x ${text.replaceAll('"', '')}` })
  })

  test('everything can be indexed again', async () => {
    await recordSession(place.rooms, { lines: ['petrel\r\n'] })
    await eventually(async () => expect(await lines(place, { text: 'petrel' })).toHaveLength(1))
    await place.rooms.search.reindex()
    await place.rooms.search.round()
    await eventually(async () => expect((await found(place, { text: 'petrel' })).waiting).toBe(0))
    expect(await lines(place, { text: 'petrel' })).toHaveLength(1)
  })
})

test('an index that was lost is made anew at the next start', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  try {
    {
      await using place = await startPlace({ folder })
      await recordSession(place.rooms, { lines: ['petrel\r\n'] })
      await eventually(async () => expect(await lines(place, { text: 'petrel' })).toHaveLength(1))
      await place.rooms.search.round()
    }
    for (const end of ['', '-wal', '-shm']) rmSync(path.join(folder, `search.db${end}`), { force: true })
    await using again = await startService({ folder })
    const query = { terms: [{ words: ['petrel'], prefix: false }] }
    const raw = { tenant_id: sample.tenant, query, commands: false, limit: 10 }
    await eventually(async () => expect((await again.rooms.search.find(raw)).hits).toHaveLength(1))
    expect(existsSync(path.join(folder, 'search.db'))).toBe(true)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('while the disk is nearly full nothing is indexed; then what waited is', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  try {
    const query = { terms: [{ words: ['skua'], prefix: false }] }
    const raw = { tenant_id: sample.tenant, query, commands: false, limit: 10 }
    {
      await using place = await startPlace({ folder })
      await place.rooms.stores.namespaces.save(sample.tenant, { search: 0 })
      await recordSession(place.rooms, { lines: ['skua\r\n'] })
      await place.rooms.search.round()
      await place.rooms.stores.namespaces.save(sample.tenant, { search: 1 })
      await place.rooms.stores.searchQueue.markAll(sample.tenant)
    }
    {
      await using low = await startService({ folder, env: { HAWSER_DISK_LOW: '999999999' } })
      await low.rooms.search.round()
      expect((await low.rooms.search.find(raw)).hits).toEqual([])
      expect(await low.rooms.stores.searchQueue.count(sample.tenant)).toBe(1)
    }
    await using again = await startService({ folder })
    await eventually(async () => expect((await again.rooms.search.find(raw)).hits).toHaveLength(1))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
