// Containers of a real engine as devices, reached with the real OpenSSH client through the gateway: what
// appears, who gets in, and that a session in a container is like one on any device, files included.
import { sign } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  connect,
  fingerprintMd5,
  generatePrivateKey,
  parsePrivateKey,
  publicKeyLine,
  startSession,
} from '@hawser/ssh'
import { run } from '../../ssh/test/programs.ts'
import { importImage } from '../harness/docker.ts'
import { sharedDock } from './dock.ts'
import { openTerminal } from './terminal.ts'
import { eventually } from './way.ts'
import { dial } from './web.ts'

const dock = sharedDock({ tcp: true })
let id: string

beforeAll(async () => {
  id = await dock.docker.container('harbour.one')
  await dock.connect({})
  await dock.accepted('harbour_one')
})

const one = 'harbour_one'
const inside = (script: string) => dock.docker.docker('exec', 'harbour.one', 'sh', '-c', script)

describe('a container', () => {
  test('appears as a pending device that says what it is', async () => {
    await dock.docker.container('fresh')
    const device = await dock.device('fresh', { status: 'pending', online: true })
    expect(device).toMatchObject({
      identity: { mac: (await dock.docker.docker('inspect', '-f', '{{.Id}}', 'fresh')).slice(0, 12) },
      info: {
        id: 'docker',
        pretty_name: 'local/busybox:1',
        platform: 'connector',
        arch: process.arch === 'arm64' ? 'arm64' : 'amd64',
      },
      remote_addr: '127.0.0.1',
      tenant_id: sample.tenant,
    })
    // Nobody gets in before somebody has accepted it.
    const { status, stderr } = await dock.ssh('fresh', 'true')
    expect([status, stderr]).toEqual([255, expect.stringContaining('is offline or cannot be reached')])
    await dock.docker.docker('rm', '-f', 'fresh')
    await eventually(async () =>
      expect((await dock.devices()).map(({ name }) => name)).not.toContain('fresh'),
    )
  })

  test('that stops is offline, and online when it runs again; so is one that is paused', async () => {
    await dock.docker.container('tide')
    await dock.accepted('tide')
    await dock.docker.docker('stop', 'tide')
    await dock.device('tide', { status: 'accepted', online: false })
    expect((await dock.ssh('tide', 'true')).stderr).toContain('is offline or cannot be reached')
    await dock.docker.docker('start', 'tide')
    await dock.device('tide', { status: 'accepted', online: true })
    expect((await dock.ssh('tide', 'echo back')).stdout.toString()).toBe('back\n')
    await dock.docker.docker('pause', 'tide')
    await dock.device('tide', { online: false })
    await dock.docker.docker('unpause', 'tide')
    await dock.device('tide', { online: true })
    await dock.docker.docker('rm', '-f', 'tide')
    // It has a history now, so it stays, without its name and its place.
    await dock.device('tide', { status: 'removed', online: false })
  })

  test('that is rejected has no way in, and has one again when it is accepted', async () => {
    const { uid } = await dock.device(one)
    await dock.owner.devices.setStatus({ params: { uid, status: 'reject' } })
    await dock.device(one, { status: 'rejected', online: false })
    expect((await dock.ssh(one, 'true')).status).toBe(255)
    await dock.owner.devices.accept({ params: { uid } })
    await dock.device(one, { status: 'accepted', online: true })
    expect((await dock.ssh(one, 'true')).status).toBe(0)
  })

  test('whose device is deleted comes back as a pending one', async () => {
    await dock.docker.container('boomerang')
    const { uid } = await dock.accepted('boomerang')
    await dock.owner.devices.remove({ params: { uid } })
    expect((await dock.device('boomerang', { status: 'pending', online: true })).uid).toBe(uid)
    await dock.docker.docker('rm', '-f', 'boomerang')
  })

  test('nobody else can pretend to be it', async () => {
    const { uid, identity, public_key } = await dock.device(one)
    const info = { id: 'docker', pretty_name: 'x', version: 'v0.16.4', arch: 'amd64', platform: 'connector' }
    const { body } = await dock.service
      .api()
      .devices.auth({ body: { info, hostname: one, identity, public_key, tenant_id: sample.tenant } })
    expect(body.uid).toBe(uid)
    const row = await dock.service.rooms.stores.of(sample.tenant).devices.find(uid)
    expect(row?.proved).toBe(1)
  })
})

describe('a login', () => {
  test('is by a key of the namespace, as a user that the container has', async () => {
    const { status, stdout } = await dock.ssh(one, 'id -un; id -Gn; pwd; echo $HOME $USER $SHELL', {
      user: 'pilot',
    })
    expect([status, stdout.toString()]).toEqual([
      0,
      'pilot\npilot crew\n/home/pilot\n/home/pilot pilot /bin/bash\n',
    ])
    const stranger = await dock.ssh(one, 'id', { user: 'nobody' })
    expect([stranger.status, stranger.stderr]).toEqual([255, expect.stringContaining('Permission denied')])
  })

  test.each(['0', 'root:root', '0:0', '../root', 'root;id', ''])('not as %j', async (user) => {
    expect((await dock.ssh(one, 'id', { user })).status).toBe(255)
  })

  test('is not by a password, whatever it is', async () => {
    const args = [
      ...dock.args('-o', 'PubkeyAuthentication=no', '-o', 'BatchMode=no', '-o', 'NumberOfPasswordPrompts=1'),
    ]
    const teller = dock.where.write('teller', '#!/bin/sh\necho root\n')
    await run('chmod', ['700', teller])
    const { status, stderr } = await run(
      'ssh',
      ['-o', 'BatchMode=no', ...args, dock.sshid(one), 'id'],
      undefined,
      {
        SSH_ASKPASS: teller,
        SSH_ASKPASS_REQUIRE: 'force',
      },
    )
    expect([status, stderr]).toEqual([255, expect.stringContaining('Permission denied')])
  })

  test('is stopped by the firewall, and is in the records', async () => {
    const filter = { hostname: '^harbour_one$' }
    const { body: rule } = await dock.owner.firewall.create({
      body: { action: 'deny', active: true, filter, priority: 0, source_ip: '.*', username: '^pilot$' },
    })
    expect((await dock.ssh(one, 'id', { user: 'pilot' })).stderr).toContain('due a policy rule')
    expect((await dock.ssh(one, 'true')).status).toBe(0)
    await dock.owner.firewall.remove({ params: { id: rule.id } })
    const { body } = await dock.owner.sessions.list({ query: {} })
    expect(body[0]).toMatchObject({ username: 'root', type: 'exec', device: { name: one } })
  })
})

describe('a session', () => {
  test('keeps outputs apart, takes input and gives the exit code', async () => {
    const { status, stdout, stderr } = await dock.ssh(one, 'cat; echo wrong >&2; exit 42', {
      input: 'right\n',
    })
    expect([status, stdout.toString(), stderr]).toEqual([42, 'right\n', 'wrong\n'])
  })

  test('passes much in both directions, unchanged', async () => {
    const much = Buffer.alloc(5_000_000, 'abcdefghijklmnopqrstuvwxyz\n').toString()
    const { status, stdout } = await dock.ssh(one, 'cat', { input: much })
    expect([status, stdout.toString() === much]).toEqual([0, true])
  })

  test('on a terminal has its size, follows it, and ends as its shell does', async () => {
    using terminal = openTerminal('ssh', [...dock.args('-t'), dock.sshid(one)], {
      name: 'xterm-color',
      columns: 97,
      rows: 31,
    })
    // Its shell drops what is typed before it asks.
    await terminal.until(/# /)
    // The engine is told the size once the program runs.
    terminal.type('until [ "$(stty size)" = "31 97" ]; do sleep 0.05; done; echo "$TERM now $(stty size)"\n')
    await terminal.until(/xterm-color now 31 97\r\n/)
    terminal.resize(133, 47)
    terminal.type('until [ "$(stty size)" = "47 133" ]; do sleep 0.05; done; echo "then $(stty size)"\n')
    await terminal.until(/then 47 133\r\n/)
    terminal.type('sleep 1000\n')
    await eventually(async () => expect(await inside('ps')).toContain('sleep 1000\n'))
    terminal.type('\x03')
    terminal.type('exit 7\n')
    expect(await terminal.ended).toBe(7)
  })

  test('with a terminal is recorded', async () => {
    const { status } = await dock.ssh(one, 'echo remember me', { flags: ['-tt'] })
    expect(status).toBe(0)
    const session = await eventually(async () => {
      const { body } = await dock.owner.sessions.list({ query: {} })
      expect(body[0]).toMatchObject({ recorded: true, active: false, device: { name: one } })
      return body[0]!
    })
    const played = await dock.owner.sessions.play({ params: { uid: session.uid } })
    expect(JSON.stringify(played.body)).toContain('remember me')
  })

  test('that is cut off leaves nothing running, not even what ignores it', async () => {
    await dock.service.rooms.stores.namespaces.save(sample.tenant, { hold_sessions: 0 })
    const polite = dock.start(one, 'sleep 4711', { flags: ['-tt'] })
    const stubborn = dock.start(one, 'trap "" HUP; sleep 4712; sleep 4712', { user: 'pilot' })
    for (const program of ['sleep 4711', 'sleep 4712'])
      await eventually(async () => expect(await inside('ps')).toContain(program))
    await Promise.all([polite[Symbol.asyncDispose](), stubborn[Symbol.asyncDispose]()])
    await eventually(async () => expect(await inside('ps')).not.toMatch(/sleep 471[12]/))
  })

  test('is opened from the browser, too, and is recorded', async () => {
    const key = generatePrivateKey('ed25519')
    const data = Buffer.from(publicKeyLine(key.type, key.blob)).toString('base64')
    await dock.owner.publicKeys.create({
      body: { data, name: 'browser', username: '.*', filter: { hostname: '.*' } },
    })
    const { uid } = await dock.accepted(one)
    const { token } = (
      await dock.owner.terminals.open({
        body: { device: uid, username: 'root', fingerprint: fingerprintMd5(key.blob) },
      })
    ).body
    using shell = await dial(dock.service, token)
    const challenge = Buffer.from(await shell.hear('sign'), 'base64')
    shell.say({ kind: 'signature', signature: sign(null, challenge, key.object).toString('base64') })
    const session = await shell.hear('session')
    await shell.until('# ')
    shell.type('echo in-$((1+1)); stty size\r')
    await shell.until(/in-2\r\n24 80/)
    shell.type('exit\r')
    await shell.closed
    await eventually(async () =>
      expect((await dock.owner.sessions.get({ params: { uid: session } })).body).toMatchObject({
        active: false,
        recorded: true,
        device_uid: uid,
      }),
    )
  })

  test('gives signals to its program', async () => {
    await using client = await signalling()
    expect(await client.exit).toMatchObject({ type: 'exit-status', status: 33 })
  })

  test('has no variables but harmless ones of the client, and knows where it comes from', async () => {
    const { stdout } = await dock.ssh(one, 'env', {
      flags: ['-o', 'SetEnv=LANG=C.UTF-8 LD_PRELOAD=/tmp/x.so FOO=bar'],
    })
    const env = stdout.toString()
    expect(env).toMatch(/^LANG=C\.UTF-8$/m)
    expect(env).toMatch(/^SSH_CLIENT=127\.0\.0\.1 \d+ 22$/m)
    expect(env).toMatch(/^HAWSER_DEVICE=harbour_one$/m)
    expect(env).not.toMatch(/LD_PRELOAD|FOO|HAWSER_CLIENT/)
  })

  test('forwards nothing', async () => {
    const { status, stderr } = await dock.ssh(one, '', { flags: ['-W', '127.0.0.1:22'] })
    expect([status, stderr]).toEqual([255, expect.stringMatching(/forward|refused|open failed/i)])
  })

  test('in a container without a shell says so', async () => {
    await dock.docker.docker('cp', `${id}:/bin/busybox`, path.join(dock.docker.folder, 'sleep'))
    const bare = path.join(dock.docker.folder, 'bare.tar')
    await run('tar', ['-C', dock.docker.folder, '-cf', bare, 'sleep'])
    await dock.docker.docker('import', bare, 'local/bare:1')
    await dock.docker.docker(
      'run',
      '-d',
      '--network',
      'none',
      '--stop-signal',
      'KILL',
      '--name',
      'bare',
      'local/bare:1',
      '/sleep',
      '1000000',
    )
    await dock.accepted('bare')
    const { status, stdout, stderr } = await dock.ssh('bare', 'id')
    expect(status).toBeGreaterThan(0)
    expect(stdout.toString() + stderr).toMatch(/could not be started|no such file/)
    expect(
      (await run('scp', [...copyArgs(), dock.where.file('olga.pub'), `${dock.sshid('bare')}:x`])).status,
    ).toBeGreaterThan(0)
    await dock.docker.docker('rm', '-f', 'bare')
  })
})

/** Signals cannot be sent with OpenSSH's client, so ours does it. */
async function signalling() {
  const key = parsePrivateKey(dock.where.read('olga'))
  const connection = await connect(net.connect(dock.service.sshPort, '127.0.0.1'), {
    user: `root@${sample.namespace}.${one}`,
    proofs: [{ method: 'publickey', key }],
    checkHostKey: () => true,
  })
  const session = await startSession(connection, {
    program: { type: 'exec', command: 'trap "exit 33" USR1; echo ready; while :; do sleep 0.1; done' },
  })
  expect((await session.channel.read())?.bytes.toString()).toBe('ready\n')
  await session.signal('USR1')
  return { exit: session.exit, [Symbol.asyncDispose]: async () => connection.end() }
}

const copyArgs = (): string[] => dock.args().map((word) => (word === '-p' ? '-P' : word))

describe.each([
  ['without a file server', one],
  ['with a file server of its own', 'serving'],
])('files of a container %s', (_, name) => {
  const user = 'pilot'
  const there = (file: string): string => `${dock.sshid(name, user)}:${file}`
  const scp = (...words: string[]) => run('scp', [...copyArgs(), ...words])
  const sftp = (batch: string) => run('sftp', ['-b', '-', ...copyArgs(), dock.sshid(name, user)], batch)

  beforeAll(async () => {
    if (name === one) return
    const server = '/usr/lib/openssh/sftp-server'
    const { stdout } = await run('ldd', [server])
    const libraries = stdout.toString().match(/\/\S+(?= \()/g) ?? []
    await importImage(dock.docker, 'local/serving:1', [server, ...libraries])
    await dock.docker.container('serving', { image: 'local/serving:1' })
    await dock.accepted('serving')
  })

  test('are copied both ways, large and small, with their rights and times', async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_001 }, (__, at) => (at * 7919) % 251))
    const file = dock.where.write('cargo', bytes)
    await run('chmod', ['750', file])
    await run('touch', ['-d', '@1700000000', file])
    expect(await scp('-p', file, there('cargo'))).toMatchObject({ status: 0, stderr: '' })
    expect(await scp('-p', there('cargo'), dock.where.file('returned'))).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect(readFileSync(dock.where.file('returned')).equals(bytes)).toBe(true)
    expect(statSync(dock.where.file('returned'))).toMatchObject({
      mode: 0o100750,
      mtimeMs: 1_700_000_000_000,
    })
    dock.where.write('empty', '')
    expect((await scp(dock.where.file('empty'), there('empty'))).status).toBe(0)
    expect((await dock.ssh(name, 'wc -c < empty; id -un', { user })).stdout.toString()).toBe('0\npilot\n')
    expect((await dock.ssh(name, 'ls -l cargo', { user })).stdout.toString()).toMatch(/^-rwxr-x--- .*pilot/)
  })

  test('are copied as trees, whatever their names', async () => {
    const tree = dock.where.file('tree')
    mkdirSync(path.join(tree, 'deep/er'), { recursive: true })
    const names = [
      'plain',
      'with space',
      "it's",
      '"quoted"',
      '$HOME',
      '`id`',
      '-rf',
      'line\nend',
      'ü',
      '*',
      '\\',
    ]
    for (const each of names) writeFileSync(path.join(tree, 'deep/er', each), each)
    expect(await scp('-r', tree, there('tree'))).toMatchObject({ status: 0, stderr: '' })
    expect(await scp('-r', there('tree'), dock.where.file(`back-${name}`))).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect((await run('diff', ['-r', tree, dock.where.file(`back-${name}`)])).stdout.toString()).toBe('')
    for (const each of names)
      expect(readFileSync(path.join(dock.where.file(`back-${name}`), 'deep/er', each), 'utf8')).toBe(each)
  })

  test('are listed, renamed, linked, changed and removed', async () => {
    const file = dock.where.write('note', 'text\n')
    const { status, stdout } = await sftp(
      `pwd
mkdir shed
put ${file} shed/a
rename shed/a shed/b
symlink b shed/link
ln shed/b shed/twin
chmod 600 shed/b
ls -ln shed
get shed/link ${dock.where.file('linked')}
df shed
`,
    )
    expect(status).toBe(0)
    expect(stdout.toString()).toContain('Remote working directory: /home/pilot')
    expect(stdout.toString()).toMatch(
      /-rw------- .* shed\/b[^]*lrwxrwxrwx .* shed\/link[^]*-rw------- .* shed\/twin/,
    )
    expect(readFileSync(dock.where.file('linked'), 'utf8')).toBe('text\n')
    expect((await sftp('rm shed/b\nrm shed/link\nrm shed/twin\nrmdir shed\n')).status).toBe(0)
    expect((await sftp('ls shed\n')).stderr).toMatch(/not found/)
  })

  test('are as closed to the user as the container says', async () => {
    const file = dock.where.write('evil', 'root::0:0::/:/bin/sh\n')
    expect(await scp(file, there('/etc/passwd'))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Permission denied') as unknown,
    })
    expect(await scp(there('/root/none'), dock.where.file('none'))).toMatchObject({ status: 1 })
    expect(existsSync(dock.where.file('none'))).toBe(false)
    expect((await sftp('rmdir /tmp\n')).status).toBe(1)
    expect((await sftp('mkdir /etc/new\n')).status).toBe(1)
  })

  test('are copied by clients of old, which speak scp’s own protocol', async () => {
    const tree = dock.where.file('old')
    mkdirSync(path.join(tree, 'in/side'), { recursive: true })
    const bytes = Buffer.from(Array.from({ length: 400_001 }, (__, at) => (at * 31) % 256))
    writeFileSync(path.join(tree, 'in/side/large'), bytes)
    for (const each of ['empty', 'with space', "it's", '$HOME'])
      writeFileSync(path.join(tree, 'in', each), each === 'empty' ? '' : each)
    await run('chmod', ['700', path.join(tree, 'in/side')])
    await run('touch', ['-d', '@1600000000', path.join(tree, 'in/side/large')])
    expect(await scp('-O', '-rp', tree, there('old'))).toMatchObject({ status: 0, stderr: '' })
    expect(await scp('-O', '-rp', there('old'), dock.where.file(`old-${name}`))).toMatchObject({
      status: 0,
      stderr: '',
    })
    const back = dock.where.file(`old-${name}`)
    expect((await run('diff', ['-r', tree, back])).stdout.toString()).toBe('')
    expect(statSync(path.join(back, 'in/side')).mode & 0o777).toBe(0o700)
    expect(statSync(path.join(back, 'in/side/large')).mtimeMs).toBe(1_600_000_000_000)
    // Into a folder, by a wildcard, and what is refused.
    expect((await scp('-O', path.join(tree, 'in/empty'), there('/tmp'))).status).toBe(0)
    expect((await scp('-O', there('old/in/side/l*'), dock.where.file('wild'))).status).toBe(0)
    expect(readFileSync(dock.where.file('wild')).equals(bytes)).toBe(true)
    expect(await scp('-O', path.join(tree, 'in/empty'), there('/etc/passwd'))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Permission denied') as unknown,
    })
    expect(await scp('-O', there('none'), dock.where.file('none'))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('No such file or directory') as unknown,
    })
    expect((await scp('-O', there('old'), dock.where.file('none'))).stderr).toContain('not a regular file')
  })

  test('a transfer can go on where it stopped', async () => {
    const whole = Buffer.alloc(700_000, 'stop and go ')
    const file = dock.where.write('long', whole)
    expect(
      (await dock.ssh(name, 'cat > long', { user, input: whole.subarray(0, 300_001).toString() })).status,
    ).toBe(0)
    expect((await sftp(`reput ${file} long\n`)).status).toBe(0)
    dock.where.write(`part-${name}`, whole.subarray(0, 123_457))
    expect((await sftp(`reget long ${dock.where.file(`part-${name}`)}\n`)).status).toBe(0)
    expect(readFileSync(dock.where.file(`part-${name}`)).equals(whole)).toBe(true)
  })
})
