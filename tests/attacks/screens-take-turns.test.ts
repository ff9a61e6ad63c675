// The terminals of one namespace write output that is expensive to draw, and its members ask for the screens
// of expensive recordings. The frame of somebody else, who came back to a session, waited for all of them
// (8.7 s), and windows of recordings took 8 to 18 s of the server's own thread. Namespaces take turns on the
// threads now. The test counts what is done before the other one's turn, and processor time of this thread.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { terminalScreen, screens_bytes } from '../../server/src/recording/terminal-screen.ts'
import { fairShare } from '../../server/src/kit/fair-share.ts'
import { screenThread, type ScreenThread } from '../../server/src/recording/screen-thread.ts'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { sharedPlace } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000 })

const place = sharedPlace()
const esc = '\u001b'
const expensive = `${esc}[H${`${esc}M`.repeat(5_000)}`

test('frames of another namespace come between those of one that has many', async () => {
  await using thread = screenThread()
  const memory = fairShare(screens_bytes)
  const size = { width: 500, height: 200 }
  const of = (tenant_id: string) => terminalScreen(size, { tenant_id, thread, memory })
  let made = 0
  const many = Array.from({ length: 8 }, () => {
    const one = of('many')
    one.show(Buffer.from(expensive))
    return one.settle().then(() => made++)
  })
  using other = of('few')
  other.show(Buffer.from('petrel'))
  const drawn = await other.redraw({ width: 80, height: 24 }, false)
  expect(drawn.toString()).toContain('petrel')
  expect(made).toBeLessThanOrEqual(2)

  // Within the namespace, whoever waits for a terminal comes before the others.
  using own = of('many')
  own.show(Buffer.from('gannet'))
  expect((await own.redraw({ width: 80, height: 24 }, false)).toString()).toContain('gannet')
  expect(made).toBeLessThanOrEqual(4)
  await Promise.all(many)
})

test('what nobody needs any more is not drawn', async () => {
  await using thread = screenThread()
  const memory = fairShare(screens_bytes)
  const frames = vi.fn<ScreenThread['frame']>(thread.frame)
  const size = { width: 500, height: 200 }
  const of = () => terminalScreen(size, { tenant_id: 'one', thread: { ...thread, frame: frames }, memory })
  const [first, second] = [of(), of()]
  first.show(Buffer.from(expensive))
  second.show(Buffer.from(expensive))
  const settled = [first.settle(), second.settle()]
  await nextTurn()
  second[Symbol.dispose]()
  await Promise.all(settled)
  await expect(frames.mock.results[1]?.value).rejects.toThrow('no longer needed')
  await expect(frames.mock.results[0]?.value).resolves.toMatchObject({ size })
  expect(memory.held_bytes).toBe(first.held_bytes)
})

test('the screens of recordings are drawn on another thread, in turns', async () => {
  const size = { width: 1_000, height: 500 }
  const uid = await recordSession(place.rooms, {
    size,
    lines: [expensive.repeat(8), `${esc}[r${esc}[Hfulmar`],
  })
  const other = await recordSession(place.rooms, {
    tenant: sample.otherTenant,
    device: 'e'.repeat(64),
    lines: ['gannet\r\n'],
  })
  const window = () => place.owner.recordings.window({ params: { uid, channel: '0' }, query: { at: 60_000 } })
  const first = await window()
  expect(Buffer.from(first.body.screen, 'base64').toString()).toContain('fulmar')
  const before = { here: process.threadCpuUsage(), all: process.cpuUsage() }
  for (let round = 0; round < 3; round++) await window()
  const [here, all] = [process.threadCpuUsage(before.here), process.cpuUsage(before.all)]
  expect(here.user + here.system).toBeLessThan((all.user + all.system) / 2)

  const left = new AbortController()
  const statuses: number[] = []
  const headers = { authorization: `Bearer ${await place.world.token('owner')}` }
  const many = Array.from({ length: 60 }, async () => {
    const url = `${place.url}/api/sessions/${uid}/recording/0?at=60000`
    const answer = await fetch(url, { headers, signal: left.signal }).catch(() => undefined)
    if (answer) statuses.push(answer.status)
    await answer?.arrayBuffer().catch(() => undefined)
  })
  await eventually(() => expect(statuses).toContain(429))
  const theirs = await place.stranger.recordings.window({
    params: { uid: other, channel: '0' },
    query: { at: 60_000 },
  })
  expect(Buffer.from(theirs.body.screen, 'base64').toString()).toContain('gannet')
  // The other namespace did not wait for all of them; and those who leave now leave nothing to do.
  expect(statuses.length).toBeLessThan(many.length)
  left.abort()
  await Promise.all(many)
  expect((await window()).status).toBe(200)
})
