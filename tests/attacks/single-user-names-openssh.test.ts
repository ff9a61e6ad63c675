// An agent that does not run as root has one user, and took every name for it: whoever was kept by a filter
// from logging in as that user asked for another name and was in as the same one. The name must be the
// account's.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, openClient, Reason, SshError } from '@hawser/ssh'
import net from 'node:net'
import { secret, startDevice, type Device } from '../../agent/test/device.ts'
import { ownAccount } from '../../agent/src/users.ts'

let device: Device
beforeAll(async () => {
  device = await startDevice()
})
afterAll(async () => device[Symbol.asyncDispose]())

const own = ownAccount().name
const others = ['guest', own.toUpperCase(), `${own} `, `${own}\0`, `x/../${own}`, '']

test('the user gets in, with a key that the server stands behind and with the password', async () => {
  expect((await device.ssh('id -un', { user: own })).stdout.toString()).toBe(`${own}\n`)
  const proofs = [{ method: 'password', password: secret }] as const
  await (
    await connect(net.connect(device.port, '127.0.0.1'), { user: own, proofs, checkHostKey: () => true })
  ).end()
})

test('another name does not, whatever it proves', async () => {
  const { status, stdout } = await device.ssh('id -un', { user: 'guest' })
  expect([status, stdout.toString()]).toEqual([255, ''])
  for (const name of others) {
    const client = await openClient(net.connect(device.port, '127.0.0.1'), { checkHostKey: () => true })
    expect(await client.attempt(name, { method: 'password', password: secret })).toMatchObject({
      accepted: false,
    })
    client.transport.end(new SshError(Reason.byApplication, 'Enough.'))
  }
  const reasons = device.events.filter(({ event }) => event === 'login.refused').map(({ reason }) => reason)
  expect(new Set(reasons)).toEqual(new Set(['unknown user']))
})
