// Agents on the command line: who is behind and why, an update of some devices or of all, and the key that
// signs them.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { version } from '@hawser/contract/version'
import { openDesk } from '../../cli/test/program.ts'
import { runCommand } from '../../server/src/commands/admin.ts'
import { buildOf, offerFakeAgent } from '../harness/agent-release.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

test('hawser agents lists them, updates them, and says what it could not do', async () => {
  const served = mkdtempSync(path.join(os.tmpdir(), 'hawser-served-'))
  await using opened = new AsyncDisposableStack()
  opened.defer(() => rmSync(served, { recursive: true, force: true }))
  offerFakeAgent(served, { build: buildOf('b') }, 'x64')
  await using service = await startService({ agents: served })
  await buildWorld(service)
  await service.rooms.updates.decide()
  for (const [name, ability] of [
    ['gantry', 'self'],
    ['winch', 'package'],
  ] as const) {
    const { body } = await service.api().devices.auth({
      body: {
        info: { version: `hawser-${version}`, arch: 'amd64' },
        hostname: name,
        identity: { mac: name },
        public_key: `key of ${name}`,
        tenant_id: sample.tenant,
        agent: { build: buildOf('a'), ability },
      },
    })
    await service.api({ apiKey: sample.apiKey }).devices.accept({ params: { uid: body.uid } })
  }
  using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
  const list = async (...words: string[]) =>
    JSON.parse((await desk.hawser(['agents', 'list', ...words, '-o', 'json'])).stdout) as object[]
  expect(await list()).toMatchObject([
    { name: 'crane-1', state: 'other', version: 'v0.16.4' },
    { name: 'gantry', state: 'behind', version: `hawser-${version}` },
    { name: 'winch', state: 'behind', reason: expect.stringContaining('npm') as string },
  ])
  const said = await desk.hawser(['agents', 'update', 'gantry', 'winch'])
  expect([said.code, said.stdout + said.stderr]).toEqual([
    0,
    `1 device updates to ${version}; \`hawser agents list\` shows the progress.\n`,
  ])
  expect(await list('--behind')).toMatchObject([{}, { name: 'gantry', state: 'updating' }, {}])
  const again = await desk.hawser(['agents', 'update', '--all'])
  expect(again.stdout + again.stderr).toContain('No outdated device can update itself')
  expect((await desk.hawser(['agents', 'update'])).code).toBe(2)

  const [key] = await runCommand(service.rooms, { words: 'update-key print', given: [] })
  const got = await desk.hawser(['agents', 'get', '-o', 'json'])
  expect(JSON.parse(got.stdout)).toMatchObject({ update_key: key, mode: 'manual' })
  const [, rotated] = await runCommand(service.rooms, { words: 'update-key rotate', given: [] })
  expect(rotated).not.toBe(key)
  expect(service.rooms.releases.endorsementsAfter(key ?? '')).toHaveLength(1)
})
