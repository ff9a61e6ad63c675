// Announcements: written with the administrator's commands, read by everyone, the server's visitors included.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { parseCommand, runCommand } from '../../server/src/commands/admin.ts'
import { sharedPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })

/** Publishes as an administrator does, from a file; gives the uuid. */
async function announce(place: Place, title: string, content: string): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'hawser-news-'))
  try {
    const file = path.join(folder, 'news.md')
    writeFileSync(file, content)
    const lines = await runCommand(place.rooms, parseCommand(['announcement', 'create', title, file]))
    return lines.find((line) => line.startsWith('UUID: '))!.slice(6)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('what an administrator publishes, anyone can read', async () => {
    const content = '# Low tide\n\nAt *six*. <script>alert(1)</script> é 🚢\n'
    const uuid = await announce(place, 'Low tide', content)
    for (const client of [
      place.nobody,
      place.observer,
      place.key,
      place.device,
      place.api({ token: 'nonsense', apiKey: 'nonsense' }),
    ]) {
      const { body } = await client.announcements.get({ params: { uuid } })
      expect(body).toEqual({
        uuid,
        title: 'Low tide',
        content,
        date: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      })
    }
  })

  test('the list has titles and dates, newest first unless asked otherwise, in pages, and no contents', async () => {
    for (const title of ['one', 'two', 'three']) {
      place.clock.forward(1000)
      await announce(place, title, 'text')
    }
    const { body, total } = await place.nobody.announcements.list()
    expect(total).toBe(body.length)
    expect(body.slice(0, 3).map(({ title }) => title)).toEqual(['three', 'two', 'one'])
    expect(Object.keys(body[0]!).toSorted()).toEqual(['date', 'title', 'uuid'])
    expect((await place.nobody.announcements.list({ query: { order_by: 'asc' } })).body).toEqual(
      body.toReversed(),
    )
    expect((await place.nobody.announcements.list({ query: { order_by: 'desc' } })).body).toEqual(body)
    const paged = []
    for (let page = 1; page <= total; page++)
      paged.push(...(await place.nobody.announcements.list({ query: { page, per_page: 1 } })).body)
    expect(paged).toEqual(body)
    expect(await place.nobody.announcements.list({ query: { page: 99 } })).toMatchObject({ body: [], total })
  })

  test('an unknown one and a malformed uuid are 404, a bad list is 400', async () => {
    for (const uuid of [
      '00000000-0000-4000-8000-0000000000ff',
      'news',
      sample.announcement.toUpperCase().replace('2', 'A'),
    ])
      await expect(place.nobody.announcements.get({ params: { uuid } })).rejects.toMatchObject(refused(404))
    for (const query of [{ order_by: 'up' as never }, { page: 0 }, { per_page: 101 }])
      await expect(place.nobody.announcements.list({ query })).rejects.toMatchObject(refused(400))
  })

  test('a deleted one is gone', async () => {
    const uuid = await announce(place, 'Cancelled', 'text')
    const { total } = await place.nobody.announcements.list()
    await runCommand(place.rooms, parseCommand(['announcement', 'delete', uuid]))
    await expect(place.nobody.announcements.get({ params: { uuid } })).rejects.toMatchObject(refused(404))
    expect((await place.nobody.announcements.list()).total).toBe(total - 1)
    await expect(runCommand(place.rooms, parseCommand(['announcement', 'delete', uuid]))).rejects.toThrow(
      'There is no announcement',
    )
  })

  test('a title has 1 to 90 characters', async () => {
    const uuid = await announce(place, 'x'.repeat(90), 'text')
    expect((await place.nobody.announcements.get({ params: { uuid } })).body.title).toHaveLength(90)
    for (const title of ['', 'x'.repeat(91)])
      await expect(announce(place, title, 'text')).rejects.toThrow('The title needs 1 to 90 characters.')
  })
})
