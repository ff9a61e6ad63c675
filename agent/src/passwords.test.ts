// Passwords by every means that a device may have, and by none.
import { expect, test } from 'vitest'
import { ConfigError } from './config.ts'
import { passwords, type PasswordsOptions } from './passwords.ts'
import { tool } from './tools.ts'
import { usersOf } from './users.ts'

const hashes = {
  sha512:
    '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
  md5: '$1$saltsalt$9xy1btjgzLYfb7hivXtC//',
  yescrypt: '$y$j9T$F5Jx5fExrKuPp53xLKQ..1$GmcwIgvdUC9qLWcKCi6gklUa1dM3ziD43YxYNURLKy0',
  bcrypt: '$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a',
}

function having(means: Partial<PasswordsOptions>) {
  const problems: unknown[] = []
  return {
    problems,
    ...passwords({
      unixChkpwd: null,
      perl: null,
      log: (event) => void problems.push(event['problem']),
      ...means,
    }),
  }
}

test('SHA hashes need nothing of the device', async () => {
  const checks = having({})
  expect(await checks.matches('Hello world!', hashes.sha512)).toBe(true)
  expect(await checks.matches('Hello world', hashes.sha512)).toBe(false)
  expect(await checks.isOf('anybody', hashes.sha512, 'Hello world!')).toBe(true)
  expect(await checks.isOf('anybody', hashes.sha512, 'hello world!')).toBe(false)
})

test.each(['md5', 'yescrypt', 'bcrypt'] as const)(
  '%s is left to the crypt(3) of the system',
  async (kind) => {
    const checks = having({ perl: tool('perl') ?? null })
    expect(await checks.matches('secret', hashes[kind])).toBe(true)
    expect(await checks.matches('Secret', hashes[kind])).toBe(false)
    expect(await checks.matches('', hashes[kind])).toBe(false)
    expect(await checks.matches('secret', hashes[kind].slice(0, -1))).toBe(false)
  },
)

test.each(['md5', 'yescrypt', 'bcrypt'] as const)(
  '%s without any means is refused with a sentence',
  async (kind) => {
    const checks = having({})
    expect(await checks.matches('secret', hashes[kind])).toBe(false)
    expect(checks.problems).toEqual([expect.stringMatching(/cannot be checked here: create a SHA-512 hash/)])
  },
)

test.each(['', '!', '*', '!!', `!${hashes.sha512}`, '*0', '*1', 'abNANd1rDfiNc', 'x', '$nonsense$'])(
  'nothing opens %j',
  async (hash) => {
    const checks = having({ perl: tool('perl') ?? null })
    for (const password of ['', 'secret', 'Hello world!', hash]) {
      expect(await checks.matches(password, hash)).toBe(false)
      expect(await checks.isOf('root', hash, password)).toBe(false)
    }
  },
)

test('a checker that answers anything but yes has said no', async () => {
  for (const [program, answer] of [
    ['/bin/true', true],
    ['/bin/false', false],
    ['/no/such/program', false],
  ] as const) {
    expect(await having({ unixChkpwd: program }).isOf('anybody', hashes.sha512, 'wrong')).toBe(answer)
  }
})

test('many at once are answered one after the other, and far too many are refused', async () => {
  const checks = having({})
  const answers = await Promise.all(
    Array.from({ length: 80 }, async () => checks.matches('Hello world!', hashes.sha512)),
  )
  // Two at a time and sixty-four that wait.
  expect(answers.filter(Boolean).length).toBe(66)
  expect(await checks.matches('Hello world!', hashes.sha512)).toBe(true)
  expect(await checks.pretend('anything')).toBe(false)
})

test('a hash that cannot be used is a mistake in the settings', () => {
  expect(() => usersOf('abNANd1rDfiNc')).toThrow(ConfigError)
  expect(() => usersOf('*')).toThrow(/HAWSER_SINGLE_USER_PASSWORD: There is no password hash/)
})
