// Which sessions of other nodes a person may take: as judged when they are offered, and again when one is taken.
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { SessionPerson } from '@hawser/contract/sessions'
import type { ClaimAnswer, DetachedSession } from '../../domain/sessions/detached-sessions.ts'
import type { SessionLogin } from '../../domain/sessions/revocation.ts'
import type { TunnelDevice } from '../../tunnel/tunnel.ts'
import { identityOf } from './held.ts'
import { restore, type RestoreParts } from './restore.ts'

afterEach(() => void vi.useRealTimers())

const unknown = { kind: 'unknown', id: '', name: '' } as unknown as SessionPerson
const olga = { kind: 'user', id: 'olga', name: 'olga' } as unknown as SessionPerson

function place(person: SessionPerson) {
  const session = { uid: 'one', person, isHeld: false, standing: 'operator 1' } as unknown as DetachedSession
  const state = {
    sessions: [session],
    may: true,
    taken: 0,
    rights: async () => state.may,
    found: Promise.resolve(),
  }
  const asked: SessionLogin[] = []
  const here = { uid: 'one' }
  const open = new Map<string, object>()
  const parts = {
    open,
    clock: Date,
    held: { find: () => here },
    async mayBeHeld(login: SessionLogin) {
      asked.push(login)
      return state.rights()
    },
    detached: { elsewhere: async () => state.sessions },
    logins: {
      async find() {
        state.taken += 1
        await state.found
        return undefined
      },
    },
  } as unknown as RestoreParts
  const claim = { tenant_id: 't', device_uid: 'd', username: 'root', identity: identityOf(person, undefined) }
  const { elsewhere } = restore(parts)
  const offers = async (change: Partial<typeof claim> = {}) => elsewhere({ ...claim, ...change }, person)
  return { state, asked, open, here, held: { ...session, isHeld: true }, offers }
}
const by = { source: '192.0.2.1', via: 'ssh' } as const

test('among people who share a password only a held session is offered', async () => {
  const { state, held, offers } = place(unknown)
  expect(await offers()).toEqual([])
  state.sessions = [held]
  expect(await offers()).toHaveLength(1)
})

test('a known person is offered their live sessions, too', async () => {
  expect(await place(olga).offers()).toHaveLength(1)
})

test('a session whose client came back while the question stood is not taken', async () => {
  const { state, held, offers } = place(unknown)
  state.sessions = [held]
  const [offer] = await offers()
  state.sessions = [{ ...held, isHeld: false }]
  expect(await offer!.take(by)).toBeUndefined()
  expect(state.taken).toBe(0)
})

test('a right that ended while the question stood is asked again', async () => {
  const { state, offers } = place(olga)
  const [offer] = await offers()
  state.may = false
  expect(await offer!.take(by)).toBeUndefined()
  expect(state.taken).toBe(0)
  state.may = true
  await offer!.take(by)
  expect(state.taken).toBe(1)
})

test('what another person left, with the same account or another key, is not offered', async () => {
  const { state, held, offers } = place(unknown)
  state.sessions = [held, { ...held, uid: 'two', fingerprint: 'SHA256:other' }]
  expect((await offers()).map(({ uid }) => uid)).toEqual(['one'])
  expect((await offers({ identity: 'key SHA256:other' })).map(({ uid }) => uid)).toEqual(['two'])
  expect(await offers({ identity: 'key SHA256:third' })).toEqual([])
})

test('rights are those of the beginning, of a record that is open; without an answer nothing is offered', async () => {
  const { state, asked, offers } = place(olga)
  await offers()
  expect(asked).toMatchObject([{ standing: 'operator 1', restored: 'one', username: 'root' }])
  state.rights = async () => Promise.reject(new Error('The database is away.'))
  expect(await offers()).toEqual([])
})

test('a session that came here while the question stood is not taken over again', async () => {
  const { state, open, here, offers } = place(olga)
  const [offer] = await offers()
  open.set('one', {})
  expect(await offer!.take(by)).toBe(here)
  expect(state.taken).toBe(0)
})

test('a session that is asked for twice is taken over once at a time: an agent gives it to the last', async () => {
  const { state, offers } = place(olga)
  const [offer] = await offers()
  const { promise, resolve } = Promise.withResolvers<void>()
  state.found = promise
  const both = [offer!.take(by), offer!.take(by)]
  await new Promise(setImmediate)
  expect(state.taken).toBe(1)
  resolve()
  await Promise.all(both)
  expect(state.taken).toBe(2)
})

describe('what a device reports', () => {
  const device = { uid: 'd', tenant_id: 't' } as TunnelDevice

  /** A node whose devices report terminals that are elsewhere, until the answer changes. */
  function node() {
    vi.useFakeTimers()
    const claims: string[] = []
    const state = { answer: async (): Promise<ClaimAnswer> => ({ state: 'elsewhere' }) }
    const restored = restore({
      open: new Map(),
      clock: Date,
      log: new Proxy({}, { get: () => () => undefined }),
      logins: { find: async () => ({ device }) },
      detached: {
        async claim(_: object, uid: string) {
          claims.push(uid)
          return state.answer()
        },
      },
    } as unknown as RestoreParts)
    const settled = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(0))
    return { claims, state, restored, settled }
  }

  test('is looked for again, after a longer pause each time, until it is found', async () => {
    const { claims, state, restored } = node()
    restored.reported(device, ['one'])
    const seconds: number[] = []
    for (let second = 1; second <= 200; second += 1) {
      const before = claims.length
      await vi.advanceTimersByTimeAsync(1_000)
      if (second > 1 && claims.length > before) seconds.push(second)
      if (second === 120) state.answer = async () => undefined
    }
    expect(seconds).toEqual([2, 6, 14, 30, 62, 122])
  })

  test('is not looked for after the device has left, or the server stops', async () => {
    const { claims, restored, settled } = node()
    restored.reported(device, ['one'])
    await settled()
    restored.left(device.uid)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(claims).toEqual(['one'])
    const stopping = node()
    stopping.restored.reported(device, ['one'])
    await stopping.settled()
    stopping.restored.stop()
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(stopping.claims).toEqual(['one'])
  })

  test('is looked up so often in a minute, however much it is', async () => {
    const { claims, restored } = node()
    const many = Array.from({ length: 500 }, (_, at) => `session ${at}`)
    restored.reported(device, many)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(claims).toHaveLength(100)
  })

  test('keeps a login waiting for a moment, and not for ever', async () => {
    const { state, restored, settled } = node()
    expect(restored.pending(device.uid)).toBeUndefined()
    state.answer = async () => new Promise(() => undefined)
    restored.reported(device, ['one'])
    let isOver = false
    void restored.pending(device.uid)!.then(() => (isOver = true))
    await vi.advanceTimersByTimeAsync(4_999)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await settled()
    expect(isOver).toBe(true)
  })

  test('is asked of its agent once at a time', async () => {
    const { claims, state, restored, settled } = node()
    const answer = Promise.withResolvers<ClaimAnswer>()
    state.answer = async () => answer.promise
    restored.reported(device, ['one'])
    await settled()
    restored.reported(device, ['one'])
    await settled()
    expect(claims).toEqual(['one'])
    answer.resolve(undefined)
  })
})
