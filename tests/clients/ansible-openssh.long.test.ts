// Ansible, which brings its own programs to a device over SFTP and runs them there through one shared
// connection of the real OpenSSH client.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { keygen, run, type Outcome } from '../../ssh/test/programs.ts'
import { sharedOldAgent, sharedWay } from './way.ts'

const way = sharedWay()
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
