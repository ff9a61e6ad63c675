// `npm run demo`: everything at once on this machine, to look at. A server on fresh data, a user with a
// namespace, an agent on this very machine, accepted, and a key to log in with. It prints where to go and
// ends with Ctrl-C, leaving nothing.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { client } from '@hawser/contract/client'
import { generatePrivateKey, privateKeyFile, publicKeyLine } from '@hawser/ssh'
import { ensureConsole } from './packages/console.ts'

const http = process.env['HAWSER_HTTP'] ?? '127.0.0.1:8080'
const ssh = process.env['HAWSER_SSH'] ?? '127.0.0.1:2222'
const url = `http://${http}`
const root = import.meta.dirname
const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-demo-'))
const password = 'demo-password'
const children: ChildProcess[] = []

/** Starts one of our programs and resolves when it has logged this event. */
async function start(
  name: string,
  args: string[],
  env: Record<string, string>,
  event: string,
): Promise<void> {
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => void (complaint += chunk.toString()))
  const ready = Promise.withResolvers<void>()
  createInterface(child.stdout).on('line', (line) => {
    if ((JSON.parse(line) as { event?: string }).event === event) ready.resolve()
  })
  child.once('exit', (code) => ready.reject(new Error(`the ${name} ended with ${code}:\n${complaint}`)))
  await ready.promise
}

function admin(...args: string[]): string {
  const done = spawnSync(process.execPath, [path.join(root, 'hawser.ts'), 'admin', ...args], {
    env: { ...process.env, HAWSER_DATA: folder, HAWSER_HTTP: http, HAWSER_SSH: ssh },
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(done.stderr)
  return done.stdout
}

async function stop(): Promise<void> {
  await Promise.all(
    children.toReversed().map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.removeAllListeners('exit')
      child.kill('SIGTERM')
      await once(child, 'exit')
    }),
  )
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  await ensureConsole()
  await start(
    'server',
    [path.join(root, 'hawser.ts'), 'serve'],
    { HAWSER_HTTP: http, HAWSER_SSH: ssh, HAWSER_DATA: folder, HAWSER_DRAIN: '0' },
    'server.ready',
  )
  admin('user', 'create', 'demo', password, 'demo@example.com')
  admin('namespace', 'create', 'demo', 'demo')
  const { body: signedIn } = await client({ url }).users.login({ body: { username: 'demo', password } })
  const api = client({ url, token: signedIn.token })

  const key = generatePrivateKey('ed25519')
  const keyFile = path.join(folder, 'key')
  writeFileSync(keyFile, privateKeyFile(key), { mode: 0o600 })
  await api.publicKeys.create({
    body: {
      data: Buffer.from(publicKeyLine(key.type, key.blob)).toString('base64'),
      name: 'demo',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })

  const single =
    process.getuid?.() === 0 ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$demo$no-password-fits-this' }
  const settings = {
    HAWSER_SERVER_ADDRESS: url,
    HAWSER_TENANT_ID: signedIn.tenant,
    HAWSER_PRIVATE_KEY: path.join(folder, 'device.key'),
    HAWSER_PREFERRED_HOSTNAME: 'this-machine',
    HAWSER_PREFERRED_IDENTITY: 'demo',
    ...single,
  }
  await start('agent', [path.join(root, 'packages/run-agent.ts')], settings, 'tunnel.up')
  const { body: devices } = await api.devices.list({ query: {} })
  for (const { uid } of devices) await api.devices.accept({ params: { uid } })

  const [host = '', port = ''] = ssh.split(/:(?=\d+$)/)
  // With the server's own keys there the client has no question about them.
  const knownHosts = path.join(folder, 'known_hosts')
  const keys = admin('host', 'key', 'list').trim().split('\n')
  writeFileSync(
    knownHosts,
    keys.map((line) => `${port === '22' ? host : `[${host}]:${port}`} ${line}\n`).join(''),
  )
  process.stdout.write(
    [
      '',
      '  Hawser is running with one device: this machine.',
      '',
      `    Console  ${url}  (user demo, password ${password})`,
      // The server's keys are as new as its data: kept with the person's own, they would be an alarm at the
      // next start.
      `    SSH      ssh -i ${keyFile} -o UserKnownHostsFile=${knownHosts} -p ${port} ${os.userInfo().username}@demo.this-machine@${host}`,
      '',
      '  Ctrl-C ends it and removes everything again.',
      '',
      '',
    ].join('\n'),
  )
  await Promise.race(children.map((child) => once(child, 'exit')))
}

let leaving: Promise<void> | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => void (leaving ??= stop().then(() => process.exit(0))))
try {
  await main()
} catch (error) {
  if (!leaving) process.stderr.write(`demo: ${(error as Error).message}\n`)
  process.exitCode = 1
} finally {
  await (leaving ??= stop())
}
