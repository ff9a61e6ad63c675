// The holder of another enrolment key of the namespace, who can forward to a device's SSH server, wants to
// become that device. A rival that answered no request after its forward stayed a candidate for 15 s. The
// device displaced it, but the rival's key was stored as the device's, and the rival's next connection
// displaced the device for good. A rival that connected while the device rebooted had the same success.
import net from 'node:net'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { channelStream, connect, parsePrivateKey, writeListen, type Connection } from '@hawser/ssh'
import { folder, keygen } from '../../ssh/test/programs.ts'
import { startService } from '../harness/service.ts'
import { openHarbour, opensshMachine, sharedHarbour, type Joinable } from '../clients/agentless.ts'
import { eventually, type Running } from '../clients/way.ts'

const harbour = sharedHarbour()
const minute_ms = 60_000
const refused = 'This device is already connected with another enrolment key.'

/** Forwards to the machine's SSH server and answers one request; the second one waits for ever. */
async function silentRival(
  machine: Joinable,
  key: string,
): Promise<{ client: Connection; judged: Promise<void> }> {
  const client = await connect(net.connect(harbour.service.sshPort, '127.0.0.1'), {
    user: sample.tenant,
    proofs: [{ method: 'publickey', key: parsePrivateKey(harbour.where.read(key)) }],
    checkHostKey: () => true,
    channelTypes: ['forwarded-tcpip'],
    globalRequests: ['keepalive@openssh.com'],
  })
  const judged = Promise.withResolvers<void>()
  void (async () => {
    let asked = 0
    for await (const request of client.requests)
      if ((asked += 1) === 1) request.refuse()
      else judged.resolve()
  })()
  void (async () => {
    for await (const opening of client.channels) {
      const [there, here] = [net.connect(machine.port, '127.0.0.1'), channelStream(opening.accept())]
      for (const each of [there, here]) each.on('error', () => undefined)
      there.pipe(here).pipe(there)
    }
  })()
  await client.request('tcpip-forward', writeListen('', 0))
  return { client, judged: judged.promise }
}

async function leave(line: Running, machine: Joinable): Promise<void> {
  line.child.kill('SIGKILL')
  await line.status
  await eventually(async () => expect((await harbour.find(machine))?.online).toBe(false))
}

test('a rival that lost against the device has not become its key', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'mute', '-t', 'ed25519')
  await harbour.enrol('mute')
  const { line } = await harbour.accepted(machine)
  await leave(line, machine)
  harbour.service.clock.forward(6 * minute_ms)
  const { client, judged } = await silentRival(machine, 'mute')
  await judged
  await using back = harbour.join(machine)
  await harbour.arrived(machine)
  await client.ended
  await eventually(() =>
    expect(harbour.service.log()).toContain('This connection was not accepted for the device'),
  )

  await using rival = harbour.join(machine, { key: 'mute' })
  expect(await rival.status).toBe(255)
  expect(rival.stderr()).toContain(refused)
  expect(back.child.exitCode).toBe(null)
})

test('a silent first connection has not become the key of the new device', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'early', '-t', 'ed25519')
  await harbour.enrol('early')
  const { client, judged } = await silentRival(machine, 'early')
  await judged
  await using line = harbour.join(machine)
  await harbour.arrived(machine)
  await client.ended
  await using rival = harbour.join(machine, { key: 'early' })
  expect(await rival.status).toBe(255)
  expect(line.child.exitCode).toBe(null)
})

/** The enrolment key that the device belongs to. */
const keyOf = async (uid: string, { service } = harbour): Promise<string | null | undefined> =>
  (await service.rooms.stores.of(sample.tenant).devices.find(uid))?.enrolment_key

test('a rival that stands in while the device is away gives it back, until five minutes have passed', async () => {
  await using machine = await opensshMachine()
  await keygen(harbour.where, 'waiting', '-t', 'ed25519')
  await harbour.enrol('waiting')
  const { line, device } = await harbour.accepted(machine)
  const own = await keyOf(device.uid)
  await leave(line, machine)
  harbour.service.clock.forward(4 * minute_ms)
  await using early = harbour.join(machine, { key: 'waiting' })
  expect(await harbour.arrived(machine)).toMatchObject({ uid: device.uid, status: 'accepted' })
  await using back = harbour.join(machine)
  expect(await early.status).toBe(255)
  expect(await keyOf(device.uid)).toBe(own)
  await leave(back, machine)

  harbour.service.clock.forward(6 * minute_ms)
  await using late = harbour.join(machine, { key: 'waiting' })
  await harbour.arrived(machine)
  await eventually(async () => expect(await keyOf(device.uid)).not.toBe(own))
  await using former = harbour.join(machine)
  expect(await former.status).toBe(255)
  expect(former.stderr()).toContain(refused)
  expect(late.child.exitCode).toBe(null)
})

test('a device that could not come back while the server was away is nobody else’s either', async () => {
  await using machine = await opensshMachine()
  using kept = folder()
  const first = await openHarbour({}, kept.file('data'))
  await keygen(first.where, 'quick', '-t', 'ed25519')
  await first.enrol('quick')
  const { line, device } = await first.accepted(machine)
  line.child.kill('SIGKILL')
  await eventually(async () => expect((await first.find(machine))?.online).toBe(false))
  await first.service.rooms.stores
    .of(sample.tenant)
    .devices.save(device.uid, { last_seen: '2020-01-01T00:00:00.000Z' })
  const key = first.where.read('quick')
  await first[Symbol.asyncDispose]()

  await using second = await startService({ folder: kept.file('data') })
  const own = await keyOf(device.uid, { service: second } as typeof harbour)
  kept.write('quick', key)
  await using rival = harbour.join(machine, { file: kept.file('quick'), port: second.sshPort })
  await eventually(() => expect(second.log()).toContain('device.joined'))
  expect(await keyOf(device.uid, { service: second } as typeof harbour)).toBe(own)
  expect(rival.child.exitCode).toBe(null)
})
