// A rogue agent continues the stream of a session and breaks it at once, in a loop. The loop must cost little and
// end; and the bytes that one namespace makes the server keep must leave room for those of others. An agent on
// a bad link, whose carriers break as often and carry a little each, loses nothing.
import { once } from 'node:events'
import { duplexPair, type Duplex } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import type { ResumeRequest } from '@hawser/contract/tunnel'
import { multistream, ResumableMemory, type ResumableStream, resumableWindow_bytes } from '@hawser/mux'
import { resumableStreams } from '../../agent/src/resumable-streams.ts'
import { openResumable } from '../../server/src/tunnel/resumable.ts'
import type { RemoteTunnel } from '../../server/src/tunnel/tunnel.ts'
import { turns } from './mux-device.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(() => vi.useRealTimers())

/** More are not counted: they say enough. */
const mostCounted = 2_000

interface Place {
  readonly stream: ResumableStream
  /** How often the agent was asked to continue. */
  resumes(): number
  /** The agent's end of the present carrier. */
  carrier(): Duplex
}

interface PlaceOptions {
  readonly memory?: ResumableMemory
  readonly tenant_id?: string
  readonly serve?: (stream: Duplex) => void
  /** Continues the stream in place of a real agent. */
  readonly resume?: (carrier: Duplex) => void
}

/** The server's end of a stream to an agent, which echoes. */
async function place(options: PlaceOptions = {}): Promise<Place> {
  const { memory = new ResumableMemory(2 ** 24), tenant_id = 'harbour' } = options
  const serve = options.serve ?? ((stream: Duplex) => void stream.on('data', (bytes) => stream.write(bytes)))
  const agent = resumableStreams(async (stream) => {
    stream.on('error', () => undefined)
    serve(stream)
    await new Promise<void>((resolve) => stream.once('close', resolve))
  }, new AbortController().signal)
  const tunnelLives = { check: () => undefined }
  let count = 0
  let carrier: Duplex | undefined
  const tunnel: Pick<RemoteTunnel, 'carry' | 'features'> = {
    features: new Set(['resume']),
    async carry(protocol, head) {
      const [near, far] = duplexPair()
      for (const end of [near, far]) end.on('error', () => undefined)
      carrier = far
      // The ends of a pair do not close each other.
      far.once('close', () => near.destroy())
      near.once('close', () => far.destroy())
      far.write(multistream.agreement(protocol))
      const asked = JSON.parse(head) as ResumeRequest
      if (!('received' in asked)) {
        void agent.open(asked, far, tunnelLives).catch(() => undefined)
        return near
      }
      count += 1
      if (count > mostCounted) return near
      if (options.resume) options.resume(far)
      else agent.resume(asked, far, tunnelLives)
      return near
    },
  }
  const stream = await openResumable(
    {
      arrivals: { listen: () => ({ [Symbol.dispose]: () => undefined }) },
      memory,
      left: new Set(),
      isOver: () => false,
    },
    tunnel as RemoteTunnel,
    { uid: 'rogue', tenant_id, id: 'one', grace_s: 300, findTunnel: async () => tunnel as RemoteTunnel },
    new AbortController().signal,
  )
  return { stream: stream!, resumes: () => count, carrier: () => carrier! }
}

test('an agent that continues a stream and breaks it in a loop ends it, after few attempts', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { stream, resumes, carrier } = await place({
    resume(far) {
      far.write(`${JSON.stringify({ received: 5, read: 5 })}\n`)
      far.once('data', () => far.destroy())
    },
  })
  const unsteady = vi.fn<() => void>()
  stream.once('unsteady', unsteady)
  stream.write('hello')
  await once(stream, 'data')
  carrier().destroy()
  stream.write('somebody types')
  for (let second = 0; second < 60 && !stream.destroyed; second++) {
    await turns(2_000)
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(resumes()).toBeLessThan(100)
  expect(stream.destroyed).toBe(true)
  expect(unsteady).toHaveBeenCalledOnce()
})

test('an agent whose carriers break as often, and carry a little each, loses nothing', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { stream, resumes, carrier } = await place()
  let echoed = ''
  stream.on('data', (bytes: Buffer) => (echoed += bytes.toString()))
  const words = Array.from({ length: 200 }, (_, at) => `word ${at}\n`)
  for (const word of words) {
    stream.write(word)
    const expected = echoed.length + word.length
    for (let turn = 0; turn < 1_000 && echoed.length < expected; turn++) {
      await turns(1)
      await vi.advanceTimersByTimeAsync(10)
    }
    carrier().destroy()
  }
  expect(echoed).toBe(words.join(''))
  expect(resumes()).toBeGreaterThanOrEqual(words.length - 1)
  stream.destroy()
})

test('the bytes that one namespace makes the server keep leave room for those of others', async () => {
  const memory = new ResumableMemory(16 * resumableWindow_bytes)
  // Devices whose SSH servers read nothing.
  const serve = (): void => undefined
  const hogs = await Promise.all(
    Array.from({ length: 40 }, () => place({ memory, tenant_id: 'rogue', serve })),
  )
  const chunk = Buffer.alloc(64 * 1024)
  const fill = async ({ stream }: Place): Promise<number> => {
    let written = 0
    // A write that is not taken yet says that there is no more room.
    while (written < 2 * resumableWindow_bytes) {
      const taken = await Promise.race([
        new Promise<boolean>((resolve) => void stream.write(chunk, () => resolve(true))),
        turns(50).then(() => false),
      ])
      if (!taken) break
      written += chunk.length
    }
    return written
  }
  await Promise.all(hogs.map(fill))
  const honest = await place({ memory, tenant_id: 'harbour', serve })
  expect(await fill(honest)).toBeGreaterThan(resumableWindow_bytes / 2)
  for (const { stream } of [...hogs, honest]) stream.destroy()
  expect([memory.replay_bytes, memory.unread_bytes]).toEqual([0, 0])
})
