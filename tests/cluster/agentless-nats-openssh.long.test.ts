// A device without an agent, and two nodes: it is reached on whichever of them somebody comes to, moves to
// the other one, not for another enrolment key, and a key that is removed on one of them counts on both.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { opensshMachine } from '../clients/agentless.ts'
import { eventually, watch, type Running } from '../clients/way.ts'
import { startCluster } from './cluster.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

test('it is reached on every node, moves between them, and goes with its key', async () => {
  await using cluster = await startCluster(2)
  await using machine = await opensshMachine()
  using where = folder()
  for (const name of ['olga', 'gate', 'other']) await keygen(where, name, '-t', 'ed25519')
  const token = await cluster.world.token('owner')
  const [first, second] = [cluster.nodes[0]!.api({ token }), cluster.nodes[1]!.api({ token })]
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await first.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } } })
  const { body: key } = await first.enrolmentKeys.create({
    body: { name: 'gate', public_key: where.read('gate.pub') },
  })
  await first.enrolmentKeys.create({ body: { name: 'other', public_key: where.read('other.pub') } })
  const [one, other] = await Promise.all([first.enrolmentKeys.loginKey(), second.enrolmentKeys.loginKey()])
  expect(one.body).toEqual(other.body)
  machine.authorize(one.body.public_key)

  const args = (at: number, name: string): string[] =>
    quietArgs(
      cluster.nodes[at]!.sshPort,
      `IdentityFile=${where.file(name)}`,
      'BatchMode=yes',
      'LogLevel=INFO',
    )
  const join = (at: number, name = 'gate'): Running =>
    watch('ssh', [
      ...args(at, name),
      '-N',
      '-R',
      `0:127.0.0.1:${machine.port}`,
      `${sample.tenant}.crane-9@127.0.0.1`,
    ])
  const sizes = () => cluster.nodes.map(({ reach }) => reach.tunnels.size)
  const reached = async (): Promise<void> => {
    for (const at of [0, 1]) {
      const { status, stdout } = await run('ssh', [
        ...args(at, 'olga'),
        'olga@harbour.crane-9@127.0.0.1',
        'echo here; exit 3',
      ])
      expect([at, stdout.toString(), status]).toEqual([at, 'here\n', 3])
    }
  }

  await using line = join(0)
  await eventually(() => expect(sizes()).toEqual([1, 0]))
  const { body: pending } = await second.devices.list({ query: { status: 'pending', per_page: 100 } })
  const { uid } = pending.find(({ name }) => name === 'crane-9')!
  await second.devices.accept({ params: { uid } })
  await reached()

  await using rival = join(1, 'other')
  expect(await rival.status).toBe(255)
  expect(rival.stderr()).toContain('This device is already connected with another enrolment key.')
  expect(sizes()).toEqual([1, 0])
  await reached()

  await using moved = join(1)
  expect(await line.status).toBe(255)
  expect(line.stderr()).toContain('took over, on another node.')
  await eventually(() => expect(sizes()).toEqual([0, 1]))
  await reached()

  await first.enrolmentKeys.remove({ params: { fingerprint: key.fingerprint } })
  expect(await moved.status).toBe(255)
  expect(moved.stderr()).toContain('The enrolment key was removed.')
  for (const client of [first, second])
    await eventually(async () =>
      expect((await client.devices.get({ params: { uid } })).body.online).toBe(false),
    )
})
