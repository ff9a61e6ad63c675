// Services of a device without an agent: the server logs in to its own sshd with the namespace's login key,
// as the account that the service names, and connects from there.
import { expect, test } from 'vitest'
import { newBrowser, startProgram } from '../harness/services.ts'
import { opensshMachine, sharedHarbour } from './agentless.ts'

const harbour = sharedHarbour()

test('without an account, with one that the login key opens, and with another', async () => {
  await using program = await startProgram((request, response) => response.end(`hello ${request.url}`))
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  const ask = async (username: string, path = '/') => {
    const { body } = await harbour.owner.services.create({
      body: { device_uid: device.uid, name: 'page', port: program.port, audience: 'public', username },
    })
    return newBrowser(harbour.service.url).ask(`${body.address}.localhost`, { path })
  }
  expect((await ask('')).text).toContain('cannot connect to services')
  expect((await ask('olga')).text).toContain('refused the login')
  machine.authorize((await harbour.owner.enrolmentKeys.loginKey()).body.public_key)
  expect(await ask('olga', '/pier')).toMatchObject({ status: 200, text: 'hello /pier' })
  expect((await ask('nobody-else')).text).toContain('refused the login')
})
