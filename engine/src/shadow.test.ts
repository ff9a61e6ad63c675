// The meaning of lines of the shadow file, day by day.
import { expect, test } from 'vitest'
import { readShadow, accountState } from './shadow.ts'

const today = 20_000
const open = { closed: undefined, noPassword: undefined }

test.each([
  ['an ordinary account', 'olga:$6$s$h:19000:0:99999:7:::', open],
  ['one without any limits', 'olga:$6$s$h:::::::', open],
  ['a short line', 'olga:$6$s$h', open],
  ['no password yet', 'olga:!:19000:0:99999:7:::', { closed: undefined, noPassword: 'no password' }],
  [
    'no password, as others write it',
    'olga:!!:19000:0:99999:7:::',
    { closed: undefined, noPassword: 'no password' },
  ],
  ['a system account', 'olga:*:19000:0:99999:7:::', { closed: undefined, noPassword: 'no password' }],
  [
    'a system account that is locked',
    'olga:!*:19000:0:99999:7:::',
    { closed: undefined, noPassword: 'no password' },
  ],
  ['an empty password', 'olga::19000:0:99999:7:::', { closed: undefined, noPassword: 'no password' }],
  [
    'a locked account',
    'olga:!$6$s$h:19000:0:99999:7:::',
    { closed: 'account locked', noPassword: 'no password' },
  ],
  ['one that expires tomorrow', 'olga:$6$s$h:19000:0:99999:7::20001:', open],
  [
    'one that expires today',
    'olga:$6$s$h:19000:0:99999:7::20000:',
    { closed: 'account expired', noPassword: undefined },
  ],
  [
    'one that expired with the epoch',
    'olga:$6$s$h:19000:0:99999:7::0:',
    { closed: 'account expired', noPassword: undefined },
  ],
  ['a password on its last day', 'olga:$6$s$h:19970:0:30:7:::', open],
  [
    'a password a day later',
    'olga:$6$s$h:19969:0:30:7:::',
    { closed: undefined, noPassword: 'password expired' },
  ],
  [
    'a password to be changed',
    'olga:$6$s$h:0:0:99999:7:::',
    { closed: undefined, noPassword: 'password to be changed' },
  ],
  [
    'the last day of grace',
    'olga:$6$s$h:19965:0:30:7:5::',
    { closed: undefined, noPassword: 'password expired' },
  ],
  [
    'a day after the grace',
    'olga:$6$s$h:19964:0:30:7:5::',
    { closed: 'account inactive', noPassword: 'password expired' },
  ],
  ['limits that are none', 'olga:$6$s$h:19000:0:-1:7:-1:-1:', open],
])('%s', (_, line, standing) => {
  expect(accountState(readShadow(line)!, today)).toEqual(standing)
})

test.each(['', 'olga', ':hash'])('%j is no entry', (line) => {
  expect(readShadow(line)).toBeUndefined()
})
