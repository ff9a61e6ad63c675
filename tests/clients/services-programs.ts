// Real programs behind services of a device, and Chromium in front of them: a server with TLS and names of its
// own, as in the field, the real agent, and a person who signs in at the console on the way to a service.
// Programs that npm and pip bring are installed once at fixed versions into a folder that is kept for the next
// run, and is whole or not there at all.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Service } from '@hawser/contract/services'
import { folder, freePort } from '../../ssh/test/programs.ts'
import { openBrowser } from '../harness/browser.ts'
import { until } from '../harness/eventually.ts'
import { makeAuthority } from '../harness/authority.ts'
import { startServices, type ServicesPlace } from '../harness/services.ts'
import { signIn, type Account } from './console.ts'

const cache = path.join(import.meta.dirname, '../../node_modules/.cache/hawser-tests')

export interface Window extends AsyncDisposable {
  readonly page: Page
  /** Errors of scripts, and what Chromium complains about. */
  readonly troubles: readonly string[]
  /** Refusals as `status path`, in order. */
  readonly refusals: readonly string[]
  /** The addresses of WebSockets so far. */
  readonly sockets: readonly string[]
}

export interface Web extends ServicesPlace {
  /** Where people reach the console. */
  readonly console: string
  /** A service of the agent's device, for members. */
  add(
    port: number,
    more?: Omit<Parameters<Client['services']['create']>[0]['body'], 'device_uid' | 'name' | 'port'>,
  ): Promise<Service>
  window(): Promise<Window>
  /** Opens the address, signs in at the console, and waits until the browser is at the service. */
  open(address: string, who?: Account): Promise<Window>
}

/**
 * `named`: the console and the services have names below `.test` and TLS, and Chromium finds both here.
 * `localhost`: nothing is configured but the address of the console, and browsers of this machine reach services.
 */
export function sharedWeb(kind: 'named' | 'localhost' = 'named'): Web {
  vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })
  const where = folder()
  let web: Web | undefined
  let browser: Browser | undefined
  beforeAll(async () => {
    const { url, env } = kind === 'named' ? await named() : await local()
    const place = await startServices({ env })
    browser = kind === 'named' ? await openNamedBrowser() : await openBrowser()
    web = joined(place, browser, url)
  })
  afterAll(async () => {
    await browser?.close()
    await web?.[Symbol.asyncDispose]()
    where[Symbol.dispose]()
  })

  async function named() {
    const authority = await makeAuthority(where)
    const { chain, key } = await authority.issue('server', 'DNS:console.test', 'DNS:*.services.test')
    const port = await freePort()
    const url = `https://console.test:${port}`
    const tls = { HAWSER_HTTPS: `127.0.0.1:${port}`, HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key }
    // The agent and the test's own clients connect without TLS.
    return { url, env: { ...tls, HAWSER_PLAIN_HTTP: 'serve', HAWSER_URL: url } }
  }
  async function local() {
    const port = await freePort()
    const url = `http://localhost:${port}`
    return { url, env: { HAWSER_HTTP: `127.0.0.1:${port}`, HAWSER_URL: url, HAWSER_SERVICES_DOMAIN: '' } }
  }
  return new Proxy({} as Web, { get: (_, name) => Reflect.get(web ?? {}, name) as unknown })
}

/** Resolves every name below `.test` to this machine, and accepts the certificate of the test. */
async function openNamedBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: await programOnPath('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--host-resolver-rules=MAP *.test 127.0.0.1',
      '--ignore-certificate-errors',
    ],
  })
}

async function programOnPath(name: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `command -v ${name}`])
  return stdout.trim()
}

function joined(place: ServicesPlace, browser: Browser, url: string): Web {
  async function window(): Promise<Window> {
    const context = await browser.newContext({ acceptDownloads: true })
    context.setDefaultTimeout(60_000)
    const page = await context.newPage()
    const troubles: string[] = []
    const refusals: string[] = []
    const sockets: string[] = []
    page.on('pageerror', (error) => troubles.push(`script: ${error.message}`))
    page.on('crash', () => troubles.push('the page crashed'))
    page.on('console', (message) => {
      // Some programs look for updates on the internet, which Chromium does not reach here.
      const isElsewhere = message.text().includes('ERR_NAME_NOT_RESOLVED')
      if (message.type() === 'error' && !isElsewhere) troubles.push(message.text())
    })
    page.on('response', (response) => {
      if (response.status() >= 400) refusals.push(`${response.status()} ${new URL(response.url()).pathname}`)
    })
    page.on('websocket', (socket) => sockets.push(socket.url()))
    return { page, troubles, refusals, sockets, [Symbol.asyncDispose]: () => context.close() }
  }
  return Object.assign(place, {
    console: url,
    async add(port: number, more: object = {}) {
      const body = { device_uid: place.agent.uid, name: `port ${port}`, port, ...more }
      return (await place.administrator.services.create({ body })).body
    },
    window,
    async open(address: string, who: Account = sample.operator) {
      const opened = await window()
      await opened.page.goto(address)
      await signIn(opened.page, who)
      await opened.page.waitForURL((at) => at.origin === new URL(address).origin)
      return opened
    },
  })
}

export interface Program extends AsyncDisposable {
  readonly port: number
  /** What it printed so far. */
  said(): string
}

export interface Command {
  readonly file: string
  readonly words: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a program of the device; it is there when it answers. */
export async function program(command: (port: number) => Command): Promise<Program> {
  const port = await freePort()
  const { file, words, cwd, env } = command(port)
  const child = spawn(file, words, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await ended
  }
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`the program ended: ${said}`)
      return fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )
    }, 120_000)
  } catch (error) {
    await stop()
    throw error
  }
  return { port, said: () => said, [Symbol.asyncDispose]: stop }
}

async function installed(
  name: string,
  install: (folder: string, run: (file: string, ...words: string[]) => Promise<void>) => Promise<void>,
): Promise<string> {
  const ready = path.join(cache, name)
  if (existsSync(ready)) return ready
  mkdirSync(cache, { recursive: true })
  const installing = mkdtempSync(path.join(cache, 'installing-'))
  try {
    await install(installing, async (file, ...words) => {
      await promisify(execFile)(file, words, { cwd: installing, maxBuffer: 64 * 1024 ** 2 })
    })
    renameSync(installing, ready)
  } catch (error) {
    // Another process was first, and its folder is as good.
    if (!existsSync(ready)) throw error
  } finally {
    rmSync(installing, { recursive: true, force: true })
  }
  return ready
}

/** The folder of an npm package with all that it needs. */
export async function fromNpm(name: string, version: string): Promise<string> {
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  const prefix = await installed(`${name}-${version}`, async (into, run) =>
    run('npm', 'install', '--prefix', into, ...quiet, `${name}@${version}`),
  )
  return path.join(prefix, 'node_modules', name)
}

/** The Python of an environment that has this package. */
export async function fromPip(name: string, version: string): Promise<string> {
  // The folder is renamed once it is complete: its python keeps working, its other programs do not.
  const prefix = await installed(`${name}-${version}`, async (into, run) => {
    await run('python3', '-m', 'venv', into)
    const python = path.join(into, 'bin/python')
    await run(python, '-m', 'pip', 'install', '--quiet', '--no-input', `${name}==${version}`)
  })
  return path.join(prefix, 'bin/python')
}
