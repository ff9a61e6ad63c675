// PuTTY's programs, those of most people on Windows, through the gateway to a device: commands with plink,
// files with psftp and pscp, a port, its own kind of key, and passwords. (Keys of the others on this way are
// made with OpenSSH's tools, hence the name.)
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { fingerprintSha256, openClient } from '@hawser/ssh'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { eventually, sharedOldAgent, sharedWay, watch, type To } from './way.ts'

const way = sharedWay()
const large = randomBytes(3_000_003)
let hostKey: string

beforeAll(async () => {
  for (const name of ['laptop', 'stranger'])
    await run(
      'puttygen',
      ['-q', '-t', 'ed25519', '--new-passphrase', '/dev/null', '-o', way.where.file(`${name}.ppk`)],
      undefined,
      env(),
    )
  way.where.write(
    'laptop.pub',
    (await run('puttygen', [way.where.file('laptop.ppk'), '-L'], undefined, env())).stdout,
  )
  await way.register('laptop')
  way.where.write('right', way.user.password)
  way.where.write('wrong', 'wrong')
  way.where.write('large', large)
  const socket = net.connect(way.service.sshPort, '127.0.0.1')
  await openClient(socket, {
    checkHostKey: (blob) => ((hostKey = fingerprintSha256(blob)), true),
    handshake_ms: 20_000,
  })
  socket.destroy()
})

const withKey = (name = 'laptop'): string[] => ['-i', way.where.file(`${name}.ppk`)]
const withPassword = (file: string): string[] => ['-pwfile', way.where.file(file)]
const words = (flags: readonly string[], to?: To): string[] =>
  ['-batch', '-noagent', '-P', String(way.service.sshPort), '-hostkey', hostKey, '-l', way.sshid(to)].concat(
    flags,
  )
const env = (): Record<string, string> => ({ HOME: way.where.path })
const plink = async (flags: readonly string[], command: string, input?: Buffer, to?: To): Promise<Outcome> =>
  run('plink', [...words(flags, to), '127.0.0.1', command], input, env())

describe('plink', () => {
  test('runs a command, with its output, its errors apart and its number', async () => {
    const { status, stdout, stderr } = await plink(withKey(), 'echo out; echo err >&2; exit 3')
    expect([status, stdout.toString(), stderr]).toEqual([3, 'out\n', 'err\n'])
  })

  test('megabytes pass both ways unharmed', async () => {
    const { status, stdout } = await plink(withKey(), 'cat', large)
    expect(status).toBe(0)
    expect(stdout.equals(large)).toBe(true)
  })

  test('gets in with the right password, and not with a wrong one', async () => {
    const right = await plink(withPassword('right'), 'echo in')
    expect([right.status, right.stdout.toString()]).toEqual([0, 'in\n'])
    const wrong = await plink(withPassword('wrong'), 'echo in')
    expect([wrong.status, wrong.stdout.toString()]).toEqual([1, ''])
    expect(wrong.stderr).toContain('Configured password was not accepted')
  })

  test('does not get in with a key that the namespace does not know', async () => {
    const { status, stdout } = await plink(withKey('stranger'), 'echo in')
    expect([status, stdout.toString()]).toEqual([1, ''])
  })

  test('-L and -R: ports lead to the other side', async () => {
    using echo = await startEcho()
    const [left, right] = [await freePort(), await freePort()]
    const flags = [
      '-N',
      '-L',
      `127.0.0.1:${left}:127.0.0.1:${echo.port}`,
      '-R',
      `127.0.0.1:${right}:127.0.0.1:${echo.port}`,
    ]
    await using client = watch('plink', [...words([...withKey(), ...flags]), '127.0.0.1'], env())
    for (const port of [left, right]) {
      await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
      expect((await roundTrip(port, large)).equals(large)).toBe(true)
    }
    expect(client.child.exitCode).toBe(null)
  })
})

describe('files', () => {
  test('psftp puts, renames, lists, gets and removes', async () => {
    const lines = [
      `cd ${way.there('')}`,
      `put ${way.where.file('large')} one`,
      'mkdir box',
      'mv one box/two',
      'ls box',
      `get box/two ${way.where.file('down')}`,
      'rm box/two',
      'rmdir box',
      'get box/two',
    ]
    const script = way.where.write('script', `${lines.join('\n')}\n`)
    const { status, stdout } = await run(
      'psftp',
      [...words([...withKey(), '-b', script, '-be']), '127.0.0.1'],
      undefined,
      env(),
    )
    expect(status).toBe(0)
    expect(stdout.toString()).toMatch(/ 3000003 .* two\n/)
    expect(stdout.toString()).toContain('no such file')
    expect(readFileSync(way.where.file('down')).equals(large)).toBe(true)
  })

  test.each(['-sftp', '-scp'])('pscp %s copies there and back', async (kind) => {
    const pscp = async (from: string, to: string): Promise<Outcome> =>
      run('pscp', [...words([...withKey(), kind, '-q']), from, to], undefined, env())
    const there = `127.0.0.1:${way.there(`copy${kind}`)}`
    const [up, down] = [
      await pscp(way.where.file('large'), there),
      await pscp(there, way.where.file(`back${kind}`)),
    ]
    expect([up.stderr, up.status, down.stderr, down.status]).toEqual(['', 0, '', 0])
    expect(readFileSync(way.where.file(`back${kind}`)).equals(large)).toBe(true)
  })

  test('pscp with a wrong password copies nothing', async () => {
    const { status } = await run(
      'pscp',
      [
        ...words([...withPassword('wrong'), '-q']),
        way.where.file('large'),
        `127.0.0.1:${way.there('never')}`,
      ],
      undefined,
      env(),
    )
    expect(status).toBe(1)
    expect(() => readFileSync(way.there('never'))).toThrow('ENOENT')
  })
})

test('the SSHID may stand before the host: the last @ counts', async () => {
  const flags = ['-batch', '-noagent', '-P', String(way.service.sshPort), '-hostkey', hostKey, ...withKey()]
  const to = `${way.sshid()}@127.0.0.1`
  const said = await run('plink', [...flags, to, 'echo in'], undefined, env())
  expect([said.status, said.stdout.toString()]).toEqual([0, 'in\n'])
  const words = ['-q', way.where.file('right'), `${to}:${way.there('by-name')}`]
  expect((await run('pscp', [...flags, ...words], undefined, env())).status).toBe(0)
})

// WinSCP runs on Windows only. Its SSH is PuTTY's; these are the parts of its own.
describe('what WinSCP does', () => {
  test('SFTP of version 6 is answered with version 3', async () => {
    const init = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 6])
    const { status, stdout } = await run(
      'plink',
      [...words([...withKey(), '-s']), '127.0.0.1', 'sftp'],
      init,
      env(),
    )
    expect(status).toBe(0)
    expect([...stdout.subarray(4, 9)]).toEqual([2, 0, 0, 0, 3])
  })

  test('in its protocol SCP, commands and scp run one after the other in a shell without a terminal', async () => {
    const file = way.where.write('cargo', 'ropes')
    const lines = [
      'unset LANG; unset LC_ALL',
      `cd ${way.there('')}; echo "WinSCP: this is end-of-file:$?"`,
      'ls -la --full-time . > listing; echo "WinSCP: this is end-of-file:$?"',
      `scp -p -t ${way.there('by-shell')}; echo "WinSCP: this is end-of-file:$?"`,
      // What scp reads: a file of five bytes, its end, and no more files.
      'C0644 5 by-shell',
    ]
    const input = Buffer.concat([Buffer.from(`${lines.join('\n')}\n`), readFileSync(file), Buffer.from([0])])
    await using shell = watch('plink', [...words([...withKey(), '-T']), '127.0.0.1'], env())
    shell.child.stdin.write(input)
    await shell.until(/(?:[^]*end-of-file:0){2}/)
    await eventually(() => expect(readFileSync(way.there('by-shell'), 'utf8')).toBe('ropes'))
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('a command runs and its number is told', async () => {
    const { status, stdout } = await plink(withKey(), 'echo out; exit 3', undefined, { device: old.name })
    expect([status, stdout.toString()]).toEqual([3, 'out\n'])
  })
})
