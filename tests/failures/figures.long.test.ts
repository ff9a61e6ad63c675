// The figures that whoever runs the server lives on: each is there from the start, moves when the thing
// happens, follows the conventions of Prometheus, and takes no label from a stranger.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { version } from '@hawser/contract/version'
import { apiOf, dial, openQuarters, terminal, ticket, type Quarters } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'
import { openRaw } from './raw.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let quarters: Quarters
beforeAll(async () => {
  quarters = await openQuarters({ env: { HAWSER_METRICS_TOKEN: 'gauge' } })
})
afterAll(async () => quarters[Symbol.asyncDispose]())

async function scrape({ service }: Quarters = quarters): Promise<string> {
  const answer = await fetch(`${service.url}/metrics`, { headers: { authorization: 'Bearer gauge' } })
  expect(answer.status).toBe(200)
  return answer.text()
}

/** The value of one series, as it is written: `name{label="value"}`. */
async function figure(series: string, where: Quarters = quarters): Promise<number> {
  const line = (await scrape(where)).split('\n').find((one) => one.startsWith(`${series} `))
  expect(line, series).toBeDefined()
  return Number(line?.slice(series.length))
}

test('names and types follow the conventions, and everything is there before it happens', async () => {
  const text = await scrape()
  const types = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  )
  const ours = [...types].filter(([name]) => name.startsWith('hawser_'))
  expect(ours.length).toBeGreaterThan(20)
  for (const [name, type] of ours) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    expect(name).not.toMatch(/_(ms|milliseconds|mb|percent)$/)
    expect(text, name).toMatch(new RegExp(`^# HELP ${name} .+`, 'm'))
  }
  for (const series of [
    `hawser_build_info{version="${version}",node="${process.versions.node}",database="sqlite"} 1`,
    'hawser_logins_total{result="refused",method="",reason="firewall"} 0',
    'hawser_sign_ins_total{result="refused",method="",reason="unavailable"} 0',
    'hawser_sessions_total{type="shell"} 0',
    'hawser_recording_failures_total{session="ended"} 0',
    'hawser_recording_unwritten_bytes 0',
    'hawser_recordings_unsent 0',
    'hawser_queue_length{queue="passwords"} 0',
    'hawser_tunnels_closed_total{reason="lost"} 0',
    'hawser_database_seconds_bucket{statement="point",le="+Inf"}',
    'hawser_disk_reserve_bytes 1048576',
    'nodejs_eventloop_lag_p99_seconds',
    'process_resident_memory_bytes',
  ])
    expect(text).toContain(`\n${series}`)
})

test('devices are counted by status, and those that are online', async () => {
  expect(await figure('hawser_devices{status="accepted"}')).toBe(2)
  expect(await figure('hawser_devices{status="pending"}')).toBe(1)
  expect(await figure('hawser_devices{status="rejected"}')).toBe(0)
  expect(await figure('hawser_tunnels')).toBe(1)
  expect(await figure('hawser_tunnels_opened_total')).toBe(1)
  expect(await figure('hawser_devices_online')).toBeLessThanOrEqual(1)
})

test('logins and sessions are counted, while they go on and for good', async () => {
  const [opened] = await terminal(quarters)
  using shell = opened
  expect(await figure('hawser_sessions')).toBe(1)
  expect(await figure('hawser_sessions_held')).toBe(0)
  await eventually(async () => expect(await figure('hawser_recordings')).toBe(1))
  expect(await figure('hawser_logins_total{result="accepted",reason="",method="password"}')).toBe(1)
  shell.close(1000)
  await eventually(async () => expect(await figure('hawser_sessions')).toBe(0))
  expect(await figure('hawser_sessions_total{type="shell"}')).toBe(1)
  const [lost] = await terminal(quarters)
  lost[Symbol.dispose]()
  await eventually(async () => expect(await figure('hawser_sessions_held')).toBe(1))
  await eventually(async () => expect(await figure('hawser_sessions_held_bytes')).toBeGreaterThan(0))
  const [held] = (await (await apiOf(quarters, 'owner')).sessions.list({ query: { active: true } })).body
  await (
    await apiOf(quarters, 'owner')
  ).sessions.close({ params: { uid: held!.uid }, body: { device: held!.device_uid } })
  await eventually(async () => expect(await figure('hawser_sessions')).toBe(0))
  using refused = await dial(quarters.service, await ticket(quarters, { password: 'wrong' }))
  await refused.closed
  expect(await figure('hawser_logins_total{result="refused",method="",reason="password"}')).toBe(1)
})

test('sign-ins are counted by result and reason', async () => {
  const { service } = quarters
  const before = await figure('hawser_sign_ins_total{result="accepted",reason="",method="password"}')
  const { username, password } = sample.owner
  await service.api().users.login({ body: { username, password } })
  for (const name of ['nobody', username])
    await service
      .api()
      .users.login({ body: { username: name, password: 'wrong' } })
      .catch(() => undefined)
  expect(await figure('hawser_sign_ins_total{result="accepted",reason="",method="password"}')).toBe(
    before + 1,
  )
  expect(await figure('hawser_sign_ins_total{result="refused",method="",reason="unknown-user"}')).toBe(1)
  expect(await figure('hawser_sign_ins_total{result="refused",method="",reason="password"}')).toBe(1)
})

test('every statement of the database is timed, lists apart from the others', async () => {
  const [points, lists] = ['point', 'list'].map((one) => `hawser_database_seconds_count{statement="${one}"}`)
  const before = [await figure(points ?? ''), await figure(lists ?? '')] as const
  await (await apiOf(quarters, 'owner')).devices.list({ query: {} })
  expect(await figure(points ?? '')).toBeGreaterThan(before[0])
  expect(await figure(lists ?? '')).toBeGreaterThan(before[1])
})

test('a session that cannot be recorded is counted', async () => {
  // A low-water mark above the size of every disk: nothing is recorded.
  await using full = await openQuarters({
    env: { HAWSER_METRICS_TOKEN: 'gauge', HAWSER_DISK_LOW: '900000000' },
  })
  using refused = await dial(full.service, await ticket(full))
  await refused.closed
  expect(await figure('hawser_recording_failures_total{session="ended"}', full)).toBe(1)
  expect(await figure('hawser_disk_state', full)).toBe(1)
})

test('a stranger makes no series, whatever is sent', async () => {
  const seriesOf = (text: string): Set<string> =>
    new Set(
      text.split('\n').flatMap((line) => (line.startsWith('hawser_') ? [line.replace(/ [^ ]+$/, '')] : [])),
    )
  const { service } = quarters
  const { port } = new URL(service.url)
  const strange = async (index: number): Promise<void> => {
    await fetch(`${service.url}/made-up-${index}`).then((answer) => answer.text())
    await fetch(`${service.url}/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: `stranger-${index}`, password: 'x' }),
    }).then((answer) => answer.text())
    using raw = await openRaw(Number(port))
    raw.send(`MADEUP${index} / HTTP/1.1\r\nhost: x\r\n\r\n`)
    await raw.closed
  }
  await strange(0)
  const before = seriesOf(await scrape())
  for (let index = 1; index < 20; index += 1) await strange(index)
  const added = [...seriesOf(await scrape())].filter((series) => !before.has(series))
  // Of the requests themselves: a status that a known operation answers for the first time.
  expect(added.filter((series) => !/operation="[a-zA-Z.]+",status="\d+"/.test(series))).toEqual([])
  expect(added.join('\n')).not.toMatch(/made-up|stranger|MADEUP/)
})
