// Which variables of a client may reach a device: language always, others when they are named, and some
// never.
import { expect, test } from 'vitest'
import { neverPasses, passes, readNamed, tellNamed, variablePattern } from './environment.ts'

const mayPass = (name: string, more: readonly string[]): boolean => passes(name, more) !== undefined

test('language and colours pass, and nothing else that was not named', () => {
  expect(['LANG', 'LC_ALL', 'COLORTERM', 'TERM_PROGRAM'].every((name) => mayPass(name, []))).toBe(true)
  expect(['FOO', 'LANGUAGES', 'LC_', 'LC_lower', 'TERM', ''].some((name) => mayPass(name, []))).toBe(false)
})

test('what is named passes, by its name or by its beginning', () => {
  const more = ['DEPLOY_TARGET', 'CI_*', 'NODE_ENV', 'GIT_AUTHOR_NAME']
  for (const name of ['DEPLOY_TARGET', 'CI_', 'CI_JOB', 'NODE_ENV', 'GIT_AUTHOR_NAME'])
    expect([name, mayPass(name, more)]).toEqual([name, true])
  for (const name of [
    'DEPLOY',
    'DEPLOY_TARGETS',
    'XCI_JOB',
    'deploy_target',
    'CI_JOB=1',
    'CI_%%',
    'CI_\n',
    `CI_${'A'.repeat(64)}`,
  ])
    expect([name, mayPass(name, more)]).toEqual([name, false])
})

test.each([
  'LD_PRELOAD',
  'LD_LIBRARY_PATH',
  'DYLD_INSERT_LIBRARIES',
  'GLIBC_TUNABLES',
  'GCONV_PATH',
  'PATH',
  'Path',
  'HOME',
  'IFS',
  'ENV',
  'BASH_ENV',
  'BASH_FUNC_ls',
  'SHELLOPTS',
  'PS4',
  'PROMPT_COMMAND',
  'ZDOTDIR',
  'PYTHONPATH',
  'PYTHONSTARTUP',
  'PERL5LIB',
  'PERL5OPT',
  'RUBYOPT',
  'NODE_OPTIONS',
  'NODE_PATH',
  'JAVA_TOOL_OPTIONS',
  '_JAVA_OPTIONS',
  'CLASSPATH',
  'LUA_INIT',
  'GIT_SSH_COMMAND',
  'GIT_CONFIG_COUNT',
  'GIT_DIR',
  'RSYNC_RSH',
  'SYSTEMD_PAGER',
  'LESSOPEN',
  'EDITOR',
  'TERMINFO',
  'OPENSSL_CONF',
  'npm_config_prefix',
  'XDG_CONFIG_HOME',
  'SSH_AUTH_SOCK',
  'SSH_CLIENT',
  'HAWSER_CLIENT',
  'HAWSER_PERSON',
  'SHELLHUB_HOST',
])('%s never passes, whatever is named', (name) => {
  expect(neverPasses(name)).toBe(true)
  expect(mayPass(name, [name, `${name.slice(0, 1)}*`])).toBe(false)
})

test('a beginning of such names is refused as a whole, and a wider one passes what is left', () => {
  expect(['LD_*', 'BASH_*', 'GIT_*', 'SSH_*'].every(neverPasses)).toBe(true)
  expect(mayPass('LD_PRELOAD', ['L*'])).toBe(false)
  expect(mayPass('LOAD', ['L*'])).toBe(true)
  expect(new RegExp(variablePattern).test('*')).toBe(false)
})

test('an agent takes what it is told was named, and never the others', () => {
  expect(readNamed(tellNamed('DEPLOY_TARGET'), 'pier/7')).toBe('DEPLOY_TARGET')
  for (const [name, value] of [
    ['DEPLOY_TARGET', 'pier'],
    [tellNamed('LD_PRELOAD'), 'x'],
    [tellNamed('HAWSER_CLIENT'), 'x'],
    [tellNamed('HAWSER_PERSON'), 'x'],
    [tellNamed(''), 'x'],
    [tellNamed('A=B'), 'x'],
    [tellNamed('A'), '() { :; }; evil'],
    [tellNamed('A'), 'two\nlines'],
    [tellNamed('A'), 'x'.repeat(4097)],
  ] as const)
    expect([name, readNamed(name, value)]).toEqual([name, undefined])
})
