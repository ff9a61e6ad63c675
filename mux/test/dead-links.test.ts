// A link that swallows everything and closes nothing is noticed by whoever uses it, within ten seconds of the first
// byte that gets lost, whatever went on before. Time is simulated; the line is not.
import { Transform, duplexPair, type Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ConnectionLost, liveness, openMux, ResumableStream } from '../src/index.ts'
import { accept, turns } from './pairs.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** How long the timers of both layers may take, one after the other. */
const most_ms = 10_000
const step_ms = 10
/** How long bytes are on their way. */
const way_ms = 50

async function pass(time_ms: number): Promise<void> {
  for (let passed = 0; passed < time_ms; passed += step_ms) {
    vi.advanceTimersByTime(Math.min(step_ms, time_ms - passed))
    await turns()
  }
}

interface Link {
  readonly near: Duplex
  readonly far: Duplex
  /** From now on nothing arrives. */
  silence(): void
}

function link(): Link {
  let isDead = false
  const wire = (): Transform =>
    new Transform({
      transform: (chunk, _, done) => void setTimeout(() => (isDead ? done() : done(null, chunk)), way_ms),
    })
  const [near, nearWire] = duplexPair()
  const [far, farWire] = duplexPair()
  nearWire.pipe(wire()).pipe(farWire)
  farWire.pipe(wire()).pipe(nearWire)
  return { near, far, silence: () => void (isDead = true) }
}

/** A resumable stream through a session, as one to a device is. */
async function use({ near, far }: Link) {
  const mux = openMux(near, { role: 'client' })
  const peer = openMux(far, { role: 'server' })
  const alive = liveness(near, mux)
  const stream = new ResumableStream({ grace_ms: 60_000, onStalled: () => alive.check() })
  stream.attach(mux.open(Buffer.from('x')))
  await pass(2 * way_ms)
  const carrier = await accept(peer)
  carrier.read(1)
  const other = new ResumableStream({ grace_ms: 60_000 })
  other.attach(carrier)
  let lost: Error | undefined
  void mux.ended.then((error) => (lost = error))
  return { stream, other, lost: () => lost, close: () => [mux.close(), peer.close()] }
}

test.each([0, 10, 700, 2_500, 4_400, 4_990, 5_000, 5_010, 9_000])(
  'bytes that follow others after %i ms, which arrived',
  async (later_ms) => {
    const line = link()
    const used = await use(line)
    used.other.resume()
    used.stream.write('arrives')
    await pass(Math.max(600, later_ms))
    line.silence()
    used.stream.write('is lost')
    // The first question comes no sooner than after half of it.
    await pass(most_ms / 2 - 100)
    expect(used.lost()).toBeUndefined()
    await pass(most_ms / 2 + 200)
    expect(used.lost()).toBeInstanceOf(ConnectionLost)
    used.close()
  },
)

test.each([100, 2_500, 4_900, 5_200, 7_500, 9_900])(
  'bytes that follow others after %i ms, which nobody there reads',
  async (later_ms) => {
    const line = link()
    const used = await use(line)
    used.stream.write('arrives')
    await pass(later_ms)
    line.silence()
    used.stream.write('is lost')
    await pass(most_ms + 100)
    expect(used.lost()).toBeInstanceOf(ConnectionLost)
    used.close()
  },
)

test('a peer that answers, but does not read, stays', async () => {
  const used = await use(link())
  used.stream.write('arrives')
  await pass(60_000)
  expect(used.lost()).toBeUndefined()
  used.close()
})
