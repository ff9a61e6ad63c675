// The parts of `hawser-agent install` that need no system of their own: the device enrols before anything is
// written, with the reason when it is refused; what the person reads when the address is the wrong one; the
// log file, which stays small; and the help. tests/packages/bare-debian does it all on a bare system.
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import path from 'node:path'
import tls from 'node:tls'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { enrolDevice, waitUntilConnected } from '../../agent/src/install/enrol-device.ts'
import { serviceOf } from '../../agent/src/install/services.ts'
import { readStatus, statusWriter, tellStatus } from '../../agent/src/status.ts'
import { folder, freePort } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const where = folder()
let [service, owner]: [Service, Client] = [] as never
beforeAll(async () => {
  service = await startService()
  owner = service.api({ token: await (await buildWorld(service)).token('owner') })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const limit_ms = 5_000
const settings = (server: string, more: Record<string, string> = {}): Map<string, string> =>
  new Map(
    Object.entries({
      HAWSER_SERVER_ADDRESS: server,
      HAWSER_TENANT_ID: sample.tenant,
      HAWSER_PRIVATE_KEY: where.file('device.key'),
      HAWSER_PREFERRED_HOSTNAME: 'bollard',
      HAWSER_PREFERRED_IDENTITY: 'test-bollard',
      ...more,
    }),
  )
const enrol = async (server: string, more: Record<string, string> = {}) =>
  enrolDevice(settings(server, more), where.file('device.key'), limit_ms)

describe('a device that is not taken in leaves no key behind and says why:', () => {
  const nobody = '99999999-0000-4000-8000-000000000000'

  test('the namespace does not exist', async () => {
    await expect(enrol(service.url, { HAWSER_TENANT_ID: nobody })).rejects.toThrow(
      `${service.url} refused this device: There is no namespace with this tenant_id.`,
    )
    expect(existsSync(where.file('device.key'))).toBe(false)
  })

  test('a key that was there stays', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const key = where.write('other.key', privateKey.export({ type: 'pkcs1', format: 'pem' }))
    const given = settings(service.url, { HAWSER_TENANT_ID: nobody, HAWSER_PRIVATE_KEY: key })
    await expect(enrolDevice(given, key, limit_ms)).rejects.toThrow('There is no namespace')
    expect(existsSync(key)).toBe(true)
  })

  test('nobody listens there', async () => {
    const port = await freePort()
    for (const host of ['127.0.0.1', 'localhost'])
      await expect(enrol(`http://${host}:${port}`)).rejects.toThrow(
        `Nothing listens at ${host}:${port}: the connection was refused.`,
      )
    await expect(enrol('http://nowhere.invalid')).rejects.toThrow(
      'The name nowhere.invalid cannot be resolved',
    )
    expect(existsSync(where.file('device.key'))).toBe(false)
  })

  test('https:// against the HTTP port', async () => {
    const host = new URL(service.url).host
    await expect(enrol(`https://${host}`)).rejects.toThrow(
      `The server at ${host} speaks HTTP, not HTTPS: use http://${host}.`,
    )
  })

  test('http:// against a port with TLS, whether it ends the connection or says so', async () => {
    const { key, cert } = certificate()
    const server = https.createServer({ key, cert }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    await expect(enrol(`http://${host}`)).rejects.toThrow(
      `The server at ${host} speaks HTTPS, not HTTP: use https://${host}.`,
    )
    await expect(enrol(`https://${host}`)).rejects.toThrow(`The certificate of ${host} is not accepted`)
    // The authority that the settings name is accepted, and what comes then is another matter.
    const usual = tls.getCACertificates('default')
    try {
      const more = { HAWSER_CA_FILE: where.write('authority.pem', cert) }
      server.on('request', (_, response) => response.writeHead(404).end())
      await expect(enrol(`https://${host}`, more)).rejects.toThrow('is no Hawser server (HTTP status 404)')
    } finally {
      tls.setDefaultCACertificates(usual)
    }

    // As nginx does it: TLS to whoever speaks it, and an answer in plain HTTP to everyone else.
    const both = net.createServer((socket) => {
      socket.on('error', () => undefined)
      const refusal = 'HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n'
      socket.once('data', (first) => {
        if (first[0] !== 0x16) {
          socket.end(refusal)
          return
        }
        const behind = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
        behind.on('error', () => undefined)
        behind.write(first)
        socket.pipe(behind).pipe(socket)
      })
    })
    await once(both.listen(0, '127.0.0.1'), 'listening')
    const port = (both.address() as AddressInfo).port
    await expect(enrol(`http://127.0.0.1:${port}`)).rejects.toThrow(`use https://127.0.0.1:${port}`)
    both.close()
    server.close()
    server.closeAllConnections()
  })

  test('the SSH port', async () => {
    const host = `127.0.0.1:${service.sshPort}`
    await expect(enrol(`http://${host}`)).rejects.toThrow(`An SSH server listens at ${host}`)
    await expect(enrol(`https://${host}`)).rejects.toThrow(`The service at ${host} does not speak HTTPS`)
  })

  test('a server that sends callers elsewhere, and one that is not ours', async () => {
    const answers = [
      'HTTP/1.1 308 Permanent Redirect\r\nlocation: https://hawser.example.com/api/devices/auth\r\n',
      'HTTP/1.1 404 Not Found\r\n',
    ]
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(`${answers.shift()}content-length: 0\r\n\r\n`))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await expect(enrol(address)).rejects.toThrow(`${address} sends callers on to https://hawser.example.com`)
    await expect(enrol(address)).rejects.toThrow(
      `What answers at ${address} is no Hawser server (HTTP status 404)`,
    )
    server.close()
  })
})

test('a device that is taken in is pending, then accepted; a rejected one is told so', async () => {
  const first = await enrol(service.url)
  expect(first).toMatchObject({ name: 'bollard', namespace: sample.namespace, status: 'pending' })
  expect(statSync(where.file('device.key')).mode & 0o777).toBe(0o600)
  const params = { uid: first.uid }
  await owner.devices.accept({ params })
  expect(await enrol(service.url)).toMatchObject({ uid: first.uid, status: 'accepted' })
  await owner.devices.setStatus({ params: { ...params, status: 'reject' } })
  await expect(enrol(service.url)).rejects.toThrow('has rejected the device bollard. Accept it there')
  expect(existsSync(where.file('device.key'))).toBe(true)
})

test('a server that asks to wait is asked again', async () => {
  await using busy = await startService({ env: { HAWSER_DEVICE_RATE_LIMIT: '1/1' } })
  await buildWorld(busy)
  const given = settings(busy.url)
  const first = await enrolDevice(given, where.file('device.key'), limit_ms)
  const again = await Promise.all(
    [1, 2].map(async () => enrolDevice(given, where.file('device.key'), limit_ms)),
  )
  expect(again.map(({ uid }) => uid)).toEqual([first.uid, first.uid])
})

test('the running agent says in its log and its status what is wrong, and when it is connected', async () => {
  const file = where.file('status')
  const program = [process.execPath, path.join(import.meta.dirname, '../../agent/src/main.ts')] as const
  const host = new URL(service.url).host
  expect(tellStatus(file).code).toBe(3)
  {
    await using agent = await startAgent(service, {
      hostname: 'winch',
      env: { HAWSER_STATUS_FILE: file },
      program,
    })
    expect(readStatus(file)).toMatchObject({ connected: true, pid: agent.pid, device: 'harbour.winch' })
    expect(tellStatus(file)).toMatchObject({
      code: 0,
      sentence: expect.stringContaining('connected as') as string,
    })
    await waitUntilConnected(file, 'the log', 0)
  }
  // It has ended: the file is not believed.
  expect(tellStatus(file).code).toBe(3)
  await expect(waitUntilConnected(file, 'the journal', 0)).rejects.toThrow(
    /has not connected .* Its log: the journal/,
  )

  const wrong = startAgent(service, {
    hostname: 'winch',
    env: { HAWSER_STATUS_FILE: file, HAWSER_SERVER_ADDRESS: `https://${host}` },
    program: ['/usr/bin/timeout', '30', ...program],
  })
  wrong.catch(() => undefined)
  await expect
    .poll(() => readStatus(file)?.why, { timeout: 20_000 })
    .toBe(`The server at ${host} speaks HTTP, not HTTPS: use http://${host}.`)
  expect(tellStatus(file)).toMatchObject({
    code: 1,
    sentence: expect.stringContaining('use http://') as string,
  })
  process.kill(readStatus(file)?.pid ?? 0, 'SIGTERM')
  await expect(wrong).rejects.toThrow('before tunnel.up')
})

test('the status says since when it has not been connected, however often it has tried', () => {
  const file = where.file('since')
  const note = statusWriter(file)
  const since = (): string | undefined => readStatus(file)?.since
  vi.useFakeTimers({ now: new Date('2026-01-01T00:00:00Z'), toFake: ['Date'] })
  try {
    note({ event: 'connection.failed', why: 'no route' })
    vi.setSystemTime(new Date('2026-01-01T01:00:00Z'))
    note({ event: 'connection.failed', why: 'no name' })
    expect(readStatus(file)).toMatchObject({ why: 'no name', since: '2026-01-01T00:00:00.000Z' })
    note({ event: 'tunnel.up', device: 'harbour.winch' })
    expect(since()).toBe('2026-01-01T01:00:00.000Z')
    vi.setSystemTime(new Date('2026-01-01T02:00:00Z'))
    note({ event: 'tunnel.lost', why: 'closed' })
    expect(since()).toBe('2026-01-01T02:00:00.000Z')
  } finally {
    vi.useRealTimers()
  }
})

test('without syslog the log is a file that is renamed before it grows, and one old file is kept', () => {
  const [, logger] = serviceOf('plain', { command: ['/opt/x/y'], settings: '/etc/x/y' }).files
  const file = where.file('log/hawser-agent.log')
  expect(logger?.text).toContain('most=1048576\n')
  // Shells read a pipe byte by byte: the same with less takes less time.
  const most = 65_536
  const script = where.write(
    'logger',
    (logger?.text ?? '')
      .replace('most=1048576', `most=${most}`)
      .replaceAll('/var/log/hawser-agent.log', file)
      .replaceAll('/dev/log', where.file('no-socket')),
  )
  const write =
    (shell: string, ...words: string[]) =>
    (from: number, lines: number) => {
      const input = Array.from(
        { length: lines },
        (_, line) => `${from + line} \\n %s ${'x'.repeat(1_000)}\n`,
      ).join('')
      expect(spawnSync(shell, [...words, script], { input }).status).toBe(0)
    }
  for (const [shell = '', ...words] of [['/bin/dash'], ['/bin/bash'], ['/bin/busybox', 'sh']]) {
    const log = write(shell, ...words)
    log(0, 3)
    expect(readFileSync(file, 'utf8')).toMatch(/^0 \\n %s x{1000}\n1 .*\n2 .*\n$/)
    for (let round = 1; round < 4; round++) log(round * 100 - 97, 100)
    const [now, old] = [readFileSync(file, 'utf8'), readFileSync(`${file}.1`, 'utf8')]
    for (const each of [now, old]) expect(each.length).toBeLessThanOrEqual(most)
    expect(now.trim().split('\n').at(-1)).toMatch(/^302 /)
    // Nothing is lost between the two.
    const numbers = `${old}${now}`
      .trim()
      .split('\n')
      .map((line) => Number(line.split(' ')[0]))
    expect(numbers).toEqual(numbers.map((_, index) => 303 - numbers.length + index))
    mkdirSync(path.dirname(file), { recursive: true })
    for (const each of [file, `${file}.1`]) writeFileSync(each, '')
  }
})

test('a restart from a session that ends with the agent comes to its end', () => {
  mkdirSync(where.file('service'))
  const place = (name: string): string => where.file(`service/${name}`)
  const files = serviceOf('plain', { command: [place('agent')], settings: place('env') }).files
  for (const { path: file, text } of files)
    where.write(
      `service/${path.basename(file)}`,
      text
        .replaceAll('/usr/local/sbin', place('.'))
        .replaceAll('/run/hawser-agent.pid', place('pid'))
        .replaceAll('/var/log/hawser-agent.log', place('log'))
        .replaceAll('/dev/log', place('no-socket')),
    )
  where.write('service/env', '')
  // Hangs its session up when it stops, as the agent does.
  const hangUp = `[ -e ${place('session')} ] && kill -HUP -"$(cat ${place('session')})"`
  where.write('service/agent', `#!/bin/sh\ntrap '${hangUp}; exit 0' TERM\nwhile :; do sleep 0.1; done\n`)
  for (const name of ['agent', 'hawser-agent-service', 'hawser-agent-log']) chmodSync(place(name), 0o755)
  const service = (word: string) =>
    spawnSync(place('hawser-agent-service'), [word], { encoding: 'utf8', timeout: 30_000 }).stdout
  expect(service('start')).toContain('started')
  try {
    const source = path.join(import.meta.dirname, '../../agent/src/install/run-command.ts')
    const script = where.write(
      'service/restart.mjs',
      `import { runCommand } from ${JSON.stringify(source)}
      process.on('SIGHUP', () => undefined)
      runCommand([${JSON.stringify(place('hawser-agent-service'))}, 'restart'])`,
    )
    spawnSync('setsid', ['sh', '-c', `echo $$ >${place('session')}; exec ${process.execPath} ${script}`])
    expect(service('status')).toBe('hawser-agent: running\n')
  } finally {
    rmSync(place('session'), { force: true })
    service('stop')
  }
}, 60_000)

test('help lists every command, and so does a command that does not exist', () => {
  const agent = (...words: string[]) =>
    spawnSync(process.execPath, [path.join(import.meta.dirname, '../../agent/src/main.ts'), ...words], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    })
  const shown = agent('--help')
  expect(shown).toMatchObject({ status: 0, stderr: '' })
  for (const command of [
    'connector',
    'install',
    'uninstall',
    'reset-identity',
    'status',
    'info',
    'help',
    '--version',
  ])
    expect(shown.stdout).toContain(`hawser-agent ${command} `)
  for (const word of ['help', '-h']) expect(agent(word).stdout).toBe(shown.stdout)
  for (const command of ['install', 'uninstall', 'reset-identity'])
    expect(agent(command, '--help')).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringContaining(`hawser-agent ${command} `) as string,
    })
  const unknown = agent('instal')
  expect([unknown.status, unknown.stderr]).toEqual([
    1,
    `hawser-agent: Unknown command instal.\n\n${shown.stdout}\n`,
  ])
})

/** A key, and a certificate that it signed itself. */
function certificate(): { key: string; cert: string } {
  const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1', '-days', '1']
  words.push('-addext', 'subjectAltName=IP:127.0.0.1')
  const [key, cert] = [where.file('tls.key'), where.file('tls.crt')]
  const { status } = spawnSync('openssl', [...words, '-keyout', key, '-out', cert])
  expect(status).toBe(0)
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}
