// The README and the quick start as a newcomer follows them on one machine: `npm start` on nothing, the first
// user, the agent as `install.sh` brings it from the server, the first ssh; and `npm run demo`. Nothing is
// shared with other tests: the server is a process of its own with a folder of its own. Only where a service
// manager would start the agent, this test does.
import { createHash } from 'node:crypto'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { makePerson, type Person } from '../../agent/test/person.ts'
import { freePort, run } from '../../ssh/test/programs.ts'
import { isRoot } from '../clients/way.ts'
import { builtAgents } from '../harness/built-agent.ts'
import { blocksOf, isCommand, root, type Block } from './blocks.ts'
import { openReader, type Reader } from './reader.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** Else `npm start` would install packages, below the feet of every other test. */
function mustBeInstalled(): void {
  const lock = createHash('sha256')
    .update(readFileSync(path.join(root, 'package-lock.json')))
    .digest('hex')
  if (readFileSync(path.join(root, 'node_modules/.hawser-installed'), 'utf8') !== lock)
    throw new Error('run the tests with `npm test`')
}

describe.each(['README.md', 'docs/guides/quick-start.md'])('%s', (page) => {
  let folder: string
  let person: Person | undefined
  let reader: Reader
  let agent: ChildProcess | undefined
  let [http, ssh] = [0, 0]
  const user = (): { name: string; password: string } =>
    person ?? { name: os.userInfo().username, password: 'pilot' }

  const here = (text: string): string => {
    const tenant = /Tenant: ([0-9a-f-]{36})/.exec(reader.said())?.[1] ?? ''
    const names: readonly (readonly [string, string])[] = [
      // Numbers first: they might be in what takes the place of a name.
      ['8080', String(http)],
      ['2222', String(ssh)],
      ['<server>', '127.0.0.1'],
      ['localhost', '127.0.0.1'],
      ['<id of your namespace>', tenant],
      ['<tenant>', tenant],
      ['<namespace>', 'harbour'],
      ['<device>', 'gantry'],
      ['root@', `${user().name}@`],
    ]
    return names.reduce((so_far, [name, value]) => so_far.replaceAll(name, value), text)
  }
  const answer = (question: string): string | undefined =>
    question.endsWith(') Password:')
      ? user().password
      : { 'Username or e-mail:': 'olga', 'Password:': 'rope-and-anchor' }[question]

  beforeAll(async () => {
    // `npm start` would make it within minutes of the first start; a newcomer takes longer
    // to type than we do.
    await builtAgents()
    ;[http, ssh] = [await freePort(), await freePort()]
    folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-newcomer-'))
    person = isRoot ? await makePerson() : undefined
    const at = (name: string): string => path.join(folder, name)
    reader = openReader({
      here,
      answer,
      folder: root,
      env: {
        HAWSER_HTTP: `127.0.0.1:${http}`,
        HAWSER_SSH: `127.0.0.1:${ssh}`,
        HAWSER_DATA: at('data'),
        HAWSER_DRAIN: '0',
        npm_config_update_notifier: 'false',
        // The script of the server puts the agent here instead of into the system.
        INSTALL_DIR: at('agent'),
        SETTINGS_FILE: at('agent.env'),
        PRIVATE_KEY: at('agent.key'),
        PREFERRED_HOSTNAME: 'gantry',
        NO_SERVICE: '1',
      },
    })
    // The newcomer's own key.
    await run('ssh-keygen', [
      '-q',
      '-t',
      'ed25519',
      '-N',
      '',
      '-f',
      path.join(reader.desk.folder, '.ssh/id_ed25519'),
    ])
  })
  afterAll(async () => {
    if (agent && agent.exitCode === null) {
      agent.kill('SIGTERM')
      await once(agent, 'exit')
    }
    await reader[Symbol.asyncDispose]()
    await person?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What systemd would do: starts what was installed, and waits until it has its tunnel. */
  async function startAgent(): Promise<void> {
    const settings = readFileSync(path.join(folder, 'agent.env'), 'utf8').trim().split('\n')
    const alone = isRoot
      ? {}
      : {
          HAWSER_SINGLE_USER_PASSWORD: spawnSync('openssl', ['passwd', '-6', 'pilot'], {
            encoding: 'utf8',
          }).stdout.trim(),
        }
    const told = Object.fromEntries(
      settings.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], ...told, ...alone }
    const started = (agent = spawn(path.join(folder, 'agent/bin/hawser-agent'), [], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    }))
    for await (const line of createInterface(started.stdout)) if (line.includes('"tunnel.up"')) break
    started.stdout.resume()
  }

  /** The demo prints how to come in; it is waited for, since it is the last thing it says. */
  async function comeIn(shown: string): Promise<void> {
    const command = /SSH\s+(ssh .*)/.exec(shown)?.[1] ?? ''
    const { stdout, status, stderr } = await run(path.join(reader.desk.bin, 'ssh'), [
      ...command.split(' ').slice(1),
      'echo there',
    ])
    expect([stdout.toString(), status], stderr).toEqual(['there\n', 0])
  }

  const blocks = blocksOf(page).filter((block) => isCommand(block) && block.how !== 'not-run')

  test.each(blocks)('$line: $text', async (block: Block) => {
    mustBeInstalled()
    await reader.follow(block, block.text.startsWith('npm run demo') ? comeIn : undefined)
    if (block.text.includes('install.sh')) await startAgent()
  })
})
