// The agent updates itself: the real agent, installed as on a device and kept running by a service, against a
// real server that is given a newer agent. It comes back with the new build; one that crashes or hangs is
// replaced by the former one, and the server says why.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import {
  buildOf,
  installFakeAgent,
  offerFakeAgent,
  supervised,
  type FakeAgent,
} from '../harness/agent-release.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

describe.runIf(isRoot)(`an installed agent (${onlyAsRoot})`, () => {
  let [folder, service, owner, agent]: [string, Service, Client, Agent] = [] as never
  const served = () => path.join(folder, 'served')
  const updates = () => path.join(folder, 'root/opt/hawser-agent/updates')
  beforeEach(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-updates-'))
    offerFakeAgent(served(), { build: buildOf('a') })
    service = await startService({ agents: served() })
    await service.rooms.updates.decide()
    const world = await buildWorld(service)
    owner = service.api({ token: await world.token('owner') })
  })
  afterEach(async () => {
    await agent[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const device = async (): Promise<Device> => (await owner.devices.get({ params: { uid: agent.uid } })).body
  const until = async (check: (device: Device) => void): Promise<void> =>
    eventually(async () => check(await device()), 40_000)
  /** `wait_s`: for a newer agent to connect. */
  async function install(wait_s: number): Promise<void> {
    const root = path.join(folder, 'root')
    mkdirSync(root)
    agent = await startAgent(service, {
      program: supervised(installFakeAgent(root, { build: buildOf('a') })),
      folder,
      env: { HAWSER_UPDATE_WAIT: String(wait_s) },
    })
  }
  /** Offers an agent and asks for it. The present one hears of it through its tunnel, when its turn comes. */
  async function update(next: FakeAgent): Promise<void> {
    offerFakeAgent(served(), next)
    await service.rooms.updates.decide()
    expect((await device()).agent).toMatchObject({ state: 'behind', updates_itself: true })
    expect((await owner.agents.update({ body: { devices: [agent.uid] } })).body).toEqual({ asked: 1 })
    // Its turn comes when the database has it as online.
    await eventually(async () => {
      await service.rooms.updates.decide()
      expect((await device()).agent?.reason).not.toBe('It waits for its turn.')
    })
  }
  /** Ends the agent; the service starts it again. */
  function restart(): void {
    for (const shell of childrenOf(agent.pid))
      for (const pid of childrenOf(shell)) process.kill(pid, 'SIGTERM')
  }

  test('fetches the newer one, becomes it and keeps only that', async () => {
    await install(30)
    expect((await device()).agent).toEqual({
      build: buildOf('a'),
      state: 'current',
      reason: '',
      updates_itself: true,
    })
    await update({ build: buildOf('b') })
    await until((now) => expect(now.agent).toMatchObject({ build: buildOf('b'), state: 'current' }))
    await until((now) => expect(now.online).toBe(true))
    expect(readdirSync(updates()).toSorted()).toEqual([buildOf('b'), 'current'])
    // And once more, from an update.
    await update({ build: buildOf('c') })
    await until((now) => expect(now.agent).toMatchObject({ build: buildOf('c'), state: 'current' }))
    expect(readdirSync(updates()).toSorted()).toEqual([buildOf('c'), 'current'])
    expect((await owner.agents.get({})).body).toMatchObject({
      release: { build: buildOf('c'), architectures: [process.arch] },
      mode: 'manual',
      devices: { current: 1, behind: 0, updating: 0, failed: 0 },
    })
  })

  test.each([
    ['crashes', 30, /it ended 3 times before it had connected/],
    ['hangs', 4, /it had not connected after 4 seconds/],
  ] as const)(
    'an agent that %s is replaced by the former one, which says why',
    async (behaves, wait_s, reason) => {
      await install(wait_s)
      await update({ build: buildOf('d'), behaves })
      await until((now) => expect(now.agent).toMatchObject({ build: buildOf('a'), state: 'failed' }))
      await until((now) => expect(now.online).toBe(true))
      expect((await device()).agent?.reason).toMatch(reason)
      expect(readdirSync(updates())).toEqual([])
      // It is not tried again by itself, but when somebody asks.
      restart()
      await agent.logged('tunnel.up')
      expect((await device()).agent?.state).toBe('failed')
      expect(existsSync(path.join(updates(), 'next'))).toBe(false)
      expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 1 })
      expect((await device()).agent).toMatchObject({ state: 'updating', reason: 'It waits for its turn.' })
    },
  )
})

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
