// A connection frees the data that it holds in the end, and held data never stops both sides for good.
import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../tests/harness/eventually.ts'
import { connect, pipe, receiveSession, writeTcpForward } from '../src/index.ts'
import { memoryPool } from '../src/memory.ts'
import { pair, servedLine } from './pairs.ts'

const MiB = 1024 * 1024
afterEach(() => void vi.useRealTimers())

test('what nobody has read when a connection ends is forgotten after a while', async () => {
  const memory = memoryPool(64 * MiB)
  const { client, server } = await pair({ memory })
  const opening = server.channels.next()
  const channel = await Promise.all([client.open('session'), opening.then((one) => one?.accept())]).then(
    ([opened]) => opened,
  )
  await channel.write(Buffer.alloc(100_000))
  await until(() => memory.held_bytes > 100_000)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await client.end()
  await server.ended
  await Promise.resolve()
  expect(memory.held_bytes).toBeGreaterThan(0)
  vi.advanceTimersByTime(30_000)
  expect(memory.held_bytes).toBe(0)
})

test('a channel that closes without a program leaves nothing behind', async () => {
  const memory = memoryPool(64 * MiB)
  await using both = await pair({ memory })
  for (let round = 0; round < 5; round += 1) {
    const opening = both.server.channels.next()
    const opened = both.client.open('session')
    const accepted = (await opening)?.accept()
    if (!accepted) throw new Error('Nothing was opened.')
    const session = receiveSession(accepted, () => true)
    const channel = await opened
    await channel.write(Buffer.alloc(100_000))
    await channel.close()
    expect(await session).toBeUndefined()
    await until(() => memory.held_bytes === 0)
  }
})

test('two legs that both hold too much for the process drain all the same', async () => {
  const memory = memoryPool(3 * MiB)
  const types = { channelTypes: ['direct-tcpip'] }
  const [near, far] = [servedLine({ ...types, memory }), servedLine(types)]
  const common = { user: 'olga', proofs: [{ method: 'none' }], checkHostKey: () => true } as const
  await using person = await connect(near.line, common)
  await using gateway = await connect(far.line, { ...common, memory })
  await using device = await far.server
  void pipe(await near.server, gateway)
  const opening = device.channels.next()
  const where = writeTcpForward({ host: 'localhost', port: 80, origin: '127.0.0.1', originPort: 4_711 })
  const [here, there] = await Promise.all([
    person.open('direct-tcpip', where),
    opening.then((one) => one?.accept()),
  ])
  if (!there) throw new Error('Nothing was opened.')
  const size = 16 * MiB
  const writing = [here, there].map((end) => end.write(Buffer.alloc(size)))
  // Both read quickly at first, so that their windows grow; then nobody reads until both legs are full.
  const full = until(() => memory.held_bytes > 3 * MiB)
  const readAll = async (end: typeof here): Promise<number> => {
    let got = 0
    while (got < size) {
      got += (await end.read())?.bytes.length ?? size
      if (got > size / 2) await full
    }
    return got
  }
  expect(await Promise.all([readAll(here), readAll(there), ...writing])).toEqual([
    size,
    size,
    undefined,
    undefined,
  ])
  await Promise.all([here.close(), there.close()])
  await until(() => memory.held_bytes === 0)
})
