// A container that is gone while the server is away: the connector mode gives up after a while, does not
// claim that the server was notified, and tries again with a later list of containers. A real server, and an
// engine that says what it has.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder, freePort } from '../../ssh/test/programs.ts'
import { containerId, startEngine } from '../../tests/harness/engine.ts'
import { eventually } from '../../tests/harness/eventually.ts'
import { startService } from '../../tests/harness/service.ts'
import { buildWorld } from '../../tests/harness/world.ts'
import { readConnectorConfig } from '../src/connector-config.ts'
import { runConnector } from '../src/connector.ts'
import { containerKeys } from '../src/container-keys.ts'
import { idleMemory } from '../src/idle-memory.ts'

test('a server that is away longer than the attempt lasts is notified by a later one', async () => {
  using where = folder()
  await using engine = await startEngine()
  const port = await freePort()
  const events: Record<string, unknown>[] = []
  const unheard = (): number => events.filter(({ event }) => event === 'container.unheard').length
  const stopping = new AbortController()
  const config = readConnectorConfig(
    {
      SERVER_ADDRESS: `http://127.0.0.1:${port}`,
      TENANT_ID: sample.tenant,
      DOCKER_HOST: `tcp://127.0.0.1:${engine.port}`,
      PRIVATE_KEYS: where.file('keys'),
    },
    false,
  )
  const log = (event: Record<string, unknown>): void => void events.push(event)
  const running = runConnector({ ...config, farewell_ms: 300 }, log, stopping.signal, idleMemory())
  const kept = () => containerKeys(where.file('keys'))
  const job = { id: containerId('job'), name: 'job' }
  engine.show([job])
  await eventually(() => expect(kept().of(job.id)).toBeDefined())
  engine.show([])
  await eventually(() => expect(unheard()).toBe(1))
  expect(kept().untold()).toMatchObject([{ id: job.id }])

  await using service = await startService({ env: { HAWSER_HTTP: `127.0.0.1:${port}` } })
  const world = await buildWorld(service)
  await eventually(() => {
    engine.show([])
    expect(kept().untold()).toEqual([])
  })
  const owner = service.api({ token: await world.token('owner') })
  const { body } = await owner.devices.list({ query: { status: 'pending', per_page: 100 } })
  expect(body.map(({ name }) => name)).not.toContain('job')
  stopping.abort()
  await running
})
