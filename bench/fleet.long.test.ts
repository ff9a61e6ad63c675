// The made-up fleet is what the server itself would have stored: it knows the devices again and counts them
// right.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { encodeFilter } from '@hawser/contract/filters'
import { startService } from '../tests/harness/service.ts'
import { authBody, owner, plantFleet, rareTag, siteTag, uidOf } from './fleet.ts'

test('a server finds the planted devices, their tags and their numbers', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-fleet-'))
  try {
    const planted = await plantFleet(folder, 300, () => undefined)
    expect(planted?.rows_per_second).toBeGreaterThan(0)
    expect(
      await plantFleet(folder, 300, () => undefined),
      'a fleet that is there is left alone',
    ).toBeUndefined()
    await using service = await startService({ folder })
    const known = await service.api().devices.auth({ body: authBody(299) })
    expect(known.body).toMatchObject({ uid: uidOf(299), name: authBody(299).hostname, namespace: 'harbour' })

    const { body } = await service
      .api()
      .users.login({ body: { username: owner.username, password: owner.password } })
    const api = service.api({ token: body.token })
    const total = async (query: Parameters<typeof api.devices.list>[0]) =>
      (await api.devices.list(query)).total
    expect(await total({})).toBe(300)
    expect(await total({ query: { status: 'accepted' } })).toBe(270)
    const tagged = (value: string) =>
      encodeFilter([{ type: 'property', params: { name: 'tags', operator: 'eq', value } }])
    expect(await total({ query: { filter: tagged(rareTag) } })).toBe(20)
    expect(await total({ query: { filter: tagged(siteTag(7)) } })).toBe(6)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
