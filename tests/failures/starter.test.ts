// The starter (run.mjs) on machines that lack something: it installs once, again when the lock file changed,
// says why when it cannot, and is invisible otherwise: arguments, output, exit code and signals are the
// program's own. `npm` is a stand-in here that notes how it was called; the real one is what brought the
// packages this test runs on.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
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

/** A checkout that npm has brought a Node to already; the path of that. */
function withCarriedNode(folder: string): string {
  checkout(folder, 'console.log(process.argv0)', '')
  const bin = path.join(folder, `node_modules/node-${process.platform}-${process.arch}/bin`)
  mkdirSync(bin, { recursive: true })
  symlinkSync(process.execPath, path.join(bin, 'node'))
  return path.join(bin, 'node')
}

test('the machine’s own Node is preferred to the one that npm brought, when it is new enough', async () => {
  using folder = temporaryFolder()
  withCarriedNode(folder.path)
  expect((await start(folder.path).ended).stdout.trim()).toBe(process.execPath)
})

test('a Node of the machine that runs no TypeScript is not preferred', async () => {
  using folder = temporaryFolder()
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
