// The same with podman: its containers are devices, too, and people work in them as in those of Docker.
import { expect, test } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { startPodman } from '../harness/podman.ts'
import { sharedDock } from './dock.ts'
import { openTerminal } from './terminal.ts'

const dock = sharedDock(startPodman)

test('a container of podman appears, is worked in, and goes', async () => {
  await dock.docker.container('pod-one')
  await dock.connect({ address: dock.docker.socket, port: 0 })
  await dock.accepted('pod-one')

  const { status, stdout, stderr } = await dock.ssh('pod-one', 'cat; id -un; pwd; echo wrong >&2; exit 5', {
    user: 'pilot',
    input: 'right\n',
  })
  expect([status, stdout.toString(), stderr]).toEqual([5, 'right\npilot\n/home/pilot\n', 'wrong\n'])

  using terminal = openTerminal('ssh', [...dock.args('-t'), dock.sshid('pod-one')], { columns: 97, rows: 31 })
  await terminal.until(/# /)
  terminal.type('until [ "$(stty size)" = "31 97" ]; do sleep 0.05; done; echo "now $(stty size)"\n')
  await terminal.until(/now 31 97\r\n/)
  terminal.type('exit 4\n')
  expect(await terminal.ended).toBe(4)

  const args = dock.args().map((word) => (word === '-p' ? '-P' : word))
  const there = `${dock.sshid('pod-one', 'pilot')}:cargo`
  const bytes = 'all sorts of things\n'.repeat(50_000)
  expect(await run('scp', [...args, dock.where.write('cargo', bytes), there])).toMatchObject({
    status: 0,
    stderr: '',
  })
  expect((await run('scp', [...args, there, dock.where.file('back')])).status).toBe(0)
  expect(dock.where.read('back') === bytes).toBe(true)

  await dock.docker.docker('stop', '-t', '0', 'pod-one')
  await dock.device('pod-one', { online: false, status: 'accepted' })
  await dock.docker.docker('start', 'pod-one')
  await dock.device('pod-one', { online: true })
})
