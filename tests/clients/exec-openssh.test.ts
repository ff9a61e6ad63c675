// Commands that the real OpenSSH client runs on a device, through everything that lies between: how they end,
// what they print and read, and which of the client's variables they see. The agents of the field take part
// where the gateway has to see to it that they do as well.
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedOldAgent, sharedWay } from './way.ts'

const way = sharedWay()

describe('how a command ended', () => {
  test.each([0, 1, 3, 127, 254])('is told by its number, here %i', async (status) => {
    expect((await way.ssh(`exit ${status}`)).status).toBe(status)
  })

  test('a command that is not there ends as the shell of the device says', async () => {
    const { status, stderr } = await way.ssh('no-such-command')
    expect(status).toBe(127)
    expect(stderr).toContain('not found')
  })

  test('a killed program is told by its signal, for which the client has no number', async () => {
    const { status, stderr } = await way.ssh('kill -KILL $$', { settings: ['LogLevel=DEBUG1'] })
    expect(status).toBe(255)
    expect(stderr).toContain('rtype exit-signal')
    expect(stderr).not.toContain('rtype exit-status')
  })
})

describe('what it prints and reads', () => {
  test('errors are apart from the rest', async () => {
    const { stdout, stderr, status } = await way.ssh('echo out; echo err >&2; exit 3')
    expect([stdout.toString(), stderr, status]).toEqual(['out\n', 'err\n', 3])
  })

  test('twenty megabytes of both at once arrive whole', async () => {
    const half =
      '(head -c 10000000 /dev/zero | tr "\\0" e >&2) & head -c 10000000 /dev/zero | tr "\\0" o; wait'
    const { stdout, stderr, status } = await way.ssh(half)
    expect([stdout.length, stderr.length, status]).toEqual([10_000_000, 10_000_000, 0])
    expect(/^o+$/.test(stdout.toString()) && /^e+$/.test(stderr)).toBe(true)
  })

  test('what is piped in comes out of a program that reads to the end', async () => {
    const sent = randomBytes(8 * 1024 * 1024)
    const { stdout, status } = await way.ssh('cat; exit 7', { input: sent })
    expect(stdout.equals(sent)).toBe(true)
    expect(status).toBe(7)
  })

  test('without input it reads the end at once, also with -n', async () => {
    for (const flags of [[], ['-n']]) {
      const { stdout } = await way.ssh('wc -c', { flags })
      expect(stdout.toString().trim()).toBe('0')
    }
  })

  test('a program that does not read its input does not hold the session', async () => {
    const { status } = await way.ssh('exit 4', { input: randomBytes(4 * 1024 * 1024) })
    expect(status).toBe(4)
  })
})

describe('the connection under it', () => {
  test('new keys while data flows both ways harm nothing', async () => {
    const sent = randomBytes(4 * 1024 * 1024)
    const { stdout, stderr } = await way.ssh('cat', {
      input: sent,
      settings: ['RekeyLimit=512K', 'LogLevel=DEBUG1'],
    })
    expect(stdout.equals(sent)).toBe(true)
    expect(stderr.split('SSH2_MSG_NEWKEYS received').length).toBeGreaterThan(5)
  })

  test('while nothing happens the client’s keepalives are answered', async () => {
    await using client = way.start('exec cat', { settings: ['ServerAliveInterval=1', 'LogLevel=DEBUG3'] })
    // A global request, and an answer to it.
    await client.until(/send packet: type 80[^]*receive packet: type 8[12]/)
    client.child.stdin.end()
    expect(await client.status).toBe(0)
  })
})

describe('who it is, and where', () => {
  test('it runs as the user of the SSHID and knows where the person comes from', async () => {
    const { stdout } = await way.ssh('id -un; echo "$SSH_CLIENT"; echo "$HAWSER_DEVICE"')
    const [user, client, device] = stdout.toString().split('\n')
    expect(user).toBe(way.user.name)
    expect(client).toMatch(/^127\.0\.0\.1 [1-9]\d+ \d+$/)
    expect(device).toBe(way.agent.name)
  })

  test('a device is found by its uid, too', async () => {
    const { stdout } = await way.ssh('echo "$HAWSER_DEVICE"', {
      flags: ['-l', `${way.user.name}@${way.agent.uid}`],
    })
    expect(stdout.toString()).toBe(`${way.agent.name}\n`)
  })
})

const sent =
  'SetEnv=LANG=sv_SE.UTF-8 LC_TIME=da_DK.UTF-8 COLORTERM=truecolor LD_PRELOAD=/evil.so BASH_ENV=/evil.sh PATH=/evil EVIL=1'
/** What it finds in its environment of what was sent. */
const found = (env: string): string[] =>
  env.split('\n').filter((line) => /^(LANG|LC_TIME|COLORTERM|LD_PRELOAD|BASH_ENV|EVIL)=|evil/.test(line))
const harmless = ['COLORTERM=truecolor', 'LANG=sv_SE.UTF-8', 'LC_TIME=da_DK.UTF-8']

test('of the client’s variables language and colours reach the program, what could run code does not', async () => {
  const { stdout, status } = await way.ssh('env', { settings: [sent] })
  expect(status).toBe(0)
  expect(found(stdout.toString()).toSorted()).toEqual(harmless)
})

describe('variables that the namespace names', () => {
  const name = async (...accept_env: string[]): Promise<void> =>
    void (await way.owner.namespaces.edit({
      params: { tenant: sample.tenant },
      body: { settings: { accept_env } },
    }))
  const more =
    'SetEnv=DEPLOY_TARGET=pier/7 CI_JOB=12 OTHER=x LD_PRELOAD=/evil.so BASH_ENV=/evil.sh GIT_SSH_COMMAND=evil LC_TIME=C'
  const wanted = (env: string): string[] =>
    env
      .split('\n')
      .filter((line) => /^(DEPLOY_TARGET|CI_JOB|OTHER|LC_TIME|HAWSER_ENV_.*)=|evil/.test(line))
      .toSorted()

  test('reach the program, and no others', async () => {
    await name('DEPLOY_TARGET', 'CI_*')
    const { stdout } = await way.ssh('env', { settings: [more] })
    expect(wanted(stdout.toString())).toEqual(['CI_JOB=12', 'DEPLOY_TARGET=pier/7', 'LC_TIME=C'])
    await name()
    const { stdout: again } = await way.ssh('env', { settings: [more] })
    expect(wanted(again.toString())).toEqual(['LC_TIME=C'])
  })

  test.each([1, 2] as const)(
    'reach a device of the field, with a tunnel of version %i, under their names',
    async (version) => {
      await name('DEPLOY_TARGET', 'CI_*', 'L*', 'B*')
      await using old = await way.oldAgent(version)
      await way.ssh('true', { device: old.name, settings: [more] })
      const heard = [...old.seen.sessions.at(-1)!.env]
        .map(([variable, value]) => `${variable}=${value}`)
        .toSorted()
      expect(heard).toEqual(['CI_JOB=12', 'DEPLOY_TARGET=pier/7', 'LC_TIME=C'])
    },
  )

  test.each(['LD_PRELOAD', 'LD_*', 'PATH', 'BASH_ENV', 'GIT_SSH_COMMAND', 'A=B', '*', ''])(
    '%j cannot be named',
    async (variable) => {
      await expect(name('DEPLOY_TARGET', variable)).rejects.toMatchObject({ status: 400 })
    },
  )
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)

  test('of the client’s variables it hears of none that could run code', async () => {
    const { status } = await way.ssh('true', { device: old.name, settings: [sent] })
    expect(status).toBe(0)
    expect([...old.seen.sessions.at(-1)!.env].map(([name, value]) => `${name}=${value}`).toSorted()).toEqual(
      harmless,
    )
  })

  test('a killed program is told by its signal', async () => {
    const { status, stderr } = await way.ssh('kill -TERM $$', {
      device: old.name,
      settings: ['LogLevel=DEBUG1'],
    })
    expect(status).toBe(255)
    expect(stderr).toContain('rtype exit-signal')
  })

  test('a shell without a terminal does what it is told', async () => {
    const { stdout, status } = await way.ssh(undefined, {
      device: old.name,
      flags: ['-T'],
      input: 'echo one; exit 6\n',
    })
    expect([stdout.toString(), status]).toEqual(['one\n', 6])
  })
})
