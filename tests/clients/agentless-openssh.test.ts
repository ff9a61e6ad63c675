// A machine with nothing but OpenSSH joins by one `ssh -N -R`, waits as pending, is accepted, and is reached
// like any other: a real sshd, and real clients on both sides. What such a connection may not do is in
// agentless-refused-openssh.long.test.ts.
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { fingerprintSha256, generatePrivateKey } from '@hawser/ssh'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run } from '../../ssh/test/programs.ts'
import { startServer } from '../../ssh/test/server.ts'
import { opensshMachine, password, sharedHarbour } from './agentless.ts'
import { openTerminal } from './terminal.ts'
import { eventually, watch } from './way.ts'

const harbour = sharedHarbour()
const loginKey = async (): Promise<string> => (await harbour.owner.enrolmentKeys.loginKey()).body.public_key

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
  expect(line.stderr()).toMatch(
    /This device joins the namespace harbour\. A new device waits there as pending/,
  )
  expect(line.stderr()).toMatch(/Allocated port 22 /)
  const pending = await harbour.ssh('boiler', 'echo in', { password })
  expect(pending.stderr).toContain('harbour.boiler is offline or cannot be reached')

  await harbour.owner.devices.accept({ params: { uid: device.uid } })
  const { status, stdout } = await harbour.ssh('boiler', 'echo in as $LOGNAME; exit 4', { password })
  expect([status, stdout.toString()]).toEqual([4, 'in as olga\n'])
  expect((await harbour.ssh('boiler', 'echo in', { password: 'wrong' })).stdout.toString()).toBe('')
})

test('a public key of the namespace opens it once the login key is authorized there, and not before', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  expect(device.name).toBe(`ssh-${device.uid.slice(0, 8)}`)
  const before = await harbour.ssh(device.name, 'echo in')
  expect([before.status, before.stdout.toString()]).toEqual([255, ''])
  expect(before.stderr).toContain(
    `harbour.${device.name} does not accept the login key of its namespace for olga`,
  )
  // It comes to sshd from its own machine, so nobody else can use the key, even if it were known.
  machine.authorize(`from="127.0.0.1,::1" ${await loginKey()}`)
  const after = await harbour.ssh(device.name, 'echo in')
  expect([after.status, after.stdout.toString()]).toEqual([0, 'in\n'])
})

test.each([
  ['ecdsa', '256'],
  ['ecdsa', '521'],
  ['rsa', '3072'],
])('a host key of type %s with %s bits is as good', async (type, bits) => {
  await using machine = await opensshMachine(['-t', type, '-b', bits])
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
})

test('a host key that is too short to be trusted joins nothing', async () => {
  await using machine = await opensshMachine(['-t', 'rsa', '-b', '1024'])
  await using line = harbour.join(machine)
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('The host key of the device is too weak: RSA needs 2048 bits.')
  expect(await harbour.find(machine)).toBe(undefined)
})

test('a server that takes passwords only as answers to its questions is given them so', async () => {
  const hostKey = generatePrivateKey()
  await using server = await startServer({
    hostKeys: [hostKey],
    methods: ['keyboard-interactive'],
    async authenticate(attempt) {
      if (attempt.method !== 'keyboard-interactive') return 'refuse'
      const [answer] = await attempt.ask([{ text: 'Password: ', echo: false }])
      return answer === password ? 'accept' : 'refuse'
    },
  })
  const machine = { port: server.port, fingerprint: fingerprintSha256(hostKey.blob) }
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect((await harbour.ssh(device.name, 'echo in', { password: 'wrong' })).stdout.toString()).toBe('')
})

test('a shell on a terminal, files both ways, and a port on the device', async () => {
  await using machine = await opensshMachine()
  machine.authorize(await loginKey())
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  const sshid = `olga@harbour.${device.name}`

  using terminal = openTerminal('ssh', [...harbour.args({ flags: ['-tt'] }), `${sshid}@127.0.0.1`], {
    columns: 91,
    rows: 29,
  })
  terminal.type('echo "$TERM $(stty size)"; exit 6\n')
  expect(await terminal.ended).toBe(6)
  expect(terminal.shown()).toContain('xterm-256color 29 91\r\n')

  const sent = Buffer.alloc(3_000_017, 'hawser ')
  writeFileSync(harbour.where.file('cargo'), sent)
  // scp has a flag of its own for the port.
  const scp = harbour.args().map((word) => (word === '-p' ? '-P' : word))
  const options = ['-o', `User=${sshid}`]
  expect(
    (
      await run('scp', [
        ...scp,
        ...options,
        harbour.where.file('cargo'),
        `127.0.0.1:${machine.where.file('cargo')}`,
      ])
    ).status,
  ).toBe(0)
  expect(readFileSync(machine.where.file('cargo')).equals(sent)).toBe(true)
  expect(
    (
      await run('scp', [
        ...scp,
        ...options,
        `127.0.0.1:${machine.where.file('cargo')}`,
        harbour.where.file('back'),
      ])
    ).status,
  ).toBe(0)
  expect(readFileSync(harbour.where.file('back')).equals(sent)).toBe(true)

  using echo = await startEcho()
  const port = await freePort()
  await using client = watch('ssh', [
    ...harbour.args({ flags: ['-N', '-L', `${port}:127.0.0.1:${echo.port}`] }),
    `${sshid}@127.0.0.1`,
  ])
  await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
  expect((await roundTrip(port, sent)).equals(sent)).toBe(true)
  expect(client.child.exitCode).toBe(null)
})

test('its sessions are recorded, closed by an administrator, and ruled by the firewall', async () => {
  await using machine = await opensshMachine()
  machine.authorize(await loginKey())
  const { line, device } = await harbour.accepted(machine, { as: `${sample.tenant}.winch` })
  await using _ = line
  await harbour.owner.namespaces.setSessionRecord({
    params: { tenant: sample.tenant },
    body: { session_record: true },
  })
  using terminal = openTerminal('ssh', [...harbour.args({ flags: ['-tt'] }), 'olga@harbour.winch@127.0.0.1'])
  terminal.type('echo one-$((40 + 2))\n')
  await terminal.until(/one-42/)
  const live = async () =>
    (await harbour.owner.sessions.list({ query: {} })).body.find(
      ({ device_uid, active }) => device_uid === device.uid && active,
    )!
  const session = await eventually(live)
  await eventually(async () => expect((await live()).recorded).toBe(true))
  await harbour.owner.sessions.close({ params: { uid: session.uid }, body: { device: device.uid } })
  expect(await terminal.ended).toBe(255)
  expect(terminal.shown()).toContain('closed by an administrator')
  const { body } = await harbour.owner.sessions.play({ params: { uid: session.uid } })
  expect(JSON.stringify(body)).toContain('one-42')

  await harbour.owner.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '.*',
      username: '.*',
      filter: { hostname: '^winch$' },
    },
  })
  expect((await harbour.ssh('winch', 'echo in')).stderr).toContain('due a policy rule')
})

test('whoever leaves accepted loses sessions, and a rejected or deleted device its connection', async () => {
  await using machine = await opensshMachine()
  machine.authorize(await loginKey())
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  const params = { uid: device.uid }
  await using client = watch('ssh', [
    ...harbour.args(),
    `olga@harbour.${device.name}@127.0.0.1`,
    'echo here; sleep 60',
  ])
  await client.until(/here/)
  await harbour.owner.devices.setStatus({ params: { ...params, status: 'pending' } })
  expect(await client.status).toBe(255)
  expect(client.stderr()).toContain('The device is no longer available.')
  expect((await harbour.find(machine))?.online).toBe(true)

  await harbour.owner.devices.setStatus({ params: { ...params, status: 'reject' } })
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('The device may no longer connect.')
  await using again = harbour.join(machine)
  expect(await again.status).toBe(255)
  expect(again.stderr()).toContain('The device was rejected in this namespace.')

  await harbour.owner.devices.remove({ params })
  await using anew = harbour.join(machine)
  expect(await harbour.arrived(machine)).toMatchObject({ uid: device.uid, status: 'pending' })
  await harbour.owner.devices.remove({ params })
  expect(await anew.status).toBe(255)
})
