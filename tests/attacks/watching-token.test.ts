// Whoever reads the log of a proxy, or a browser's history, finds the address of a session that somebody
// watched. It held the sign-in of that person, good for 72 hours and for everything. An address has a ticket
// now: for one session, once, for half a minute; and the token in an address is no credential any more.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket } from '@hawser/mux'
import { sessionLimits } from '@hawser/contract/limits'
import { apiOf, sharedQuarters, terminal } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters()

const status = async (uid: string, query: string): Promise<number | undefined> =>
  dialWebSocket(`${quarters().service.url.replace('http', 'ws')}/api/sessions/${uid}/live${query}`).then(
    (socket) => {
      socket.terminate()
      return 101
    },
    (error: { status?: number }) => error.status,
  )

/** A session that is recorded and goes on, and who may watch it. */
async function going() {
  const [shell, uid] = await terminal(quarters())
  const owner = await apiOf(quarters(), 'owner')
  shell.type('echo moor$((1+1))ed\r')
  await shell.until('moor2ed')
  const ticket = async (api = owner) => (await api.sessions.ticket({ params: { uid } })).body.token
  await eventually(async () => expect(await status(uid, `?ticket=${await ticket()}`)).toBe(101))
  return { shell, uid, owner, ticket }
}

test('the token of a sign-in in the address opens nothing', async () => {
  const { world } = quarters()
  const { shell, uid } = await going()
  using _ = shell
  for (const person of ['owner', 'administrator'] as const)
    expect(await status(uid, `?token=${await world.token(person)}`)).toBe(401)
  expect(await status(uid, `?ticket=${await world.token('owner')}`)).toBe(401)
})

test('a ticket is good once, for its session, and not for long', async () => {
  const { service } = quarters()
  const { shell, uid, ticket } = await going()
  using _ = shell
  const one = await ticket()
  expect(await status(sample.session, `?ticket=${one}`)).toBe(401)
  expect(await status(uid, `?ticket=${one}`)).toBe(101)
  expect(await status(uid, `?ticket=${one}`)).toBe(401)
  // Written otherwise, it is the same one.
  expect(await status(uid, `?ticket=${one}%3D`)).toBe(401)
  const late = await ticket()
  service.clock.forward(31_000)
  expect(await status(uid, `?ticket=${late}`)).toBe(401)
  expect(await status(uid, `?ticket=${(await ticket()).slice(0, -2)}AA`)).toBe(401)
  expect(await status(uid, '?ticket=')).toBe(401)
})

test('nobody has more than twenty tickets that were not used, whatever others have', async () => {
  const { service } = quarters()
  const { shell, uid, ticket } = await going()
  using _ = shell
  service.clock.forward(31_000)
  const asked = await Promise.allSettled(Array.from({ length: 30 }, () => ticket()))
  const tickets = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  expect(tickets).toHaveLength(20)
  await expect(ticket()).rejects.toMatchObject({ status: 429 })
  const other = await ticket(await apiOf(quarters(), 'administrator'))
  expect(await status(uid, `?ticket=${other}`)).toBe(101)
  // One that is used makes room for another.
  expect(await status(uid, `?ticket=${tickets[0]}`)).toBe(101)
  await ticket()
  await expect(ticket()).rejects.toMatchObject({ status: 429 })
  service.clock.forward(31_000)
  await ticket()
})

test('a ticket is given to those who may play the recording, and dies with their sign-in', async () => {
  const { service } = quarters()
  const { shell, uid, ticket } = await going()
  using _ = shell
  for (const person of ['operator', 'observer'] as const)
    await expect(ticket(await apiOf(quarters(), person))).rejects.toMatchObject({ status: 403 })
  await expect(ticket(await apiOf(quarters(), 'stranger'))).rejects.toMatchObject({ status: 404 })
  await expect(ticket(service.api({ apiKey: sample.apiKey }))).rejects.toMatchObject({ status: 403 })
  const given = await ticket(await apiOf(quarters(), 'administrator'))
  await service.rooms.database.db
    .updateTable('users')
    .set({ epoch: 2 })
    .where('id', '=', sample.administrator.id)
    .execute()
  expect(await status(uid, `?ticket=${given}`)).toBe(401)
})

test('a ticket opens nothing once the role of its holder is too low', async () => {
  const { namespaces } = quarters().service.rooms.stores
  const { shell, uid, ticket } = await going()
  using _ = shell
  type Held = 'administrator' | 'operator'
  const { epoch } = (await namespaces.member(sample.tenant, sample.operator.id))!
  const change = async (before: Held, role: Held) =>
    namespaces.saveMember(sample.tenant, sample.operator.id, before, { role, epoch })
  await change('operator', 'administrator')
  const oskar = await apiOf(quarters(), 'operator')
  const [first, second] = [await ticket(oskar), await ticket(oskar)]
  expect(await status(uid, `?ticket=${first}`)).toBe(101)
  await change('administrator', 'operator')
  expect(await status(uid, `?ticket=${second}`)).toBe(403)
})

test('news of others ask nobody for a viewer, and a database that is away shows nobody out', async () => {
  const { service } = quarters()
  const { shell, uid, ticket } = await going()
  using _ = shell
  const { stores, bus } = service.rooms
  const looked = vi.spyOn(stores.callers, 'user')
  const address = `${service.url.replace('http', 'ws')}/api/sessions/${uid}/live?ticket=${await ticket()}`
  looked.mockClear()
  const socket = await dialWebSocket(address)
  // At the door, and once the viewer would hear of a change.
  await eventually(() => expect(looked).toHaveBeenCalledTimes(2))
  looked.mockClear()
  let closed = false
  socket.once('close', () => (closed = true)).resume()
  const own = { tenant_id: sample.tenant, user_id: sample.owner.id }
  bus.tell('member.changed', { ...own, tenant_id: sample.otherTenant })
  bus.tell('member.changed', { ...own, user_id: sample.operator.id })
  expect(looked).not.toHaveBeenCalled()
  looked.mockRejectedValueOnce(new Error('The database is away.'))
  bus.tell('member.changed', own)
  await eventually(() => expect(looked).toHaveBeenCalledOnce())
  bus.tell('member.changed', own)
  await eventually(() => expect(looked).toHaveBeenCalledTimes(2))
  await looked.mock.results[1]?.value
  looked.mockRestore()
  expect([closed, socket.readyState]).toEqual([false, socket.OPEN])
  socket.terminate()
})

test('a namespace has sixty-four live views at a time, and a place that is left is free again', async () => {
  const sessions = [await going(), await going(), await going(), await going(), await going()]
  const live = ({ uid, ticket }: (typeof sessions)[number]) =>
    ticket().then((token) =>
      dialWebSocket(
        `${quarters().service.url.replace('http', 'ws')}/api/sessions/${uid}/live?ticket=${token}`,
      ),
    )
  const open: { terminate(): void }[] = []
  const refusals: unknown[] = []
  try {
    // A recording has sixteen viewers, so that several are needed.
    for (let number = 0; number < 70; number++)
      await live(sessions[number % 5]!).then(
        (socket) => open.push(socket),
        (error: { status?: number }) => refusals.push(error.status),
      )
    // Those that looked whether the session goes on may have been there still.
    expect(open.length).toBeGreaterThan(55)
    expect(open.length).toBeLessThanOrEqual(sessionLimits.views.max)
    expect(new Set(refusals)).toEqual(new Set([429]))
    // Those who come to type have places of their own.
    const { uid } = sessions[0]!
    const { token } = (await (await apiOf(quarters(), 'operator')).sessions.join({ params: { uid } })).body
    expect(await status(uid, `?ticket=${token}`)).toBe(101)
    for (const socket of open.splice(0)) socket.terminate()
    await eventually(async () => void open.push(await live(sessions[0]!)))
  } finally {
    for (const socket of open) socket.terminate()
    for (const { shell } of sessions) shell[Symbol.dispose]()
  }
})
