// Where the packages of the newer Debian come from: the mirrors of this machine, in whatever way they are
// written down.
import { expect, test } from 'vitest'
import { trixieSources } from './openssh10.ts'

test('the mirror of a .sources file is asked, with its key, and nothing else is', () => {
  const file = `Types: deb deb-src
# A remark.
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://other.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
`
  expect(trixieSources([file], 'bookworm')).toBe(`Types: deb
URIs: http://mirror.example/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian.gpg
`)
})

test('the mirrors of a sources.list are asked', () => {
  const file = `# deb http://old.example/debian bookworm main
deb [arch=amd64 signed-by=/keys/a.gpg] https://one.example/debian bookworm main non-free
deb http://two.example/debian/ stable main # the other one
deb http://two.example/debian bookworm-updates main
deb https://packages.example/apt cloud main
`
  expect(trixieSources([file], 'bookworm').split('\n\n')).toEqual([
    'Types: deb\nURIs: https://one.example/debian\nSuites: trixie\nComponents: main\nSigned-By: /keys/a.gpg\n'.trimEnd(),
    'Types: deb\nURIs: http://two.example/debian\nSuites: trixie\nComponents: main\n',
  ])
})

test('a key that is written into the file itself is taken along', () => {
  const key = '\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abcd\n -----END PGP PUBLIC KEY BLOCK-----'
  const file = `Types: deb\nURIs: http://mirror.example/debian\nSuites: sid stable\nComponents: main\nSigned-By:${key}\n`
  expect(trixieSources([file], 'trixie')).toContain(`Signed-By: ${key}\n`)
})

test('without a mirror there is nothing to ask', () => {
  expect(trixieSources(['deb https://packages.example/apt cloud main\n'], 'bookworm')).toBe('')
  expect(trixieSources([], 'bookworm')).toBe('')
})
