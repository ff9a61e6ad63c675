// What `npm run build` makes and the server serves: the Node in a tarball is the maker's own, a packager may
// choose another, and a server says what to do where an agent is missing.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { agentsToMake } from '../../packages/build.ts'
import { lazyBuiltins, root, version } from '../../packages/bundle.ts'
import { moveFolder } from '../../packages/drafts.ts'
import { checkOrigin } from '../../packages/node-origin.ts'
import type { Architecture } from '../../packages/registry.ts'
import { chosenNode, runtimeFor } from '../../packages/runtime.ts'
import { agentsFolder, consoleFolder, isBuilt, noteNodes } from '../../packages/served.ts'
import { folder } from '../../ssh/test/programs.ts'
import { builtAgent, builtAgents } from '../harness/built-agent.ts'
import { startService } from '../harness/service.ts'

const arch = process.arch as Architecture
const where = folder()
afterAll(() => where[Symbol.dispose]())
afterEach(() => vi.unstubAllEnvs())

const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

test('the Node in a tarball is untouched, and NODE_OPTIONS does not reach it', async () => {
  await builtAgents()
  execFileSync('tar', ['-C', where.file('.'), '-xzf', builtAgent()])
  const { node } = await runtimeFor(arch)
  expect(sha256(where.file('hawser-agent/bin/node'))).toBe(node.sha256)
  expect(statSync(where.file('hawser-agent/bin/hawser-agent')).mode & 0o777).toBe(0o755)
  const said = execFileSync(where.file('hawser-agent/bin/hawser-agent'), ['--version'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], NODE_OPTIONS: '--no-such-option' },
  })
  expect(said).toBe(`${version}\n`)
})

test('the agent loads nothing of Node that only browsers and large servers need', () => {
  const script = "process.on('exit', () => console.log(process.moduleLoadList.join('\\n')))"
  const args = ['--import', `data:text/javascript,${encodeURIComponent(script)}`]
  const loaded = execFileSync(
    where.file('hawser-agent/bin/node'),
    [...args, where.file('hawser-agent/app/main.mjs'), 'info'],
    { encoding: 'utf8' },
  )
  expect(loaded).toContain('NativeModule http\n')
  expect(loaded).not.toMatch(/undici|http2|webstreams|readline/)
})

test('an import of a module of Node becomes the same names without an import', () => {
  const get = (name: string): string => `process.getBuiltinModule("${name}");`
  expect(lazyBuiltins('import os, { EOL as end } from "node:os";\nimport * as fs from "node:fs";\n')).toBe(
    `const os = ${get('node:os')} const { EOL: end } = ${get('node:os')}\nconst fs = ${get('node:fs')}\n`,
  )
  expect(() => lazyBuiltins('export * from "node:os";\n')).toThrow('another way')
})

test('a build that is stopped in the middle leaves nothing behind', async () => {
  const [temporary, made] = [where.file('temporary'), where.file('made')]
  for (const each of [temporary, made]) mkdirSync(each)
  const source = (name: string): string => JSON.stringify(path.join(root, 'packages', name))
  const script = `
    import { exitOnSignals } from ${source('drafts.ts')}
    import { makeTarball } from ${source('tarball.ts')}
    exitOnSignals()
    await makeTarball('cli', process.arch, ${JSON.stringify(path.join(made, 'cli.tar.gz'))})`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  const build = spawn(process.execPath, args, {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(build, 'exit')
  await expect.poll(() => readdirSync(made), { timeout: 30_000 }).toHaveLength(1)
  build.kill('SIGTERM')
  expect(await ended).toEqual([143, null])
  expect([...readdirSync(temporary), ...readdirSync(made)]).toEqual([])
}, 60_000)

test('a build that is stopped ends the npm that waits for the registry', async () => {
  const registry = net.createServer().listen(0, '127.0.0.1')
  await once(registry, 'listening')
  const { port } = registry.address() as net.AddressInfo
  const source = (name: string): string => JSON.stringify(path.join(root, 'packages', name))
  const script = `
    import { exitOnSignals } from ${source('drafts.ts')}
    import { runNpm } from ${source('registry.ts')}
    exitOnSignals()
    await runNpm(['view', 'tar'], ${JSON.stringify(where.file('.'))})`
  const build = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: where.file('npm'),
    },
    stdio: 'ignore',
  })
  const [socket] = (await once(registry, 'connection')) as [net.Socket]
  const left = once(socket.on('error', () => undefined).resume(), 'close')
  build.kill('SIGTERM')
  await left
  registry.close()
}, 60_000)

test('of two that fetch the same package, the second keeps what the first has put there', () => {
  for (const each of ['first', 'second']) {
    mkdirSync(where.file(each))
    where.write(`${each}/file`, each)
    moveFolder(where.file(each), where.file('place'))
  }
  expect(readFileSync(where.file('place/file'), 'utf8')).toBe('first')
  expect(() => moveFolder(where.file('nowhere'), where.file('other'))).toThrow('ENOENT')
})

test('the command that npm installs says nothing about experiments, and passes other warnings on', () => {
  for (const each of ['npm/bin', 'npm/app']) mkdirSync(where.file(each), { recursive: true })
  where.write(
    'npm/package.json',
    '{ "name": "hawser-agent", "type": "module", "engines": { "node": ">=24.15.0" } }',
  )
  where.write(
    'npm/app/main.mjs',
    "process.getBuiltinModule('node:ffi'); process.emitWarning('of another kind')",
  )
  where.write('npm/bin/it.mjs', readFileSync(path.join(root, 'packages/starter.mjs'), 'utf8'))
  const { stderr } = spawnSync(process.execPath, [where.file('npm/bin/it.mjs')], { encoding: 'utf8' })
  expect(stderr).toContain('Warning: of another kind')
  expect(stderr).not.toContain('ExperimentalWarning')
})

test('the folders of what is served carry the version and a hash of its own sources', () => {
  const names = [agentsFolder(), consoleFolder()].map((folder) => path.basename(folder))
  for (const name of names) expect(name).toMatch(new RegExp(`^${version}-[0-9a-f]{16}$`))
  expect(new Set(names).size).toBe(2)
})

describe('HAWSER_AGENT_NODE', () => {
  const other: Architecture = arch === 'x64' ? 'arm64' : 'x64'
  /** The beginning of a program for a processor. */
  const program = (name: string, machine: number): string => {
    const header = Buffer.alloc(64)
    header.write('7f454c460201', 'hex')
    header.writeUInt16LE(machine, 18)
    writeFileSync(where.file(name), header)
    return where.file(name)
  }

  test('goes to the processor that its header names', () => {
    const [x64, arm64] = [program('node-x64', 62), program('node-arm64', 183)]
    expect(chosenNode('arm64', `${x64}:${arm64}`)).toBe(arm64)
    expect(chosenNode('x64', `${x64}:${arm64}`)).toBe(x64)
    expect(chosenNode('x64', arm64)).toBeUndefined()
    expect(chosenNode('x64', '')).toBeUndefined()
  })

  test('is refused when it is no program, or one for a processor that we do not serve', () => {
    for (const file of [where.write('script', '#!/bin/sh\n'), program('riscv', 243), where.file('nowhere')])
      expect(() => chosenNode('x64', file)).toThrow(`${file} is no Linux program for x64 or arm64`)
  })

  test('is run where it can be: it must be a Node, and a new one', async () => {
    vi.stubEnv('HAWSER_AGENT_NODE', process.execPath)
    expect((await runtimeFor(arch)).node).toMatchObject({
      version: process.versions.node,
      sha256: sha256(process.execPath),
    })
    vi.stubEnv('HAWSER_AGENT_NODE', '/bin/true')
    await expect(runtimeFor(arch)).rejects.toThrow('is not Node 24.15.0 or newer')
    vi.stubEnv('HAWSER_AGENT_NODE', program('other', other === 'x64' ? 62 : 183))
    expect((await runtimeFor(other)).node.version).toBe('unknown')
  })
})

test('a release stops unless the carried Node is the one in the archive that nodejs.org publishes', async () => {
  const name = 'node-v26.0.0-linux-x64'
  mkdirSync(where.file(`dist/${name}/bin`), { recursive: true })
  const node = where.write(`dist/${name}/bin/node`, 'a Node')
  const tarball = where.file(`dist/${name}.tar.gz`)
  execFileSync('tar', ['-C', where.file('dist'), '-czf', tarball, name])
  const archive = readFileSync(tarball)
  const honest = { 'SHASUMS256.txt': `${sha256(tarball)}  ${name}.tar.gz\n`, [`${name}.tar.gz`]: archive }
  let files: Record<string, string | Buffer> = honest
  const server = http.createServer(({ url = '' }, response) => {
    const found = files[url.replace('/dist/v26.0.0/', '')]
    response.writeHead(found === undefined ? 404 : 200).end(found)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dist = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/dist`
  const check = async (hash = sha256(node)) =>
    checkOrigin('x64', { version: '26.0.0', sha256: hash, file: node }, dist)
  await check()
  await expect(check('0'.repeat(64))).rejects.toThrow(`${node} is not the Node of`)
  files = { ...honest, [`${name}.tar.gz`]: Buffer.concat([archive, Buffer.from('more')]) }
  await expect(check()).rejects.toThrow('does not have the SHA-256 of SHASUMS256.txt')
  files = { ...honest, 'SHASUMS256.txt': `${sha256(tarball)}  ${name}.tar.xz\n` }
  await expect(check()).rejects.toThrow('does not have the SHA-256 of SHASUMS256.txt')
  const other = where.file('dist/other.tar.gz')
  execFileSync('tar', ['-C', where.file('dist'), '-czf', other, '--exclude=bin', name])
  files = {
    'SHASUMS256.txt': `${sha256(other)}  ${name}.tar.gz\n`,
    [`${name}.tar.gz`]: readFileSync(other),
  }
  await expect(check()).rejects.toThrow('is not the Node of')
  files = {}
  await expect(check()).rejects.toThrow('SHASUMS256.txt could not be fetched: the server answered 404')
  server.close()
  await once(server, 'close')
  await expect(check()).rejects.toThrow('SHASUMS256.txt could not be fetched')
})

test('an agent with another Node than HAWSER_AGENT_NODE names is made again', () => {
  const tarball = where.write('hawser-agent-linux-x64.tar.gz', 'a tarball')
  expect(isBuilt(where.file('nowhere'))).toBe(false)
  noteNodes(tarball)
  expect(isBuilt(tarball)).toBe(true)
  vi.stubEnv('HAWSER_AGENT_NODE', where.write('chosen-node', 'a Node'))
  expect(isBuilt(tarball)).toBe(false)
  noteNodes(tarball)
  expect(isBuilt(tarball)).toBe(true)
  where.write('chosen-node', 'a newer Node')
  expect(isBuilt(tarball)).toBe(false)
  // The service is not told: what the packager built stands.
  vi.stubEnv('HAWSER_AGENT_NODE', '')
  expect(isBuilt(tarball)).toBe(true)
})

test('a second build makes only the agents that are missing, and all of them with --force', () => {
  mkdirSync(where.file('twice'))
  const missing = (force = false): string[] => agentsToMake(where.file('twice'), force)
  expect(missing()).toEqual(['x64', 'arm64'])
  where.write('twice/hawser-agent-linux-arm64.tar.gz', 'a tarball')
  expect(missing()).toEqual(['x64'])
  where.write('twice/hawser-agent-linux-x64.tar.gz', 'a tarball')
  expect(missing()).toEqual([])
  expect(missing(true)).toEqual(['x64', 'arm64'])
})

describe('a server', () => {
  const address = (url: string): string => `${url}/agent/hawser-agent-linux-x64.tar.gz`

  test('serves what was built', async () => {
    mkdirSync(where.file('agents'))
    await using service = await startService({ agents: where.file('agents') })
    expect((await fetch(address(service.url))).status).toBe(404)
    // Built while it runs.
    where.write('agents/hawser-agent-linux-x64.tar.gz', 'a tarball')
    const answer = await fetch(address(service.url))
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-length')]).toEqual(
      [200, 'application/gzip', '9'],
    )
    expect(await answer.text()).toBe('a tarball')
  })

  test('says how an agent is made that it does not have', async () => {
    await using service = await startService()
    const answer = await fetch(address(service.url))
    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('has no agent for x64 yet. `npm run build` on the server makes it')
  })
})
