// The command line on its way to devices, with the real OpenSSH programs and a real agent: shells, commands,
// copies, forwards, plain ssh after `config ssh`, many devices at once; and what is said when it is not
// possible.
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, keygen, run } from '../../ssh/test/programs.ts'
import { forwardOf } from '../../cli/src/commands/ssh.ts'
import { sshidOf } from '../../cli/src/openssh.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { startAgent } from '../harness/agent.ts'
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

/** What a test needs ssh to know: nothing of this machine, and the key. */
const quiet = (key = 'olga') => [
  'StrictHostKeyChecking=no',
  'UserKnownHostsFile=/dev/null',
  'LogLevel=ERROR',
  'IdentitiesOnly=yes',
  'BatchMode=yes',
  `IdentityFile=${way.where.file(key)}`,
]
const flags = (key?: string) => ['-F', 'none', ...quiet(key).flatMap((one) => ['-o', one])]
const ownOptions = (key?: string) => quiet(key).flatMap((one) => ['--ssh-option', one])
const at = (device: string) => `${way.user.name}@${device}`

describe('hawser ssh', () => {
  test('runs a command on a device that is named by its name or by the beginning of its uid, and has its exit code', async () => {
    for (const device of [
      way.agent.name,
      way.agent.uid.slice(0, 10),
      `${sample.namespace}.${way.agent.name}`,
    ]) {
      const said = await desk.hawser(
        ['ssh', ...flags(), at(device), 'echo "on $0"; cat; echo bad >&2; exit 7'],
        { input: 'and on' },
      )
      expect(said).toEqual({
        code: 7,
        stdout: expect.stringMatching(/^on .*\nand on$/) as string,
        stderr: 'bad\n',
      })
    }
  })

  test('opens a shell on a terminal', async () => {
    using terminal = desk.terminal(['ssh', ...flags(), at(way.agent.name)])
    terminal.type('unset HISTFILE; tty; echo he"re"; exit 3\n')
    await terminal.until(/here/)
    expect(await terminal.ended).toBe(3)
    expect(terminal.shown()).toMatch(/\/dev\/pts\//)
  })

  test('gives ssh its options, and a command with dashes as it is', async () => {
    const words = ['ssh', '-C', ...flags(), at(way.agent.name), '--', 'printf', '%s', '-v']
    const said = await desk.hawser(words)
    expect(said).toMatchObject({ code: 0, stdout: '-v' })
  })

  test.each([
    ['no device', [], 2, /No device given\./],
    ['only options', ['-A', '-o', 'X=y'], 2, /No device given\./],
    ['an unknown one', ['dinghy'], 5, /There is no device dinghy/],
    ['a pending one', ['buoy'], 1, /buoy is pending.*hawser devices accept buoy/],
  ] as const)('with %s says what to do', async (_, words, code, sentence) => {
    const said = await desk.hawser(['ssh', ...words])
    expect([said.code, said.stderr]).toEqual([code, expect.stringMatching(sentence)])
  })

  test('is refused where the key is not known, as ssh says it', async () => {
    await keygen(way.where, 'other', '-t', 'ed25519')
    const said = await desk.hawser(['ssh', ...flags('other'), at(way.agent.name), 'true'])
    expect([said.code, said.stderr]).toEqual([255, expect.stringMatching(/Permission denied/)])
  })

  test('without ssh on the machine says what to install', async () => {
    const said = await desk.hawser(['ssh', at(way.agent.name)], { env: { PATH: desk.folder } })
    expect([said.code, said.stderr]).toEqual([
      1,
      expect.stringMatching(/ssh is not installed here.*openssh-client/),
    ])
  })
})

test.each([
  ['a space', { namespace: 'harbour', name: 'a b' }],
  ['a line', { namespace: 'harbour', name: 'a\nProxyCommand x' }],
  ['a token', { namespace: '${HOME}', name: 'a' }],
])('a device with %s in its name is not told to ssh', (_, device) => {
  expect(() => sshidOf('root', device)).toThrow(/is not a valid name for ssh/)
})

describe('hawser scp', () => {
  test('copies there and back, with folders', async () => {
    const here = path.join(desk.folder, 'cargo')
    mkdirSync(here)
    writeFileSync(path.join(here, 'list'), 'ropes\n')
    const there = `${at(way.agent.name)}:${way.there('cargo')}`
    expect(await desk.hawser(['scp', ...flags(), '-r', here, there])).toMatchObject({ code: 0 })
    expect(readFileSync(way.there('cargo/list'), 'utf8')).toBe('ropes\n')
    expect(
      await desk.hawser(['scp', ...flags(), `${there}/list`, path.join(desk.folder, 'back')]),
    ).toMatchObject({ code: 0 })
    expect(readFileSync(path.join(desk.folder, 'back'), 'utf8')).toBe('ropes\n')
  })

  test.each([
    ['one file', ['a'], 2, /Source and target are needed\./],
    ['no device', ['a', './b:c'], 2, /None of these is on a device/],
    ['an unknown device', ['a', 'dinghy:b'], 5, /There is no device dinghy/],
  ] as const)('with %s says what to do', async (_, words, code, sentence) => {
    const said = await desk.hawser(['scp', ...words])
    expect([said.code, said.stderr]).toEqual([code, expect.stringMatching(sentence)])
  })
})

describe('hawser forward', () => {
  test('leads a port here to one that the device reaches, until Ctrl-C', async () => {
    using echo = await startEcho()
    const here = await freePort()
    using terminal = desk.terminal([
      'forward',
      at(way.agent.name),
      `${here}:${echo.port}`,
      '--ssh-option',
      'UserKnownHostsFile=/dev/null',
      ...ownOptions(),
    ])
    await eventually(async () => whenListening({ port: here, host: '127.0.0.1' }))
    expect(await roundTrip(here, Buffer.from('ahoy'))).toEqual(Buffer.from('ahoy'))
    terminal.type('\u0003')
    await terminal.ended
    expect(terminal.shown()).toContain('Ctrl-C ends it')
  })

  test.each([
    ['8080', '8080:localhost:8080'],
    ['8080:80', '8080:localhost:80'],
    ['8080:db:5432', '8080:db:5432'],
    ['[::1]:8080:[fd00::1]:80', '[::1]:8080:[fd00::1]:80'],
  ])('%s means %s', (text, meant) => {
    expect(forwardOf(text)).toBe(meant)
  })

  test.each(['', 'http', '8080:', '70000', '1:2:3:4:5', 'a:b'])('%j is not a forward', (text) => {
    expect(() => forwardOf(text)).toThrow(/is not a forward/)
  })
})

describe('hawser config ssh', () => {
  const plainSsh = (main: string, ...words: string[]) =>
    run('ssh', ['-F', main, ...quiet().flatMap((one) => ['-o', one]), ...words])

  test('makes plain ssh reach a device; again it changes nothing; and it takes it away', async () => {
    const main = path.join(desk.folder, 'ssh', 'config')
    mkdirSync(path.dirname(main), { mode: 0o700 })
    const own = path.join(desk.folder, 'own-config')
    writeFileSync(own, 'Host elsewhere\n  Port 23\n')
    symlinkSync(own, main)
    const write = () => desk.hawser(['config', 'ssh', '--file', main, '--user', way.user.name])
    expect(await write()).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/2 devices are in/) as string,
    })
    const { status, stdout } = await plainSsh(main, way.agent.name, 'echo plain')
    expect([status, stdout.toString()]).toEqual([0, 'plain\n'])
    const [first, changed] = [readFileSync(main, 'utf8'), statSync(own).mtimeMs]
    expect(first).toMatch(/^# of hawser: .*\nInclude .*hawser\.config\nHost elsewhere\n {2}Port 23\n$/)
    await write()
    expect([readFileSync(main, 'utf8'), statSync(own).mtimeMs]).toEqual([first, changed])
    await desk.hawser(['config', 'ssh', '--file', main, '--remove'])
    expect([readFileSync(main, 'utf8'), existsSync(path.join(path.dirname(main), 'hawser.config'))]).toEqual([
      'Host elsewhere\n  Port 23\n',
      false,
    ])
  })

  test('takes only devices with a tag, and no user that would mean something else', async () => {
    const main = path.join(desk.folder, 'tagged', 'config')
    await desk.hawser(['config', 'ssh', '--file', main, '--tag', sample.tag])
    expect(readFileSync(path.join(path.dirname(main), 'hawser.config'), 'utf8')).toMatch(
      /Host crane-1 harbour\.crane-1\n/,
    )
    expect(readFileSync(path.join(path.dirname(main), 'hawser.config'), 'utf8')).not.toContain(way.agent.name)
    const wrong = await desk.hawser(['config', 'ssh', '--file', main, '--user', 'a\n  ProxyCommand x'])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/is not a valid user/)])
  })
})

describe('hawser config ansible', () => {
  interface Inventory {
    readonly all: { readonly hosts: readonly string[] }
    readonly _meta: { readonly hostvars: Record<string, Record<string, string>> }
  }
  const inventory = async (...words: string[]): Promise<Inventory & Record<string, unknown>> =>
    JSON.parse(
      (await desk.hawser(['config', 'ansible', '--user', way.user.name, ...words])).stdout,
    ) as Inventory & Record<string, unknown>

  test('prints the devices, a group for each tag, and who is online', async () => {
    const { _meta: meta, ...found } = await inventory()
    expect(found.all.hosts).toEqual(['crane-1', way.agent.name])
    expect(found['online']).toEqual({ hosts: [way.agent.name] })
    expect(found[`tag_${sample.tag}`]).toEqual({ hosts: ['crane-1'] })
    expect(meta.hostvars[way.agent.name]).toEqual({
      ansible_host: `${sample.namespace}.${way.agent.name}`,
      ansible_ssh_common_args: `-o HostName=127.0.0.1 -o Port=${port} -o User=${way.sshid()}`,
    })
    expect((await inventory('--tag', sample.tag)).all.hosts).toEqual(['crane-1'])
  })

  test('leaves a device out that would take the place of the own machine, and takes no strange user', async () => {
    const { uid } = (await way.owner.devices.list({ query: {} })).body.find(({ name }) => name === 'crane-1')!
    await way.owner.devices.rename({ params: { uid }, body: { name: 'localhost' } })
    const said = await desk.hawser(['config', 'ansible', '--user', 'root'])
    await way.owner.devices.rename({ params: { uid }, body: { name: 'crane-1' } })
    expect(said.stdout).not.toContain('localhost')
    expect(said.stderr).toContain('localhost is left out')
    for (const user of ['{{ lookup("pipe", "id") }}', 'a b', "a'b", '-o'])
      expect(await desk.hawser(['config', 'ansible', '--user', user])).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('things by hand', () => {
  test('devices are accepted, tagged, renamed and removed by their names', async () => {
    const enrol = (hostname: string) =>
      way.service.api().devices.auth({
        body: {
          info: {},
          hostname,
          identity: { mac: hostname },
          public_key: sample.publicKeyPem,
          tenant_id: sample.tenant,
        },
      })
    await enrol('skiff')
    await enrol('yawl')
    expect(await desk.hawser(['devices', 'accept', 'skiff', 'yawl'])).toEqual({
      code: 0,
      stdout: '',
      stderr: 'skiff: accepted\nyawl: accepted\n',
    })
    expect(await desk.hawser(['devices', 'tag', 'skiff', 'yawl', '--add', 'small'])).toMatchObject({
      code: 0,
    })
    expect(
      await desk.hawser(['devices', 'tag', 'skiff', '--add', 'small', '--remove', 'none-such']),
    ).toMatchObject({ code: 0 })
    const listed = await desk.hawser(['devices', '--tag', 'small', '-o', 'json'])
    expect((JSON.parse(listed.stdout) as { name: string }[]).map(({ name }) => name)).toEqual([
      'skiff',
      'yawl',
    ])
    // A tag too many leaves the device as it was.
    expect(
      await desk.hawser(['devices', 'tag', 'skiff', '--add', 'one', '--add', 'two', '--add', 'six']),
    ).toMatchObject({ code: 2, stderr: expect.stringMatching(/tags: may have at most 3/) as string })
    expect((await desk.hawser(['devices', '--name', 'skiff', '-o', 'json'])).stdout).toMatch(
      /"tags": \[\s*"small"\s*\]/,
    )
    expect(
      await desk.hawser(['devices', 'tag', 'skiff', '--add', 'sail', '--add', 'oars', '--remove', 'small']),
    ).toMatchObject({ code: 0 })
    expect((await desk.hawser(['devices', '--name', 'ski?f'])).stdout).toMatch(/skiff .*sail, oars/)
    expect(
      await desk.hawser(['devices', 'tag', 's*ff', '--add', 'small', '--remove', 'sail', '--remove', 'oars']),
    ).toMatchObject({ code: 0 })
    expect((await desk.hawser(['devices', '--name', 'y*', '--tag', 'small'])).stdout).toMatch(
      /^NAME.*\nyawl .*\n$/,
    )
    expect(await desk.hawser(['devices', 'accept', 'nobody-*'])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/No device has a name like nobody-\*/) as string,
    })
    expect(await desk.hawser(['devices', 'rename', 'yawl', 'a yawl'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/name: must be 1 to 64 letters, digits, - or _/) as string,
    })
    expect(await desk.hawser(['devices', 'rename', 'yawl', 'skiff'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/An accepted device of the namespace has this name/) as string,
    })
    expect(await desk.hawser(['devices', 'rename', 'yawl', 'ketch'])).toMatchObject({
      code: 0,
      stderr: 'yawl is now ketch.\n',
    })
    const many = await desk.hawser(['devices', 'remove', '--tag', 'small'])
    expect([many.code, many.stderr]).toEqual([2, expect.stringMatching(/would remove 2 devices: .*--yes/)])
    expect(await desk.hawser(['devices', 'remove', '--tag', 'small', '--yes'])).toMatchObject({ code: 0 })
    expect(await desk.hawser(['devices', 'tag', '--tag', 'small', '--add', 'more'])).toMatchObject({
      code: 5,
    })
  })

  test('a namespace is switched to, and one that is not yours is not there', async () => {
    const shipyard = await way.owner.namespaces.create({ body: { name: 'shipyard' } })
    expect(await desk.hawser(['namespaces', 'switch', 'shipyard'])).toMatchObject({
      code: 0,
      stderr: 'You are in shipyard now, as owner.\n',
    })
    expect((await desk.hawser(['status'])).stdout).toMatch(/namespace +shipyard/)
    expect(await desk.hawser(['namespaces', 'switch', 'elsewhere'])).toMatchObject({ code: 5 })
    expect(await desk.hawser(['namespaces', 'switch', sample.tenant])).toMatchObject({ code: 0 })
    expect(await desk.hawser(['namespaces', 'get', shipyard.body.name])).toMatchObject({ code: 0 })
  })

  test('a key is added from its file, and a private one is refused', async () => {
    await keygen(way.where, 'spare', '-t', 'ed25519')
    const wrong = await desk.hawser(['keys', 'add', way.where.file('spare')])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/is a private key.*spare\.pub/)])
    expect(
      await desk.hawser([
        'keys',
        'add',
        `${way.where.file('spare')}.pub`,
        '--user',
        '^root$',
        '--tag',
        sample.tag,
      ]),
    ).toMatchObject({
      code: 0,
    })
    const { stdout } = await run('ssh-keygen', ['-lf', `${way.where.file('spare')}.pub`])
    const fingerprint = stdout.toString().split(' ')[1]!
    const listed = (await desk.hawser(['keys'])).stdout
    expect(listed).toMatch(/spare +\^root\$ +tags: pier/)
    expect(listed).toContain(fingerprint)
    expect(await desk.hawser(['public-keys', 'remove', fingerprint])).toMatchObject({ code: 0 })
    expect(await desk.hawser(['public-keys', 'remove', 'spare'])).toMatchObject({ code: 5 })
  })

  test('a session is closed without naming its device', async () => {
    using terminal = desk.terminal(['ssh', ...flags(), at(way.agent.name)])
    terminal.type('unset HISTFILE; echo bu"sy"\n')
    await terminal.until(/busy/)
    const said = await desk.hawser(['sessions', 'close', 'last'])
    expect(said).toMatchObject({
      code: 0,
      stderr: `The session of ${way.user.name} on ${way.agent.name} is closed.\n`,
    })
    expect(await terminal.ended).toBe(255)
  })
})

describe('hawser run', () => {
  const over = async (words: readonly string[], how: Parameters<Desk['hawser']>[1] = {}) =>
    desk.hawser(['run', '--user', way.user.name, ...ownOptions(), ...words], how)
  let others: Awaited<ReturnType<typeof startAgent>>[] = []
  beforeAll(async () => {
    others = await Promise.all(['derrick', 'winch'].map((hostname) => startAgent(way.service, { hostname })))
    for (const device of [...others, way.agent])
      await way.owner.devices.addTag({ params: { uid: device.uid }, body: { tag: 'lifting' } })
  })
  afterAll(async () => {
    for (const agent of others) await agent[Symbol.asyncDispose]()
  })

  test('puts equal answers together, with the exit code of each, and fails if one did', async () => {
    // One device, and only one, finds no such folder yet.
    const mark = way.there('first')
    const said = await over([
      `if mkdir ${mark} 2>/dev/null; then echo alone; exit 4; else echo hoist; fi`,
      '--tag',
      'lifting',
    ])
    expect(said.code).toBe(1)
    expect(said.stdout).toMatch(
      /^── 2 devices: [a-z]+, [a-z]+ \(exit code 0\)\nhoist\n── [a-z]+ \(exit code 4\)\nalone\n$/,
    )
    expect(said.stderr).toMatch(/^2 of 3 succeeded, 1 failed: [a-z]+\.\n$/)
  })

  test('is 0 when all went well, and says it in JSON', async () => {
    const said = await over([
      '-d',
      'winch',
      '-d',
      'derrick',
      '-o',
      'json',
      '--jobs',
      '1',
      '--',
      'printf',
      '%s',
      '-n',
    ])
    expect([said.code, JSON.parse(said.stdout)]).toEqual([
      0,
      [
        { device: 'winch', code: 0, stdout: '-n', stderr: '' },
        { device: 'derrick', code: 0, stdout: '-n', stderr: '' },
      ],
    ])
  })

  test('shows how far it is on a terminal', async () => {
    using terminal = desk.terminal([
      'run',
      '--user',
      way.user.name,
      ...ownOptions(),
      'echo heave',
      '--tag',
      'lifting',
    ])
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toMatch(/\[#{8}\.{16}\] 1 of 3[^]*3 devices: [^]*heave[^]*3 of 3 succeeded/)
  })

  test('counts a device that is offline, that takes too long, or that says too much', async () => {
    const offline = await over(['true', '-d', 'crane-1'])
    expect(offline).toMatchObject({ code: 1, stdout: '── crane-1 (exit code 255)\nThe device is offline.\n' })
    const online = await over(['true', '-d', 'crane-1', '-d', 'w*ch', '--online'])
    expect(online).toEqual({
      code: 0,
      stdout: '── winch (exit code 0)\n',
      stderr: 'Offline and left out: crane-1.\n1 of 1 succeeded.\n',
    })
    const late = await over(['sleep 100', '-d', 'winch', '--timeout', '1'])
    expect(late).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/exit code 124\)\nIt took longer than 1 s/) as string,
    })
    const loud = await over(['head -c 3000000 /dev/zero | tr "\\0" x', '-d', 'winch'])
    expect(loud.code).toBe(0)
    expect(loud.stdout).toMatch(/x{1048576}\n\[1951424 more bytes are left out\]\n$/)
  })

  test('that does not know the host key of the server says how to get to know it', async () => {
    const options = ['--ssh-option', 'StrictHostKeyChecking=yes', ...ownOptions()]
    const said = await desk.hawser(['run', '--user', way.user.name, ...options, 'true', '-d', 'winch'])
    expect([said.code, said.stdout]).toEqual([1, expect.stringContaining('Host key verification failed')])
    expect(said.stderr).toContain('Connect once with `hawser ssh`')
  })

  test('obeys nothing of what devices send', async () => {
    const said = await over([`printf 'a\\033]0;pwned\\007b\\n'`, '-d', 'winch'])
    expect(said.stdout).toBe('── winch (exit code 0)\nab\n')
  })

  test.each([
    ['no devices', ['true'], 2, /No devices given/],
    ['no command', ['--all'], 2, /Missing: <command>/],
    ['a tag that nothing has', ['true', '--tag', 'nothing'], 5, /no accepted device with the tag nothing/],
    ['a device that waits', ['true', '-d', 'buoy'], 1, /buoy is pending and left out/],
    [
      'too many at once',
      ['true', '--all', '--jobs', '1000'],
      2,
      /--jobs must be a whole number from 1 to 64/,
    ],
  ] as const)('with %s says what to do', async (_, words, code, sentence) => {
    const said = await over(words)
    expect([said.code, said.stderr]).toEqual([code, expect.stringMatching(sentence)])
  })
})
