// The starter (run.mjs) on machines that lack something: it installs once, again when the lock file changed,
// says why when it cannot, and is invisible otherwise: arguments, output, exit code and signals are the
// program's own. `npm` is a stand-in here that notes how it was called; the real one is what brought the
// packages this test runs on.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { root, temporaryFolder } from './program.ts'

/** A checkout with the starter, a program and an npm that does what `install` says (a line of shell). */
function checkout(folder: string, program: string, install: string): void {
  copyFileSync(path.join(root, 'run.mjs'), path.join(folder, 'run.mjs'))
  writeFileSync(path.join(folder, 'package-lock.json'), '{"lockfileVersion": 3}')
  writeFileSync(path.join(folder, 'program.ts'), program)
  mkdirSync(path.join(folder, 'bin'))
  const npm = path.join(folder, 'bin', 'npm')
  writeFileSync(npm, `#!/bin/sh\necho "$@" >> '${folder}/npm-calls'\n${install}\n`)
  chmodSync(npm, 0o755)
}

/** Brings our Node as a platform package, as `npm ci` would. */
function installing(folder: string): string {
  const bin = `${folder}/node_modules/node-${process.platform}-${process.arch}/bin`
  return `mkdir -p '${bin}' && ln -sf '${process.execPath}' '${bin}/node'`
}

function start(folder: string, ...args: string[]) {
  const env = { PATH: `${path.join(folder, 'bin')}:${process.env.PATH ?? ''}` }
  const child = spawn(process.execPath, ['run.mjs', 'program.ts', ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = Promise.all([
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ])
  return {
    child,
    ended: ended.then(([[code, signal], stdout, stderr]) => ({ code, signal, stdout, stderr })),
  }
}

const calls = (folder: string): string[] => {
  const file = path.join(folder, 'npm-calls')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

test('it installs what is missing, once, and again when the lock file changed', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, "console.log('served', ...process.argv.slice(2))", installing(folder.path))
  const first = await start(folder.path, 'a', 'b c').ended
  expect(first).toMatchObject({ code: 0, stdout: 'served a b c\n' })
  expect(first.stderr).toContain('installing')
  expect(calls(folder.path)).toHaveLength(1)
  expect(calls(folder.path)[0]).toMatch(/^ci /)

  const second = await start(folder.path).ended
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(calls(folder.path)).toHaveLength(1)

  writeFileSync(path.join(folder.path, 'package-lock.json'), '{"lockfileVersion": 3, "packages": {}}')
  await start(folder.path).ended
  expect(calls(folder.path)).toHaveLength(2)
})

test('of two first starts at once one installs, and the other waits for it', async () => {
  using folder = temporaryFolder()
  const slowly = `until [ -e '${folder.path}/go' ]; do sleep 0.05; done; ${installing(folder.path)}`
  checkout(folder.path, "console.log('served')", slowly)
  const first = start(folder.path)
  await expect.poll(() => calls(folder.path), { timeout: 30_000 }).toHaveLength(1)
  const second = start(folder.path)
  const [said] = (await once(second.child.stderr, 'data')) as [Buffer]
  expect(said.toString()).toContain(`waiting for process ${first.child.pid}, which installs packages`)
  writeFileSync(path.join(folder.path, 'go'), '')
  for (const one of [first, second]) expect(await one.ended).toMatchObject({ code: 0, stdout: 'served\n' })
  expect(calls(folder.path)).toHaveLength(1)
  expect(readdirSync(folder.path).filter((name) => name.startsWith('.installing'))).toEqual([])
})

test('an installation that was killed holds nobody up', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, "console.log('served')", installing(folder.path))
  const gone = spawn('true')
  await once(gone, 'exit')
  writeFileSync(path.join(folder.path, '.installing'), String(gone.pid))
  expect(await start(folder.path).ended).toMatchObject({ code: 0, stdout: 'served\n' })
})

test('a failed installation is said and tried again the next time', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, "console.log('served')", 'echo "no network" >&2; exit 1')
  for (const times of [1, 2]) {
    const ended = await start(folder.path).ended
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain('no network')
    expect(ended.stderr).toContain('`npm ci` failed')
    expect(calls(folder.path)).toHaveLength(times)
  }
})

test('a machine without npm is told what is missing', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, "console.log('served')", '')
  const nowhere = { PATH: path.join(folder.path, 'empty') }
  const child = spawn(process.execPath, ['run.mjs', 'program.ts'], {
    cwd: folder.path,
    env: nowhere,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [[code], stderr] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    text(child.stderr),
  ])
  expect(code).toBe(1)
  expect(stderr).toContain('is npm installed?')
})

test('what npm installed by itself is not installed again', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, "console.log('served')", '')
  withCarriedNode(folder.path)
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const hook = (env: Record<string, string> = {}) =>
    spawnSync('sh', ['-c', scripts['postinstall'] ?? 'false'], {
      cwd: folder.path,
      env: { PATH: process.env.PATH, ...env },
    })
  // As in the image, where developers' packages were left out. npm does the same, and says so to nobody,
  // where NODE_ENV is `production`.
  for (const env of [{ npm_config_omit: 'dev' }, { NODE_ENV: 'production' }]) {
    rmSync(path.join(folder.path, 'node_modules/.hawser-installed'), { force: true })
    rmSync(path.join(folder.path, 'npm-calls'), { force: true })
    expect(hook(env).status).toBe(0)
    await start(folder.path).ended
    expect(calls(folder.path)).toEqual([expect.stringContaining(' --include=dev ')])
  }
  rmSync(path.join(folder.path, 'node_modules/.hawser-installed'))
  expect(hook().status).toBe(0)
  expect(await start(folder.path).ended).toMatchObject({ code: 0, stderr: '' })
  expect(calls(folder.path)).toHaveLength(1)
})

test('the exit code is the program’s', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, 'process.exit(7)', installing(folder.path))
  expect(await start(folder.path).ended).toMatchObject({ code: 7, signal: null })
})

test('a signal reaches the program, which decides what to do with it', async () => {
  using folder = temporaryFolder()
  checkout(
    folder.path,
    "process.on('SIGTERM', () => process.exit(3)); console.log('ready'); setInterval(() => {}, 1000)",
    installing(folder.path),
  )
  const { child, ended } = start(folder.path)
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 3, signal: null })
})

test('a program that a signal ends ends the starter by the same signal', async () => {
  using folder = temporaryFolder()
  checkout(
    folder.path,
    "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)",
    installing(folder.path),
  )
  expect(await start(folder.path).ended).toMatchObject({ code: null, signal: 'SIGTERM' })
})

// People end `npm start` by the number that their shell told them, which is npm's.
test.each(['SIGTERM', 'SIGKILL'] as const)('when npm gets %s, the program is told to end', async (signal) => {
  using folder = temporaryFolder()
  const file = path.join(folder.path, 'ended')
  checkout(
    folder.path,
    `import { writeFileSync } from 'node:fs'
    process.on('SIGTERM', () => { writeFileSync(${JSON.stringify(file)}, 'by SIGTERM'); process.exit() })
    console.log('ready'); setInterval(() => {}, 1000)`,
    '',
  )
  withCarriedNode(folder.path)
  const installed = spawnSync(process.execPath, ['run.mjs', '--installed'], { cwd: folder.path, env: {} })
  expect(installed.status).toBe(0)
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const script = (scripts['start'] ?? '').replace('packages/start.ts', 'program.ts')
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify({ scripts: { start: script } }))
  const npm = spawn('npm', ['start'], { cwd: folder.path, stdio: ['ignore', 'pipe', 'ignore'] })
  for await (const line of createInterface(npm.stdout)) if (line === 'ready') break
  npm.stdout.resume()
  npm.kill(signal)
  await expect
    .poll(() => existsSync(file) && readFileSync(file, 'utf8'), { timeout: 30_000 })
    .toBe('by SIGTERM')
})

/** What npm brings to a checkout: a Node; the path of that. */
function withCarriedNode(folder: string): string {
  const bin = path.join(folder, `node_modules/node-${process.platform}-${process.arch}/bin`)
  mkdirSync(bin, { recursive: true })
  symlinkSync(process.execPath, path.join(bin, 'node'))
  return path.join(bin, 'node')
}

test('the machine’s own Node is preferred to the one that npm brought, when it is new enough', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, 'console.log(process.argv0)', '')
  withCarriedNode(folder.path)
  expect((await start(folder.path).ended).stdout.trim()).toBe(process.execPath)
})

test('a Node of the machine that runs no TypeScript is not preferred', async () => {
  using folder = temporaryFolder()
  checkout(folder.path, 'console.log(process.argv0)', '')
  const carried = withCarriedNode(folder.path)
  const env = { PATH: `${path.join(folder.path, 'bin')}:${process.env.PATH ?? ''}` }
  const args = ['--no-strip-types', 'run.mjs', 'program.ts']
  const child = spawn(process.execPath, args, {
    cwd: folder.path,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect((await text(child.stdout)).trim()).toBe(carried)
})

// `bin/hawser`, which services start.
describe('the launcher', () => {
  /** A clone with the launcher; `machine` is what the machine has as `node`: a script, or nothing. */
  function clone(folder: string, machine?: string): string {
    const place = path.join(folder, 'with a space')
    mkdirSync(place)
    checkout(place, '', '')
    writeFileSync(
      path.join(place, 'hawser.ts'),
      'console.log(process.pid, process.argv0, process.execArgv.length, ...process.argv.slice(2))',
    )
    copyFileSync(path.join(root, 'bin/hawser'), path.join(place, 'bin/hawser'))
    mkdirSync(path.join(folder, 'path'))
    for (const name of ['dirname', 'readlink'])
      symlinkSync(path.join('/usr/bin', name), path.join(folder, 'path', name))
    if (machine !== undefined) writeFileSync(path.join(folder, 'path/node'), machine, { mode: 0o755 })
    return place
  }
  function launch(folder: string, place: string): { pid: number; status: number | null; said: string } {
    // By a link, as people put it into their path.
    symlinkSync(path.join(place, 'bin/hawser'), path.join(folder, 'hawser'))
    const { pid, status, stdout, stderr } = spawnSync(path.join(folder, 'hawser'), ['serve', 'a b'], {
      env: { PATH: path.join(folder, 'path') },
      encoding: 'utf8',
    })
    return { pid, status, said: stdout + stderr }
  }

  test.each([
    ['none', undefined],
    ['one too old to read the starter', '#!/bin/sh\nexit 1\n'],
  ])('becomes the Node that npm brought where the machine has %s', (_, machine) => {
    using folder = temporaryFolder()
    const place = clone(folder.path, machine)
    const carried = withCarriedNode(place)
    const { pid, status, said } = launch(folder.path, place)
    // The process of the launcher itself, with the flags of run.mjs.
    expect([status, said]).toEqual([0, `${pid} ${process.execPath} 2 serve a b\n`])
    expect(realpathSync(carried)).toBe(process.execPath)
  })

  test('says what to do in a clone without packages', () => {
    using folder = temporaryFolder()
    const place = clone(folder.path, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`)
    expect(launch(folder.path, place)).toMatchObject({
      status: 78,
      said: `hawser: there are no packages in ${place}: run \`npm ci\` and \`npm run build\` there, then start again\n`,
    })
  })

  test('does not start with packages of another lock file, and says so once', () => {
    using folder = temporaryFolder()
    const place = clone(folder.path, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`)
    withCarriedNode(place)
    writeFileSync(path.join(place, 'node_modules/.hawser-installed'), 'of another lock file')
    expect(launch(folder.path, place)).toMatchObject({
      status: 78,
      said: `hawser: the packages in ${place} are old: run \`npm ci\` and \`npm run build\` there, then start again\n`,
    })
  })
})
