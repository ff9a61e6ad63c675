// Who gets in to our server, seen with the real OpenSSH client: every method accepted and refused, keys
// merely offered and keys that signed, certificates, partial success, banners at any time, and the limits.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Attempt, Decision } from '../src/auth/server.ts'
import { judgeCertificate } from '../src/keys/certificate.ts'
import { parsePublicKeyLine } from '../src/keys/public-key.ts'
import { folder, keygen, quietArgs, run, type Outcome } from './programs.ts'
import { startServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const where = folder()
const types = {
  ed25519: ['-t', 'ed25519'],
  p256: ['-t', 'ecdsa'],
  p384: ['-t', 'ecdsa', '-b', '384'],
  p521: ['-t', 'ecdsa', '-b', '521'],
  rsa: ['-t', 'rsa'],
}
beforeAll(async () => {
  for (const [name, args] of Object.entries(types)) await keygen(where, name, ...args)
  await keygen(where, 'stranger', '-t', 'ed25519')
  await keygen(where, 'authority', '-t', 'ed25519')
  // The client runs this when it wants a password.
  where.write('ask', '#!/bin/sh\necho "${SECRET:-}"\n')
  await run('chmod', ['700', where.file('ask')])
})
afterAll(() => where[Symbol.dispose]())

const blobOf = (name: string): Buffer => parsePublicKeyLine(where.read(`${name}.pub`)).blob
const withSecret = (secret: string) => ({
  SSH_ASKPASS: where.file('ask'),
  SSH_ASKPASS_REQUIRE: 'force',
  SECRET: secret,
})

interface Tried {
  readonly methods: string[]
  readonly outcome: Outcome
  readonly endings: string[]
}

/** Logs in with these arguments against these rules; tells what was attempted. */
async function login(
  rules: (attempt: Attempt) => Decision | Promise<Decision>,
  args: string[],
  secret = '',
): Promise<Tried> {
  const methods: string[] = []
  await using server = await startServer({
    methods: ['publickey', 'password', 'keyboard-interactive'],
    authenticate: async (attempt) => {
      methods.push(attempt.method)
      return rules(attempt)
    },
  })
  const outcome = await run(
    'ssh',
    [...quietArgs(server.port, ...args), 'olga@127.0.0.1', 'echo in'],
    undefined,
    withSecret(secret),
  )
  expect(server.failures).toEqual([])
  return { methods, outcome, endings: server.endings }
}

const knows =
  (name: string) =>
  (attempt: Attempt): Decision =>
    (attempt.method === 'publickey' || attempt.method === 'publickey-offer') &&
    attempt.key.blob.equals(blobOf(name))
      ? 'accept'
      : 'refuse'

describe('public keys', () => {
  test.each(Object.keys(types))('%s: offered, then signed, then in', async (name) => {
    const { methods, outcome } = await login(knows(name), [`IdentityFile=${where.file(name)}`])
    expect(methods).toEqual(['none', 'publickey-offer', 'publickey'])
    expect([outcome.status, outcome.stdout.toString()]).toEqual([0, 'in\n'])
  })

  test('an unknown key is refused when it is offered, and never signs', async () => {
    const { methods, outcome } = await login(knows('ed25519'), [
      `IdentityFile=${where.file('stranger')}`,
      'PasswordAuthentication=no',
      'KbdInteractiveAuthentication=no',
    ])
    expect(methods).toEqual(['none', 'publickey-offer'])
    expect(outcome.stderr).toContain('Permission denied (publickey,password,keyboard-interactive)')
    expect(outcome.status).toBe(255)
  })

  test('a key can be taken when offered and still be refused when it signed', async () => {
    const { methods, outcome } = await login(
      (attempt) => (attempt.method === 'publickey-offer' ? 'accept' : { refuse: ['publickey'] }),
      [`IdentityFile=${where.file('ed25519')}`, 'BatchMode=yes'],
    )
    expect(methods).toEqual(['none', 'publickey-offer', 'publickey'])
    expect(outcome.stderr).toContain('Permission denied (publickey)')
  })

  test('with SHA-1 nobody gets in', async () => {
    const { outcome } = await login(knows('rsa'), [
      `IdentityFile=${where.file('rsa')}`,
      'PubkeyAcceptedAlgorithms=ssh-rsa',
      'BatchMode=yes',
    ])
    expect(outcome.status).toBe(255)
  })
})

describe('passwords and questions', () => {
  test('a right password gets in, a wrong one does not', async () => {
    const rules = (attempt: Attempt): Decision =>
      attempt.method === 'password' && attempt.password === 'sesame' ? 'accept' : 'refuse'
    const settings = [
      'PubkeyAuthentication=no',
      'KbdInteractiveAuthentication=no',
      'NumberOfPasswordPrompts=2',
    ]
    const right = await login(rules, settings, 'sesame')
    expect(right.outcome.stdout.toString()).toBe('in\n')
    const wrong = await login(rules, settings, 'other')
    expect(wrong.methods).toEqual(['none', 'password', 'password'])
    expect(wrong.outcome.status).toBe(255)
  })

  test('questions are asked and answered, twice in one attempt', async () => {
    const rules = async (attempt: Attempt): Promise<Decision> => {
      if (attempt.method !== 'keyboard-interactive') return 'refuse'
      const [first] = await attempt.ask([{ text: 'Password: ', echo: false }], 'Door', 'Say it.')
      const [second] = await attempt.ask([{ text: 'Again: ', echo: true }])
      return first === 'sesame' && second === 'sesame' ? 'accept' : 'refuse'
    }
    const { outcome } = await login(rules, ['PubkeyAuthentication=no', 'PasswordAuthentication=no'], 'sesame')
    expect(outcome.stdout.toString()).toBe('in\n')
  })

  test('a key and then a password: one alone is not enough', async () => {
    let keyProved = false
    const rules = (attempt: Attempt): Decision => {
      if (attempt.method === 'publickey') keyProved = true
      if (attempt.method === 'publickey') return { partial: ['password'] }
      if (attempt.method === 'publickey-offer') return 'accept'
      return attempt.method === 'password' && keyProved && attempt.password === 'sesame'
        ? 'accept'
        : { refuse: ['publickey'] }
    }
    const { methods, outcome } = await login(rules, [`IdentityFile=${where.file('ed25519')}`], 'sesame')
    expect(methods).toEqual(['none', 'publickey-offer', 'publickey', 'password'])
    expect(outcome.stdout.toString()).toBe('in\n')
  })
})

describe('certificates', () => {
  const certify = async (name: string, ...args: string[]): Promise<string> => {
    await keygen(where, name, '-t', 'ed25519')
    await run('ssh-keygen', [
      '-q',
      '-s',
      where.file('authority'),
      '-I',
      name,
      ...args,
      where.file(`${name}.pub`),
    ])
    return name
  }
  const judged =
    (reasons: string[]) =>
    (attempt: Attempt): Decision => {
      if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
      if (!attempt.key.certificate) return 'refuse'
      const use = {
        kind: 'user',
        authorities: [blobOf('authority')],
        principal: attempt.user,
        now: new Date(),
        address: '127.0.0.1',
      } as const
      const judgement = judgeCertificate(attempt.key.certificate, use)
      reasons.push(judgement.allowed ? (judgement.forceCommand ?? 'allowed') : judgement.because)
      return judgement.allowed ? 'accept' : 'refuse'
    }
  const tryWith = async (name: string) => {
    const reasons: string[] = []
    const { outcome } = await login(judged(reasons), [
      `IdentityFile=${where.file(name)}`,
      `CertificateFile=${where.file(`${name}-cert.pub`)}`,
      'BatchMode=yes',
    ])
    return { reasons, status: outcome.status }
  }

  test('one for the user gets in', async () => {
    expect(await tryWith(await certify('good', '-n', 'olga,root'))).toEqual({
      reasons: ['allowed', 'allowed'],
      status: 0,
    })
  })
  test('its command is known', async () => {
    const name = await certify(
      'forced',
      '-n',
      'olga',
      '-O',
      'force-command=uptime',
      '-O',
      'source-address=127.0.0.0/8,10.0.0.1',
    )
    expect(await tryWith(name)).toEqual({ reasons: ['uptime', 'uptime'], status: 0 })
  })
  test.each([
    ['another', 'It is for another user or host.', ['-n', 'pavel']],
    ['nobody', 'It is for another user or host.', []],
    ['late', 'It has expired.', ['-n', 'olga', '-V', '-2d:-1d']],
    ['early', 'It is not valid yet.', ['-n', 'olga', '-V', '+1d:+2d']],
    ['away', 'It may not be used from this address.', ['-n', 'olga', '-O', 'source-address=10.1.0.0/16']],
    [
      'odd',
      'It demands odd@example.com, which is not known here.',
      ['-n', 'olga', '-O', 'critical:odd@example.com=1'],
    ],
  ])('%s is refused: %s', async (name, because, args) => {
    const { reasons, status } = await tryWith(await certify(name, ...args))
    expect(reasons).toEqual([because])
    expect(status).toBe(255)
  })
})

describe('limits and words', () => {
  test('a banner can come at any time before success, to each user their own', async () => {
    const { outcome } = await login(
      (attempt) => {
        attempt.banner(`hello ${attempt.user}, by ${attempt.method}\n`)
        return attempt.method === 'none' ? 'accept' : 'refuse'
      },
      ['LogLevel=INFO'],
    )
    expect(outcome.stderr).toContain('hello olga, by none')
    expect(outcome.stdout.toString()).toBe('in\n')
  })

  test('after six failures it is over', async () => {
    const { outcome, methods, endings } = await login(
      () => 'refuse',
      ['PubkeyAuthentication=no', 'NumberOfPasswordPrompts=9', 'LogLevel=INFO'],
      'x',
    )
    expect(methods.filter((method) => method !== 'none').length).toBe(6)
    expect(outcome.stderr).toContain('Too many authentication failures')
    expect(endings).toEqual(['Too many authentication failures.'])
  })

  test('who does not log in in time is let go', async () => {
    await using server = await startServer({
      handshake_ms: 300,
      authenticate: async ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('refuse'))),
    })
    const { stderr, status } = await run('ssh', [
      ...quietArgs(server.port, 'LogLevel=INFO'),
      'olga@127.0.0.1',
      'true',
    ])
    expect(stderr).toContain('It took too long to log in.')
    expect(status).toBe(255)
  })

  test('an error in the rules lets nobody in and tells the client nothing', async () => {
    await using server = await startServer({
      authenticate: async () => {
        throw new Error('the database is on fire')
      },
    })
    const { stderr, status } = await run('ssh', [
      ...quietArgs(server.port, 'LogLevel=INFO'),
      'olga@127.0.0.1',
      'true',
    ])
    expect(stderr).toContain('Internal error.')
    expect(stderr).not.toContain('fire')
    expect(status).toBe(255)
    expect(server.endings).toEqual(['the database is on fire'])
  })
})
