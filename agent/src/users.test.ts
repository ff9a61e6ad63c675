// The users of a system that exists only as files, so that everything can be tried without touching this one.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { passwords } from './passwords.ts'
import { ownAccount, singleUser, systemUsers, type Users } from './users.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-users-'))
const file = (name: string, text: string): string => {
  writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}
const hash =
  '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1'
const right = 'Hello world!'
const checks = passwords({ unixChkpwd: null, perl: null, log: () => undefined })
const noLogin = path.join(folder, 'nologin')
let users: Users

beforeAll(() => {
  const passwd = file(
    'passwd',
    `root:x:0:0:root:/root:/bin/sh
olga:x:1001:1001:Olga,,,:/home/olga:/bin/sh
small:${hash}:1002:1002::/home/small:
guest:x:1003:1003::/home/guest:/usr/sbin/nologin
gone:x:1004:1004::/home/gone:/no/such/shell
broken:x:many:1005::/:/bin/sh
bare:x:1006:1006:::/bin/sh
`,
  )
  const shadow = file(
    'shadow',
    ['root', 'olga', 'guest', 'gone', 'bare'].map((name) => `${name}:${hash}:19000:0:99999:7:::\n`).join(''),
  )
  const group = file(
    'group',
    'root:x:0:\nolga:x:1001:\ndialout:x:20:small,olga\ndocker:x:999:olga\nodd:x::olga\n',
  )
  users = systemUsers({
    passwords: checks,
    getent: null,
    files: { passwd, shadow, group, noLogin: [noLogin] },
  })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a user has an account with all groups', async () => {
  const account = {
    name: 'olga',
    uid: 1001,
    gid: 1001,
    groups: [1001, 20, 999],
    home: '/home/olga',
    shell: '/bin/sh',
  }
  expect(await users.admit('olga')).toEqual({ account })
  expect(await users.admitWithPassword('olga', right)).toEqual({ account })
  expect(await users.admitWithPassword('olga', 'wrong')).toEqual({ refused: 'wrong password' })
})

test('where the files come first, what they say is not asked of anybody else; where they do not, it is', async () => {
  const services = path.join(folder, 'nsswitch.conf')
  const real = {
    passwords: checks,
    getent: '/bin/false',
    files: {
      passwd: path.join(folder, 'passwd'),
      shadow: path.join(folder, 'shadow'),
      group: path.join(folder, 'group'),
      services,
      noLogin: [],
    },
  }
  const groups = async (text: string): Promise<unknown> => {
    writeFileSync(services, text)
    const admission = await systemUsers(real).admit('olga')
    return 'account' in admission ? admission.account.groups : admission.refused
  }
  expect(await groups('passwd: files\nshadow: files\ngroup: files\n')).toEqual([1001, 20, 999])
  expect(await groups('passwd:\tfiles ldap # as ever\nshadow: files\ngroup: files\n')).toEqual([
    1001, 20, 999,
  ])
  expect(await groups('')).toEqual([1001, 20, 999])
  for (const passwd of ['compat', 'sss files', 'files [SUCCESS=continue] sss'])
    expect(await groups(`passwd: ${passwd}\nshadow: files\ngroup: files\n`)).toBe('unknown user')
})

test('where nothing is said about shell and home there are usual ones, and a hash may be in passwd itself', async () => {
  expect(await users.admitWithPassword('small', right)).toMatchObject({
    account: { shell: '/bin/sh', groups: [1002, 20] },
  })
  expect(await users.admit('bare')).toMatchObject({ account: { home: '/' } })
})

test.each([
  ['nobody-there', 'unknown user'],
  ['1001', 'unknown user'],
  ['olg', 'unknown user'],
  ['olga:x', 'unknown user'],
  ['-olga', 'unknown user'],
  ['', 'unknown user'],
  ['broken', 'unknown user'],
  ['guest', 'no login shell'],
  ['gone', 'no login shell'],
])('%j is refused: %s', async (name, refused) => {
  expect(await users.admit(name)).toEqual({ refused })
  expect(await users.admitWithPassword(name, right)).toEqual({ refused })
})

test('why an account is closed is not found out without its password', async () => {
  expect(await users.admitWithPassword('guest', 'wrong')).toEqual({ refused: 'wrong password' })
})

test('while nobody may log in, root may', async () => {
  writeFileSync(noLogin, '')
  expect(await users.admit('olga')).toEqual({ refused: 'no logins now' })
  expect(await users.admitWithPassword('olga', right)).toEqual({ refused: 'no logins now' })
  expect(await users.admit('root')).toMatchObject({ account: { uid: 0 } })
  rmSync(noLogin)
  expect(await users.admit('olga')).toMatchObject({ account: { uid: 1001 } })
})

test('a single user has one name', async () => {
  const one = singleUser({ passwords: checks, hash })
  const account = ownAccount()
  expect(account).toMatchObject({ uid: process.getuid!(), name: os.userInfo().username })
  expect(await one.admit(account.name)).toEqual({ account })
  expect(await one.admitWithPassword(account.name, right)).toEqual({ account })
  expect(await one.admitWithPassword(account.name, '')).toEqual({ refused: 'wrong password' })
  for (const name of ['nobody-there', account.name.toUpperCase(), `${account.name} `, '', '../x']) {
    expect(await one.admit(name)).toEqual({ refused: 'unknown user' })
    expect(await one.admitWithPassword(name, right)).toEqual({ refused: 'unknown user' })
  }
})
