// A stranger opens thousands of connections and sends all but the last byte of the longest body that strangers may
// send: 4,000 of them took 600 MB. Memory for bodies is shared by networks, and has a bound for all strangers together;
// signed-in people have a share of their own. Short bodies, such as those of a login, are taken in any case.
import net from 'node:net'
import { expect, test } from 'vitest'
import { turnOf, type Caller } from '../../server/src/domain/callers/callers.ts'
import { boundedCalls } from '../../server/src/http/bounded-requests.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

const kibibyte = 1024
const mebibyte = 1024 * kibibyte
/** The longest that devices.auth takes. */
const longest = 160 * kibibyte

interface Held {
  readonly socket: net.Socket
  status: string | undefined
  closed: boolean
}

function hold(source: string, framing = `content-length: ${longest}`): Held {
  const socket = net.connect(Number(new URL(place.url).port), '127.0.0.1').on('error', () => undefined)
  const held: Held = { socket, status: undefined, closed: false }
  socket.on('data', (chunk: Buffer) => (held.status ??= chunk.toString().split(' ')[1]))
  socket.on('close', () => (held.closed = true))
  socket.write(
    `POST /api/devices/auth HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${source}\r\n` +
      `content-type: application/json\r\n${framing}\r\n\r\n`,
  )
  return held
}

test.each(['content-length: 163840', 'transfer-encoding: chunked'])(
  'a network holds few unfinished bodies (%s), and others are not refused',
  async (framing) => {
    const source = framing.startsWith('c') ? '192.0.2.7' : '192.0.2.8'
    const all = Array.from({ length: 200 }, () => hold(source, framing))
    const refused = await eventually(() => {
      const some = all.filter(({ closed }) => closed)
      expect(some.length).toBeGreaterThan(30)
      return some
    })
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(['429']))
    // A body from elsewhere, and a short one of the same network.
    const elsewhere = hold('198.51.100.1')
    elsewhere.socket.write(' '.repeat(longest))
    await eventually(() => expect(elsewhere.status).toBe('400'))
    const short = hold(source, 'content-length: 2')
    short.socket.write('{}')
    await eventually(() => expect(short.status).toBe('400'))
    for (const { socket } of [...all, elsewhere, short]) socket.destroy()
    await eventually(async () => {
      const again = hold(source)
      again.socket.write(' '.repeat(longest))
      await eventually(() => expect(again.status).toBeDefined())
      again.socket.destroy()
      expect(again.status).toBe('400')
    })
  },
)

test('strangers of many networks have a bound together, and people who have signed in their own', () => {
  const calls = boundedCalls(turnOf)
  const stranger = (index: number): Caller =>
    ({ kind: 'anonymous', source: `2001:db8:${index.toString(16)}::1` }) as Caller
  let taken = 0
  for (let index = 0; index < 2_000; index += 1)
    try {
      calls.body(stranger(index), longest)
      taken += longest
    } catch {
      // Refused.
    }
  expect(taken).toBeGreaterThan(32 * mebibyte)
  expect(taken).toBeLessThanOrEqual(64 * mebibyte)
  // A token of a device proves nothing: strangers get as many as they like.
  const device = { kind: 'device', uid: 'd', tenant_id: 'one', source: '2001:db8:1::1' } as Caller
  expect(() => calls.body(device, longest)).toThrow()
  const user = (id: string): Caller => ({ kind: 'user', id, token_id: 'a.b', source: '192.0.2.1' }) as Caller
  let own = 0
  expect(() => {
    for (;;) {
      calls.body(user('u'), mebibyte)
      own += 1
    }
  }).toThrow()
  expect(own).toBeGreaterThan(8)
  calls.body(user('somebody else'), mebibyte)
  expect(calls.body(stranger(5_000), 500)).toBeUndefined()
})
