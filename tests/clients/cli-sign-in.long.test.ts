// The command line as a person meets it first: signing in on a terminal, being wrong, being told what to do,
// and what a script sees of it: exit codes, clean output, an API key instead of a sign-in.
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTlsServer } from 'node:tls'
import { createServer as createSocketServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { exitCodes } from '../../cli/src/errors.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { folder } from '../../ssh/test/programs.ts'
import { makeAuthority } from '../harness/authority.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

let service: Service
let world: World
beforeAll(async () => {
  service = await startService()
  world = await buildWorld(service)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
})

const account = (desk: Desk) => path.join(desk.folder, 'config/hawser/account.json')
const signIn = (desk: Desk, who: { username: string; password: string }) =>
  desk.hawser(['login', service.url, '--username', who.username, '--password-stdin'], {
    input: `${who.password}\n`,
  })

describe('on a terminal', () => {
  test('a person signs in, is asked without an echo, and the token is kept for nobody else', async () => {
    using desk = openDesk()
    using terminal = desk.terminal(['login'])
    await terminal.until(/Server: /)
    terminal.type(`${service.url}\r`)
    await terminal.until(/Username or e-mail: /)
    terminal.type('olga\r')
    await terminal.until(/Password: /)
    terminal.type('rope-and-anchx\u007for\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toContain(`Signed in to ${service.url} as olga.`)
    expect(terminal.shown()).not.toMatch(/rope/)
    expect(statSync(account(desk)).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(account(desk))).mode & 0o777).toBe(0o700)
    const { code, stdout } = await desk.hawser(['status', '-o', 'json'])
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({ as: 'olga', namespace: 'harbour', role: 'owner', signed_in: true }),
    ])
  })

  test('a second factor is asked for, and a wrong code is said to be wrong', async () => {
    using desk = openDesk()
    for (const [code, status] of [
      ['000000', 3],
      [world.totp(sample.mfaSecret), 0],
    ] as const) {
      using terminal = desk.terminal(['login', service.url, '-u', sample.careful.username])
      await terminal.until(/Password: /)
      terminal.type(`${sample.careful.password}\r`)
      await terminal.until(/Second factor code: /)
      terminal.type(`${code}\r`)
      expect(await terminal.ended).toBe(status)
      expect(terminal.shown()).toMatch(status === 0 ? /Signed in/ : /The code is wrong, used or expired/)
    }
  })

  test('a recovery code is good instead of a code, once', async () => {
    using desk = openDesk()
    const words = [
      'login',
      service.url,
      '-u',
      sample.careful.username,
      '--password-stdin',
      '--recovery-code',
      sample.recoveryCode,
    ]
    expect((await desk.hawser(words, { input: sample.careful.password })).code).toBe(0)
    const again = await desk.hawser(words, { input: sample.careful.password })
    expect([again.code, again.stderr]).toEqual([3, 'hawser: The code is wrong, used or expired.\n'])
  })

  test('a change of role ends the token, and status brings a fresh one', async () => {
    using desk = openDesk()
    await signIn(desk, sample.observer)
    const owner = service.api({ token: await world.token('owner') })
    const member = { tenant: sample.tenant, uid: sample.observer.id }
    await owner.namespaces.updateMember({ params: member, body: { role: 'operator' } })
    expect((await desk.hawser(['devices'])).code).toBe(3)
    expect(await desk.hawser(['status'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/role +operator/) as string,
    })
    expect((await desk.hawser(['devices'])).code).toBe(0)
    await owner.namespaces.updateMember({ params: member, body: { role: 'observer' } })
  })

  test('Ctrl-C at the password ends it, with the terminal as it was and nothing kept', async () => {
    using desk = openDesk()
    using terminal = desk.terminal(['login', service.url, '-u', 'olga'])
    await terminal.until(/Password: /)
    terminal.type('rope\u0003')
    expect(await terminal.ended).toBe(130)
    expect(terminal.shown()).not.toMatch(/rope|mistake/)
    expect(() => statSync(account(desk))).toThrow(/ENOENT/)
  })

  test('a table fits its width', async () => {
    using desk = openDesk()
    await signIn(desk, sample.owner)
    using terminal = desk.terminal(['devices'])
    expect(await terminal.ended).toBe(0)
    const lines = terminal.shown().split('\r\n')
    expect(lines[0]).toMatch(/^NAME +STATUS +ONLINE +TAGS/)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120)
  })
})

describe('in a script', () => {
  test('the password comes from stdin, and a wrong one is code 3', async () => {
    using desk = openDesk()
    expect(await signIn(desk, sample.observer)).toMatchObject({ code: 0, stdout: '' })
    const wrong = await signIn(desk, { username: 'olga', password: 'anchor-and-rope' })
    expect(wrong).toEqual({ code: 3, stdout: '', stderr: 'hawser: The username or the password is wrong.\n' })
  })

  test('an API key is enough, and goes before a sign-in', async () => {
    using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
    const { code, stdout } = await desk.hawser(['devices', 'list', '-o', 'json', '--status', 'accepted'])
    expect([code, (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)]).toEqual([
      0,
      ['crane-1'],
    ])
    expect(await desk.hawser(['status'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/as +an API key\nnamespace +harbour/) as string,
    })
    const refused = await desk.hawser(['users', 'refresh'])
    expect([refused.code, refused.stderr]).toEqual([
      4,
      expect.stringMatching(/Unset HAWSER_API_KEY and run `hawser login`/),
    ])
    const unknown = await desk.hawser(['devices'], { env: { HAWSER_API_KEY: 'nobody' } })
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringMatching(/HAWSER_API_KEY/)])
  })

  test('an output that is cut short by its reader is no failure', async () => {
    using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
    using shell = desk.shell('hawser devices -o json | head -c 1; echo; echo "${PIPESTATUS[0]} over"')
    expect(await shell.ended).toBe(0)
    expect(shell.shown()).toMatch(/^\[\r\n0 over\r\n$/)
  })
})

describe('who is not signed in', () => {
  test('is told to sign in; signing out forgets the token', async () => {
    using desk = openDesk()
    const nowhere = await desk.hawser(['devices'])
    expect(nowhere).toEqual({
      code: 2,
      stdout: '',
      stderr: 'hawser: No server is known. Run `hawser login`, or set HAWSER_SERVER or --server.\n',
    })
    const nobody = await desk.hawser(['devices', '--server', service.url])
    expect([nobody.code, nobody.stderr]).toEqual([3, expect.stringMatching(/not signed in.*hawser login/)])
    await signIn(desk, sample.owner)
    expect(await desk.hawser(['logout'])).toMatchObject({
      code: 0,
      stderr: `Signed out of ${service.url}.\n`,
    })
    expect(readFileSync(account(desk), 'utf8')).not.toMatch(/eyJ/)
    expect((await desk.hawser(['devices', '--server', service.url])).code).toBe(3)
  })

  test('is told so when the token has ended', async () => {
    using desk = openDesk()
    await signIn(desk, sample.owner)
    const kept = readFileSync(account(desk), 'utf8')
    writeFileSync(account(desk), kept.replace(/"token": "[^"]+"/, '"token": "eyJ.old.token"'))
    const { code, stderr } = await desk.hawser(['devices'])
    expect([code, stderr]).toEqual([3, 'hawser: Your sign-in has expired. Run `hawser login`.\n'])
  })

  test('is warned when others can read the tokens, and may sign in anew', async () => {
    using desk = openDesk()
    await signIn(desk, sample.owner)
    chmodSync(account(desk), 0o644)
    const { code, stderr } = await desk.hawser(['devices'])
    expect([code, stderr]).toEqual([3, expect.stringMatching(/Others may read .*chmod 600/)])
    expect((await signIn(desk, sample.owner)).code).toBe(0)
    expect((await desk.hawser(['devices'])).code).toBe(0)
  })

  test('has no token sent to another server, not even by a redirect', async () => {
    const heard: (string | undefined)[] = []
    const other = createServer((request, response) => {
      heard.push(request.headers.authorization)
      response.writeHead(307, { location: `${service.url}/api/devices` }).end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => void other.once('listening', resolve))
    const address = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    using desk = openDesk()
    await signIn(desk, sample.owner)
    expect((await desk.hawser(['devices', '--server', address])).code).toBe(3)
    const moved = await desk.hawser(['system', 'info', '--server', address])
    expect([moved.code, moved.stderr]).toEqual([6, expect.stringMatching(/sends us to/)])
    const entering = await desk.hawser(['login', address, '-u', 'olga', '--password-stdin'], {
      input: sample.owner.password,
    })
    expect([entering.code, entering.stderr]).toEqual([6, expect.stringMatching(/sends us to/)])
    expect(heard).toEqual([undefined, undefined])
    await new Promise((resolve) => void other.close(resolve))
  })
})

describe('a mistake', () => {
  const desk = openDesk()
  beforeAll(async () => {
    await signIn(desk, sample.observer)
  })
  afterAll(() => desk[Symbol.dispose]())

  test.each([
    ['an unknown command', ['devicse'], 2, /There is no command `devicse`. Did you mean `hawser devices`\?/],
    [
      'an unknown verb',
      ['devices', 'acept'],
      2,
      /There is no `hawser devices acept`. Did you mean `hawser devices accept`\?/,
    ],
    [
      'an unknown option',
      ['devices', '--stauts', 'x'],
      2,
      /There is no option --stauts; did you mean --status\?/,
    ],
    [
      'a choice that is none',
      ['devices', '--status', 'lost'],
      2,
      /--status <text> is one of accepted, .*, not lost/,
    ],
    ['a number that is none', ['sessions', '--page', 'two'], 2, /--page is a whole number, not two/],
    ['a value that the server refuses', ['sessions', '--per-page', '1000'], 2, /per_page/],
    ['a missing argument', ['devices', 'get'], 2, /Missing: <device>.*\nUsage: hawser devices get <device>/],
    ['a missing option', ['tags', 'rename', 'pier'], 2, /Missing: --tag/],
    ['a word too many', ['status', 'quo'], 2, /Unexpected argument: quo/],
    ['no verb where one is needed', ['mfa'], 2, /What shall be done with mfa\?/],
    ['a role that is too low', ['devices', 'accept', 'buoy'], 4, /buoy: Your role.*\nAn administrator/],
    [
      'an unknown device',
      ['devices', 'get', 'dinghy'],
      5,
      /There is no device dinghy; `hawser devices list` shows them/,
    ],
    ['an unknown session', ['sessions', 'get', 'ffff'], 5, /There is no session ffff/],
    [
      'a server that nobody signed in to',
      ['devices', '--server', 'http://127.0.0.1:65500'],
      3,
      /not signed in/,
    ],
    [
      'a server that nobody runs',
      ['system', 'info', '--server', 'http://127.0.0.1:65500'],
      6,
      /cannot be reached: the connection was refused/,
    ],
    [
      'an address that is none',
      ['system', 'info', '--server', 'ftp://x'],
      2,
      /is not the address of a server/,
    ],
    ['JSON that is none', ['tags', 'rename', 'pier', '--body', '{'], 2, /--body is not JSON/],
    ['no devices named', ['devices', 'reject'], 2, /No devices given/],
  ] as const)('such as %s is said with what to do, and has its code', async (_, words, code, sentence) => {
    const said = await desk.hawser(words)
    expect({ code: said.code, stdout: said.stdout, stderr: said.stderr }).toEqual({
      code,
      stdout: '',
      stderr: expect.stringMatching(sentence) as string,
    })
    expect(Object.keys(exitCodes)).toContain(String(code))
  })

  test('such as https for a port with HTTP, or http for one with HTTPS, is said with the right address', async () => {
    const { host } = new URL(service.url)
    const secure = await desk.hawser(['system', 'info', '--server', `https://${host}`])
    expect([secure.code, secure.stderr]).toEqual([
      6,
      expect.stringContaining(`it speaks HTTP on this port, not HTTPS: use http://${host}.`),
    ])
    const tls = createTlsServer().listen(0, '127.0.0.1')
    await once(tls, 'listening')
    const port = (tls.address() as AddressInfo).port
    const plain = await desk.hawser(['system', 'info', '--server', `http://127.0.0.1:${port}`])
    tls.close()
    expect([plain.code, plain.stderr]).toEqual([
      6,
      expect.stringContaining(`if it speaks HTTPS on this port, use https://127.0.0.1:${port}.`),
    ])
  })

  test('such as the port for ssh, or a certificate of an authority of one’s own, is said with what to do', async () => {
    const gateway = createSocketServer((socket) => socket.end('SSH-2.0-Hawser\r\n')).listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const { port } = gateway.address() as AddressInfo
    const ssh = await desk.hawser(['system', 'info', '--server', `http://127.0.0.1:${port}`])
    gateway.close()
    expect([ssh.code, ssh.stderr]).toEqual([6, expect.stringContaining('which may be the SSH port.\n')])

    using where = folder()
    const authority = await makeAuthority(where)
    const { chain, key } = await authority.issue('server', 'IP:127.0.0.1')
    const certificate = { cert: readFileSync(chain), key: readFileSync(key) }
    const secure = createHttpsServer(certificate, (_, response) => response.end('{}')).listen(0, '127.0.0.1')
    await once(secure, 'listening')
    const server = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`
    const unknown = await desk.hawser(['system', 'info', '--server', server])
    secure.close()
    expect([unknown.code, unknown.stderr]).toEqual([
      6,
      expect.stringMatching(/from an unknown authority\.\n.*NODE_EXTRA_CA_CERTS/),
    ])
  })

  test('such as fields that a server refuses without a word is said with their rules', async () => {
    const said = await desk.hawser(
      'users register --name Max --username m/x --email max@example.com --password abc'.split(' '),
    )
    expect(said.code).toBe(2)
    expect(said.stderr).toContain('  --username: 3 to 30 letters, digits or any of - _ . @\n')
    expect(said.stderr).toContain('  --password: 5 to 30 characters\n')
  })
})

test('sessions are listed by their time, by moments and by how long ago they began', async () => {
  using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
  const list = async (...words: string[]) => {
    const { code, stdout, stderr } = await desk.hawser(['sessions', 'list', '-o', 'json', ...words])
    return code === 0 ? (JSON.parse(stdout) as { uid: string }[]).map(({ uid }) => uid) : [code, stderr]
  }
  const all = await list('--live-first')
  expect(all).toContain(sample.session)
  expect(await list('--from', '36500d', '--to', '0s')).toEqual(all)
  expect(await list('--to', '36500d')).toEqual([])
  expect(await list('--from', '1999-12-31T23:00:00Z', '--no-recorded')).toContain(sample.session)
  expect(await list('--recorded')).not.toContain(sample.session)
  expect(await list('--from', 'last summer')).toEqual([2, expect.stringMatching(/from: a day such as/)])
})

describe('help', () => {
  test.each([
    [['--help'], /Commands:\n.*login/],
    [['devices', '--help'], /accept +Accepts devices/],
    [['devices', 'accept', '-h'], /Usage: hawser devices accept \[<device>…\] \[options\]/],
    [['help', 'keys'], /Usage: hawser public-keys <verb>/],
    [['help', 'exit-codes'], / 3 +not signed in/],
    [['help', 'sessions', 'play'], /Who may: a member with at least the role administrator/],
  ])('%j needs neither a server nor a sign-in', async (words, shown) => {
    using desk = openDesk()
    const said = await desk.hawser(words)
    expect([said.code, said.stderr]).toEqual([0, ''])
    expect(said.stdout).toMatch(shown)
  })
})
