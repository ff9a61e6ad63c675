// Clients that are not like OpenSSH of today. Debian 12's curl has libssh2 1.10, as many PHP and Python
// programs do: of MACs it knows only those over what was encrypted. Others expect PAM and say a password only
// when they are asked for it. Who is turned away because nothing is in common is named in the log, with what
// was missing.
import { readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allAlgorithms, openClient, type Questions, type Unauthenticated } from '@hawser/ssh'
import { run, type Outcome } from '../../ssh/test/programs.ts'
import { writeKexInit } from '../../ssh/src/transport/kexinit.ts'
import { packetWriter } from '../../ssh/src/transport/packets.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { sharedWay } from './way.ts'

const way = sharedWay()

const curl = async (port: number, ...words: string[]): Promise<Outcome> =>
  run('curl', [
    '-sS',
    '--insecure',
    '--user',
    `${way.sshid()}:${way.user.password}`,
    ...words.map((word) => word.replace('<gateway>', `sftp://127.0.0.1:${port}`)),
  ])

describe('libssh2', () => {
  test('curl fetches and brings a file', async () => {
    const sent = Buffer.alloc(1_000_003, 'hawser ')
    writeFileSync(way.where.file('cargo'), sent)
    const brought = await curl(
      way.service.sshPort,
      '-T',
      way.where.file('cargo'),
      `<gateway>${way.there('cargo')}`,
    )
    expect([brought.status, brought.stderr]).toEqual([0, ''])
    const fetched = await curl(
      way.service.sshPort,
      '-o',
      way.where.file('back'),
      `<gateway>${way.there('cargo')}`,
    )
    expect([fetched.status, fetched.stderr]).toEqual([0, ''])
    expect(readFileSync(way.where.file('back')).equals(sent)).toBe(true)
  })

  test('ssh with nothing but such a MAC gets in, with large output, and while new keys are made', async () => {
    for (const mac of ['hmac-sha2-256', 'hmac-sha2-512']) {
      const settings = ['Ciphers=aes128-ctr', `MACs=${mac}`, 'RekeyLimit=1M']
      const { status, stdout } = await way.ssh('head -c 5000001 /dev/zero; exit 3', { settings })
      expect([status, stdout.length]).toEqual([3, 5_000_001])
    }
  })
})

const negotiations = (service: Service): unknown[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes('"negotiation.failed"'))
    .map((line) => JSON.parse(line) as unknown)

describe('with HAWSER_SSH_ALGORITHMS=modern', () => {
  let modern: Service
  beforeAll(async () => {
    modern = await startService({ env: { HAWSER_SSH_ALGORITHMS: 'modern' } })
  })
  afterAll(async () => modern[Symbol.asyncDispose]())

  test('libssh2 is turned away, and one line of the log says what was missing', async () => {
    expect((await curl(modern.sshPort, '<gateway>/')).status).not.toBe(0)
    await eventually(() => expect(negotiations(modern)).toHaveLength(1))
    expect(negotiations(modern)).toMatchObject([
      {
        event: 'negotiation.failed',
        source: '127.0.0.1',
        missing: 'MAC',
        offered: expect.stringContaining('hmac-sha2-256') as unknown,
      },
    ])
  })

  test('what a stranger offers is cut short and made fit for a log', async () => {
    const socket = net.connect(modern.sshPort, '127.0.0.1').resume()
    await once(socket, 'connect')
    const names = Array.from(
      { length: 1_000 },
      (_, at) => `\u001b]0;${at}\n${'x'.repeat(at === 0 ? 20_000 : 0)}`,
    )
    socket.write('SSH-2.0-Boat\r\n')
    socket.write(Buffer.concat(packetWriter().seal(writeKexInit('client', { ...allAlgorithms, kex: names }))))
    await once(socket, 'close')
    await eventually(() => expect(negotiations(modern)).toHaveLength(2))
    const { missing, offered } = negotiations(modern)[1] as { missing: string; offered: string }
    expect(missing).toBe('key exchange')
    expect(offered).toMatch(/^[\x21-\x7e]{1,2100}$/)
    socket.destroy()
  })
})

describe('keyboard-interactive', () => {
  const settings = ['PreferredAuthentications=keyboard-interactive']

  test('the right password gets in, a wrong one does not and leaves no record', async () => {
    const { status, stdout } = await way.ssh('echo in', { ...way.saying(way.user.password), settings })
    expect([status, stdout.toString()]).toEqual([0, 'in\n'])
    const { uid } = await way.newest()
    const refused = await way.ssh('echo in', { ...way.saying('wrong'), settings })
    expect([refused.status, refused.stdout.toString()]).toEqual([255, ''])
    expect(refused.stderr).toContain('Permission denied (password,publickey,keyboard-interactive).')
    expect((await way.newest()).uid).toBe(uid)
  })

  const knock = async (service: Service): Promise<Unauthenticated> =>
    openClient(net.connect(service.sshPort, '127.0.0.1'), { checkHostKey: () => true })
  const asked: Questions[] = []
  const saying = (password: string) => ({
    method: 'keyboard-interactive' as const,
    answer: async (questions: Questions) => {
      asked.push(questions)
      return [password]
    },
  })

  test('one question without echo, and each attempt stands alone', async () => {
    const client = await knock(way.service)
    expect(await client.attempt(way.sshid(), saying('wrong'))).toMatchObject({
      accepted: false,
      partial: false,
    })
    expect(await client.attempt(way.sshid(), { method: 'password', password: 'wrong' })).toMatchObject({
      accepted: false,
    })
    expect(await client.attempt(way.sshid(), saying(way.user.password))).toEqual({ accepted: true })
    expect(asked[0]).toMatchObject({ prompts: [{ text: 'Password: ', echo: false }] })
    await client.connection().end()
  })

  test('wrong answers count as wrong passwords do, for the connection and for the address', async () => {
    const client = await knock(way.service)
    for (let wrong = 0; wrong < 5; wrong += 1)
      expect(await client.attempt(way.sshid(), saying('wrong'))).toMatchObject({ accepted: false })
    await expect(client.attempt(way.sshid(), saying(`${way.user.password}!`))).rejects.toThrow(
      'Too many authentication failures.',
    )
    await eventually(() => {
      const refusals = way.service
        .log()
        .split('\n')
        .filter((line) => line.includes('"login.refused"') && line.includes('"attempts":6'))
      expect(refusals).toHaveLength(1)
      expect(refusals[0]).toContain('"reason":"password"')
    })
  })
})
