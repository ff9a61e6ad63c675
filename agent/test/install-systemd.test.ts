// `hawser-agent install` and `uninstall` into the folders of other systems: what is written for each kind of
// init, that doing it again keeps what was there, that nothing stays behind, and what is refused. The program
// is a small one here; the real one installs itself in tests/packages.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { ConfigError } from '../src/config.ts'
import { install, uninstall } from '../src/install/install.ts'
import { formOf } from '../src/install/program.ts'

let [folder, root, program] = ['', '', '']
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-install-'))
  root = path.join(folder, 'root')
  program = path.join(folder, 'hawser-agent')
  mkdirSync(root)
  mkdirSync(path.join(program, 'bin'), { recursive: true })
  writeFileSync(path.join(program, 'bin/hawser-agent'), '#!/bin/sh\n')
  chmodSync(path.join(program, 'bin/hawser-agent'), 0o755)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function told(
  command: (say: (line: string) => void) => void | Promise<void>,
): Promise<{ refused: boolean; said: string }> {
  const lines: string[] = []
  try {
    await command((line) => void lines.push(line))
    return { refused: false, said: lines.join('\n') }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { refused: true, said: error.message }
  }
}
const put = async (...words: string[]) =>
  told((say) => install(['--root', root, ...words], say, { kind: 'folder', from: program }))
const take = async (...words: string[]) => told((say) => uninstall(['--root', root, ...words], say))
const known = ['--server', 'https://hawser.example.com/', '--tenant', sample.tenant]
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), text)
}
/** All files, without folders. */
const left = (): string[] =>
  globSync('**/*', { cwd: root })
    .filter((file) => !lstatSync(path.join(root, file)).isDirectory())
    .toSorted()

const always = ['etc/hawser-agent.env', 'opt/hawser-agent/bin/hawser-agent', 'usr/local/bin/hawser-agent']
const services = {
  systemd: [
    'etc/systemd/system/hawser-agent.service',
    'etc/systemd/system/multi-user.target.wants/hawser-agent.service',
  ],
  openrc: [
    'etc/init.d/hawser-agent',
    'etc/runlevels/default/hawser-agent',
    'usr/local/sbin/hawser-agent-log',
  ],
  plain: ['usr/local/sbin/hawser-agent-service', 'usr/local/sbin/hawser-agent-log'],
  none: [],
} as const

describe.each(Object.entries(services))('with %s', (init, files) => {
  test('it is put in its places, again without harm, and removed without a trace', async () => {
    for (const words of [
      [...known, '--name', 'crane'],
      ['--keepalive', '45'],
    ]) {
      expect(await put('--init', init, ...words)).toMatchObject({
        refused: false,
        said: expect.stringContaining(`(${init})`) as string,
      })
      expect(left()).toEqual([...always, ...files].toSorted())
    }
    expect(read('etc/hawser-agent.env').trim().split('\n').toSorted()).toEqual([
      'HAWSER_KEEPALIVE_INTERVAL=45',
      'HAWSER_PREFERRED_HOSTNAME=crane',
      'HAWSER_PRIVATE_KEY=/etc/hawser-agent.key',
      'HAWSER_SERVER_ADDRESS=https://hawser.example.com',
      `HAWSER_TENANT_ID=${sample.tenant}`,
    ])
    expect(statSync(path.join(root, 'etc/hawser-agent.env')).mode & 0o777).toBe(0o600)
    expect(readlinkSync(path.join(root, 'usr/local/bin/hawser-agent'))).toBe(
      '/opt/hawser-agent/bin/hawser-agent',
    )
    expect((await take()).refused).toBe(false)
    expect(left()).toEqual([])
    expect((await take()).said).toBe('nothing to remove')
  })
})

test('another kind takes the place of the first', async () => {
  for (const [init, files] of Object.entries(services)) {
    expect((await put('--init', init, ...known)).refused).toBe(false)
    expect(left()).toEqual([...always, ...files].toSorted())
  }
})

test('the kind is found out', async () => {
  expect((await put(...known)).said).toContain('(plain)')
  write('sbin/openrc-run', '')
  expect((await put()).said).toContain('(openrc)')
  write('usr/lib/systemd/systemd', '')
  expect((await put()).said).toContain('(systemd)')
})

test('the scripts are such that a shell can read them', async () => {
  for (const [init, file] of [
    ['openrc', services.openrc[0]],
    ['plain', services.plain[0]],
    ['plain', services.plain[1]],
  ] as const) {
    await put('--init', init, ...known)
    expect(spawnSync('sh', ['-n', path.join(root, file)], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect(statSync(path.join(root, file)).mode & 0o777).toBe(0o755)
  }
})

test('systemd finds nothing wrong with its service', async () => {
  await put('--init', 'systemd', ...known)
  // The units that the service names, as this machine has them.
  for (const folder of ['/usr/lib/systemd/system', '/lib/systemd/system']
    .filter((each) => existsSync(each))
    .slice(0, 1))
    cpSync(folder, path.join(root, 'usr/lib/systemd/system'), { recursive: true, verbatimSymlinks: true })
  const judge = () =>
    spawnSync('systemd-analyze', [`--root=${root}`, 'verify', 'hawser-agent.service'], { encoding: 'utf8' })
  const ours = ({ stdout, stderr }: { stdout: string; stderr: string }): string[] =>
    (stdout + stderr).split('\n').filter((line) => line.includes('hawser-agent'))
  expect(ours(judge())).toEqual([])
  const unit = 'etc/systemd/system/hawser-agent.service'
  write(unit, read(unit).replace('RestartSec=5', 'RestartSec=soon'))
  expect(ours(judge())).toEqual([expect.stringContaining('soon')])
})

describe('who the device is', () => {
  test('stays after an uninstall, and goes only with --purge', async () => {
    write('etc/hawser-agent.key', 'a key')
    await put(...known)
    expect((await take()).said).toContain('identity is still in /etc/hawser-agent.key')
    expect(left()).toEqual(['etc/hawser-agent.key'])
    await put(...known)
    // Files that the agent, and a reset of its identity, have put next to the key.
    for (const name of ['machine', 'updates', 'namespace', 'old-20260102T030405Z'])
      write(`etc/hawser-agent.key.${name}`, 'x')
    write('etc/hawser-agent.key.pub', 'not ours')
    expect((await take('--purge')).refused).toBe(false)
    expect(left()).toEqual(['etc/hawser-agent.key.pub'])
  })

  test('is what it was for the original’s agent, and is looked for where it was put', async () => {
    write('etc/shellhub.key', 'the key')
    await put(...known, '--key', '/srv/keys/device.key')
    expect(read('srv/keys/device.key')).toBe('the key')
    expect(statSync(path.join(root, 'srv/keys/device.key')).mode & 0o777).toBe(0o600)
    await put('--name', 'crane')
    expect(read('etc/hawser-agent.env')).toContain('HAWSER_PRIVATE_KEY=/srv/keys/device.key\n')
    await take('--purge')
    expect(left()).toEqual(['etc/shellhub.key'])
  })
})

test('what was added to the settings by hand is kept', async () => {
  await put(...known)
  write('etc/hawser-agent.env', `${read('etc/hawser-agent.env')}# quiet\nHAWSER_DEBUG=1\n`)
  await put('--name', 'crane')
  expect(read('etc/hawser-agent.env')).toContain('HAWSER_DEBUG=1\n')
})

describe('it is refused in plain words, and nothing is written,', () => {
  test.each([
    [
      'without a server and a namespace',
      [],
      '--server is missing: the address of the server, for example https://hawser.example.com\n  --tenant is missing',
    ],
    [
      'with an address that is none',
      ['--server', 'hawser', '--tenant', sample.tenant],
      '--server is invalid',
    ],
    [
      'with an address that a shell would run',
      ['--server', 'http://x/$(id)', '--tenant', sample.tenant],
      '--server is invalid',
    ],
    [
      'with an id that is none',
      [...known.slice(0, 2), '--tenant', '7'],
      '--tenant is invalid: the id of the namespace, which the console shows',
    ],
    [
      'with an init that nobody knows',
      [...known, '--init', 'upstart'],
      '--init must be one of systemd, openrc, plain, none',
    ],
    ['with a name of several words', [...known, '--name', 'my crane'], '--name is invalid'],
    ['into a folder of the system', [...known, '--dir', '/opt'], '--dir is invalid'],
    ['into a folder above', [...known, '--dir', '/opt/../etc'], '--dir is invalid'],
    ['with an option that it has not', [...known, '--colour', 'red'], "Unknown option '--colour'"],
  ])('%s', async (_, words, sentence) => {
    const { refused, said } = await put(...words)
    expect([refused, said]).toEqual([true, expect.stringContaining(sentence)])
    expect(left()).toEqual([])
  })

  test('where something else is already', async () => {
    write('opt/hawser-agent/precious', 'gold')
    expect(await put(...known)).toMatchObject({
      refused: true,
      said: expect.stringContaining('is not a Hawser agent') as string,
    })
    expect(left()).toEqual(['opt/hawser-agent/precious'])
  })
})

test('each form of the program is known: a folder with its Node, and what npm looks after', async () => {
  write('agent/bin/hawser-agent', '')
  const [top, node] = [path.join(root, 'agent'), path.join(root, 'agent/bin/node')]
  expect(formOf(node, `${top}/app/main.mjs`)).toEqual({ kind: 'folder', from: top })
  const inPlace = formOf('/usr/bin/node', '/srv/lib/node_modules/hawser-agent/app/main.mjs')
  expect(inPlace).toEqual({
    kind: 'in place',
    command: ['/usr/bin/node', '/srv/lib/node_modules/hawser-agent/app/main.mjs'],
  })
  expect(await told((say) => install(['--root', root, ...known], say, inPlace))).toMatchObject({
    refused: true,
  })
})

test('a folder is copied whole, links and all', async () => {
  const top = path.join(folder, 'fetched')
  mkdirSync(path.join(top, 'bin'), { recursive: true })
  cpSync(path.join(program, 'bin/hawser-agent'), path.join(top, 'bin/hawser-agent'))
  writeFileSync(path.join(top, 'main.js'), 'new')
  await install(['--root', root, ...known], () => undefined, { kind: 'folder', from: top })
  expect(read('opt/hawser-agent/main.js')).toBe('new')
  expect(statSync(path.join(root, 'opt/hawser-agent/bin/hawser-agent')).mode & 0o777).toBe(0o755)
})
