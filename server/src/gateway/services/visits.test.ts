// Visits: what is let in is on the list from that moment, ends with its right, with quiet and with its cookie,
// and a database that is away neither ends the process nor lets an end be missed.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Admitted, Visitor } from '../../domain/access/service-access.ts'
import type { OpenSession } from '../../domain/sessions/revocation.ts'
import { hour_ms, minute_ms, second_ms } from '../../kit/clock.ts'
import { visits, type Exchange, type Pass } from './visits.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const admitted = (change: Partial<Admitted['service']> = {}, method: Admitted['method'] = 'sign-in') =>
  ({
    service: {
      id: 'one',
      tenant_id: 'one',
      name: '',
      host: '127.0.0.1',
      port: 80,
      scheme: 'http',
      certificate: 'verify',
      tls_name: '',
      pinned: '',
      username: '',
      expires_at: null,
      ...change,
    },
    person: { kind: 'user', id: 'vera', name: 'vera' },
    device: { uid: 'one' },
    namespace: {},
    method,
  }) as unknown as Admitted

interface Request {
  isCut: boolean
  pass: Pass | undefined
  leave(): void
}

function world() {
  let answer: () => Promise<Admitted | undefined> = async () => admitted()
  const open = new Map<string, OpenSession>()
  const errors: unknown[] = []
  const targets: number[] = []
  const destroyed: number[] = []
  let [asked, sessions] = [0, 0]
  const room = visits({
    access: {
      async admit() {
        asked += 1
        return answer()
      },
    },
    sessions: {
      begin: async () =>
        ({ uid: `session ${++sessions}`, note: () => undefined, finish: () => undefined }) as never,
    },
    open,
    connections: ({ service: { port } }) => ({
      take: () => undefined,
      begin: () => expect.unreachable(),
      destroy: () => void destroyed.push(targets.push(port)),
    }),
    newId: () => 'one',
    clock: { now: Date.now },
    onError: (error) => void errors.push(error),
  })
  return {
    room,
    open,
    errors,
    destroyed,
    asked: () => asked,
    answer: (by: () => Promise<Admitted | undefined>) => void (answer = by),
    async enter(source = '192.0.2.1', ends_at = Date.now() + 12 * hour_ms): Promise<Request> {
      const visitor: Visitor = { kind: 'user', user_id: 'vera', epoch: 1, token_id: 'one', ends_at }
      const request: Request = { isCut: false, pass: undefined, leave: () => undefined }
      const exchange: Exchange = { cut: () => void (request.isCut = true) }
      request.pass = await room.enter({ address: 'one', visitor, source, client: '', exchange })
      request.leave = () => void request.pass?.exchanges.delete(exchange)
      return request
    },
  }
}

const nobody = async (): Promise<undefined> => undefined
const away = async (): Promise<never> => {
  throw new Error('the database is away')
}

test('a request is cut off when its right ends before it is on its way', async () => {
  const { room, enter, answer, open } = world()
  using _ = room
  const request = await enter()
  answer(nobody)
  await room.recheck(() => true)
  expect([request.isCut, open.size]).toEqual([true, 0])
})

test('what is let in while the right ends is judged again', async () => {
  const { room, enter, answer } = world()
  using _ = room
  const judging = Promise.withResolvers<void>()
  let isAllowed = true
  answer(async () => {
    const said = isAllowed ? admitted() : undefined
    await judging.promise
    return said
  })
  const early = enter()
  isAllowed = false
  await room.recheck(() => true)
  judging.resolve()
  expect((await early).pass).toBeUndefined()
})

test('a database that is away ends nothing, and what was missed is made up for', async () => {
  const { room, enter, answer, errors } = world()
  using _ = room
  const request = await enter()
  answer(away)
  await room.recheck(() => true)
  expect([request.isCut, errors.length]).toEqual([false, 1])
  await vi.advanceTimersByTimeAsync(6 * second_ms)
  expect([request.isCut, errors.length]).toEqual([false, 2])
  answer(nobody)
  await vi.advanceTimersByTimeAsync(6 * second_ms)
  expect(request.isCut).toBe(true)
})

test('what stays open is judged every minute, without news; what is idle is not', async () => {
  const { room, enter, answer, asked } = world()
  using _ = room
  const idle = await enter()
  await vi.advanceTimersByTimeAsync(2 * second_ms)
  idle.leave()
  const before = asked()
  await vi.advanceTimersByTimeAsync(5 * minute_ms)
  expect(asked()).toBe(before)
  const request = await enter()
  await vi.advanceTimersByTimeAsync(5 * second_ms)
  answer(nobody)
  await vi.advanceTimersByTimeAsync(50 * second_ms)
  expect(request.isCut).toBe(false)
  await vi.advanceTimersByTimeAsync(15 * second_ms)
  expect(request.isCut).toBe(true)
})

test('a change that came while the session was stored is noticed', async () => {
  const { room, enter, answer } = world()
  using _ = room
  const request = await enter()
  answer(nobody)
  await vi.advanceTimersByTimeAsync(2 * second_ms)
  expect(request.isCut).toBe(true)
})

test('many news at the same time are one question', async () => {
  const { room, enter, answer, asked } = world()
  using _ = room
  await enter()
  const before = asked()
  const judging = Promise.withResolvers<void>()
  answer(async () => judging.promise.then(() => admitted()))
  const rechecks = Array.from({ length: 100 }, async () => room.recheck(() => true))
  judging.resolve()
  await Promise.all(rechecks)
  expect(asked() - before).toBe(2)
})

test('a cookie that is over ends what came with it', async () => {
  const { room, enter } = world()
  using _ = room
  const [early, late] = [await enter('192.0.2.1', Date.now() + minute_ms), await enter('192.0.2.2')]
  await vi.advanceTimersByTimeAsync(minute_ms + 2 * second_ms)
  expect([early.isCut, late.isCut]).toEqual([true, false])
})

test('a quarter of an hour of quiet ends a visit; a request that is open is no quiet', async () => {
  const { room, enter, open } = world()
  using _ = room
  const request = await enter()
  await vi.advanceTimersByTimeAsync(40 * minute_ms)
  expect(open.size).toBe(1)
  request.leave()
  await vi.advanceTimersByTimeAsync(14 * minute_ms)
  expect(open.size).toBe(1)
  await vi.advanceTimersByTimeAsync(2 * minute_ms)
  expect(open.size).toBe(0)
})

test('another target ends what is open to the one before, also when a request learns of it first', async () => {
  const { room, enter, answer, destroyed } = world()
  using _ = room
  const first = await enter()
  // The first certificate of the same target.
  answer(async () => admitted({ pinned: 'abc' }))
  await room.recheck(() => true)
  expect([first.isCut, destroyed]).toEqual([false, []])
  answer(async () => admitted({ pinned: 'abc', port: 81 }))
  await vi.advanceTimersByTimeAsync(31 * second_ms)
  const second = await enter()
  expect([first.isCut, second.isCut, destroyed.length]).toEqual([true, false, 1])
  answer(async () => admitted({ pinned: '', port: 81 }))
  await room.recheck(() => true)
  expect([second.isCut, destroyed.length]).toEqual([true, 2])
})

test('people who came to a public service are apart when it is for members again', async () => {
  const { room, enter, answer } = world()
  using _ = room
  answer(async () => admitted({}, 'public'))
  const [first, second] = [await enter('192.0.2.1'), await enter('192.0.2.2')]
  expect(first.pass?.visit).toBe(second.pass?.visit)
  answer(async () => admitted())
  await room.recheck(() => true)
  expect([first.isCut, second.isCut]).toEqual([true, true])
  const again = [await enter('192.0.2.1'), await enter('192.0.2.2')]
  expect(again[0]!.pass!.visit).not.toBe(again[1]!.pass!.visit)
})

test('a person from two networks has a session for each', async () => {
  const { room, enter, open } = world()
  using _ = room
  await enter('2001:db8::1')
  await enter('2001:db8::2')
  expect(open.size).toBe(1)
  await enter('192.0.2.1')
  expect(open.size).toBe(2)
})
