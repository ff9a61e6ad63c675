// What a connection of a device without an agent may not do, and what becomes of it: keys and namespaces that
// do not fit, a host key that changed, another connection for the same device, one that breaks off, a server
// that stops. Real OpenSSH.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { generatePrivateKey, parsePublicKeyLine } from '@hawser/ssh'
import { keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { startServer } from '../../ssh/test/server.ts'
import { startService } from '../harness/service.ts'
import { openHarbour, opensshMachine, password, sharedHarbour } from './agentless.ts'
import { eventually, watch } from './way.ts'

const harbour = sharedHarbour()
const door = (): string[] =>
  quietArgs(
    harbour.service.sshPort,
    'LogLevel=INFO',
    `IdentityFile=${harbour.where.file('gate')}`,
    'BatchMode=yes',
  )
/** Tells somebody who left out -N. */
const without =
  'This login is for devices that join, and opens nothing: run ssh -N -R 0:localhost:22 …, with -N.'

test('a wrong key, an unknown namespace and another one’s key are refused in the same words', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'nobodys', '-t', 'ed25519')
  const said: string[] = []
  for (const how of [
    { key: 'nobodys' },
    { as: '00000000-0000-4000-8000-0000000000ff' },
    { as: sample.otherTenant },
    { key: 'olga' },
    { key: 'nobodys', as: `${sample.tenant}.name` },
  ]) {
    await using line = harbour.join(machine, how)
    expect(await line.status).toBe(255)
    said.push(line.stderr().replace(/^\S+@127/m, '127'))
  }
  expect(new Set(said)).toEqual(new Set([said[0]]))
  expect(said[0]).toContain('Permission denied (publickey).')
  expect(await harbour.find(machine)).toBe(undefined)
})

test('the same host key is another device in another namespace', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'theirs', '-t', 'ed25519')
  await harbour.enrol('theirs', harbour.stranger)
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  await using other = harbour.join(machine, { key: 'theirs', as: sample.otherTenant })
  const elsewhere = await harbour.arrived(machine, harbour.stranger)
  expect(elsewhere).toMatchObject({ status: 'pending', tenant_id: sample.otherTenant })
  expect(elsewhere.uid).not.toBe(device.uid)
  expect([line.child.exitCode, other.child.exitCode]).toEqual([null, null])
})

test('a host key that changed behind the connection is refused, and makes another device when it joins', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine, { as: `${sample.tenant}.buoy-7` })
  await using _ = line
  expect((await harbour.ssh('buoy-7', 'echo in', { password })).stdout.toString()).toBe('in\n')
  await machine.restart({ newHostKey: true })
  const outcome = await harbour.ssh('buoy-7', 'echo in', { password })
  expect([outcome.status, outcome.stdout.toString()]).toEqual([255, ''])
  expect(outcome.stderr).toContain(
    'harbour.buoy-7 is offline or cannot be reached, or does not let you in with this password',
  )
  const holder = await harbour.ssh('buoy-7', 'echo in', { key: 'olga' })
  expect(holder.stderr).toContain('the host key of harbour.buoy-7 has changed; no credentials were sent')
  expect(machine.log()).not.toContain('Accepted password')

  line.child.kill()
  await using again = harbour.join(machine)
  const another = await harbour.arrived(machine)
  expect(another.status).toBe('pending')
  expect(another.uid).not.toBe(device.uid)
  expect((await harbour.owner.devices.get({ params: { uid: device.uid } })).body.online).toBe(false)
  expect(again.child.exitCode).toBe(null)
})

test('a newer connection of the same device takes over, and the older one is told', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  await using newer = harbour.join(machine)
  expect(await line.status).toBe(255)
  expect(line.stderr()).toMatch(/11: A newer tunnel of the device took over\.$/m)
  expect(newer.child.exitCode).toBe(null)
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
})

test.each([
  ['a shell', ['-T']],
  ['a terminal', ['-tt']],
])('a join with %s in the place of -N joins nothing, and displaces nobody', async (...[, flags]) => {
  await using machine = await opensshMachine()
  await using early = harbour.join(machine, { flags })
  expect(await early.status).toBe(1)
  expect(early.stdout() + early.stderr()).toContain(without)
  expect(await harbour.find(machine)).toBe(undefined)

  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  await using late = harbour.join(machine, { flags })
  expect(await late.status).toBe(1)
  expect(late.stdout() + late.stderr()).toContain(without)
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect([line.child.exitCode, line.stderr()]).toEqual([null, expect.not.stringContaining('took over')])
})

test('another enrolment key displaces no connection that answers; the newcomer and the device’s page are told', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'second', '-t', 'ed25519')
  await harbour.enrol('second')
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  await using other = harbour.join(machine, { key: 'second' })
  expect(await other.status).toBe(255)
  expect(other.stderr()).toContain(
    'This device is already connected with another enrolment key. Stop that connection first',
  )
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect(line.child.exitCode).toBe(null)
  await eventually(async () =>
    expect((await harbour.find(machine))?.conflict?.addresses).toEqual(['127.0.0.1', '127.0.0.1']),
  )

  // The refused one changed nothing: the first key is still the one that takes over.
  await using again = harbour.join(machine)
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('A newer tunnel of the device took over.')
  expect(again.child.exitCode).toBe(null)
})

test('a connection that does not answer gives way to another enrolment key, until the device is back', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'spare', '-t', 'ed25519')
  await harbour.enrol('spare')
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  line.child.kill('SIGSTOP')
  await using other = harbour.join(machine, { key: 'spare' })
  await eventually(async () =>
    expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n'),
  )
  line.child.kill('SIGCONT')
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('A newer tunnel of the device took over.')

  await using back = harbour.join(machine)
  expect(await other.status).toBe(255)
  expect(other.stderr()).toContain('A newer tunnel of the device took over.')
  expect(back.child.exitCode).toBe(null)
})

test('of clones with one host key and one enrolment key, one stays after a few take-overs', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using stack = new AsyncDisposableStack()
  let standing = stack.use(line)
  for (let count = 0; count < 3; count += 1) {
    const newer = stack.use(harbour.join(machine))
    expect(await standing.status).toBe(255)
    standing = newer
  }
  await using clone = harbour.join(machine)
  expect(await clone.status).toBe(255)
  expect(clone.stderr()).toContain('Another machine is connected with the host key of this one.')
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect(standing.child.exitCode).toBe(null)
})

test('a connection that leads to no SSH server joins nothing, and displaces nobody', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  const closed = { ...machine, port: 9 }
  await using lost = harbour.join(closed)
  expect(await lost.status).toBe(255)
  expect(lost.stderr()).toContain('No SSH server answered at the other end of the forward')
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
})

test('whoever shows a device’s host key without having it neither is the device nor displaces it', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  await using _ = line
  const own = generatePrivateKey()
  const { blob } = parsePublicKeyLine(machine.where.read('host.pub'))
  await using impostor = await startServer({ hostKeys: [{ ...own, blob }] })
  await using other = harbour.join({ port: impostor.port, fingerprint: machine.fingerprint })
  expect(await other.status).toBe(255)
  expect(other.stderr()).toContain('No SSH server answered at the other end of the forward')
  expect(line.child.exitCode).toBe(null)
  expect((await harbour.ssh(device.name, 'echo in', { password })).stdout.toString()).toBe('in\n')
})

test('new devices of one address, and connections altogether, have the limits that agents have', async () => {
  await using narrow = await openHarbour({ HAWSER_RATE_LIMIT: '1/600', HAWSER_TUNNEL_RATE_LIMIT: '2/600' })
  await using first = await opensshMachine()
  await using second = await opensshMachine()
  const { line } = await narrow.accepted(first)
  await using _ = line
  await using more = narrow.join(second)
  expect(await more.status).toBe(255)
  expect(more.stderr()).toContain('Too many new devices from one address; wait a little.')
  expect(await narrow.find(second)).toBe(undefined)
  await using again = narrow.join(first)
  await line.status
  await using often = narrow.join(first)
  expect(await often.status).toBe(255)
  expect(often.stderr()).toContain('Too many devices come at once; come back.')
  expect(again.child.exitCode).toBe(null)
})

test('removing the enrolment key ends its connections; the device stays and comes back with another key', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'season', '-t', 'ed25519')
  const fingerprint = await harbour.enrol('season')
  const { line, device } = await harbour.accepted(machine, { key: 'season' })
  await using _ = line
  await harbour.owner.enrolmentKeys.remove({ params: { fingerprint } })
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('The enrolment key was removed.')
  await eventually(async () => expect((await harbour.find(machine))?.online).toBe(false))
  await using refused = harbour.join(machine, { key: 'season' })
  expect(await refused.status).toBe(255)
  await using back = harbour.join(machine)
  expect(await harbour.arrived(machine)).toMatchObject({ uid: device.uid, status: 'accepted' })
  expect(back.child.exitCode).toBe(null)
})

test('a killed connection takes its device offline, and the device is the same when it is back', async () => {
  await using machine = await opensshMachine()
  const { line, device } = await harbour.accepted(machine)
  line.child.kill('SIGKILL')
  await line.status
  await eventually(async () => expect((await harbour.find(machine))?.online).toBe(false))
  expect((await harbour.ssh(device.name, 'echo in', { password })).stderr).toContain(
    'is offline or cannot be reached',
  )
  await using again = harbour.join(machine)
  expect(await harbour.arrived(machine)).toMatchObject({ uid: device.uid, status: 'accepted' })
  expect(again.child.exitCode).toBe(null)
})

test('the connection is good for one forward and for nothing else', async () => {
  await using machine = await opensshMachine()
  const plain = await run('ssh', [...door(), `${sample.tenant}@127.0.0.1`, 'id'])
  expect([plain.status, plain.stdout.toString()]).toEqual([1, ''])
  expect(plain.stderr).toContain(without)
  const files = await run('sftp', [
    ...door().map((word) => (word === '-p' ? '-P' : word)),
    `${sample.tenant}@127.0.0.1`,
  ])
  expect(files.status).toBe(255)
  const through = await run('ssh', [
    ...door(),
    '-W',
    `127.0.0.1:${machine.port}`,
    `${sample.tenant}@127.0.0.1`,
  ])
  expect(through.status).toBe(255)
  const two = [
    '-N',
    '-R',
    `0:127.0.0.1:${machine.port}`,
    '-R',
    '8022:127.0.0.1:9',
    '-o',
    'ExitOnForwardFailure=yes',
  ]
  const twice = await run('ssh', [...door(), ...two, `${sample.tenant}@127.0.0.1`])
  expect(twice.status).toBe(255)
  expect(twice.stderr).toMatch(/remote port forwarding failed for listen port 8022/)
  // Any number will do: it is a name.
  const named = ['-N', '-R', `8022:127.0.0.1:${machine.port}`]
  await using line = watch('ssh', [...door(), ...named, `${sample.tenant}@127.0.0.1`])
  await harbour.arrived(machine)
  expect(line.child.exitCode).toBe(null)
})

test('a server that stops says so, and the device returns to the next one', async () => {
  await using machine = await opensshMachine()
  const keep = harbour.where.file('data')
  const first = await openHarbour({}, keep)
  const { line, device } = await first.accepted(machine)
  machine.authorize((await first.owner.enrolmentKeys.loginKey()).body.public_key)
  const key = first.where.read('gate')
  const person = first.where.read('olga')
  await first[Symbol.asyncDispose]()
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('The server is stopping.')

  await using second = await startService({ folder: keep, env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
  const args = (name: string, content: string): string[] =>
    quietArgs(second.sshPort, `IdentityFile=${harbour.where.write(name, content)}`, 'BatchMode=yes')
  await using back = watch('ssh', [
    ...args('gate-kept', key),
    '-N',
    '-R',
    `0:127.0.0.1:${machine.port}`,
    `${sample.tenant}@127.0.0.1`,
  ])
  await eventually(async () => {
    const { status, stdout } = await run('ssh', [
      ...args('olga-kept', person),
      `olga@harbour.${device.name}@127.0.0.1`,
      'echo the login key is the same',
    ])
    expect([status, stdout.toString()]).toEqual([0, 'the login key is the same\n'])
  })
  expect(back.child.exitCode).toBe(null)
})
