// The npm packages, installed as a person would with `npm install -g`, into a clean prefix, and started by
// the Node that is on the path, which may be old: the command line runs on it, the agent on the one that npm
// has brought with it. The agent is then reached by the real OpenSSH.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundle, version } from '../../packages/bundle.ts'
import { npmPackage } from '../../packages/npm.ts'
import { run } from '../../ssh/test/programs.ts'
import { sharedWay } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'

/** The registry may be slow. */
const fetching_ms = 300_000
const way = sharedWay()
let folder: string
const installed = (name: string): string => path.join(folder, 'prefix/bin', name)
const said = async (name: string, ...words: string[]) => {
  const { status, stdout, stderr } = await run(installed(name), words, '', {
    HOME: folder,
    XDG_CONFIG_HOME: folder,
  })
  return { status, stdout: stdout.toString(), stderr }
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-npm-'))
  const files = [await npmPackage('cli', folder), await npmPackage('agent', folder)].map((name) =>
    path.join(folder, name),
  )
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline']
  execFileSync('npm', ['install', '--global', '--prefix', path.join(folder, 'prefix'), ...quiet, ...files], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}, fetching_ms)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('all of them say the same version', async () => {
  for (const name of ['hawser', 'hawser-agent'])
    expect(await said(name, '--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
})

test('the command line works, and says what is wrong with its own exit codes', async () => {
  const { url } = way.service
  expect(await said('hawser', '--server', url, 'status', '-o', 'json')).toMatchObject({
    status: 3,
    stdout: expect.stringContaining('"signed_in": false') as string,
  })
  expect((await said('hawser', 'devcies')).stderr).toContain('Did you mean `hawser devices`?')
})

test('the agent connects, and gives a terminal and files', async () => {
  await using agent = await startAgent(way.service, {
    hostname: 'from-npm',
    program: [installed('hawser-agent')],
  })
  const there = { device: agent.name }
  const shown = await way.ssh('tty; echo "$USER"', { ...there, flags: ['-tt'] })
  expect(shown.stdout.toString()).toMatch(new RegExp(`^/dev/pts/\\d+\\r\\n${way.user.name}\\r\\n$`))
  expect((await way.ssh('exit 9', there)).status).toBe(9)
  agent.kill('SIGTERM')
  expect(await agent.ended).toBe(0)
})

test('a Node that is too old is told so, when npm has brought none', () => {
  const bare = path.join(folder, 'bare')
  mkdirSync(path.join(bare, 'bin'), { recursive: true })
  writeFileSync(
    path.join(bare, 'package.json'),
    JSON.stringify({ name: 'hawser-agent', type: 'module', engines: { node: '>=999.1.0' } }),
  )
  writeFileSync(
    path.join(bare, 'bin/hawser-agent.mjs'),
    readFileSync(path.join(import.meta.dirname, '../../packages/starter.mjs')),
  )
  const { status, stderr } = spawnSync(process.execPath, [path.join(bare, 'bin/hawser-agent.mjs')], {
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([
    1,
    `hawser-agent: Node ${process.versions.node} is too old: install Node 999.1 or newer, or take the tarball, which carries its own.\n`,
  ])
})

test('nothing is looked for outside of a bundle but what Node has', async () => {
  const scripts = await bundle('agent')
  const text = scripts.map(({ code }) => code).join('\n')
  expect(text).toContain('process.getBuiltinModule("node:crypto")')
  const asked = [...text.matchAll(/^import .* from "([^"]+)";?$/gm)].map(([, name]) => name ?? '')
  const own = new Set(scripts.map(({ name }) => `./${name}`))
  expect(asked.filter((name) => !own.has(name))).toEqual([])
  expect(text).not.toMatch(/bufferutil|utf-8-validate/)
})
