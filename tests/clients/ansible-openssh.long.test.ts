// Ansible, which brings its own programs to a device over SFTP and runs them there through one shared
// connection of the real OpenSSH client; and the inventories of docs/guides/ansible.md.
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort, keygen, run, type Outcome } from '../../ssh/test/programs.ts'
import { sample } from '@hawser/contract/examples'
import { openDesk } from '../../cli/test/program.ts'
import { startAgent } from '../harness/agent.ts'
import { sharedOldAgent, sharedWay } from './way.ts'

const port = await freePort()
const way = sharedWay({
  HAWSER_URL: '',
  HAWSER_SSH: `127.0.0.1:${port}`,
  HAWSER_SSH_PUBLIC_PORT: String(port),
})
const old = sharedOldAgent(way, 2)

beforeAll(async () => {
  await keygen(way.where, 'stranger', '-t', 'ed25519')
  const settings = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'IdentitiesOnly=yes',
  ]
  const line = (name: string, key: string, device = way.agent.name): string =>
    [
      name,
      'ansible_host=127.0.0.1',
      `ansible_port=${way.service.sshPort}`,
      `ansible_user=${way.sshid({ device })}`,
      `ansible_ssh_private_key_file=${way.where.file(key)}`,
      `ansible_ssh_common_args='-F none ${settings.map((setting) => `-o ${setting}`).join(' ')}'`,
      `ansible_remote_tmp=${way.there(`tmp-${name}`)}`,
      'ansible_python_interpreter=/usr/bin/python3',
    ].join(' ')
  way.where.write(
    'inventory',
    [line('ours', 'olga'), line('field', 'olga', old.name), line('refused', 'stranger'), ''].join('\n'),
  )
  way.where.write('ansible.cfg', '')
  mkdirSync(way.where.file('control'))
})
const env = (): Record<string, string> => ({
  HOME: way.where.path,
  ANSIBLE_CONFIG: way.where.file('ansible.cfg'),
  ANSIBLE_LOCAL_TEMP: way.where.file('local'),
  ANSIBLE_SSH_CONTROL_PATH_DIR: way.where.file('control'),
  ANSIBLE_NOCOLOR: '1',
})
// It leaves its shared connections open for a minute.
afterEach(async () => {
  for (const name of readdirSync(way.where.file('control')))
    await run('ssh', ['-S', way.where.file(`control/${name}`), '-O', 'exit', 'any'])
})

const ansible = async (host: string, ...words: string[]): Promise<Outcome> =>
  run('ansible', ['-i', way.where.file('inventory'), host, ...words], undefined, env())

test('pings devices, also one of the field', async () => {
  const { status, stdout } = await ansible('ours:field', '-m', 'ping')
  expect(stdout.toString()).toContain('ours | SUCCESS')
  expect(stdout.toString()).toContain('field | SUCCESS')
  expect(status).toBe(0)
})

test('whoever may not log in reaches nothing', async () => {
  const { status, stdout } = await ansible('refused', '-m', 'ping')
  expect(stdout.toString()).toContain('Permission denied (password,publickey,keyboard-interactive)')
  expect(status).toBe(4)
})

test('a playbook copies files, runs commands, hears how they ended, and fetches', async () => {
  const file = way.there('notice')
  const tasks = [
    { copy: { content: 'High tide at noon.\n', dest: file, mode: '0640' } },
    { command: `wc -c ${file}`, register: 'counted' },
    { assert: { that: ["counted.stdout.startswith('19 ')"] } },
    { shell: 'echo "Low tide at six." >&2; exit 9', register: 'ended', ignore_errors: true },
    { assert: { that: ['ended.rc == 9', "ended.stderr == 'Low tide at six.'"] } },
    { fetch: { src: file, dest: way.where.file('fetched'), flat: true } },
  ]
  const play = way.where.write('play.yml', JSON.stringify([{ hosts: 'ours', gather_facts: false, tasks }]))
  const { status, stdout } = await run(
    'ansible-playbook',
    ['-i', way.where.file('inventory'), play],
    undefined,
    env(),
  )
  expect(stdout.toString()).toMatch(
    /^ours +: ok=6 +changed=4 +unreachable=0 +failed=0 +skipped=0 +rescued=0 +ignored=1/m,
  )
  expect(status).toBe(0)
  expect(readFileSync(way.where.file('fetched'), 'utf8')).toBe('High tide at noon.\n')
})

describe('inventories that leave nothing odd behind', () => {
  const settings = (): string =>
    [
      '-o StrictHostKeyChecking=no',
      '-o UserKnownHostsFile=/dev/null',
      '-o IdentitiesOnly=yes',
      `-o IdentityFile=${way.where.file('olga')}`,
      '-o ControlMaster=auto',
      '-o ControlPersist=60s',
    ].join(' ')
  /** The folders in the home of the user on the device that are called like an SSHID. */
  const odd = async (): Promise<string> =>
    (await way.ssh('cd; ls -A | grep @ || true')).stdout.toString().trim()
  const using = async (inventory: string, config: string, ...words: string[]): Promise<Outcome> =>
    run('ansible', ['-i', inventory, ...words], undefined, {
      ...env(),
      ANSIBLE_SSH_ARGS: `-F ${config} ${settings()}`,
    })

  test('with an SSHID as ansible_user, Ansible makes a folder of that name', async () => {
    const line = `gantry ansible_host=127.0.0.1 ansible_port=${port} ansible_user=${way.sshid()}`
    const { status } = await using(way.where.write('by-user', `${line}\n`), 'none', 'gantry', '-m', 'ping')
    expect([status, await odd()]).toEqual([0, `~${way.sshid()}`])
    await way.ssh(`cd && rm -r './~${way.sshid()}'`)
  })

  test('with plain names that `hawser config ssh` has written, it makes none', async () => {
    using desk = openDesk({ HAWSER_SERVER: way.service.url })
    await desk.hawser(['login', '-u', sample.owner.username, '--password-stdin'], {
      input: sample.owner.password,
    })
    const config = path.join(desk.folder, 'ssh-config')
    await desk.hawser(['config', 'ssh', '--file', config, '--user', way.user.name])
    const { status, stdout } = await using(
      way.where.write('by-name', `${way.agent.name}\n`),
      config,
      'all',
      '-m',
      'ping',
    )
    expect(stdout.toString()).toContain(`${way.agent.name} | SUCCESS`)
    expect([status, await odd()]).toEqual([0, ''])
  })

  test('with `hawser config ansible` it makes none, and every device gets its own commands', async () => {
    await using second = await startAgent(way.service, { hostname: 'davit' })
    using desk = openDesk({ HAWSER_SERVER: way.service.url })
    await desk.hawser(['login', '-u', sample.owner.username, '--password-stdin'], {
      input: sample.owner.password,
    })
    const script = way.where.write(
      'by-script',
      `#!/bin/sh\nXDG_CONFIG_HOME=${path.join(desk.folder, 'config')} exec ${desk.bin}/hawser config ansible --user ${way.user.name}\n`,
    )
    chmodSync(script, 0o700)
    const { status, stdout } = await using(script, 'none', 'online', '-m', 'ping')
    for (const { name } of [way.agent, second]) expect(stdout.toString()).toContain(`${name} | SUCCESS`)
    expect([status, await odd()]).toEqual([0, ''])
    // One shared connection for each device: with a common one, both names would be answered by one device.
    const { body } = await way.owner.sessions.list({ query: {} })
    expect(new Set(body.filter(({ active }) => active).map(({ device }) => device?.name))).toEqual(
      new Set([way.agent.name, second.name, old.name]),
    )
  })
})
