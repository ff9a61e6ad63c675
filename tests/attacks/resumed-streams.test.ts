// Streams that outlive their tunnel, attacked at the agent: somebody who knows the id of a stream and not its
// secret, who counts bytes that were never sent, who opens one under the id of another, or far too many. A
// stranger learns nothing, and the stream of somebody else goes on.
import { once } from 'node:events'
import { duplexPair, type Duplex } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { mostStreams, type ResumeAnswer } from '@hawser/contract/tunnel'
import { multistream, ResumableStream, type Liveness } from '@hawser/mux'
import { resumableStreams } from '../../agent/src/resumable-streams.ts'

const secret = 'ab'.repeat(32)
const tunnel: Liveness = { check: () => undefined }
const stopping = new AbortController()
const served: Duplex[] = []
const agent = resumableStreams(async (stream, ending) => {
  served.push(stream)
  stream.on('error', () => undefined)
  stream.on('data', (bytes: Buffer) => stream.write(bytes))
  ending.addEventListener('abort', () => stream.destroy())
  await new Promise<void>((resolve) => stream.once('close', resolve))
}, stopping.signal)

/** Until the agent has dropped them. */
const open = new Set<Promise<void>>()
const track = (opening: Promise<void>): void => void open.add(opening)

afterEach(async () => {
  for (const stream of served.splice(0)) stream.destroy()
  await Promise.all(open)
  open.clear()
})

/** A stream that the gateway has opened; the agent echoes what it says. */
async function opened(id: string): Promise<ResumableStream> {
  const [near, far] = duplexPair()
  track(agent.open({ id, secret, grace_s: 300 }, far, tunnel))
  const gateway = new ResumableStream({ grace_ms: 60_000 })
  gateway.attach(near)
  await echoes(gateway, 'hello')
  return gateway
}

async function echoes(gateway: Duplex, text: string): Promise<void> {
  gateway.write(text)
  expect(String((await once(gateway, 'data'))[0])).toBe(text)
}

/** The answer to an attempt to continue; undefined when the agent drops the carrier instead. */
async function resumed(request: object): Promise<ResumeAnswer | undefined> {
  const [carrier, far] = duplexPair()
  carrier.on('error', () => undefined)
  far.on('error', () => undefined)
  // The ends of a pair do not close each other.
  far.once('close', () => carrier.destroy())
  try {
    agent.resume(request as never, far, tunnel)
    return JSON.parse(await multistream.readLine(carrier, 200)) as ResumeAnswer
  } catch {
    far.destroy()
    return undefined
  }
}

test.each([
  ['another secret', { id: 'one', secret: 'cd'.repeat(32) }],
  ['a beginning of the secret', { id: 'one', secret: 'ab' }],
  ['no secret', { id: 'one' }],
  ['a secret of another type', { id: 'one', secret: [secret] }],
  ['an id that nobody has', { id: 'two', secret }],
  ['the end of it and another secret', { id: 'one', secret: 'cd'.repeat(32), over: true }],
])('%s gets the answer of an unknown stream, and the stream goes on', async (_, request) => {
  const gateway = await opened('one')
  expect(await resumed({ received: 5, read: 5, ...request })).toEqual({ unknown: true })
  await echoes(gateway, 'still here')
  gateway.destroy()
})

test.each([
  { received: 6, read: 5 },
  { received: -1, read: -1 },
  { received: 1e300, read: 0 },
  { received: '5', read: 5 },
  {},
])('counts that cannot be (%j) end the stream instead of sending what lies beyond', async (counts) => {
  const gateway = await opened('counted')
  gateway.detach()
  await resumed({ id: 'counted', secret, ...counts })
  expect(served[0]?.destroyed).toBe(true)
  gateway.destroy()
})

test.each([
  { id: 'one', secret: 'short', grace_s: 300 },
  { id: 7, secret, grace_s: 300 },
  { id: 'other', secret, grace_s: -1 },
  { id: 'other', secret, grace_s: Infinity },
])('a head that cannot be (%j) is refused', async (head) => {
  await expect(agent.open(head as never, duplexPair()[0], tunnel)).rejects.toThrow(
    'The server opened an invalid stream.',
  )
})

test('nobody opens a second stream under the id of another, and there is an end to their number', async () => {
  const gateway = await opened('one')
  await expect(
    agent.open({ id: 'one', secret: 'cd'.repeat(32), grace_s: 300 }, duplexPair()[0], tunnel),
  ).rejects.toThrow('The server opened an invalid stream.')
  await echoes(gateway, 'still here')
  for (let at = 1; at < mostStreams; at++)
    track(agent.open({ id: `half-dead ${at}`, secret, grace_s: 300 }, duplexPair()[0], tunnel))
  await expect(
    agent.open({ id: 'one too many', secret, grace_s: 300 }, duplexPair()[0], tunnel),
  ).rejects.toThrow('Too many')
  await echoes(gateway, 'still here')
  gateway.destroy()
})
