// Certificates that OpenSSH's own tools make, signed with a key that the namespace knows: they let in whom
// they name, for as long as they say, and what they withhold is withheld on the whole way, whichever agent
// the device has.
import { copyFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { startEcho } from '../../ssh/test/peers.ts'
import { freePort, keygen, run, type Outcome } from '../../ssh/test/programs.ts'
import { openTerminal } from './terminal.ts'
import { sharedOldAgent, sharedWay } from './way.ts'

const way = sharedWay()

beforeAll(async () => {
  for (const name of ['authority', 'rogue', 'narrow', 'plain', 'holder'])
    await keygen(way.where, name, '-t', 'ed25519')
  await way.register('authority', { certificate_authority: true })
  await way.register('narrow', { username: '^skipper$', certificate_authority: true })
  await way.register('plain')
})

let made = 0
/** A copy of the holder's key with a certificate beside it, where the client looks for one; by its name. */
async function certified(words: readonly string[], authority = 'authority'): Promise<string> {
  const name = `holder-${(made += 1)}`
  for (const end of ['', '.pub'])
    copyFileSync(way.where.file(`holder${end}`), way.where.file(`${name}${end}`))
  const { status, stderr } = await run('ssh-keygen', [
    '-q',
    '-s',
    way.where.file(authority),
    '-I',
    name,
    ...words,
    way.where.file(`${name}.pub`),
  ])
  if (status !== 0) throw new Error(stderr)
  return name
}
const forUser = (...words: string[]): string[] => ['-n', way.user.name, ...words]
const isIn = ({ status, stdout }: Outcome): void => expect([stdout.toString(), status]).toEqual(['in\n', 0])
const isOut = ({ status, stdout, stderr }: Outcome): void => {
  expect([stdout.toString(), status]).toEqual(['', 255])
  expect(stderr).toContain('Permission denied')
}

describe('who gets in', () => {
  test('the key alone, without a certificate, is nobody’s', async () => {
    isOut(await way.ssh('echo in', { key: 'holder' }))
  })

  test('whom the certificate names', async () => {
    isIn(await way.ssh('echo in', { key: await certified(['-n', `skipper,${way.user.name}`]) }))
  })

  test.each([
    ['another user', () => ['-n', 'skipper']],
    ['nobody', () => []],
    ['hosts', () => ['-h', '-n', way.user.name]],
    ['a time that is over', () => forUser('-V', '20200101:20200102')],
    ['a time to come', () => forUser('-V', '+1d:+2d')],
    ['another network', () => forUser('-O', 'source-address=192.0.2.0/24,2001:db8::/32')],
    ['who meets a demand that nobody knows here', () => forUser('-O', 'critical:retina-scan=left')],
  ])('not with a certificate for %s', async (_, words) => {
    isOut(await way.ssh('echo in', { key: await certified(words()) }))
  })

  test('with one for this time and this network', async () => {
    isIn(
      await way.ssh('echo in', {
        key: await certified(forUser('-V', '-1h:+1h', '-O', 'source-address=127.0.0.0/8')),
      }),
    )
  })

  test('not with one that a key signed which the namespace does not know', async () => {
    isOut(await way.ssh('echo in', { key: await certified(forUser(), 'rogue') }))
  })

  test('not with one that a key signed which is for logins, nor with the authority’s own key', async () => {
    isOut(await way.ssh('echo in', { key: await certified(forUser(), 'plain') }))
    isIn(await way.ssh('echo in', { key: 'plain' }))
    isOut(await way.ssh('echo in', { key: 'authority' }))
  })

  test('not with one whose authority is for other users', async () => {
    isOut(await way.ssh('echo in', { key: await certified(forUser(), 'narrow') }))
  })
})

describe('a forced command', () => {
  test('runs in the place of whatever is asked for: a command, a shell, files', async () => {
    const key = await certified(forUser('-O', 'force-command=echo forced; exit 3'))
    const asked = [
      way.ssh('echo in', { key }),
      way.ssh(undefined, { key, flags: ['-T'] }),
      way.ssh('sftp', { key, flags: ['-s'] }),
    ]
    for (const { stdout, status } of await Promise.all(asked))
      expect([stdout.toString(), status]).toEqual(['forced\n', 3])
    expect((await way.newest()).type).toBe('exec')
  })
})

describe('a terminal', () => {
  const tty = 'test -t 0 && echo terminal || echo none'

  test('is there with a certificate that permits it', async () => {
    const { stdout } = await way.ssh(tty, { key: await certified(forUser()), flags: ['-tt'] })
    expect(stdout.toString()).toBe('terminal\r\n')
  })

  test('is refused with one that does not; who did not insist on it has a shell without', async () => {
    const key = await certified(forUser('-O', 'no-pty'))
    const insisting = await way.ssh(tty, { key, flags: ['-tt'] })
    expect([insisting.stdout.toString(), insisting.status]).toEqual(['', 255])
    expect(insisting.stderr).toContain('PTY allocation request failed on channel 0')
    using terminal = openTerminal('ssh', [...way.args({ key }), `${way.sshid()}@127.0.0.1`])
    await terminal.until(/PTY allocation request failed on channel 0/)
    terminal.type(`${tty}; exit 4\n`)
    expect(await terminal.ended).toBe(4)
    expect(terminal.shown()).toMatch(/^none\r\n/m)
  })
})

describe('forwarding', () => {
  test('passes with a certificate that permits it', async () => {
    using echo = await startEcho()
    const key = await certified(forUser())
    const through = await way.ssh(undefined, { key, flags: ['-W', `127.0.0.1:${echo.port}`], input: 'hello' })
    expect([through.stdout.toString(), through.status]).toEqual(['hello', 0])
  })

  test('is refused in both directions with one that does not, and commands run', async () => {
    using echo = await startEcho()
    const key = await certified(forUser('-O', 'no-port-forwarding'))
    const settings = ['LogLevel=INFO']
    const through = await way.ssh(undefined, {
      key,
      settings,
      flags: ['-W', `127.0.0.1:${echo.port}`],
      input: 'hello',
    })
    expect([through.stdout.toString(), through.status]).toEqual(['', 255])
    expect(through.stderr).toContain('administratively prohibited')
    const back = await way.ssh('echo in', {
      key,
      settings,
      flags: ['-R', `${await freePort()}:127.0.0.1:${echo.port}`],
    })
    expect(back.stderr).toContain('remote port forwarding failed')
    isIn(back)
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('knows nothing of certificates, and still they let in, keep out and force', async () => {
    const asked = old.seen.attempts.length
    isOut(await way.ssh('echo in', { key: await certified(['-n', 'skipper']), device: old.name }))
    expect(old.seen.attempts.length).toBe(asked)
    isIn(await way.ssh('echo in', { key: await certified(forUser()), device: old.name }))
    const forced = await way.ssh('echo in', {
      key: await certified(forUser('-O', 'force-command=echo forced')),
      device: old.name,
    })
    expect(forced.stdout.toString()).toBe('forced\n')
  })
})
