import { hangUp_ms } from '@hawser/contract/tunnel'
import { describe, expect, test, vi } from 'vitest'
import { registry, type Registry } from './registry.ts'
import type { Tunnel, TunnelDevice } from './tunnel.ts'

interface Fake extends Tunnel {
  readonly closed: string[]
  lose(): void
}

const device = (change: Partial<TunnelDevice> = {}): TunnelDevice => ({
  uid: 'crane',
  tenant_id: 'harbour',
  public_key: '',
  mustProve: false,
  ...change,
})

/** A tunnel whose agent holds the device's key, or does not, and knows how to sign, or does not. */
function tunnel(knows: 'signs' | 'forges' | 'old', whose = device()): Fake {
  const ended = Promise.withResolvers<undefined>()
  const closed: string[] = []
  return {
    device: whose,
    closed,
    openSsh: () => Promise.reject(new Error('not in this test')),
    prove: () => Promise.resolve(knows === 'old' ? undefined : knows === 'signs'),
    close(why) {
      closed.push(why)
      ended.resolve(undefined)
    },
    lose: () => ended.resolve(undefined),
    ended: ended.promise,
  }
}

function house(probe: (of: Tunnel) => Promise<boolean> = () => Promise.resolve(false)) {
  const events: string[] = []
  const elsewhere = new Set<string>()
  const released: string[] = []
  let claimed = 0
  const rooms: Registry = registry({
    probe,
    up: ({ uid }) => void events.push(`up ${uid}`),
    down: async ({ uid }) => void events.push(`down ${uid}`),
    proved: async ({ uid }) => void events.push(`proved ${uid}`),
    recognised: async ({ uid, wantsProof }) => void (wantsProof && events.push(`recognised ${uid}`)),
    claim: () => Promise.resolve(++claimed),
    isElsewhere: (uid) => Promise.resolve(elsewhere.has(uid)),
    held: ({ uid }) => ({ [Symbol.dispose]: () => void released.push(uid) }),
    moved: ({ uid }) => void events.push(`moved ${uid}`),
    onError: (what) => void events.push(what),
  })
  return { rooms, events, elsewhere, released }
}

const settled = () => new Promise((resolve) => void setImmediate(resolve))

describe('the first tunnel of a device', () => {
  test('is its owner at once, and its proof is remembered', async () => {
    const { rooms, events } = house()
    const first = tunnel('signs')
    await rooms.offer(first)
    expect(rooms.find('crane')).toBe(first)
    expect(events).toEqual(['up crane', 'proved crane'])
  })

  test('is closed when its signature is wrong', async () => {
    const { rooms, events } = house()
    const first = tunnel('forges')
    await rooms.offer(first)
    await settled()
    expect(first.closed).toHaveLength(1)
    expect(rooms.find('crane')).toBeUndefined()
    expect(events).toEqual(['up crane', 'down crane'])
  })

  test('is asked who it is, also one that cannot sign, where it comes with a token of ours for the first time', async () => {
    const { rooms, events } = house((of) => Promise.resolve(of === good))
    const good = tunnel('old', device({ wantsProof: true }))
    const other = tunnel('old', device({ uid: 'other', wantsProof: true }))
    await rooms.offer(good)
    await rooms.offer(other)
    expect(events).toEqual(['up crane', 'recognised crane', 'up other'])
    expect([good.closed, other.closed]).toEqual([[], []])
  })

  test('must prove itself first where the device has done so before', async () => {
    const { rooms, events } = house()
    const impostor = tunnel('old', device({ mustProve: true }))
    await rooms.offer(impostor)
    expect(impostor.closed).toHaveLength(1)
    expect(events).toEqual([])
    await rooms.offer(tunnel('signs', device({ mustProve: true })))
    expect(events).toEqual(['proved crane', 'up crane'])
  })
})

test('where the key was proved before, a tunnel is the device’s only after its own proof, and is closed without one', async () => {
  const { rooms, events } = house((of) => Promise.resolve(of === own))
  const [own, other] = [0, 1].map(() => tunnel('old', device({ isFirstProof: false, wantsProof: true })))
  expect(await rooms.offer(other!)).toBe(false)
  expect([events, other!.closed.length]).toEqual([[], 1])
  expect(await rooms.offer(own!)).toBe(true)
  expect(events).toEqual(['recognised crane', 'up crane'])
})

describe('a newer tunnel', () => {
  test('takes over once it has proved itself, and the older one is closed without the device going offline', async () => {
    const { rooms, events } = house()
    const [older, newer] = [tunnel('signs'), tunnel('signs')]
    await rooms.offer(older)
    await rooms.offer(newer)
    await settled()
    expect(rooms.find('crane')).toBe(newer)
    expect(older.closed).toHaveLength(1)
    expect(events).not.toContain('down crane')
    newer.lose()
    await settled()
    expect(events.at(-1)).toBe('down crane')
    expect(rooms.size).toBe(0)
  })

  test('is the only one whose signs count; those of the older one, and of one that is elsewhere now, do not', async () => {
    const { rooms, events } = house()
    const [older, newer] = [tunnel('signs'), tunnel('signs')]
    await rooms.offer(older)
    await rooms.offer(newer)
    const ups = () => events.filter((event) => event === 'up crane').length
    expect(ups()).toBe(2)
    rooms.seen(older.device)
    rooms.seen(device())
    expect(ups()).toBe(2)
    rooms.seen(newer.device)
    expect(ups()).toBe(3)
    rooms.yield('crane', 9)
    rooms.seen(newer.device)
    expect(ups()).toBe(3)
  })

  test('of an agent that cannot sign is tried by its host key', async () => {
    const { rooms } = house(() => Promise.resolve(true))
    const newer = tunnel('old')
    await rooms.offer(tunnel('old'))
    await rooms.offer(newer)
    expect(rooms.find('crane')).toBe(newer)
  })

  test.each(['old', 'forges'] as const)(
    'of somebody else (%s) is closed, and the older one stays',
    async (knows) => {
      const { rooms, events } = house()
      const [older, stolen] = [tunnel('signs'), tunnel(knows)]
      await rooms.offer(older)
      await rooms.offer(stolen)
      await settled()
      expect(rooms.find('crane')).toBe(older)
      expect(older.closed).toEqual([])
      expect(stolen.closed).toHaveLength(1)
      expect(events).not.toContain('down crane')
    },
  )

  test('that cannot be tried is closed: the tunnel may be dead already', async () => {
    const { rooms, events } = house(() => Promise.reject(new Error('gone')))
    const [older, newer] = [tunnel('old'), tunnel('old')]
    await rooms.offer(older)
    await rooms.offer(newer)
    expect(rooms.find('crane')).toBe(older)
    expect(newer.closed).toHaveLength(1)
    expect(events).toContain('tunnel.unproved')
  })
})

test('a tunnel is told whether it became the device’s: not one that a newer one displaced, or that proved nothing', async () => {
  const { rooms } = house(() => new Promise((resolve) => void judging.push(resolve)))
  const judging: ((good: boolean) => void)[] = []
  const [first, second] = [0, 1].map(() => tunnel('old', device({ mustProve: true })))
  const [one, other] = [rooms.offer(first!), rooms.offer(second!)]
  await settled()
  for (const judge of judging) judge(true)
  expect([await one, await other]).toEqual([false, true])
  expect(rooms.find('crane')).toBe(second)
  expect(await rooms.offer(tunnel('forges'))).toBe(false)
  expect(await rooms.offer(tunnel('signs', device({ uid: 'other' })))).toBe(true)
})

test('a tunnel that is being judged gives way to a newer one with the same token, and to no other', async () => {
  const { rooms } = house((of) => new Promise((resolve) => void judging.set(of, resolve)))
  const judging = new Map<Tunnel, (good: boolean) => void>()
  const [first, again, ...strangers] = ['own', 'own', 'a', 'b', 'c'].map((token) =>
    tunnel('old', device({ isFirstProof: false, token })),
  )
  const offered = [first!, again!, ...strangers].map((one) => rooms.offer(one))
  await settled()
  expect([first!, again!, ...strangers].map(({ closed }) => closed.length)).toEqual([1, 0, 0, 0, 0])
  for (const [one, judge] of judging) judge(one === again)
  expect(await Promise.all(offered)).toEqual([false, true, false, false, false])
  expect(strangers.map(({ closed }) => closed.length)).toEqual([1, 1, 1])
  const late = ['a', 'b'].map((token) => tunnel('old', device({ token })))
  const judged = late.map((one) => rooms.offer(one))
  await settled()
  rooms.drop('crane', 'It was rejected.')
  for (const one of late) judging.get(one)?.(true)
  expect(await Promise.all(judged)).toEqual([false, false])
  expect(late.map(({ closed }) => closed[0])).toEqual(['It was rejected.', 'It was rejected.'])
})

test('a device that may no longer connect loses the tunnel it has and the one that is being judged', async () => {
  const judging = Promise.withResolvers<boolean>()
  const { rooms, events } = house(() => judging.promise)
  const [older, newer] = [tunnel('old'), tunnel('old')]
  await rooms.offer(older)
  const offered = rooms.offer(newer)
  await settled()
  rooms.drop('crane', 'It was rejected.')
  judging.resolve(true)
  await offered
  await settled()
  expect(older.closed).toEqual(['It was rejected.'])
  expect(newer.closed).toContain('It was rejected.')
  expect(rooms.find('crane')).toBeUndefined()
  expect(events.at(-1)).toBe('down crane')
})

test('a tunnel whose device may no longer connect is for nothing else until its agent has hung up', async () => {
  const { rooms } = house()
  const hungUp = Promise.withResolvers<void>()
  const own = { ...tunnel('signs'), hangUp: () => hungUp.promise }
  await rooms.offer(own)
  rooms.drop('crane', 'It was rejected.')
  rooms.drop('crane', 'It was rejected again.')
  await settled()
  expect(own.closed).toEqual([])
  expect(rooms.find('crane')).toBeUndefined()
  hungUp.resolve()
  await settled()
  expect(own.closed).toEqual(['It was rejected.'])
})

test('an agent that does not answer, or takes no order, loses its tunnel all the same', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { rooms } = house()
    const silent = { ...tunnel('signs'), hangUp: () => new Promise<void>(() => undefined) }
    const older = { ...tunnel('old', device({ uid: 'older' })), roundTrip: () => Promise.resolve(1) }
    for (const one of [silent, older]) {
      await rooms.offer(one)
      rooms.drop(one.device.uid, 'It was rejected.')
    }
    await settled()
    expect([silent.closed, older.closed]).toEqual([[], ['It was rejected.']])
    await vi.advanceTimersByTimeAsync(hangUp_ms)
    expect(silent.closed).toEqual(['It was rejected.'])
  } finally {
    vi.useRealTimers()
  }
})

test('a device that connects and is not accepted hangs up, and so does one that is set back', async () => {
  const { rooms } = house()
  let orders = 0
  const hangUp = async (): Promise<void> => void (orders += 1)
  await rooms.offer({ ...tunnel('signs'), hangUp })
  expect(orders).toBe(0)
  rooms.hangUp('crane')
  expect(orders).toBe(1)
  expect(rooms.find('crane')).toBeDefined()
  await rooms.offer({ ...tunnel('signs', device({ uid: 'pending', unaccepted: true })), hangUp })
  expect(orders).toBe(2)
})

test('all are let go when the server stops', async () => {
  const { rooms } = house()
  const tunnels = Array.from({ length: 20 }, (_, index) => tunnel('old', device({ uid: `device-${index}` })))
  for (const one of tunnels) await rooms.offer(one)
  await rooms.drain(50)
  await settled()
  expect(tunnels.every((one) => one.closed.length === 1)).toBe(true)
  expect(rooms.size).toBe(0)
})

describe('with other nodes', () => {
  test('a tunnel must prove itself while another node has one', async () => {
    const { rooms, events, elsewhere } = house()
    elsewhere.add('crane')
    const stranger = tunnel('forges')
    await rooms.offer(stranger)
    expect([rooms.find('crane'), stranger.closed.length]).toEqual([undefined, 1])
    const owner = tunnel('signs')
    await rooms.offer(owner)
    expect(rooms.find('crane')).toBe(owner)
    expect(events).toEqual(['proved crane', 'up crane'])
  })

  test('a newer one on another node makes ours give way, without the device being offline', async () => {
    const { rooms, events, released } = house()
    const ours = tunnel('old')
    await rooms.offer(ours)
    rooms.yield('crane', 1)
    expect(rooms.find('crane')).toBe(ours)
    expect(rooms.find('crane', 2)).toBeUndefined()
    rooms.yield('crane', 2)
    await settled()
    expect(rooms.find('crane')).toBeUndefined()
    expect([ours.closed.length, released, events]).toEqual([1, ['crane'], ['up crane', 'moved crane']])
  })
})
