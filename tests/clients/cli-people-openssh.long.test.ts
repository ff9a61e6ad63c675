// People in the command line: ssh, scp, forward and run say who is signed in, keys that one adds are one's
// own unless one says otherwise, and sessions are listed by person.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PublicKey } from '@hawser/contract/public-keys'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { freePort, keygen, run } from '../../ssh/test/programs.ts'
import { eventually, sharedWay } from './way.ts'

const port = await freePort()
const way = sharedWay({
  HAWSER_URL: '',
  HAWSER_SSH: `127.0.0.1:${port}`,
  HAWSER_SSH_PUBLIC_PORT: String(port),
})

let desk: Desk
beforeAll(async () => {
  desk = openDesk({ HAWSER_SERVER: way.service.url })
  const { username, password } = sample.owner
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => desk[Symbol.dispose]())

describe('hawser keys add', () => {
  /** A new key, added with these options. */
  async function added(name: string, options: readonly string[] = [], env: Record<string, string> = {}) {
    await keygen(way.where, name, '-t', 'ed25519')
    const words = ['-o', 'json', 'keys', 'add', way.where.file(`${name}.pub`), ...options]
    const { code, stdout, stderr } = await desk.hawser(words, { env })
    return { code, stderr, key: stdout === '' ? undefined : (JSON.parse(stdout) as PublicKey) }
  }

  test('adds a key of one’s own, and says so', async () => {
    const { code, stderr, key } = await added('mine')
    expect(code).toBe(0)
    expect(key).toMatchObject({ owner: sample.owner.id, owner_name: sample.owner.username })
    expect(stderr).toContain('It is yours')
    expect((await desk.hawser(['keys'])).stdout).toMatch(/^NAME .*OWNER NAME/)
  })

  test.each([
    ['--shared', ['--shared'], {}, ''],
    ['--certificate-authority', ['--certificate-authority'], {}, ''],
    ['--owner', ['--owner', sample.operator.username], {}, sample.operator.id],
    ['an API key instead of a person', [], { HAWSER_API_KEY: sample.apiKey }, ''],
  ])('with %s adds one for somebody else, or for nobody in particular', async (name, options, env, owner) => {
    const { code, stderr, key } = await added(name.replaceAll(/\W/g, '-'), options, env)
    expect([code, stderr]).toEqual([0, ''])
    expect(key).toMatchObject({ owner })
  })

  test('refuses who is no member, and two answers to whose key it is', async () => {
    const stranger = await added('strange', ['--owner', sample.stranger.username])
    expect([stranger.code, stranger.stderr]).toEqual([2, expect.stringContaining('no member has this id')])
    expect(await added('both', ['--owner', 'oskar', '--shared'])).toMatchObject({ code: 2 })
  })
})

describe('hawser sessions', () => {
  const listed = async (...options: string[]): Promise<Session[]> => {
    const { code, stdout } = await desk.hawser(['-o', 'json', 'sessions', ...options])
    expect(code).toBe(0)
    return JSON.parse(stdout) as Session[]
  }

  test('lists who it was, and those of one person, device or method', async () => {
    await keygen(way.where, 'oskars', '-t', 'ed25519')
    await way.register('oskars', { owner: 'oskar' })
    expect((await way.ssh('true', { key: 'oskars' })).status).toBe(0)
    expect((await way.ssh('true')).status).toBe(0)
    const his = await listed('--person', 'oskar')
    expect(his.map(({ person }) => person.name)).toEqual(['oskar'])
    const there = await listed('--person', sample.operator.id, '--device-uid', way.agent.name)
    expect(there.map(({ uid }) => uid)).toEqual(his.map(({ uid }) => uid))
    expect(await listed('--person', 'oskar', '--method', 'password')).toEqual([])
    const { stdout } = await desk.hawser(['sessions'])
    expect(stdout).toMatch(/^UID +DEVICE +USERNAME +PERSON/)
    expect(stdout).toMatch(new RegExp(`${way.agent.name} +${way.user.name} +oskar +127`))
  })
})

describe('what reaches a device', () => {
  const olga = { kind: 'user', id: sample.owner.id, name: sample.owner.username }
  const at = (): string => `${way.user.name}@${way.agent.name}`
  const quiet = (...more: string[]): string[] => [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    ...more,
  ]
  const options = (...more: string[]): string[] => quiet(...more).flatMap((one) => ['-o', one])
  const keyed = (): string[] => [
    '-F',
    'none',
    ...options('BatchMode=yes', `IdentityFile=${way.where.file('olga')}`),
  ]
  const left = (): string[] => readdirSync(os.tmpdir()).filter((name) => name.startsWith('hawser-identity-'))

  test('hawser ssh with a key that has no owner is the session of who is signed in', async () => {
    const before = left()
    expect(await desk.hawser(['ssh', ...keyed(), at(), 'echo in'])).toEqual({
      code: 0,
      stdout: 'in\n',
      stderr: '',
    })
    expect(await way.newest()).toMatchObject({
      person: olga,
      via: 'cli',
      method: 'publickey',
      key: { name: 'olga' },
    })
    expect(left()).toEqual(before)
  })

  test('with the password of the device, too', async () => {
    const words = ['ssh', '-F', 'none', ...options('NumberOfPasswordPrompts=1'), at(), 'echo in']
    const { env } = way.saying(way.user.password)
    expect(await desk.hawser(words, { env })).toEqual({ code: 0, stdout: 'in\n', stderr: '' })
    expect(await way.newest()).toMatchObject({ person: olga, via: 'cli', method: 'password' })
  })

  test('with six keys of which the last is right, as without', async () => {
    const names = ['k1', 'k2', 'k3', 'k4', 'k5']
    for (const name of names) await keygen(way.where, name, '-t', 'ed25519')
    const files = [...names, 'olga'].map((name) => `IdentityFile=${way.where.file(name)}`)
    const words = ['ssh', '-F', 'none', ...options('BatchMode=yes', ...files), at(), 'echo in']
    expect(await desk.hawser(words)).toMatchObject({ code: 0, stdout: 'in\n' })
    expect(await way.newest()).toMatchObject({ person: olga, key: { name: 'olga' } })
  })

  test('with an agent that has the key', async () => {
    const socket = way.where.file('agent')
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' })
    try {
      await eventually(() => expect(existsSync(socket)).toBe(true))
      const env = { SSH_AUTH_SOCK: socket }
      expect((await run('ssh-add', ['-q', way.where.file('olga')], undefined, env)).status).toBe(0)
      const words = ['ssh', '-F', 'none', ...options('BatchMode=yes'), at(), 'echo in']
      expect(await desk.hawser(words, { env })).toMatchObject({ code: 0, stdout: 'in\n' })
      expect(await way.newest()).toMatchObject({ person: olga, method: 'publickey' })
    } finally {
      agent.kill()
    }
  })

  test('hawser scp and hawser run', async () => {
    const file = way.where.write('cargo', 'ropes')
    expect(await desk.hawser(['scp', ...keyed(), file, `${at()}:${way.there('cargo')}`])).toMatchObject({
      code: 0,
    })
    expect(await way.newest()).toMatchObject({ person: olga, via: 'cli' })
    const own = quiet(`IdentityFile=${way.where.file('olga')}`).flatMap((one) => ['--ssh-option', one])
    const ran = await desk.hawser(['run', '-d', way.agent.name, '-u', way.user.name, ...own, '--', 'echo in'])
    expect(ran).toMatchObject({ code: 0 })
    expect(await way.newest()).toMatchObject({ person: olga, via: 'cli', type: 'exec' })
  })

  test('hawser forward', async () => {
    const here = await freePort()
    const own = quiet('BatchMode=yes', `IdentityFile=${way.where.file('olga')}`).flatMap((one) => [
      '--ssh-option',
      one,
    ])
    const before = (await way.newest()).uid
    using terminal = desk.terminal(['forward', at(), `${here}:1`, ...own])
    await eventually(async () => expect((await way.newest()).uid).not.toBe(before))
    expect(await way.newest()).toMatchObject({ person: olga, via: 'cli', key: { name: 'olga' } })
    terminal.type('\u0003')
    await terminal.ended
  })

  test('an API key is the key, and names its maker', async () => {
    const env = { HAWSER_API_KEY: sample.apiKey }
    expect(await desk.hawser(['ssh', ...keyed(), at(), 'true'], { env })).toMatchObject({ code: 0 })
    expect(await way.newest()).toMatchObject({
      person: { kind: 'api-key', id: 'backup', name: 'backup', created_by: sample.administrator.username },
      via: 'cli',
    })
  })

  test('nobody who is signed in is nobody', async () => {
    const env = { XDG_CONFIG_HOME: path.join(desk.folder, 'nobody') }
    const target = `${way.user.name}@${sample.namespace}.${way.agent.name}`
    expect(await desk.hawser(['ssh', ...keyed(), target, 'true'], { env })).toMatchObject({ code: 0 })
    expect(await way.newest()).toMatchObject({ person: { kind: 'unknown' }, via: 'ssh' })
  })

  test('gets in where known people are demanded', async () => {
    const settings = (require_person: boolean) =>
      way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { require_person } } })
    await settings(true)
    try {
      expect((await way.ssh('true')).status).toBe(255)
      expect(await desk.hawser(['ssh', ...keyed(), at(), 'true'])).toMatchObject({ code: 0, stderr: '' })
      expect(await way.newest()).toMatchObject({ person: olga })
    } finally {
      await settings(false)
    }
  })
})
