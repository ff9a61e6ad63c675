// A node that is cut off from NATS. Its news reach nobody. When it is back, the others must know that they
// missed some: they were connected all the time and cannot tell by themselves. A question that it asked before
// fails because this node was cut off, not because the other node is silent.
import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { eventually } from '../../../tests/harness/eventually.ts'
import { startLinkTo, type Link } from '../../../tests/harness/link.ts'
import { startNats } from '../../../tests/harness/nats.ts'
import { natsBus } from './nats.ts'

vi.setConfig({ testTimeout: 60_000 })

const cut = (way: Link): void => {
  way.refuse(true)
  way.cut()
}

test('the others check again when a node is back that had news for them, and not without', async () => {
  await using nats = await startNats()
  await using way = await startLinkTo(nats.url)
  const common = { prefix: 'hawser.test', masterKey: randomBytes(32), onEvent: () => undefined }
  await using alone = await natsBus({ ...common, servers: way.url, name: 'alone' })
  await using other = await natsBus({ ...common, servers: nats.url, name: 'other' })
  const heard = vi.fn<() => void>()
  const missed = vi.fn<() => void>()
  other.hear('user.changed', heard)
  other.missed(missed)

  cut(way)
  await eventually(() => expect(alone.connected).toBe(false))
  alone.tell('limit.counted', { node: 'alone', limit: 'l', keys: [] })
  way.refuse(false)
  await eventually(() => expect(alone.connected).toBe(true))
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(missed).not.toHaveBeenCalled()

  cut(way)
  await eventually(() => expect(alone.connected).toBe(false))
  alone.tell('user.changed', { user_id: 'u' })
  way.refuse(false)
  await eventually(() => expect(missed).toHaveBeenCalledOnce())
  expect(heard).not.toHaveBeenCalled()
  expect(other.refused).toBe(0)
})

test('a question that is cut off fails as unavailable, also if NATS is back before its answer is due', async () => {
  await using nats = await startNats()
  await using way = await startLinkTo(nats.url)
  const common = { prefix: 'hawser.test', masterKey: randomBytes(32), onEvent: () => undefined }
  await using alone = await natsBus({ ...common, servers: way.url, name: 'alone' })
  await using other = await natsBus({ ...common, servers: nats.url, name: 'other' })
  const asked = Promise.withResolvers<void>()
  const held = other.hold('berth', () => {
    asked.resolve()
    return new Promise(() => undefined)
  })
  await held.known()
  const question = alone.seek('berth').catch((error: unknown) => error)
  await asked.promise
  cut(way)
  await eventually(() => expect(alone.connected).toBe(false))
  way.refuse(false)
  expect(await question).toMatchObject({ name: 'Failure', kind: 'unavailable' })
})
