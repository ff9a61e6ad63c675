// A device without an agent whose connection is only half there: its ssh is stopped in mid-air, so that
// nothing is closed and nothing is answered. The gateway finds out by asking, the device is offline then, and
// is back when a new connection is.
import { expect, test, vi } from 'vitest'
import { openHarbour, opensshMachine, password } from '../clients/agentless.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 150_000)

test('a connection that does not answer any more is given up, and a new one takes its place', async () => {
  await using harbour = await openHarbour()
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  line.child.kill('SIGSTOP')
  await inTime(async () => expect((await harbour.find(machine))?.online).toBe(false))
  await using again = harbour.join(machine)
  expect(await harbour.arrived(machine)).toMatchObject({ uid: device.uid, status: 'accepted' })
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect(again.child.exitCode).toBe(null)
})
