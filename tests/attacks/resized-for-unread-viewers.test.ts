// Viewers of a live session read nothing, while its person changes the size of the terminal all the time. A message
// about a size is 45 bytes on the wire and 300 in memory, and none of them was counted: 15 viewers took half a GiB in
// 45 seconds. A viewer stayed for ever by sending a byte now and then, which passed for an answer to a ping.
import type { IncomingMessage } from 'node:http'
import { duplexPair } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { acceptWebSocket, keepalive } from '@hawser/mux'
import { viewerAt } from '../../server/src/http/visit.ts'
import { acceptMessageSocket } from '../../server/src/http/message-socket.ts'
import { audience, slow, type Audience, type Viewer } from '../../server/src/recording/live.ts'
import type { TerminalScreen } from '../../server/src/recording/terminal-screen.ts'
import { eventually } from '../harness/eventually.ts'
import { held_bytes, mib } from './held.ts'
import { turns, wsBinary } from './mux-device.ts'

const request = {
  method: 'GET',
  headers: {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  },
} as unknown as IncomingMessage

/** Our end of a WebSocket, and the line to it, which nobody reads. */
async function unread() {
  const [line, socket] = duplexPair()
  line.on('error', () => undefined)
  return { line, socket: await acceptWebSocket(request, socket, Buffer.alloc(0)) }
}

/** A screen that is drawn by this. */
function screen(redraw: () => Promise<Buffer>): () => TerminalScreen {
  const one = { size: { width: 80, height: 24 }, redraw, fork: () => one, [Symbol.dispose]: () => undefined }
  return () => one as unknown as TerminalScreen
}
const empty = Buffer.alloc(0)
const sizes = 200_000

function resizeOften(all: Pick<Audience, 'resize'>): void {
  for (let count = 0; count < sizes; count++) all.resize({ width: 80 + (count % 2), height: 24 })
}

test('200,000 sizes for a viewer who reads nothing hold no more than the bound, and end the view', async () => {
  const [unread, socket] = duplexPair()
  unread.on('error', () => undefined)
  const line = await acceptMessageSocket({ request, socket, head: Buffer.alloc(0) })
  const shown = viewerAt(line)
  const said: string[] = []
  const all = audience(screen(async () => empty))
  await all.join({
    ...shown,
    end(message) {
      said.push(message)
      shown.end(message)
    },
  })
  const before = await held_bytes()
  resizeOften(all)
  expect(said).toEqual([slow])
  expect((await held_bytes()) - before).toBeLessThan(12 * mib)
  line.terminate()
})

test('200,000 sizes for a viewer whose screen is being drawn hold one size', async () => {
  const drawn = Promise.withResolvers<Buffer>()
  const drawing = vi.fn<() => Promise<Buffer>>(async () => drawn.promise)
  const all = audience(screen(drawing))
  const seen: unknown[] = []
  const viewer: Viewer = {
    screen: () => void seen.push('screen'),
    output: (bytes) => void seen.push(String(bytes)),
    resize: ({ width }) => void seen.push(width),
    end: (message) => void seen.push(message),
    waiting: () => 0,
  }
  const joined = all.join(viewer)
  await eventually(() => expect(drawing).toHaveBeenCalledOnce())
  all.output(Buffer.from('a'))
  const before = await held_bytes()
  resizeOften(all)
  expect((await held_bytes()) - before).toBeLessThan(mib)
  all.output(Buffer.from('b'))
  drawn.resolve(empty)
  await joined
  // The size that counted when the output came is told before it.
  expect(seen).toEqual(['screen', 'a', 81, 'b'])
})

test('who says something all the time and never answers a ping is given up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { line, socket } = await unread()
    const heard = vi.fn<() => void>()
    const closed = vi.fn<() => void>()
    socket.on('message', heard).on('close', closed).resume()
    keepalive(socket, { every_ms: 30_000, timeout_ms: 15_000, mustAnswer_ms: 300_000 })
    let said = 0
    while (said < 200 && closed.mock.calls.length === 0) {
      line.write(wsBinary(Buffer.from('x')))
      said += 1
      await turns(4)
      vi.advanceTimersByTime(5_000)
    }
    // It was heard, so that a busy peer is not given up for one late answer.
    expect(heard.mock.calls.length).toBeGreaterThan(20)
    expect(closed).toHaveBeenCalledOnce()
  } finally {
    vi.useRealTimers()
  }
})
