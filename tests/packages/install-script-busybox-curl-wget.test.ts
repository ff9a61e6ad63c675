// install.sh as a person runs it, on machines for which there is no agent and from servers that have none:
// the script says why in plain words, prints lines that work there, and fails, in every shell and with
// whatever fetches. The machines are played by programs on the PATH, by `linux32`, which makes the kernel say
// that it is a 32-bit one, and by a folder with busybox alone.
import { execFileSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { isRoot } from '../../agent/test/device.ts'
import { folder, run } from '../../ssh/test/programs.ts'
import { startService, type Service } from '../harness/service.ts'

const where = folder()
let service: Service
let script = ''
beforeAll(async () => {
  service = await startService({ env: { HAWSER_URL: '' } })
  script = await fetchScript(`tenant_id=${sample.tenant}&preferred_hostname=crane`)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const fetchScript = async (query: string): Promise<string> =>
  (await fetch(`${service.url}/install.sh?${query}`)).text()

let machines = 0
/**
 * A folder for the PATH: everything of busybox, and what is given, as scripts or as programs of this system.
 */
function machine(programs: Readonly<Record<string, string>>): string {
  const bin = where.file(`bin-${++machines}`)
  mkdirSync(bin)
  execFileSync('/bin/busybox', ['--install', '-s', bin])
  // Everything that fetches or makes keys is there only if it is given.
  for (const name of ['wget', 'ssh', 'ssh-keygen', 'dropbearkey'])
    execFileSync('rm', ['-f', path.join(bin, name)])
  for (const [name, text] of Object.entries(programs)) {
    execFileSync('rm', ['-f', path.join(bin, name)])
    if (text.startsWith('/')) symlinkSync(text, path.join(bin, name))
    else {
      writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}\n`)
      chmodSync(path.join(bin, name), 0o755)
    }
  }
  return bin
}

/**
 * Busybox's shell has an `id` of its own, so that where the tests do not run as root it is sudo that helps.
 */
const asRoot = { id: 'echo 0', sudo: 'exec "$@"' }
const processor = (name: string): Record<string, string> => ({
  uname: `case "$1" in -s) echo Linux ;; -m) echo ${name} ;; -n) echo pi.example.com ;; esac`,
})

/** The shell of busybox takes its own programs before those of the PATH, so dash plays other machines. */
async function follow(bin: string, text = script, shell: readonly string[] = ['/bin/dash']) {
  const words = ['-i', `PATH=${bin}`, `HOME=${where.path}`, ...shell, '-s']
  const { status, stdout, stderr } = await run('/usr/bin/env', words, text)
  expect(stdout.toString()).toBe('')
  return { status, said: stderr }
}

const shells = { dash: ['/bin/dash'], bash: ['/bin/bash'], busybox: ['/bin/busybox', 'sh'] } as const

describe.each(Object.entries(shells))('in %s', (_, shell) => {
  test('a 32-bit system is told that there is no agent for it', async () => {
    const { status, said } = await follow(machine({ curl: 'exit 99' }), script, [
      '/usr/bin/linux32',
      ...shell,
    ])
    expect([status, said]).toEqual([1, expect.stringMatching(/there is no agent .*\((i686|armv8l)\)/)])
    expect(said).toMatch(/SHELLHUB_SERVER_ADDRESS=.* \.\/shellhub-agent-linux-(386|armv7)\n/)
  })

  test.each([
    ['curl', { curl: '/usr/bin/curl' }],
    ['GNU wget', { wget: '/usr/bin/wget' }],
    ["busybox's wget", { wget: '/bin/busybox' }],
  ])('the sentence of a server without agents is shown (%s)', async (_, programs) => {
    const { status, said } = await follow(machine({ ...asRoot, ...programs }), script, shell)
    expect(status).toBe(1)
    expect(said).toMatch(
      /the agent could not be fetched: .*This server has no agent for (x64|arm64) yet\. `npm run build` on the server/,
    )
  })
})

describe('no agent', () => {
  test('a 32-bit Raspberry Pi is told that there is no agent, and the two ways that work', async () => {
    const bin = machine({ ...processor('armv7l'), 'ssh-keygen': 'exit 1', ssh: 'exit 1', curl: 'exit 99' })
    const { status, said } = await follow(bin)
    expect(status).toBe(1)
    expect(said).toContain(
      'there is no agent for this machine: its processor or its system is a 32-bit ARM (armv7l)',
    )
    expect(said).toContain("ssh-keygen -t ed25519 -N '' -f ~/.ssh/hawser")
    expect(said).toContain(
      `\n  ssh -N -R 0:localhost:22 -i ~/.ssh/hawser -p 2222 ${sample.tenant}.crane@127.0.0.1\n`,
    )
    expect(said).toContain(
      `\n  SHELLHUB_SERVER_ADDRESS=${service.url} SHELLHUB_TENANT_ID=${sample.tenant} ` +
        'SHELLHUB_PRIVATE_KEY=/etc/shellhub.key ./shellhub-agent-linux-armv7\n',
    )
  })

  test.each([
    ['another processor', processor('riscv64'), 'its processor is neither x86_64 nor aarch64 (riscv64)'],
    [
      'another system',
      { uname: 'case "$1" in -m) echo x86_64 ;; *) echo Darwin ;; esac' },
      'it runs Darwin, not Linux',
    ],
    ['an old glibc', { getconf: 'echo glibc 2.17' }, 'its glibc is 2.17, and the agent needs 2.28 or newer'],
    [
      'an old glibc without getconf',
      { getconf: 'exit 127', ldd: 'echo "ldd (GNU libc) 2.27"' },
      'its glibc is 2.27',
    ],
    ['musl', { getconf: 'exit 1', ldd: 'echo "musl libc (x86_64)" >&2; exit 1' }, 'its C library is musl'],
  ])('for %s, before anything is fetched', async (_, programs, sentence) => {
    const bin = machine({ ...asRoot, ...programs, curl: 'exit 99' })
    const { status, said } = await follow(bin)
    expect(status).toBe(1)
    expect(said).toContain(`there is no agent for this machine: ${sentence}`)
    expect(said).toContain('ssh -N -R 0:localhost:22')
  })

  test('where the glibc is new enough, the agent is fetched', async () => {
    for (const version of ['2.28', '2.41', '3.0']) {
      const bin = machine({ ...asRoot, getconf: `echo glibc ${version}`, curl: 'exit 7' })
      expect((await follow(bin)).said).toContain('.tar.gz could not be fetched')
    }
  })

  test("the lines are Dropbear's where the device has nothing else", async () => {
    const bin = machine({ ...processor('mips'), dropbearkey: 'exit 1', dbclient: 'exit 1' })
    const { said } = await follow(bin, await fetchScript(`tenant_id=${sample.tenant}`))
    expect(said).toContain('dropbearkey -t ed25519 -f ~/.ssh/hawser')
    // Without a wish of its own the device is called as its host is.
    expect(said).toContain(
      `dbclient -N -R 0:localhost:22 -i ~/.ssh/hawser -p 2222 ${sample.tenant}.pi@127.0.0.1`,
    )
    expect(said).not.toContain('shellhub-agent')
  })
})

describe('what else stops it', () => {
  test.each([
    ['a token that is none', 'token=rope', /this is no enrolment token/],
    [
      'half an id',
      `tenant_id=${sample.tenant.slice(0, 20)}`,
      /is no id of a namespace: the console shows it/,
    ],
    ['a name in place of the id', 'tenant_id=harbour', /harbour is no id of a namespace/],
  ])('%s', async (_, query, sentence) => {
    const { status, said } = await follow(machine({ ...asRoot, curl: 'exit 99' }), await fetchScript(query))
    expect([status, said]).toEqual([1, expect.stringMatching(sentence)])
  })

  test('neither root nor sudo, neither curl nor wget', async () => {
    expect((await follow(machine({ id: 'echo 1000' }))).said).toContain('run this script as root')
    expect((await follow(machine(asRoot))).said).toContain('curl or wget is needed')
  })

  test('with sudo, the agent that was fetched is run by it, and nothing stays behind', async () => {
    const agent = where.file('hawser-agent/bin')
    mkdirSync(agent, { recursive: true })
    writeFileSync(
      path.join(agent, 'hawser-agent'),
      '#!/bin/sh\n[ "$1" = --version ] || echo "told: $*" >&2\n',
    )
    chmodSync(path.join(agent, 'hawser-agent'), 0o755)
    mkdirSync(where.file('agents'))
    for (const arch of ['x64', 'arm64'])
      execFileSync('tar', [
        '-C',
        where.path,
        '-czf',
        where.file(`agents/hawser-agent-linux-${arch}.tar.gz`),
        'hawser-agent',
      ])
    mkdirSync(where.file('tmp'))
    await using serving = await startService({ env: { HAWSER_URL: '' }, agents: where.file('agents') })
    const text = await (await fetch(`${serving.url}/install.sh?tenant_id=${sample.tenant}`)).text()
    for (const programs of [{ curl: '/usr/bin/curl' }, { wget: '/usr/bin/wget' }, { wget: '/bin/busybox' }]) {
      const bin = machine({ id: 'echo 1000', sudo: 'echo "sudo used" >&2; exec "$@"', ...programs })
      const { status, said } = await follow(bin, `TMPDIR=${where.file('tmp')}\n${text}`)
      expect([status, said]).toEqual([
        0,
        expect.stringMatching(/sudo used\ntold: install --server http:.* --tenant /),
      ])
    }
    expect(readdirSync(where.file('tmp'))).toEqual([])
  })

  test('a script that was cut off on its way does nothing', async () => {
    const bin = machine({ ...asRoot, curl: 'exit 99' })
    for (const part of [0.3, 0.6, 0.9, 0.999]) {
      const { said } = await follow(bin, script.slice(0, Math.floor(script.length * part)))
      expect(said).not.toContain('hawser-agent: ')
    }
  })
})

test('requests for agents that are not there start no process', async () => {
  const started: unknown[] = []
  const note = (message: unknown): void => void started.push(message)
  subscribe('child_process', note)
  try {
    for (const name of ['x64.tar.gz', 'arm64.tar.gz', 'arm.tar.gz', 'x64.tar.gz/../../../etc/passwd']) {
      const asked = Array.from({ length: 20 }, () => fetch(`${service.url}/agent/hawser-agent-linux-${name}`))
      for (const answer of await Promise.all(asked)) expect(answer.status).toBe(404)
    }
    expect(started).toEqual([])
    await run('/bin/true', [])
    expect(started).toHaveLength(1)
  } finally {
    unsubscribe('child_process', note)
  }
})

test.runIf(isRoot)(
  'a system of busybox and musl is known by its loader (only as root: it changes the root)',
  async () => {
    const device = where.file('device')
    for (const name of ['bin', 'lib', 'tmp']) mkdirSync(path.join(device, name), { recursive: true })
    copyFileSync('/bin/busybox', path.join(device, 'bin/busybox'))
    execFileSync('chroot', [device, '/bin/busybox', '--install', '-s', '/bin'])
    const enter = async () => run('chroot', [device, '/bin/sh', '-s'], script)
    expect(existsSync(path.join(device, 'lib64'))).toBe(false)
    expect(await enter()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is missing') as string,
    })
    writeFileSync(path.join(device, 'lib/ld-musl-x86_64.so.1'), '')
    expect(await enter()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('its C library is musl, and the agent needs glibc') as string,
    })
  },
)
