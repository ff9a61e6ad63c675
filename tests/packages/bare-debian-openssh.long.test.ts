// Our programs on a bare Debian, without Node, npm or any library that Debian does not always have: what the
// tarballs carry starts there, the agent is reached by the real OpenSSH, and install.sh installs and removes
// it. Accepted and refused.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import type { Architecture } from '../../packages/registry.ts'
import { makeTarball } from '../../packages/tarball.ts'
import { folder, freePort, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { eventually, watch } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'
import { builtAgent, builtAgents } from '../harness/built-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { bareRoot, type BareRoot } from './bare-root.ts'

const arch = process.arch as Architecture

describe.runIf(isRoot)(`on a bare Debian (${onlyAsRoot})`, () => {
  const opened = new AsyncDisposableStack()
  let [bare, service, owner, where]: [BareRoot, Service, Client, Folder] = [] as never
  beforeAll(async () => {
    const agents = await builtAgents()
    bare = opened.use(await bareRoot())
    const env = { HAWSER_URL: '', HAWSER_SSH_FAILURE_LIMIT: '0/60' }
    service = opened.use(await startService({ env, agents }))
    const world = await buildWorld(service)
    owner = service.api({ token: await world.token('owner') })
    where = opened.use(folder())
    await keygen(where, 'olga', '-t', 'ed25519')
    const data = Buffer.from(where.read('olga.pub')).toString('base64')
    await owner.publicKeys.create({
      body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
    })
    await makeTarball('cli', arch, where.file('hawser.tar.gz'))
    for (const tarball of [builtAgent(), where.file('hawser.tar.gz')])
      execFileSync('tar', ['-C', bare.folder, '-xzf', tarball])
    const made = await bare.run(['useradd', '--create-home', '--shell', '/bin/bash', 'pilot'])
    if (made.status !== 0) throw new Error(made.stderr)
  })
  afterAll(async () => opened.disposeAsync())

  const to = (device: string, user = 'pilot'): string => `${user}@${sample.namespace}.${device}@127.0.0.1`
  const options = (...more: string[]): string[] =>
    quietArgs(service.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes', ...more)
  const said = async (words: readonly string[]): Promise<string> => {
    const { status, stdout, stderr } = await bare.run(words)
    return `${status} ${stdout.toString()}${stderr}`.trim()
  }

  test('nothing is there that they could lean on', async () => {
    for (const name of ['node', 'npm', 'curl', 'wget', 'gcc'])
      expect(await said(['sh', '-c', `command -v ${name}`])).toBe('127')
    const libraries = readdirSync(path.join(bare.folder, 'usr/lib'), { recursive: true }) as string[]
    expect(libraries.filter((file) => file.includes('libstdc++.so'))).not.toEqual([])
    expect(libraries.filter((file) => /libatomic|libnode/.test(file))).toEqual([])
  })

  test('the agent serves terminals, commands, files and sockets, as the user and nobody else', async () => {
    // As on a device whose busybox has no setpriv: the agent itself has to leave root's rights behind.
    rmSync(path.join(bare.folder, 'usr/bin/setpriv'))
    await using agent = await startAgent(service, {
      program: [bare.enter[0]!, ...bare.enter.slice(1), '/hawser-agent/bin/hawser-agent'],
      env: { HAWSER_PRIVATE_KEY: '/etc/bare.key' },
    })
    const ssh = async (command: string, ...flags: string[]) =>
      run('ssh', [...options(), ...flags, to(agent.name), command])
    expect(await ssh('id -un; grep ^Groups /proc/self/status; exit 7')).toMatchObject({
      status: 7,
      stdout: Buffer.from('pilot\nGroups:\t1000 \n'),
    })
    // The libraries of our Node are its own affair.
    expect((await ssh('env')).stdout.toString()).not.toMatch(/LD_LIBRARY_PATH|NODE/)

    await using shell = watch('ssh', [...options(), '-tt', to(agent.name)])
    shell.child.stdin.write('stty size; tty; echo "at $(pwd)"; exit 3\n')
    await shell.until(/\/dev\/pts\/\d+\s/)
    await shell.until(/at \/home\/pilot\s/)
    expect(await shell.status).toBe(3)

    where.write('cargo', 'ropes and anchors\n')
    where.write('batch', `put ${where.file('cargo')} there\nget there ${where.file('back')}\nls -l there\n`)
    const sftp = await run('sftp', [
      ...options().map((word) => (word === '-p' ? '-P' : word)),
      '-b',
      where.file('batch'),
      to(agent.name),
    ])
    expect([sftp.status, sftp.stderr]).toEqual([0, ''])
    expect(sftp.stdout.toString()).toMatch(/ 1000 +1000 +18 /)
    expect(where.read('back')).toBe('ropes and anchors\n')

    // The command may begin before the socket is there.
    const listening = await ssh(
      'for _ in $(seq 200); do [ -S back.sock ] && break; sleep 0.1; done; stat -c "%F %U" back.sock',
      '-R',
      `/home/pilot/back.sock:127.0.0.1:${await freePort()}`,
    )
    expect(listening.stdout.toString()).toBe('socket pilot\n')
    const refused = await ssh(
      'sleep 60',
      '-o',
      'ExitOnForwardFailure=yes',
      '-R',
      `/root/back.sock:127.0.0.1:${await freePort()}`,
    )
    expect(refused.status).toBe(255)
    expect((await run('ssh', [...options(), to(agent.name, 'nobody-here'), 'true'])).status).toBe(255)
  })

  test('the command line signs in and lists devices', async () => {
    const password = { input: `${sample.owner.password}\n` }
    const words = [
      '/hawser/bin/hawser',
      'login',
      service.url,
      '--username',
      sample.owner.username,
      '--password-stdin',
    ]
    expect(await bare.run(words, { input: 'wrong-password\n' })).toMatchObject({ status: 3 })
    expect(await bare.run(words, password)).toMatchObject({ status: 0 })
    const { status, stdout } = await bare.run(['/hawser/bin/hawser', 'devices', 'list', '-o', 'json'])
    expect(status).toBe(0)
    expect((JSON.parse(stdout.toString()) as { name: string }[]).map(({ name }) => name)).toContain('gantry')
    expect(await said(['/hawser/bin/hawser', '--version'])).toBe('0 0.1.0')
    expect(await said(['/hawser/bin/hawser', 'serve'])).toMatch(/^2 hawser: `serve` belongs to the server/)
    // Neither is told anything by the environment that its Node would obey.
    expect(
      (await bare.run(['/hawser/bin/hawser', '--version'], { env: { NODE_OPTIONS: '--no-such-option' } }))
        .status,
    ).toBe(0)
  })

  test('install.sh brings the agent, keeps it running and makes it go', async () => {
    mkdirSync(path.join(bare.folder, 'usr/local/bin'), { recursive: true })
    copyFileSync('/bin/busybox', path.join(bare.folder, 'usr/local/bin/wget'))
    const query = `tenant_id=${sample.tenant}&preferred_hostname=bollard&preferred_identity=test-bollard`
    const fetched = await fetch(`${service.url}/install.sh?${query}`)
    const script = await fetched.text()
    const words = ['install', '--server', service.url, '--tenant', sample.tenant]
    expect(
      await said(['chroot', '--userspec=pilot', '/', '/hawser-agent/bin/hawser-agent', ...words]),
    ).toMatch(/^1 hawser-agent: This command needs root/)
    expect(await said(['/hawser-agent/bin/hawser-agent', ...words.slice(0, 3), '--init', 'none'])).toMatch(
      /^1 hawser-agent: .*\n.*--tenant is missing/,
    )
    // A device that the server does not take in gets nothing at all, and whoever ran the script is told why.
    const files = ['opt/hawser-agent', 'etc/hawser-agent.env', 'etc/hawser-agent.key']
    const other = '99999999-0000-4000-8000-000000000000'
    const secure = service.url.replace('http:', 'https:')
    expect(await bare.run(['sh', '-s'], { input: script.replaceAll(sample.tenant, other) })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('There is no namespace with this tenant_id.') as string,
    })
    for (const [address, sentence] of [
      [secure, 'speaks HTTP, not HTTPS: use http://'],
      [`http://127.0.0.1:${await freePort()}`, 'Nothing listens at'],
    ] as const)
      expect(
        await said([
          '/hawser-agent/bin/hawser-agent',
          'install',
          '--server',
          address,
          '--tenant',
          sample.tenant,
        ]),
      ).toMatch(new RegExp(`^1 hawser-agent: .*${sentence}`))
    expect(files.filter((file) => existsSync(path.join(bare.folder, file)))).toEqual([])

    const installed = await bare.run(['sh', '-s'], { input: script })
    expect([installed.status, installed.stdout.toString()], installed.stderr).toEqual([
      0,
      expect.stringMatching(
        /installed and running \(plain\) as harbour\.bollard; accept the device bollard .* Log: \/var\/log\/hawser-agent\.log/,
      ),
    ])
    // It is done only when the device is there.
    const { body: pending } = await owner.devices.list({ query: { status: 'pending' } })
    const device = pending.find(({ name }) => name === 'bollard') ?? expect.fail('it has not enrolled')
    expect(device.online).toBe(true)
    expect(await said(['hawser-agent', 'status'])).toMatch(
      /^0 hawser-agent: connected as harbour\.bollard since /,
    )
    expect(await said(['cat', '/var/log/hawser-agent.log'])).toContain('"event":"tunnel.up"')
    await owner.devices.accept({ params: { uid: device.uid } })
    const greet = async () => run('ssh', [...options(), '-tt', to('bollard'), 'echo "here is $USER"'])
    await eventually(async () => expect((await greet()).stdout.toString()).toBe('here is pilot\r\n'))

    // Whatever ends it, it comes back; installed again, it is the same device.
    expect(await said(['hawser-agent-service', 'status'])).toBe('0 hawser-agent: running')
    expect(await said(['hawser-agent', 'install', '--keepalive', '45'])).toMatch(
      /^0 hawser-agent: installed and running .*; already accepted/,
    )
    await eventually(async () => expect((await greet()).stdout.toString()).toBe('here is pilot\r\n'))
    expect(
      (await owner.devices.list({ query: { status: 'pending' } })).body.map(({ name }) => name),
    ).not.toContain('bollard')

    // A change that the server does not take leaves the agent that runs alone.
    expect(await said(['hawser-agent', 'install', '--tenant', other])).toMatch(
      /^1 hawser-agent: .* refused this device: There is no namespace with this tenant_id\./,
    )
    expect((await greet()).stdout.toString()).toBe('here is pilot\r\n')

    expect(await said(['hawser-agent', 'uninstall'])).toMatch(
      /^0 hawser-agent: removed; the device's identity is still in/,
    )
    const left = [
      'opt/hawser-agent',
      'etc/hawser-agent.env',
      'usr/local/bin/hawser-agent',
      'usr/local/sbin/hawser-agent-service',
      'usr/local/sbin/hawser-agent-log',
      'var/log/hawser-agent.log',
    ]
    expect(left.filter((file) => existsSync(path.join(bare.folder, file)))).toEqual([])
    expect(existsSync(path.join(bare.folder, 'etc/hawser-agent.key'))).toBe(true)
    expect((await bare.run(['sh', '-c', 'cat /proc/[0-9]*/cmdline'])).stdout.toString()).not.toMatch(
      /opt.hawser-agent/,
    )
    expect((await greet()).status).toBe(255)

    // Without any id the script shows a code; whoever confirms it has the device, and ssh is on it.
    const alone = await (await fetch(`${service.url}/install.sh?preferred_hostname=buoy-2`)).text()
    const pairing = bare.run(['sh', '-c', 'sh -s >/paired 2>&1'], { input: alone })
    const code = await eventually(async () => {
      const shown = /confirm the code (\S+),/.exec(await said(['cat', '/paired']))?.[1]
      return shown ?? expect.fail('there is no code yet')
    })
    await owner.pairings.confirm({ body: { code, name: 'paired' } })
    expect((await pairing).status, await said(['cat', '/paired'])).toBe(0)
    expect(await said(['cat', '/paired'])).toMatch(
      /olga has added this device to harbour[^]*already accepted/,
    )
    const there = await run('ssh', [...options(), to('paired'), 'echo "here is $USER"'])
    expect(there.stdout.toString()).toBe('here is pilot\n')
    expect(await said(['hawser-agent', 'uninstall', '--purge'])).toMatch(/^0 /)

    // Where the server cannot be reached yet, it is installed on demand, and says what it waits for.
    const nowhere = `http://127.0.0.1:${await freePort()}`
    const offline = ['install', '--offline', '--server', nowhere, '--tenant', sample.tenant]
    expect(await said(['/hawser-agent/bin/hawser-agent', ...offline])).toMatch(
      /^0 hawser-agent: installed and started \(plain\); it enrols once it reaches the server/,
    )
    await eventually(async () =>
      expect(await said(['hawser-agent', 'status'])).toMatch(
        /^1 .* not connected since .*: Nothing listens at/,
      ),
    )
    expect(await said(['hawser-agent', 'uninstall', '--purge'])).toBe('0 hawser-agent: removed')
    expect(await said(['/hawser-agent/bin/hawser-agent', 'status'])).toMatch(/^3 /)
  })
})
