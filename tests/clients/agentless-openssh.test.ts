// A machine with nothing but OpenSSH joins by one `ssh -N -R`, waits as pending, is accepted, and is reached like any other:
// a real sshd, and real clients on both sides.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { opensshMachine, password, sharedHarbour } from './agentless.ts'

const harbour = sharedHarbour()

test('it joins as pending, is accepted, and is reached with the password of its user', async () => {
  await using machine = await opensshMachine()
  await using line = harbour.join(machine, { as: `${sample.tenant}.Boiler` })
  const device = await harbour.arrived(machine)
  expect(device).toMatchObject({
    name: 'boiler',
    status: 'pending',
    tenant_id: sample.tenant,
    remote_addr: '127.0.0.1',
    identity: { mac: '' },
    info: { id: 'ssh', platform: 'ssh', version: expect.stringMatching(/^OpenSSH_/) as unknown },
  })
  expect(line.stderr()).toMatch(/This device joins the namespace harbour\. A new device waits there as pending/)
  expect(line.stderr()).toMatch(/Allocated port 22 /)
  const pending = await harbour.ssh('boiler', 'echo in', { password })
  expect(pending.stderr).toContain('harbour.boiler is offline or cannot be reached')

  await harbour.owner.devices.accept({ params: { uid: device.uid } })
  const { status, stdout } = await harbour.ssh('boiler', 'echo in as $LOGNAME; exit 4', { password })
  expect([status, stdout.toString()]).toEqual([4, 'in as olga\n'])
  expect((await harbour.ssh('boiler', 'echo in', { password: 'wrong' })).stdout.toString()).toBe('')
})
