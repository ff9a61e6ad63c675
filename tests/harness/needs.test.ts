// The decision about programs that are missing, on machines that we only pretend to have.
import { expect, test } from 'vitest'
import { isThere, missing, needs, remedy, toBeRun, wordsOf, type Need } from './needs.ts'

const ssh: Need = {
  name: 'SSH',
  found: { command: 'ssh' },
  debianPackage: 'openssh-client',
  why: 'it connects',
  usedBy: ['tests/clients/**'],
}
const scp: Need = { ...ssh, name: 'SCP', found: { command: 'scp' }, why: 'it copies' }
const zone: Need = {
  name: 'zones',
  found: { file: '/zones' },
  debianPackage: 'tzdata',
  why: 'it tells',
  usedBy: ['**/*zone*.test.ts'],
}
const table = [ssh, scp, zone]
const tests = ['tests/clients/deep/er.test.ts', 'server/src/kit/time-zone.test.ts', 'tests/storage/a.test.ts']
const nothing = () => false

test('a need counts while a test that uses it is there', () => {
  expect(missing(table, tests, nothing)).toEqual([ssh, scp, zone])
  expect(missing(table, ['tests/clients/a.test.ts'], nothing)).toEqual([ssh, scp])
  expect(missing(table, ['tests/storage/a.test.ts'], nothing)).toEqual([])
})

test('a need that is met is not missing', () => {
  expect(missing(table, tests, (found) => 'command' in found && found.command === 'ssh')).toEqual([scp, zone])
})

test('words narrow the tests as they do for vitest', () => {
  expect(toBeRun(tests, [])).toEqual(tests)
  expect(toBeRun(tests, ['tests/storage', './server'])).toEqual([tests[1], tests[2]])
  expect(toBeRun(tests, ['tests/storage/a.test.ts:12'])).toEqual([tests[2]])
  expect(toBeRun(tests, ['no such file'])).toEqual([])
})

test('vitest tells the words from options and their values', () => {
  const words = (line: string) => wordsOf(line.split(' ').filter(Boolean))
  expect(words('')).toEqual([])
  expect(words('tests/storage')).toEqual(['tests/storage'])
  expect(words('-t tests/storage')).toEqual([])
  expect(words('tests/storage -t gateway --reporter verbose --bail=1')).toEqual(['tests/storage'])
  expect(words('--retry 2 --no-file-parallelism tests/storage mux')).toEqual(['tests/storage', 'mux'])
})

test('as root on Debian what is missing is installed, each package once, and why is said', () => {
  expect(remedy([ssh, scp, zone], { root: true, apt: true })).toEqual({
    kind: 'install',
    packages: ['openssh-client', 'tzdata'],
    lines: `tests: these programs are missing, and apt-get installs them now:
  SSH (Debian package openssh-client): it connects
  SCP (Debian package openssh-client): it copies
  zones (Debian package tzdata): it tells`,
  })
})

test.each([
  { root: false, apt: true, advice: 'As root: apt-get install openssh-client tzdata' },
  { root: true, apt: false, advice: 'Install them in the way of your system.' },
])('elsewhere one message names everything and nothing is run ($advice)', ({ advice, ...machine }) => {
  expect(remedy([ssh, scp, zone], machine)).toEqual({
    kind: 'refuse',
    message: `tests: these programs are missing, and nothing was run:
  SSH (Debian package openssh-client): it connects
  SCP (Debian package openssh-client): it copies
  zones (Debian package tzdata): it tells
${advice}`,
  })
})

test('with nothing missing there is nothing to do', () => {
  expect(remedy([], { root: true, apt: true })).toEqual({ kind: 'nothing' })
})

test('the machine is asked for commands and for files', () => {
  expect(isThere({ command: 'sh' })).toBe(true)
  expect(isThere({ command: 'no-such-command-anywhere' })).toBe(false)
  expect(isThere({ file: import.meta.filename })).toBe(true)
  expect(isThere({ file: `${import.meta.filename}.gone` })).toBe(false)
})

test.each([
  ['tests/storage/devices.test.ts', []],
  ['ssh/src/keys/public-key.test.ts', []],
  ['tests/clients/forwarding-openssh.test.ts', ['ssh', 'sshd']],
  ['ssh/src/both-roles-openssh.test.ts', ['ssh', 'sshd']],
  ['tests/clients/rsync-openssh.test.ts', ['ssh', 'sshd', 'rsync']],
  ['tests/clients/story-browser.test.ts', ['chromium']],
  ['server/src/bus/nats.test.ts', ['nats-server']],
])('%s needs %j', (file, commands) => {
  expect(missing(needs, [file], nothing).map((need) => need.found)).toEqual(
    commands.map((command) => ({ command })),
  )
})
