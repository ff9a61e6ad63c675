// A page of somebody else opens the WebSocket of a live session in the browser of its visitor, with a ticket
// that it came by: only the terminal's socket asked which page was behind it. Both ask now, and a refused
// page does not use up the ticket. Programs, which have no page, are served as before.
import { expect, test } from 'vitest'
import { dialWebSocket } from '@hawser/mux'
import { apiOf, sharedQuarters, terminal } from '../clients/web.ts'
import { until } from '../harness/eventually.ts'

const quarters = sharedQuarters()

const status = async (uid: string, query: string, headers: Record<string, string>) =>
  dialWebSocket(`${quarters().service.url.replace('http', 'ws')}/api/sessions/${uid}/live${query}`, {
    headers,
  }).then(
    (socket) => {
      socket.terminate()
      return 101
    },
    (error: { status?: number }) => error.status,
  )

/** A session that is recorded, and tickets to watch it and to type in it. */
async function going() {
  const [shell, uid] = await terminal(quarters())
  shell.type('echo moor$((1+1))ed\r')
  await shell.until('moor2ed')
  const [owner, operator] = [await apiOf(quarters(), 'owner'), await apiOf(quarters(), 'operator')]
  const watch = async () => (await owner.sessions.ticket({ params: { uid } })).body.token
  const join = async () => (await operator.sessions.join({ params: { uid } })).body.token
  await until(async () => (await status(uid, `?ticket=${await watch()}`, {})) === 101)
  return { shell, uid, watch, join }
}

const strangePages = ['http://evil.example', 'http://127.0.0.1:1', 'https://127.0.0.1', 'null', '://', '']

test('a page of somebody else is refused, and the ticket is still good for ours', async () => {
  const { shell, uid, watch, join } = await going()
  using _ = shell
  for (const ticket of [await watch(), await join()]) {
    for (const origin of strangePages)
      expect([origin, await status(uid, `?ticket=${ticket}`, { origin })]).toEqual([origin, 403])
    expect(await status(uid, `?ticket=${ticket}`, { origin: quarters().service.url })).toBe(101)
  }
  expect(await status(uid, `?ticket=${await watch()}`, { origin: 'http://hawser.test' })).toBe(101)
})

test('a page of somebody else is refused whatever it comes with', async () => {
  const { shell, uid } = await going()
  using _ = shell
  const authorization = `Bearer ${await quarters().world.token('owner')}`
  for (const query of ['', '?join']) {
    expect(await status(uid, query, { authorization, origin: 'http://evil.example' })).toBe(403)
    expect(await status(uid, query, { authorization })).toBe(101)
  }
})
