// Two machines with one key, as copies of an SD card have it. They take the tunnel from each other a few
// times; then one keeps it, the other waits longer and longer, the log says so once and the device shows it.
// `hawser-agent reset-identity` on the copy makes it a device of its own. A device that only lost its link is
// never taken for two.
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { eventually, until } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000 })

const main = path.join(import.meta.dirname, '../../agent/src/main.ts')
const quiet_ms = 16 * 60_000

const conflicts = (service: Service): Record<string, unknown>[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes('"device.conflict"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('two real agents with one key: few flaps, one line, a mark, and a way out', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const [first, copy] = ['one', 'two'].map((name) =>
    mkdtempSync(path.join(os.tmpdir(), `hawser-${name}-`)),
  ) as [string, string]
  await using cleanup = new AsyncDisposableStack()
  for (const folder of [first, copy]) cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))

  await using original = await startAgent(service, { folder: first })
  const { uid } = original
  const shown = async () => (await owner.devices.get({ params: { uid } })).body
  expect((await shown()).conflict).toBeUndefined()
  copyFileSync(path.join(first, 'device.key'), path.join(copy, 'device.key'))
  // The mark of the machine that the image was made on.
  writeFileSync(path.join(copy, 'device.key.machine'), `${'0'.repeat(64)}\n`)
  const clone = await startAgent(service, { folder: copy })
  expect(clone.lines.map(({ event }) => event)).toContain('identity.copied')
  expect(original.lines.map(({ event }) => event)).not.toContain('identity.copied')
  expect(clone.uid).toBe(uid)

  await eventually(() => expect(conflicts(service)).toHaveLength(1))
  expect(conflicts(service)[0]).toMatchObject({ device: uid, stays: '127.0.0.1', refused: '127.0.0.1' })
  await eventually(async () =>
    expect((await shown()).conflict?.addresses).toEqual(['127.0.0.1', '127.0.0.1']),
  )
  // An event that is being written at this moment is shown to the next who asks.
  await eventually(async () => {
    const { events } = (await owner.devices.timeline({ params: { uid }, query: {} })).body
    expect(events.filter(({ kind }) => kind === 'conflict')).toMatchObject([
      { sentence: expect.stringContaining('127.0.0.1 and 127.0.0.1') as unknown },
    ])
  })
  const { body: listed } = await owner.devices.list({ query: {} })
  expect(listed.find((device) => device.uid === uid)?.conflict).toBeDefined()
  const ups = (): number =>
    [original, clone].flatMap(({ lines }) => lines.filter(({ event }) => event === 'tunnel.up')).length
  expect(ups()).toBeLessThanOrEqual(5)
  const refused = [original, clone].flatMap(({ lines }) =>
    lines.filter(({ why }) => String(why).includes('reset-identity')),
  )
  expect(refused.length).toBeGreaterThan(0)
  const settled = ups()
  expect((await shown()).online).toBe(true)

  // Stopped, reset, started again: a device of its own, and the first one is left in peace.
  clone.kill('SIGTERM')
  await clone.ended
  const key = path.join(copy, 'device.key')
  const reset = await run(process.execPath, [main, 'reset-identity', '--key', key])
  expect(reset.stdout.toString(), reset.stderr).toMatch(/the old key is now .*device\.key\.old-\d{8}T\d{6}Z/)
  expect(reset.stdout.toString()).toContain('restart the agent; this machine then enrols as a new device')
  expect(existsSync(key)).toBe(false)
  await using another = await startAgent(service, { folder: copy, hostname: 'davit' })
  expect(another.uid).not.toBe(uid)
  expect(another.lines.map(({ event }) => event)).not.toContain('identity.copied')
  expect(readdirSync(copy)).toContain('device.key.machine')
  expect(ups()).toBeLessThanOrEqual(settled + 1)
  service.clock.forward(quiet_ms)
  expect((await shown()).conflict).toBeUndefined()
  expect(conflicts(service)).toHaveLength(1)
})

test('an agent that is told to may replace a copied key by itself', async () => {
  await using service = await startService()
  await buildWorld(service)
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-copied-'))
  try {
    const { uid } = await (async () => {
      await using agent = await startAgent(service, { folder })
      return { uid: agent.uid }
    })()
    writeFileSync(path.join(folder, 'device.key.machine'), `${'0'.repeat(64)}\n`)
    await using agent = await startAgent(service, {
      folder,
      hostname: 'davit',
      env: { HAWSER_RESET_COPIED_IDENTITY: 'yes' },
    })
    expect(agent.uid).not.toBe(uid)
    expect(agent.lines.map(({ event }) => event)).toContain('identity.reset')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test.each([1, 2] as const)('agents of the field, version %i, are held apart, too', async (version) => {
  await using service = await startService()
  await buildWorld(service)
  const options = { version, tenant_id: sample.tenant, retry_ms: 200 } as const
  await using one = await startOldAgent(service, options)
  await using two = await startOldAgent(service, { ...options, key: one.key })
  expect(two.uid).toBe(one.uid)
  await eventually(() => expect(conflicts(service)).toHaveLength(1))
  expect(service.reach.tunnels.size).toBe(1)
})

test('a device that comes back again and again is one device', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using agent = await startAgent(service)
  for (let loss = 0; loss < 6; loss += 1) {
    // The agent says that it is up before the server has entered the tunnel.
    const tunnel = await until(() => service.reach.tunnels.find(agent.uid))
    const up = agent.logged('tunnel.up')
    tunnel.close('lost')
    await up
  }
  expect(conflicts(service)).toHaveLength(0)
})
