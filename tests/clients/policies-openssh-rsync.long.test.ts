// What a namespace forbids in sessions, met by the real sftp, scp, rsync and ssh, and by a browser's files:
// each is refused with a sentence, the audit log has it, and what is not forbidden goes on.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openPolicy, type Policy } from '@hawser/contract/policies'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { bothDatabases } from '../harness/place.ts'
import { eventually, openWay, watch, type How, type Way } from './way.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const large = randomBytes(2_000_003)
const uploads = 'The policy of the namespace does not allow uploads'
const downloads = 'The policy of the namespace does not allow downloads'

describe.each(bothDatabases)('%s', (_, options) => {
  let way: Way
  beforeAll(async () => {
    way = await openWay({}, await options())
    way.where.write('large', large)
  })
  afterAll(() => way[Symbol.asyncDispose]())
  beforeEach(() => allow(openPolicy))

  const allow = async (change: Partial<Policy>): Promise<void> =>
    void (await way.owner.policies.update({ body: change }))
  const args = (how?: How): string[] => way.args(how).map((word) => (word === '-p' ? '-P' : word))
  const at = (name: string): string => `${way.sshid()}@127.0.0.1:${name}`
  const scp = async (...words: string[]): Promise<Outcome> => run('scp', [...args(), '-q', ...words])
  const sftp = async (...lines: string[]): Promise<Outcome> =>
    run('sftp', [...args(), '-q', '-b', '-', `${way.sshid()}@127.0.0.1`], `${lines.join('\n')}\n`)
  const rsync = async (...words: string[]): Promise<Outcome> =>
    run('rsync', ['-e', ['ssh', ...way.args()].join(' '), ...words])
  const there = (name: string): string => {
    writeFileSync(way.there(name), large)
    return way.there(name)
  }

  test('uploads: every way is refused with the reason, and downloads go on', async () => {
    await allow({ uploads: false })
    const file = there('kept')
    const refused = [
      await scp(way.where.file('large'), at(way.there('no'))),
      await scp('-O', way.where.file('large'), at(way.there('no'))),
      await rsync(way.where.file('large'), at(way.there('no'))),
      await sftp(`put ${way.where.file('large')} ${way.there('no')}`),
      await sftp(`rm ${file}`),
      await sftp(`rename ${file} ${way.there('no')}`),
      await sftp(`mkdir ${way.there('no')}`),
      await sftp(`chmod 777 ${file}`),
      await sftp(`ln -s ${file} ${way.there('no')}`),
      await sftp(`ln ${file} ${way.there('no')}`),
      await way.ssh('/usr/lib/openssh/sftp-server'),
    ]
    for (const { status, stderr } of refused) {
      expect(status).not.toBe(0)
      // The sftp of OpenSSH has words of its own for the code.
      expect(stderr).toMatch(new RegExp(`${uploads}|[Pp]ermission denied`))
    }
    expect(existsSync(way.there('no'))).toBe(false)
    for (const words of [[], ['-O']]) {
      const got = way.where.file(`got${words.join('')}`)
      expect((await scp(...words, at(file), got)).status).toBe(0)
      expect(readFileSync(got).equals(large)).toBe(true)
    }
    expect((await rsync(at(file), way.where.file('got-rsync'))).status).toBe(0)
    await eventually(async () => {
      const { body } = await way.owner.audit.list({ query: { action: 'policy.refused' } })
      const kinds = body.entries.map(({ detail }) => detail['kind'])
      for (const kind of ['exec', 'upload', 'remove', 'rename', 'make-folder', 'change', 'link'])
        expect(kinds).toContain(kind)
      expect(body.entries.every(({ detail }) => String(detail['why']).startsWith(uploads))).toBe(true)
    })
  })

  test('downloads: every way is refused with the reason, and uploads go on', async () => {
    await allow({ downloads: false })
    const file = there('secret')
    const refused = [
      await scp(at(file), way.where.file('no')),
      await scp('-O', at(file), way.where.file('no')),
      await rsync(at(file), way.where.file('no')),
      await sftp(`get ${file} ${way.where.file('no')}`),
    ]
    for (const { status, stderr } of refused) {
      expect(status).not.toBe(0)
      expect(stderr).toMatch(new RegExp(`${downloads}|[Pp]ermission denied`))
    }
    expect(existsSync(way.where.file('no')) && readFileSync(way.where.file('no')).length > 0).toBe(false)
    expect((await scp(way.where.file('large'), at(way.there('up')))).status).toBe(0)
    expect(readFileSync(way.there('up')).equals(large)).toBe(true)
    expect((await sftp(`ls ${way.there('')}`)).stdout.toString()).toContain('secret')
    // The guide says so: a shell is a shell.
    expect((await way.ssh(`cat ${file}`)).stdout.equals(large)).toBe(true)
  })

  test('the reason of SFTP reaches clients that show it', async () => {
    await allow({ uploads: false })
    const { stderr } = await run(
      'sftp',
      [...args(), '-vv', '-b', '-', `${way.sshid()}@127.0.0.1`],
      `put ${way.where.file('large')} ${way.there('no')}\n`,
    )
    expect(stderr).toMatch(/permission denied/i)
  })

  test('subsystems, forbidden by name or all', async () => {
    await allow({ subsystem_exceptions: ['sftp'] })
    const { status, stderr } = await sftp('pwd')
    expect(status).not.toBe(0)
    expect(stderr).toContain('The policy of the namespace does not allow this subsystem.')
    await allow({ subsystems: 'forbid', subsystem_exceptions: ['sftp'] })
    expect((await sftp('pwd')).status).toBe(0)
    const other = await way.ssh('netconf', { flags: ['-s'] })
    expect([other.status, other.stderr]).toEqual([
      1,
      expect.stringContaining('does not allow this subsystem'),
    ])
    expect((await way.ssh('echo fine')).stdout.toString()).toBe('fine\n')
  })

  test('forwards by destination', async () => {
    using echo = await startEcho()
    await allow({ forwards: 'forbid', forward_exceptions: [`localhost:${echo.port}`] })
    const to = async (address: string) =>
      way.ssh(undefined, { settings: ['LogLevel=INFO'], flags: ['-W', address], input: 'x' })
    expect((await to(`127.0.0.1:${echo.port}`)).stdout.toString()).toBe('x')
    const { status, stderr } = await to('127.0.0.1:1')
    expect(status).toBe(255)
    expect(stderr).toContain('The policy of the namespace does not allow connections to this address.')
    await allow({ forwards: 'allow' })
    expect((await to(`127.1:${echo.port}`)).stderr).toContain('does not allow connections to this address')
    await allow({ forward_exceptions: [] })
    expect((await to(`127.1:${echo.port}`)).stdout.toString()).toBe('x')
    await allow({ forwards: 'forbid' })
    const remote = await way.ssh('true', {
      settings: ['LogLevel=INFO', 'ExitOnForwardFailure=yes'],
      flags: ['-R', `127.0.0.1:${await freePort()}:127.0.0.1:${echo.port}`],
    })
    expect(remote.stderr).toContain('remote port forwarding failed')
  })

  test('a change ends what it forbids in sessions that go on, and nothing else', async () => {
    using echo = await startEcho()
    const port = await freePort()
    await using client = way.start('echo begun; cat', {
      flags: ['-L', `127.0.0.1:${port}:localhost:${echo.port}`],
    })
    await client.until(/begun/)
    await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
    expect((await roundTrip(port, large)).equals(large)).toBe(true)
    const { uid } = await way.newest()
    await allow({ forwards: 'forbid' })
    await eventually(async () => {
      await roundTrip(port, Buffer.from('x')).catch(() => undefined)
      const { body } = await way.owner.sessions.events({ params: { uid }, query: { limit: 500 } })
      expect(body.events.at(-1)).toMatchObject({ kind: 'forward', outcome: 'refused' })
    })
    client.child.stdin.write('still here\n')
    await client.until(/still here/)
  })

  test('an SFTP connection that goes on ends when transfers are restricted', async () => {
    await using client = watch('sftp', [...args(), '-b', '-', `${way.sshid()}@127.0.0.1`])
    client.child.stdin.write('pwd\n')
    await client.until(/Remote working directory/)
    await allow({ uploads: false })
    await client.until(new RegExp(`(${uploads})`))
    client.child.stdin.write('ls\n')
    expect(await client.status).not.toBe(0)
  })

  test('one goes on when a policy allows more, and ends with the reason that is new', async () => {
    await allow({ uploads: false, downloads: false })
    await using client = watch('sftp', [...args(), '-b', '-', `${way.sshid()}@127.0.0.1`])
    client.child.stdin.write('pwd\n')
    await client.until(/Remote working directory/)
    await allow({ downloads: true })
    client.child.stdin.write('cd /usr/bin\npwd\n')
    await client.until(/directory: \/usr\/bin/)
    client.child.stdin.end()
    expect(await client.status).toBe(0)
    await using other = watch('sftp', [...args(), '-b', '-', `${way.sshid()}@127.0.0.1`])
    other.child.stdin.write('pwd\n')
    await other.until(/Remote working directory/)
    await allow({ downloads: false })
    await other.until(new RegExp(`(${downloads})`))
  })

  test.each([
    ['scp -t', { uploads: false }, uploads],
    ['scp -f', { downloads: false }, downloads],
    ['rsync --server -e.LsfxCIvu .', { uploads: false }, uploads],
    ['rsync --server --sender -e.LsfxCIvu .', { downloads: false }, downloads],
  ])(
    '%s that goes on ends when the policy forbids it, and other commands go on',
    async (line, change, why) => {
      await using client = way.start(`echo begun; ${line} ${there('copied')}`)
      await using other = way.start('echo begun; cat')
      await Promise.all([client.until(/begun/), other.until(/begun/)])
      await allow(change)
      await client.until(new RegExp(`(${why}, and this command)`))
      expect(await client.status).toBe(1)
      other.child.stdin.end('still here')
      expect(await other.status).toBe(0)
      expect(other.stdout()).toContain('still here')
    },
  )

  test('a subsystem that goes on ends when it is forbidden', async () => {
    await using client = watch('sftp', [...args(), '-b', '-', `${way.sshid()}@127.0.0.1`])
    client.child.stdin.write('pwd\n')
    await client.until(/Remote working directory/)
    await allow({ subsystem_exceptions: ['sftp'] })
    await client.until(/(does not allow this subsystem)/)
  })

  test('several edits at once all count', async () => {
    await Promise.all([
      allow({ uploads: false }),
      allow({ downloads: false }),
      allow({ forwards: 'forbid' }),
      allow({ subsystems: 'forbid' }),
    ])
    expect((await way.owner.policies.get()).body).toEqual({
      ...openPolicy,
      uploads: false,
      downloads: false,
      forwards: 'forbid',
      subsystems: 'forbid',
    })
  })

  test('an explanation of a login names it', async () => {
    await allow({ uploads: false })
    const { body } = await way.owner.logins.explain({
      body: { device: way.agent.name, username: way.user.name },
    })
    expect(body.steps.at(-1)).toMatchObject({
      check: 'policy',
      verdict: 'passed',
      sentence: 'The policy of the namespace forbids uploads.',
      rule: { kind: 'policy', path: '/api/policy' },
    })
  })
})
