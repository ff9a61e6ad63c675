// Which ports of this machine are listed, and with which programs.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { longestListening_bytes, mostListening } from '@hawser/contract/tunnel'
import { listeningPorts } from './listening.ts'

const portsOf = async (proc?: string) => {
  const answer = await listeningPorts(proc)
  if ('refused' in answer) throw new Error(answer.refused)
  return answer.ports
}

const hasIpv6 = Object.values(os.networkInterfaces()).some((all) =>
  all?.some(({ family }) => family === 'IPv6'),
)

test('ports of this machine are listed with their addresses and programs', async () => {
  const servers = ['127.0.0.1', '0.0.0.0', ...(hasIpv6 ? ['::1', '::'] : [])].map((host) => ({
    host,
    listener: net.createServer().listen(0, host),
  }))
  await Promise.all(servers.map(async ({ listener }) => once(listener, 'listening')))
  const client = net.connect((servers[0]!.listener.address() as AddressInfo).port, '127.0.0.1')
  await once(client, 'connect')
  const program = readFileSync('/proc/self/comm', 'utf8').trim().replace('-MainThread', '')
  const ports = await portsOf()
  for (const { host, listener } of servers) {
    const { port } = listener.address() as AddressInfo
    expect(ports).toContainEqual({ address: host, port, program })
    expect(ports.filter((each) => each.port === port && each.address === host)).toHaveLength(1)
    listener.close()
  }
  // The port of a client is not one on which anybody listens.
  expect(ports.map(({ port }) => port)).not.toContain(client.localPort)
  expect(ports.map(({ port }) => port)).toEqual(ports.map(({ port }) => port).toSorted((a, b) => a - b))
  client.destroy()
})

describe('in the files of a kernel', () => {
  let proc: string
  beforeEach(() => {
    proc = mkdtempSync(path.join(os.tmpdir(), 'hawser-proc-'))
    mkdirSync(path.join(proc, 'net'))
  })
  afterEach(() => rmSync(proc, { recursive: true, force: true }))

  const row = (address: string, port: number, inode: number, state = '0A'): string =>
    `   0: ${address}:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`
  const head =
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
  const table = (file: string, ...rows: string[]): void =>
    writeFileSync(path.join(proc, 'net', file), head + rows.join(''))
  const program = (pid: number, name: string | Buffer, ...inodes: number[]): void => {
    const folder = path.join(proc, String(pid))
    mkdirSync(path.join(folder, 'fd'), { recursive: true })
    writeFileSync(path.join(folder, 'comm'), name)
    for (const [fd, inode] of inodes.entries())
      symlinkSync(`socket:[${inode}]`, path.join(folder, 'fd', `${fd}`))
  }

  test('addresses are read as they are written, each port of one once', async () => {
    table(
      'tcp',
      row('0100007F', 80, 1),
      row('00000000', 22, 2),
      row('0100007F', 80, 3),
      row('0100007F', 81, 4, '01'),
    )
    table(
      'tcp6',
      row('00000000000000000000000000000000', 22, 5),
      row('0000000000000000FFFF00000100007F', 8080, 6),
      row('B80D0120000000000000000001000000', 443, 7),
    )
    expect((await portsOf(proc)).map(({ address, port }) => `${address} ${port}`)).toEqual([
      '0.0.0.0 22',
      ':: 22',
      '127.0.0.1 80',
      '2001:db8::1 443',
      '127.0.0.1 8080',
    ])
  })

  test('a service is told apart from the program that started it, and names are only text', async () => {
    table('tcp', row('0100007F', 1, 1), row('0100007F', 2, 2), row('0100007F', 3, 3), row('0100007F', 4, 4))
    program(1, 'systemd\n', 1, 2)
    program(70, 'nginx\n', 1)
    program(71, 'nginx worker\n', 1)
    program(72, Buffer.from('a\u001b[31m\u202eb\u0000\n'), 3)
    program(73, `${'x'.repeat(300)}\n`, 4)
    expect((await portsOf(proc)).map((each) => each.program)).toEqual([
      'nginx',
      'systemd',
      'a[31mb',
      'x'.repeat(64),
    ])
  })

  test('the list has a bound in entries and in bytes', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => index + 1)
    table('tcp', ...many.map((each) => row('0100007F', each, each)).toReversed())
    expect((await portsOf(proc)).map(({ port }) => port)).toEqual(many.slice(0, mostListening))
    program(70, '𝕏'.repeat(64), ...many)
    const ports = await portsOf(proc)
    expect(Buffer.byteLength(`${JSON.stringify({ ports })}\n`)).toBeLessThanOrEqual(longestListening_bytes)
    expect(ports.length).toBeGreaterThan(50)
    expect(ports.length).toBeLessThan(mostListening)
  })

  test('what is missing is an empty list or a failure', async () => {
    expect(await listeningPorts(path.join(proc, 'nothing'))).toEqual({ refused: 'failed' })
    table('tcp')
    expect(await listeningPorts(proc)).toEqual({ ports: [] })
  })
})
