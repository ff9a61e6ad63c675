// Who gets in, seen with the real client: passwords right and wrong, keys that the server stands behind and
// keys that it does not, users who are not there, locked, expired or without a shell. What is refused is
// refused in the same words.
import { spawnSync } from 'node:child_process'
import net from 'node:net'
import { openClient, parsePrivateKey, Reason, SshError, type Proof } from '@hawser/ssh'
import { describe, expect, test, vi } from 'vitest'
import { keygen, type Outcome } from '../../ssh/test/programs.ts'
import { isRoot, saying, startDevice, usersOfSystem, type Device } from './device.ts'
import { ownAccount } from '../src/users.ts'
import { inBothModes, onlyAsRoot } from './modes.ts'
import { administer, makePerson, type Person } from './person.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

async function withPassword(device: Device, user: string, password: string, prompts = 1): Promise<Outcome> {
  const settings = [
    'PasswordAuthentication=yes',
    'PubkeyAuthentication=no',
    `NumberOfPasswordPrompts=${prompts}`,
  ]
  return device.ssh('echo in', { user, settings, env: saying(device.where, password) })
}

/** Logged reasons since the last call. */
function reasons(device: Device): unknown[] {
  return device.events
    .splice(0)
    .flatMap((event) => (event['event'] === 'login.refused' ? [event['reason']] : []))
}

/** Attempts on one connection, as a gateway makes them: accepted, refused, or how it ended. */
async function attempts(device: Device, user: string, ...proofs: Proof[]): Promise<(boolean | string)[]> {
  const client = await openClient(net.connect(device.port, '127.0.0.1'), { checkHostKey: () => true })
  const answers: (boolean | string)[] = []
  for (const proof of proofs) {
    answers.push(
      await client.attempt(user, proof).then(
        ({ accepted }) => accepted,
        (error: Error) => error.message,
      ),
    )
  }
  client.transport.end(new SshError(Reason.byApplication, 'That was all.'))
  return answers
}

const keyOf = (device: Device, name: string): Proof => ({
  method: 'publickey',
  key: parsePrivateKey(device.where.read(name)),
})
const denied = 'Permission denied (password,publickey).'

inBothModes((place) => {
  test('the right password gets in', async () => {
    const { status, stdout } = await withPassword(place, place.who.name, place.who.password)
    expect([status, stdout.toString()]).toEqual([0, 'in\n'])
  })

  test.each([
    ['none', ''],
    ['a wrong one', 'wrong'],
    ['one with a NUL', 'wrong\0right'],
    ['one that is far too long', 'x'.repeat(600)],
  ])('a wrong password does not: %s', async (_, password) => {
    expect(await attempts(place, place.who.name, { method: 'password', password })).toEqual([false])
    expect(reasons(place).every((reason) => reason === 'wrong password')).toBe(true)
  })

  test('the right password with something behind a NUL does not', async () => {
    expect(
      await attempts(place, place.who.name, { method: 'password', password: `${place.who.password}\0` }),
    ).toEqual([false])
  })

  test('the methods are listed in their order, and nothing is free', async () => {
    const { status, stderr } = await withPassword(place, place.who.name, 'wrong')
    expect([status, stderr]).toEqual([255, expect.stringContaining(denied)])
    expect(await attempts(place, place.who.name, { method: 'none' })).toEqual([false])
  })

  test('after six failures it is over', async () => {
    const wrong: Proof = { method: 'password', password: 'wrong' }
    const answers = await attempts(place, place.who.name, ...Array.from({ length: 6 }, () => wrong))
    expect(answers).toEqual([false, false, false, false, false, 'Too many authentication failures.'])
  })

  test('a key that the server stands behind gets in, and the server is asked once', async () => {
    place.asked.length = 0
    const { status, stdout } = await place.ssh('echo in')
    expect([status, stdout.toString()]).toEqual([0, 'in\n'])
    expect(place.asked.map(({ user }) => user)).toEqual([place.who.name])
  })

  test('any other key does not, however often it is shown, and the server is asked once', async () => {
    await keygen(place.where, 'stranger', '-t', 'rsa', '-b', '2048')
    place.asked.length = 0
    const stranger = keyOf(place, 'stranger')
    expect(await attempts(place, place.who.name, stranger, stranger, stranger)).toEqual([false, false, false])
    expect(place.asked.length).toBe(1)
  })

  test('no attempt helps another: a wrong password, then a strange key, then a wrong password', async () => {
    const wrong: Proof = { method: 'password', password: 'wrong' }
    expect(await attempts(place, place.who.name, wrong, keyOf(place, 'stranger'), wrong)).toEqual([
      false,
      false,
      false,
    ])
    expect(await attempts(place, place.who.name, wrong, keyOf(place, 'vouched'))).toEqual([false, true])
  })
})

test('a server that cannot be asked has not approved', async () => {
  await using device = await startDevice({
    approveKey: async () => {
      throw new Error('The server is away.')
    },
  })
  expect(await attempts(device, ownAccount().name, keyOf(device, 'vouched'))).toEqual([false])
  expect(device.events).toContainEqual(
    expect.objectContaining({ event: 'key.unapproved', error: 'The server is away.' }),
  )
})

describe.runIf(isRoot)(`users of the system (${onlyAsRoot})`, () => {
  interface Stage extends AsyncDisposable {
    readonly device: Device
    readonly person: Person
  }

  async function stage(): Promise<Stage> {
    const person = await makePerson()
    const device = await startDevice({ users: usersOfSystem(), user: person.name })
    return {
      device,
      person,
      async [Symbol.asyncDispose]() {
        await device[Symbol.asyncDispose]()
        await person[Symbol.asyncDispose]()
      },
    }
  }

  /** Both ways in, and what was logged. */
  async function bothWays({ device, person }: Stage): Promise<unknown[]> {
    const [byPassword] = await attempts(device, person.name, {
      method: 'password',
      password: person.password,
    })
    const [byKey] = await attempts(device, person.name, keyOf(device, 'vouched'))
    return [byPassword, byKey, ...reasons(device)]
  }

  test('whoever is not there is refused like a wrong password, and takes as long', async () => {
    await using it = await stage()
    const nobody = `${it.person.name}-not`
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const began = performance.now()
      expect(await work()).toEqual([false])
      return performance.now() - began
    }
    const password: Proof = { method: 'password', password: 'wrong' }
    // Answers leave every half second; the limits below are not about speed but about being no quicker.
    expect(await timed(async () => attempts(it.device, nobody, password))).toBeGreaterThanOrEqual(490)
    expect(await timed(async () => attempts(it.device, it.person.name, password))).toBeGreaterThanOrEqual(490)
    expect(
      await timed(async () => attempts(it.device, nobody, keyOf(it.device, 'vouched'))),
    ).toBeGreaterThanOrEqual(490)
    expect((await withPassword(it.device, nobody, it.person.password)).stderr).toContain(denied)
    expect(reasons(it.device)).toEqual(['unknown user', 'wrong password', 'unknown user', 'unknown user'])
  })

  test('a name that is none is refused', async () => {
    const names = {
      nothing: '',
      'a number of a user': '0',
      'an option': '-G',
      'a path': '../../etc/passwd',
      'two fields': 'a:b',
      'two lines': 'root\nroot',
      'a user in other letters': 'ROOT',
      'far too much': 'x'.repeat(300),
    }
    await using device = await startDevice({ users: usersOfSystem() })
    // All at once: every refusal takes half a second.
    await Promise.all(
      Object.entries(names).map(async ([what, name]) => {
        expect(await attempts(device, name, { method: 'password', password: 'x' }), what).toEqual([false])
        expect(await attempts(device, name, keyOf(device, 'vouched')), what).toEqual([false])
      }),
    )
    expect(reasons(device)).toEqual(Object.keys(names).flatMap(() => ['unknown user', 'unknown user']))
  })

  test('a locked account is closed to both ways in', async () => {
    await using it = await stage()
    expect(await bothWays(it)).toEqual([true, true])
    await administer('usermod', '--lock', it.person.name)
    expect(await bothWays(it)).toEqual([false, false, 'no password', 'account locked'])
    await administer('usermod', '--unlock', it.person.name)
    expect(await bothWays(it)).toEqual([true, true])
  })

  test('an account without a password is open to keys', async () => {
    await using it = await stage()
    await administer('usermod', '--password', '!', it.person.name)
    expect(await bothWays(it)).toEqual([false, true, 'no password'])
    await administer('usermod', '--password', '', it.person.name)
    expect(await attempts(it.device, it.person.name, { method: 'password', password: '' })).toEqual([false])
  })

  test('an expired account is closed', async () => {
    await using it = await stage()
    await administer('chage', '--expiredate', '2020-01-01', it.person.name)
    expect(await bothWays(it)).toEqual([false, false, 'account expired', 'account expired'])
  })

  test('an expired password does not do any more, a key does', async () => {
    await using it = await stage()
    await administer('chage', '--lastday', '2020-01-01', '--maxdays', '30', it.person.name)
    expect(await bothWays(it)).toEqual([false, true, 'password expired'])
    await administer('chage', '--lastday', '0', it.person.name)
    expect(await bothWays(it)).toEqual([false, true, 'password to be changed'])
    await administer('chage', '--lastday', '2020-01-01', '--inactive', '10', it.person.name)
    expect(await bothWays(it)).toEqual([false, false, 'account inactive', 'account inactive'])
  })

  test('an account whose shell is none is closed', async () => {
    await using it = await stage()
    for (const shell of ['/usr/sbin/nologin', '/bin/false', '/no/such/shell']) {
      await administer('usermod', '--shell', shell, it.person.name)
      expect(await bothWays(it), shell).toEqual([false, false, 'no login shell', 'no login shell'])
    }
  })

  test('a password is checked, however the system keeps it', async () => {
    await using it = await stage()
    for (const kind of ['MD5', 'SHA256', 'SHA512', 'YESCRYPT']) {
      const changed = spawnSync('chpasswd', ['-c', kind], {
        input: `${it.person.name}:${it.person.password}\n`,
      })
      expect(changed.status, kind).toBe(0)
      const wrong: Proof = { method: 'password', password: `${it.person.password}x` }
      expect(await attempts(it.device, it.person.name, wrong), kind).toEqual([false])
      expect(await bothWays(it), kind).toEqual([true, true, 'wrong password'])
    }
  })
})
