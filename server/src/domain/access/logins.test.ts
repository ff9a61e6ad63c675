import { expect, test } from 'vitest'
import { parseTarget } from './logins.ts'

test.each([
  ['root@ns.dev', { username: 'root', data: 'ns.dev' }],
  ['root@ns.dev.with.dots', { username: 'root', data: 'ns.dev.with.dots' }],
  ['root@0f', { username: 'root', data: '0f' }],
  ['a@b@c', { username: 'a', data: 'b@c' }],
])('%s names a user and a device', (sshid, target) => {
  expect(parseTarget(sshid)).toEqual(target)
})

test.each(['', 'root', '@ns.dev', 'root@', `${'r'.repeat(129)}@ns.dev`, `root@${'d'.repeat(257)}`])(
  '%j is no SSHID',
  (sshid) => {
    expect(parseTarget(sshid)).toBeUndefined()
  },
)
