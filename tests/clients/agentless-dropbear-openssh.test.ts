// A small machine with nothing but Dropbear, server and client, joins by one `dbclient -N -R` and is reached
// by people with OpenSSH: with the password of its user, and with a public key once the namespace's login key
// is authorized there.
import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { dropbearMachine, password, sharedHarbour, type Machine } from './agentless.ts'
import { openTerminal } from './terminal.ts'
import { eventually, watch, type Running } from './way.ts'

const harbour = sharedHarbour()

beforeAll(async () => {
  for (const name of ['droplet', 'nobodys']) {
    const { stdout } = await run('dropbearkey', ['-t', 'ed25519', '-f', harbour.where.file(name)])
    harbour.where.write(`${name}.pub`, /^\S+ AAAA\S+/m.exec(stdout.toString())![0])
  }
  await harbour.enrol('droplet')
})

const dbclient = (of: Machine, { key = 'droplet', port = 0, name = '', more = ['-N'] } = {}): Running => {
  const words = [
    '-y',
    '-y',
    '-K',
    '15',
    '-p',
    String(harbour.service.sshPort),
    '-i',
    harbour.where.file(key),
    ...more,
  ]
  return watch(
    'dbclient',
    [...words, '-R', `${port}:127.0.0.1:${of.port}`, `${sample.tenant}${name}@127.0.0.1`],
    {
      HOME: harbour.where.path,
    },
  )
}

test.each([0, 8022])(
  'it joins with -R %i, is accepted, and reached with a password, a key, a terminal and files',
  async (port) => {
    await using machine = await dropbearMachine()
    await using line = dbclient(machine, { port, name: `.router-${port}` })
    const device = await harbour.arrived(machine)
    const name = `router-${port}`
    expect(device).toMatchObject({
      name,
      status: 'pending',
      info: { platform: 'ssh', version: expect.stringMatching(/^dropbear_/) as unknown },
    })
    await line.until(/This device joins the namespace harbour\./)
    expect((await harbour.ssh(name, 'echo in', { password })).stderr).toContain(
      'is offline or cannot be reached',
    )
    await harbour.owner.devices.accept({ params: { uid: device.uid } })

    const { status, stdout } = await harbour.ssh(name, 'echo in; exit 3', { password })
    expect([status, stdout.toString()]).toEqual([3, 'in\n'])
    expect((await harbour.ssh(name, 'echo in')).stderr).toContain(
      'does not accept the login key of its namespace',
    )
    machine.authorize((await harbour.owner.enrolmentKeys.loginKey()).body.public_key)
    expect((await harbour.ssh(name, 'echo in')).stdout.toString()).toBe('in\n')

    using terminal = openTerminal(
      'ssh',
      [...harbour.args({ flags: ['-tt'] }), `olga@harbour.${name}@127.0.0.1`],
      { columns: 87, rows: 27 },
    )
    terminal.type('stty size; exit 6\n')
    expect(await terminal.ended).toBe(6)
    expect(terminal.shown()).toContain('27 87\r\n')

    const sent = Buffer.alloc(2_000_003, 'hawser ')
    writeFileSync(harbour.where.file('cargo'), sent)
    const send = ['-T', `olga@harbour.${name}@127.0.0.1`, `cat > ${machine.where.file('cargo')}`]
    expect((await run('ssh', [...harbour.args(), ...send], sent)).status).toBe(0)
    expect(readFileSync(machine.where.file('cargo')).equals(sent)).toBe(true)
  },
)

test('a wrong key is refused, and a killed client takes the device offline until it is back', async () => {
  await using machine = await dropbearMachine()
  await using wrong = dbclient(machine, { key: 'nobodys' })
  expect(await wrong.status).toBe(1)
  expect(await harbour.find(machine)).toBe(undefined)

  const line = dbclient(machine)
  const device = await harbour.arrived(machine)
  line.child.kill('SIGKILL')
  await line.status
  await eventually(async () => expect((await harbour.find(machine))?.online).toBe(false))
  await using again = dbclient(machine)
  expect((await harbour.arrived(machine)).uid).toBe(device.uid)
  expect(again.child.exitCode).toBe(null)
})

test('without -N it is told what to do, joins nothing and displaces nobody', async () => {
  await using machine = await dropbearMachine()
  await using line = dbclient(machine, { more: ['-T'] })
  await line.status
  expect(line.stderr()).toContain('This login is for devices that join, and opens nothing')
  expect(await harbour.find(machine)).toBe(undefined)

  await using standing = dbclient(machine)
  await harbour.arrived(machine)
  await using other = dbclient(machine, { more: ['-T'] })
  await other.status
  expect([standing.child.exitCode, (await harbour.find(machine))?.online]).toEqual([null, true])
})
