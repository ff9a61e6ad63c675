// What a data budget does to people and their real sessions: a device that a file transfer brings over its
// budget, what becomes of the recordings of its sessions, and the command line.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk } from '../../cli/test/program.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
const budgetOf = async () =>
  (await way.owner.devices.get({ params: { uid: way.agent.uid } })).body.data_budget
const over = () =>
  eventually(async () => {
    const session = await way.newest()
    expect(session.active).toBe(false)
    return session
  })

test('above a budget that says so, sessions are not recorded and say so; running ones are recorded no further', async () => {
  const { body: budget } = await way.owner.budgets.create({
    body: { device: way.agent.uid, bytes: 1_000_000, stop_recordings: true },
  })
  expect((await way.ssh('echo before', { flags: ['-tt'] })).status).toBe(0)
  expect(await over()).toMatchObject({ recorded: true, unrecorded: false })

  await using running = way.start(undefined, { flags: ['-tt'], env: { TERM: 'vt100' } })
  running.child.stdin.write("PS1='> '; echo be''gun\n")
  await running.until(/(begun)\r/)
  const { uid } = await way.newest()
  await eventually(() => expect(way.service.rooms.recordings.live(sample.tenant, uid)).toHaveLength(1))

  expect((await way.ssh('head -c 1000000 /dev/urandom')).status).toBe(0)
  await way.service.rooms.traffic.flush(true)
  expect(await budgetOf()).toMatchObject({ id: budget.id, state: 'over' })
  await eventually(() => expect(way.service.rooms.recordings.live(sample.tenant, uid)).toHaveLength(0))
  running.child.stdin.write('echo goes o""n; exit 3\n')
  await running.until(/(goes on)\r/)
  expect(await running.status).toBe(3)
  await eventually(async () =>
    expect((await way.owner.sessions.get({ params: { uid } })).body).toMatchObject({
      active: false,
      recorded: true,
      unrecorded: true,
    }),
  )
  const recorded = JSON.stringify((await way.owner.sessions.play({ params: { uid } })).body)
  expect(recorded).toContain('begun')
  expect(recorded).not.toContain('goes on')

  const after = await way.ssh('echo after', { flags: ['-tt'] })
  expect([after.status, after.stdout.toString().trim()]).toEqual([0, 'after'])
  expect(await over()).toMatchObject({ recorded: false, unrecorded: true })
  // Without a terminal there is nothing to record, so nothing was missed.
  expect((await way.ssh('echo quiet')).status).toBe(0)
  expect(await over()).toMatchObject({ recorded: false, unrecorded: false })

  await way.owner.budgets.remove({ params: { id: budget.id } })
  expect((await way.ssh('echo again', { flags: ['-tt'] })).status).toBe(0)
  expect(await over()).toMatchObject({ recorded: true, unrecorded: false })
})

test('the command line makes a budget, shows it, changes it and removes it', async () => {
  using desk = openDesk({ HAWSER_SERVER: way.service.url, HAWSER_API_KEY: sample.apiKey })
  const hawser = async (...words: string[]) => {
    const { code, stdout, stderr } = await desk.hawser(['budgets', ...words])
    expect([code, stderr]).toEqual([0, code === 0 ? stderr : ''])
    return stdout
  }
  const made = JSON.parse(
    await hawser(
      'create',
      '--device',
      way.agent.name,
      '--bytes',
      '100000000',
      '--stop-updates',
      '-o',
      'json',
    ),
  ) as { id: string; stop_updates: boolean }
  expect(made).toMatchObject({ device: way.agent.uid, stop_updates: true, stop_recordings: false })
  const line = new RegExp(`^${made.id} +${way.agent.name} .* 100000000 +under`, 'm')
  expect(await hawser('list')).toMatch(line)
  await hawser('update', made.id, '--bytes', '1')
  await way.service.rooms.traffic.flush(true)
  expect(await hawser('list')).toMatch(/ 1 +over /)
  await hawser('remove', made.id)
  expect(await hawser('list')).not.toContain(way.agent.name)
})
