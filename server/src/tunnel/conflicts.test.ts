// When a newcomer is refused because another machine has the device's tunnel, and when it is let in: the
// tunnel that is there must answer at that very moment, and the newcomer must have proved the device's key.
import { expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { conflicts, type ConflictReport } from './conflicts.ts'
import type { Tunnel } from './tunnel.ts'

const device = { uid: 'u', tenant_id: 't', public_key: '', mustProve: false }

function tunnel(prove: Tunnel['prove']): Tunnel {
  return {
    device,
    ...(prove ? { prove } : {}),
    openSsh: async () => Promise.reject(new Error('not here')),
    close: () => undefined,
    ended: Promise.resolve(undefined),
  }
}

function start() {
  let now = 0
  let holder: Tunnel | undefined
  let remote: Pick<Tunnel, 'openSsh'> | undefined
  const reports: (ConflictReport & { first: boolean })[] = []
  const judge = conflicts({
    clock: { now: () => now },
    find: () => holder,
    elsewhere: async () => remote,
    probe: async ({ openSsh }, signal) => openSsh('id', signal).then(() => true),
    onConflict: (_, report, first) => void reports.push({ ...report, first }),
  })
  return {
    reports,
    forward: (ms: number) => void (now += ms),
    /** Somebody has the tunnel. */
    hold(held: Tunnel, instance = '') {
      holder = held
      judge.opened(held, { address: '192.0.2.1', instance })
    },
    elsewhere: (held: Pick<Tunnel, 'openSsh'>) => void (remote = held),
    /** Seconds to wait, or 0. Whoever need not wait proves the key, unless it is a stranger. */
    async come(instance = '', isRival = false, token = 'own', isStranger = false): Promise<number> {
      try {
        const { took } = await judge.admit(device, { address: '192.0.2.2', instance, isRival, token })
        if (!isStranger) took()
        return 0
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        return Number(error.headers?.['retry-after'])
      }
    },
  }
}

test('after three take-overs in a minute the one that answers stays, and waits grow', async () => {
  const { reports, hold, come, forward } = start()
  expect(await come()).toBe(0)
  hold(tunnel(async () => true))
  const waits: number[] = []
  for (let count = 0; count < 9; count += 1) waits.push(await come())
  expect(waits).toEqual([0, 0, 0, 15, 30, 60, 120, 300, 300])
  expect(reports.map(({ first }) => first)).toEqual([true, false, false, false, false, false])
  expect(reports[0]?.addresses).toEqual(['192.0.2.1', '192.0.2.2'])
  // When it was quiet for long enough, all begins anew.
  forward(16 * 60_000)
  expect(await come()).toBe(0)
})

test('a stranger without the key is neither counted nor reported, and a machine with another token proves the key first', async () => {
  const { reports, hold, come } = start()
  hold(tunnel(async () => true))
  for (let count = 0; count < 9; count += 1) expect(await come('', false, 'forged', true)).toBe(0)
  expect([await come(), await come(), await come(), await come()]).toEqual([0, 0, 0, 15])
  expect(await come('', false, 'forged', true)).toBe(0)
  expect(reports).toHaveLength(1)
  expect([await come('', false, 'new'), await come('', false, 'new')]).toEqual([0, 30])
})

test('take-overs that are further apart are a bad link', async () => {
  const { hold, come, forward } = start()
  hold(tunnel(async () => true))
  for (let count = 0; count < 10; count += 1) {
    expect(await come()).toBe(0)
    forward(31_000)
  }
})

test('a tunnel that does not answer gives way within seconds', async () => {
  const { reports, hold, come } = start()
  hold(tunnel(() => new Promise(() => undefined)))
  for (let count = 0; count < 5; count += 1) expect(await come()).toBe(0)
  expect(reports).toHaveLength(0)
}, 30_000)

test('a process that comes back is never two', async () => {
  const { hold, come } = start()
  hold(
    tunnel(async () => true),
    'process',
  )
  for (let count = 0; count < 10; count += 1) expect(await come('process')).toBe(0)
})

test('the other tunnel may be on another node, and is asked there', async () => {
  const { reports, elsewhere, come } = start()
  elsewhere({ openSsh: async () => ({}) as never })
  for (let count = 0; count < 3; count += 1) expect(await come()).toBe(0)
  expect(await come()).toBe(15)
  expect(reports[0]?.addresses).toEqual(['another node', '192.0.2.2'])
})

test('a rival never takes over from a tunnel that answers, and brings no suspicion on the device', async () => {
  const { reports, hold, come } = start()
  expect(await come('', true)).toBe(0)
  hold(tunnel(async () => true))
  expect([await come('', true), await come('', true)]).toEqual([15, 30])
  expect(reports.map(({ first }) => first)).toEqual([true, false])
  expect([await come(), await come(), await come()]).toEqual([0, 0, 0])
})

test('a rival that waited for a silent tunnel does not displace the device that came back', async () => {
  const { hold, come } = start()
  const returned = tunnel(async () => true)
  hold(
    tunnel(async () => {
      hold(returned)
      return false
    }),
  )
  expect(await come('', true)).toBe(15)
})
