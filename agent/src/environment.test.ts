// Which variables a program gets, and from where.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { deviceVariables, environmentOf, mayPass, readEndpoint } from './environment.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-environment-'))
const file = (name: string, text: string): string => {
  writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['LANG', 'de_DE.UTF-8', true],
  ['LC_ALL', 'C', true],
  ['LC_TIME', 'en_GB.UTF-8@euro', true],
  ['COLORTERM', 'truecolor', true],
  ['TERM_PROGRAM', 'iTerm.app', true],
  ['TERM_PROGRAM_VERSION', '3.5.0', true],
  ['LANG', '', true],
  ['LANG', '../../evil', false],
  ['LANG', 'C\nLD_PRELOAD=x', false],
  ['LANG', 'x'.repeat(200), false],
  ['LC_', 'C', false],
  ['LC_all', 'C', false],
  ['LC_ALL=x LD_PRELOAD', 'C', false],
  ['LANGUAGE', 'de', false],
  ['LD_PRELOAD', 'x', false],
  ['PATH', 'x', false],
  ['HAWSER_CLIENT', 'x', false],
  ['HAWSER_PERSON', 'x', false],
  ['TERM', 'x', false],
])('%s=%j', (name, value, passes) => {
  expect(mayPass(name, value)).toBe(passes)
})

test.each([
  ['198.51.100.7 4711', { address: '198.51.100.7', port: 4711 }],
  ['2001:db8::7 0', { address: '2001:db8::7', port: 0 }],
  ['198.51.100.7', undefined],
  ['198.51.100.7 4711 22', undefined],
  ['evil 22', undefined],
  ['198.51.100.7 -1', undefined],
  ['', undefined],
])('%j is an address or not', (text, endpoint) => {
  expect(readEndpoint(text)).toEqual(endpoint)
})

test('the first file that says something about the language is right', async () => {
  const first = file('locale.conf', '# comment\nLANG="de_DE.UTF-8"\nFOO=1\n')
  const second = file('locale', "export LANG=C\nLC_TIME='en_GB.UTF-8' # why not\n")
  const third = file('environment', 'PATH="/opt/bin:/usr/bin"\nLC_TIME=C\nLC_NUMERIC=/evil\n')
  expect(await deviceVariables([first, second, third], third)).toEqual({
    language: { LANG: 'de_DE.UTF-8', LC_TIME: 'en_GB.UTF-8' },
    path: '/opt/bin:/usr/bin',
  })
  const nothing = path.join(folder, 'nothing')
  expect(await deviceVariables([nothing], nothing)).toEqual({
    language: { LANG: 'C.UTF-8' },
    path: undefined,
  })
})

test('what the client sends comes before the device, and what we say before both', () => {
  const env = environmentOf({
    account: { name: 'olga', uid: 1001, gid: 1001, groups: [1001], home: '/home/olga', shell: '/bin/sh' },
    deviceName: 'pump',
    client: { address: '198.51.100.7', port: 4711 },
    server: { address: '127.0.0.1', port: 22 },
    sent: new Map([
      ['LANG', 'fr_FR.UTF-8'],
      ['LD_PRELOAD', 'x'],
      ['HOME', '/evil'],
    ]),
    terminal: 'xterm-256color',
    agentSocket: '/run/agent',
    device: { language: { LANG: 'C.UTF-8', LC_TIME: 'C' }, path: undefined },
  })
  expect(env).toEqual({
    LANG: 'fr_FR.UTF-8',
    LC_TIME: 'C',
    HOME: '/home/olga',
    SHELL: '/bin/sh',
    USER: 'olga',
    LOGNAME: 'olga',
    PATH: '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games',
    SSH_CLIENT: '198.51.100.7 4711 22',
    SSH_CONNECTION: '198.51.100.7 4711 127.0.0.1 22',
    SHELLHUB_HOST: 'pump',
    HAWSER_DEVICE: 'pump',
    TERM: 'xterm-256color',
    SSH_AUTH_SOCK: '/run/agent',
  })
})
