// The vectors that were published with the algorithm, and hashes that `openssl passwd` made.
import { expect, test } from 'vitest'
import { checkShaCrypt, isShaCrypt, shaCrypt } from './sha-crypt.ts'

const long = 'a very much longer text to encrypt.  This one even stretches over morethan one line.'
const short = 'we have a short salt string but not a short password'
const minimum = 'the minimum number is still observed'

test.each([
  ['$5$saltstring', 'Hello world!', '$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5'],
  [
    '$5$rounds=10000$saltstringsaltstring',
    'Hello world!',
    '$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA',
  ],
  [
    '$5$rounds=1400$anotherlongsaltstring',
    long,
    '$5$rounds=1400$anotherlongsalts$Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1',
  ],
  ['$5$rounds=77777$short', short, '$5$rounds=77777$short$JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/'],
  [
    '$5$rounds=10$roundstoolow',
    minimum,
    '$5$rounds=1000$roundstoolow$yfvwcWrQ8l/K0DAWyuPMDNHpIVlTQebY9l/gL972bIC',
  ],
  [
    '$6$saltstring',
    'Hello world!',
    '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
  ],
])('%s', async (setting, password, hash) => {
  expect(await shaCrypt(password, setting)).toBe(hash)
})

test.each([
  ['a', '$5$abcdefgh$GzAL/HPD/MYJIjVUUnvBTiqueLrt/LVxJEZtz0qaNX2'],
  ['Grüße, Welt ✓', '$5$sixteenletters..$ibtIqyq6YEmoF8.N48Z/0yPOUzUUZGOHZCTjrglFoG.'],
  ['x'.repeat(100), '$5$s$wvIAFYrCEWcMJ3TKRrpRr8LQbDaUe2PUJirkwbdF3kC'],
  ['a', '$6$abcdefgh$GjMgmmowSihU3X8xhdMxaCaEziO5NUh/IZqYnnZhN1j7.JYnm2e5BnPfWNUdj17OlEroBdrPtMnfsmwWCrkw70'],
  [
    'Grüße, Welt ✓',
    '$6$sixteenletters..$2N9GRTlwTVnz9y05IfTQMphzAoz2Qdj2wJJHcUR6Db1G1eG3wgI8NqT4itvuPy4/XZlNfEQNDj9JO3xdThWvV1',
  ],
  [
    'x'.repeat(100),
    '$6$s$Ry4ZPOXCn8T2Vsfwu/WXZRluJIbjyELSq6ml2qfjBoLUw0RjK7drmwYPczkn3j4NYpDktoCI4V4Al5zm713vM.',
  ],
])('openssl hashed %j', async (password, hash) => {
  expect(await checkShaCrypt(password, hash)).toBe(true)
  expect(await checkShaCrypt(`${password} `, hash)).toBe(false)
})

test('another password, another salt and another kind are other hashes', async () => {
  const hash = await shaCrypt('secret', '$6$rounds=1000$salt')
  expect(await checkShaCrypt('secret', hash)).toBe(true)
  expect(await checkShaCrypt('Secret', hash)).toBe(false)
  expect(await checkShaCrypt('', hash)).toBe(false)
  expect(await checkShaCrypt('secret', hash.replace('salt', 'tlas'))).toBe(false)
  expect(await checkShaCrypt('secret', hash.slice(0, -1))).toBe(false)
  expect(await checkShaCrypt('secret', '$6$rounds=1000$salt$')).toBe(false)
})

test.each(['', '!', '*', '$1$salt$hash', '$y$j9T$salt$hash', '$2b$10$salt', 'hash', '$6', '$7$salt$hash'])(
  '%j is of another kind',
  (hash) => {
    expect(isShaCrypt(hash)).toBe(false)
  },
)
