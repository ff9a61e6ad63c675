// What devices use of their link shows by day, in the interface and the command line: of our own agent, of
// agents of the field over both versions of the tunnel, and of a device without an agent.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { opensshMachine, openHarbour } from './agentless.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
const today = () => new Date().toISOString().slice(0, 10)
const days = async (uid: string) =>
  (await way.owner.devices.traffic({ params: { uid }, query: {} })).body.days
const megabyte = 1_000_000

test('bytes of sessions are counted apart from those of an idle device', async () => {
  const { uid } = way.agent
  const before = await days(uid)
  expect(before).toMatchObject([{ day: today(), sessions: { received: 0, sent: 0 } }])
  // The upgrade was before; its proof was the first to cross.
  expect(before[0]?.idle.sent).toBeGreaterThan(100)
  expect(before[0]?.idle.received).toBeGreaterThan(100)
  expect((await way.ssh(`head -c ${megabyte} /dev/urandom`)).status).toBe(0)
  const [after] = await days(uid)
  expect(after?.sessions.sent).toBeGreaterThan(megabyte)
  expect(after?.sessions.sent).toBeLessThan(1.2 * megabyte)
  expect(after?.sessions.received).toBeGreaterThan(1_000)
  expect(after?.sessions.received).toBeLessThan(megabyte / 4)
  expect(after?.idle.sent).toBeLessThan(50_000)
})

test.each([1, 2] as const)('an agent of the field, version %i', async (version) => {
  await using agent = await way.oldAgent(version)
  const name = (await way.owner.devices.get({ params: { uid: agent.uid } })).body.name
  expect(
    (await way.ssh(`cat > /dev/null`, { device: name, user: 'pilot', input: Buffer.alloc(megabyte, 7) }))
      .status,
  ).toBe(0)
  const [day] = await days(agent.uid)
  expect(day?.sessions.received).toBeGreaterThan(megabyte)
  expect(day?.sessions.received).toBeLessThan(1.2 * megabyte)
  expect(day?.idle.received).toBeLessThan(50_000)
})

test('a device without an agent', async () => {
  await using harbour = await openHarbour()
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  machine.authorize((await harbour.owner.enrolmentKeys.loginKey()).body.public_key)
  expect((await harbour.ssh(device.name, `head -c ${megabyte} /dev/urandom`)).status).toBe(0)
  const { body } = await harbour.owner.devices.traffic({ params: { uid: device.uid }, query: {} })
  expect(body.days[0]?.sessions.sent).toBeGreaterThan(megabyte)
  expect(body.days[0]?.idle.sent).toBeLessThan(megabyte / 4)
})

test('sums are written late and once, whatever a device does, and survive the server', async () => {
  const { uid } = way.agent
  const { traffic, stores } = way.service.rooms
  const written = () => stores.of(sample.tenant).traffic.days(uid, today())
  await traffic.flush(true)
  const before = await written()
  expect((await way.ssh('true')).status).toBe(0)
  // Little is not worth a write, and is shown all the same.
  await traffic.flush()
  expect(await written()).toEqual(before)
  await eventually(async () =>
    expect((await days(uid))[0]?.sessions.sent).toBeGreaterThan(before[0]?.session_sent ?? 0),
  )
  way.service.clock.forward(3_600_000)
  await traffic.flush()
  expect((await written())[0]?.session_sent).toBeGreaterThan(before[0]?.session_sent ?? 0)
})

test('a stranger’s device, and days beyond what is kept, are refused', async () => {
  const stranger = way.service.api({ token: await way.world.token('stranger') })
  const asked = (query: { days: number }) =>
    way.owner.devices.traffic({ params: { uid: way.agent.uid }, query })
  await expect(stranger.devices.traffic({ params: { uid: way.agent.uid }, query: {} })).rejects.toMatchObject(
    { status: 404 },
  )
  for (const days of [0, 401, 1e9, -1, 1.5])
    await expect(asked({ days })).rejects.toMatchObject({ status: 400 })
})
