// Dropbear's client, the one of routers and small devices, through the gateway to a device: commands, a shell
// on a terminal, ports, its own key and passwords. (Keys of the others on this way are made with OpenSSH's
// tools, hence the name.)
import { beforeAll, describe, expect, test } from 'vitest'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { openTerminal } from './terminal.ts'
import { eventually, sharedOldAgent, sharedWay, watch, type To } from './way.ts'

const way = sharedWay()

beforeAll(async () => {
  const { stdout } = await run('dropbearkey', ['-t', 'ed25519', '-f', way.where.file('droplet')])
  way.where.write('droplet.pub', /^\S+ AAAA\S+/m.exec(stdout.toString())![0])
  await way.register('droplet')
  await run('dropbearkey', ['-t', 'ed25519', '-f', way.where.file('stranger')])
})

/** It is given the SSHID with -l; -y twice takes every host key. */
const words = (flags: readonly string[], to?: To): string[] => [
  '-y',
  '-y',
  '-p',
  String(way.service.sshPort),
  '-l',
  way.sshid(to),
  ...flags,
  '127.0.0.1',
]
const withKey = (name = 'droplet'): string[] => ['-i', way.where.file(name)]
const dbclient = async (
  flags: readonly string[],
  command: string,
  env: Record<string, string> = {},
  input?: Buffer,
  to?: To,
): Promise<Outcome> =>
  run('dbclient', [...words(flags, to), command], input, { HOME: way.where.path, ...env })

test('a command runs, with its output, its errors apart and its number', async () => {
  const { status, stdout, stderr } = await dbclient([...withKey(), '-T'], 'echo out; echo err >&2; exit 3')
  expect([status, stdout.toString()]).toEqual([3, 'out\n'])
  expect(stderr).toContain('err\n')
})

test('an SSHID before the host is not understood: it splits at the first @, so -l is the way', async () => {
  const to = `${way.sshid()}@127.0.0.1`
  const { status, stderr } = await run(
    'dbclient',
    ['-y', '-y', '-p', String(way.service.sshPort), ...withKey(), to, 'echo in'],
    undefined,
    { HOME: way.where.path },
  )
  expect([status, stderr]).toEqual([1, expect.stringContaining("Error resolving 'harbour.")])
})

test('megabytes pass both ways unharmed', async () => {
  const sent = Buffer.alloc(2_000_003, 'hawser ')
  const { status, stdout } = await dbclient(withKey(), 'cat', {}, sent)
  expect(status).toBe(0)
  expect(stdout.equals(sent)).toBe(true)
})

/** It tries again until it is shown the door, and then ends with 0 all the same. */
const isOut = ({ stdout, stderr }: Outcome): void => {
  expect(stdout.toString()).toBe('')
  expect(stderr).toContain('Disconnect received')
}

test('the right password gets in, a wrong one does not', async () => {
  const right = await dbclient([], 'echo in', { DROPBEAR_PASSWORD: way.user.password })
  expect([right.status, right.stdout.toString()]).toEqual([0, 'in\n'])
  isOut(await dbclient([], 'echo in', { DROPBEAR_PASSWORD: 'wrong' }))
})

test('a shell on a terminal has the person’s size and kind, and ends with its number', async () => {
  using terminal = openTerminal('dbclient', words(withKey()), {
    columns: 87,
    rows: 27,
    env: { HOME: way.where.path },
  })
  terminal.type('unset HISTFILE; echo "$TERM $(stty size)"; exit 6\n')
  expect(await terminal.ended).toBe(6)
  expect(terminal.shown()).toContain('xterm-256color 27 87\r\n')
})

test('-L and -R: ports lead to the other side', async () => {
  using echo = await startEcho()
  const [left, right] = [await freePort(), await freePort()]
  const flags = [
    '-N',
    '-L',
    `${left}:127.0.0.1:${echo.port}`,
    '-R',
    `127.0.0.1:${right}:127.0.0.1:${echo.port}`,
  ]
  await using client = watch('dbclient', words([...withKey(), ...flags]), { HOME: way.where.path })
  const sent = Buffer.alloc(300_003, 'hawser ')
  for (const port of [left, right]) {
    await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
    expect((await roundTrip(port, sent)).equals(sent)).toBe(true)
  }
  expect(client.child.exitCode).toBe(null)
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('a command runs and its number is told', async () => {
    const { status, stdout } = await dbclient(withKey(), 'echo out; exit 3', {}, undefined, {
      device: old.name,
    })
    expect([status, stdout.toString()]).toEqual([3, 'out\n'])
  })

  test('a key that the namespace does not know does not get in', async () => {
    isOut(await dbclient(withKey('stranger'), 'echo in', {}, undefined, { device: old.name }))
  })
})
