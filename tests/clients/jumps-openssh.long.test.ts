// Devices as a way to somewhere else: -J from the real OpenSSH client through a device to servers and devices
// behind it, and
// -A, which lends the person's own keys to what runs on the device.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fingerprintSha256, parsePublicKeyLine } from '@hawser/ssh'
import { freePort, keygen, run, startSshd, type Outcome, type Sshd } from '../../ssh/test/programs.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedOldAgent, sharedWay, watch, type Running } from './way.ts'

const way = sharedWay()
let sshd: Sshd
let keeper: Running
let keeperSocket: string

beforeAll(async () => {
  sshd = await startSshd(way.where, way.where.read('olga.pub'))
  keeperSocket = way.where.file('keeper.sock')
  keeper = watch('ssh-agent', ['-D', '-a', keeperSocket])
  await keeper.until(/SSH_AUTH_SOCK/)
  await run('ssh-add', ['-q', way.where.file('olga')], undefined, { SSH_AUTH_SOCK: keeperSocket })
  // For the jumps, to which the client does not hand on what stands on its command line.
  const lines = [
    'StrictHostKeyChecking no',
    'UserKnownHostsFile /dev/null',
    'LogLevel ERROR',
    'BatchMode yes',
    'IdentitiesOnly yes',
  ]
  way.where.write('config', ['Host *', ...lines, `IdentityFile ${way.where.file('olga')}`, ''].join('\n'))
})
afterAll(async () => {
  await keeper[Symbol.asyncDispose]()
  await sshd[Symbol.asyncDispose]()
})

describe('-J', () => {
  const old = sharedOldAgent(way, 2)
  const door = (device?: string): string =>
    `${way.sshid(device === undefined ? {} : { device })}@127.0.0.1:${way.service.sshPort}`
  const jump = async (through: string[], port: number, to: string, command: string): Promise<Outcome> =>
    run('ssh', [
      '-F',
      way.where.file('config'),
      '-J',
      through.join(','),
      '-p',
      String(port),
      `${to}@127.0.0.1`,
      command,
    ])

  test('through a device to a server that it can reach', async () => {
    const { stdout, status } = await jump(
      [door()],
      sshd.port,
      sshd.user,
      'echo "behind $SSH_CONNECTION"; exit 3',
    )
    expect(status).toBe(3)
    expect(stdout.toString()).toMatch(new RegExp(`^behind 127.0.0.1 \\d+ 127.0.0.1 ${sshd.port}\n`))
  })

  test('through a device to another one, which sees them as two sessions', async () => {
    const { stdout, status } = await jump(
      [door()],
      way.service.sshPort,
      way.sshid({ device: old.name }),
      'echo there',
    )
    expect([stdout.toString(), status]).toEqual(['there\n', 0])
    // The type of a session is written a moment after it is known.
    await eventually(async () => {
      const { body } = await way.owner.sessions.list({ query: {} })
      expect(body.slice(0, 2).map(({ device_uid, type }) => [device_uid, type])).toEqual([
        [old.uid, 'exec'],
        [way.agent.uid, 'none'],
      ])
    })
  })

  test('through two of them', async () => {
    const { stdout, status } = await jump([door(), door(old.name)], sshd.port, sshd.user, 'echo far')
    expect([stdout.toString(), status]).toEqual(['far\n', 0])
  })

  test('to where nothing listens ends with what happened', async () => {
    const { stderr, status } = await jump([door()], await freePort(), 'nobody', 'true')
    expect(status).toBe(255)
    expect(stderr).toContain('stdio forwarding failed')
  })

  test('through a device where one may not log in leads no further', async () => {
    const before = sshd.log()
    const { stderr, status } = await jump([door('nowhere')], sshd.port, sshd.user, 'true')
    expect(status).toBe(255)
    expect(stderr).toContain('nowhere is offline or cannot be reached')
    expect(sshd.log()).toBe(before)
  })
})

describe('-A', () => {
  const env = (): Record<string, string> => ({ SSH_AUTH_SOCK: keeperSocket })
  const print = (): string => fingerprintSha256(parsePublicKeyLine(way.where.read('olga.pub')).blob)

  test('what runs on the device can use the person’s keys, one after the other and at once', async () => {
    const { stdout, status } = await way.ssh('ssh-add -l; ssh-add -l & ssh-add -l & wait', {
      flags: ['-A'],
      env: env(),
    })
    expect(status).toBe(0)
    expect(stdout.toString().split(print())).toHaveLength(4)
  })

  test('and log in elsewhere with them', async () => {
    const onwards = `ssh -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -p ${sshd.port} ${sshd.user}@127.0.0.1`
    const lent = await way.ssh(`${onwards} 'echo onwards'`, { flags: ['-A'], env: env() })
    expect(lent.stdout.toString()).toBe('onwards\n')
    const alone = await way.ssh(`${onwards} 'echo onwards'`, { flags: ['-a'], env: env() })
    expect([alone.stdout.toString(), alone.status]).toEqual(['', 255])
  })

  test('in a shell on a terminal, too', async () => {
    const { stdout } = await way.ssh('ssh-add -l', { flags: ['-A', '-tt'], env: env() })
    expect(stdout.toString()).toContain(print())
  })

  test('without it there is nothing to use', async () => {
    const { stdout, status } = await way.ssh('echo "<$SSH_AUTH_SOCK>"; ssh-add -l', { env: env() })
    expect(stdout.toString()).toBe('<>\n')
    expect(status).toBe(2)
  })

  test('a certificate that does not permit it lends nothing', async () => {
    for (const name of ['holder', 'authority']) await keygen(way.where, name, '-t', 'ed25519')
    await way.register('authority', { certificate_authority: true })
    await run('ssh-keygen', [
      '-q',
      '-s',
      way.where.file('authority'),
      '-I',
      'h',
      '-n',
      way.user.name,
      '-O',
      'no-agent-forwarding',
      way.where.file('holder.pub'),
    ])
    const { stdout } = await way.ssh('echo "<$SSH_AUTH_SOCK>"', { key: 'holder', flags: ['-A'], env: env() })
    expect(stdout.toString()).toBe('<>\n')
  })
})
