// git with a repository on a device: it runs its own programs there through the real OpenSSH client.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { run, type Outcome } from '../../ssh/test/programs.ts'
import { sharedWay, type How } from './way.ts'

const way = sharedWay()

/** Nothing of whoever runs the test. */
const git = async (words: readonly string[], how?: How): Promise<Outcome> =>
  run('git', words, undefined, {
    GIT_SSH_COMMAND: ['ssh', ...way.args(how)].join(' '),
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_AUTHOR_NAME: 'Olga',
    GIT_AUTHOR_EMAIL: 'olga@example.org',
    GIT_COMMITTER_NAME: 'Olga',
    GIT_COMMITTER_EMAIL: 'olga@example.org',
  })
const done = async (words: readonly string[]): Promise<string> => {
  const { status, stdout, stderr } = await git(words)
  expect([status, status === 0 ? '' : stderr]).toEqual([0, ''])
  return stdout.toString().trim()
}
const url = (): string => `${way.sshid()}@127.0.0.1:${way.there('repository.git')}`

beforeAll(async () => {
  const made = await way.ssh(`git init --quiet --bare --initial-branch=main ${way.there('repository.git')}`)
  if (made.status !== 0) throw new Error(made.stderr)
  const here = way.where.file('here')
  await done(['init', '--quiet', '--initial-branch=main', here])
  mkdirSync(`${here}/folder`)
  way.where.write('here/folder/large', randomBytes(2 * 1024 * 1024))
  way.where.write('here/README', 'A quay.\n')
  await done(['-C', here, 'add', '.'])
  await done(['-C', here, 'commit', '--quiet', '-m', 'a quay'])
})

test('push and clone carry a repository to the device and back', async () => {
  const here = way.where.file('here')
  await done(['-C', here, 'push', '--quiet', url(), 'main'])
  await done(['clone', '--quiet', url(), way.where.file('clone')])
  expect(await done(['-C', way.where.file('clone'), 'rev-parse', 'HEAD'])).toBe(
    await done(['-C', here, 'rev-parse', 'HEAD']),
  )
  expect(
    readFileSync(way.where.file('clone/folder/large')).equals(
      readFileSync(way.where.file('here/folder/large')),
    ),
  ).toBe(true)

  // And the other way round, what is new only.
  way.where.write('clone/README', 'Two quays.\n')
  await done(['-C', way.where.file('clone'), 'commit', '--quiet', '-am', 'two quays'])
  await done(['-C', way.where.file('clone'), 'push', '--quiet'])
  await done(['-C', here, 'pull', '--quiet', '--ff-only', url(), 'main'])
  expect(readFileSync(`${here}/README`, 'utf8')).toBe('Two quays.\n')
})

test('a repository that is not there is told as such', async () => {
  const { status, stderr } = await git(['ls-remote', `${way.sshid()}@127.0.0.1:${way.there('missing.git')}`])
  expect(status).toBe(128)
  expect(stderr).toContain('does not appear to be a git repository')
})

test('whoever may not log in reads nothing', async () => {
  const { status, stdout, stderr } = await git(['ls-remote', url()], {
    key: null,
    settings: ['BatchMode=yes'],
  })
  expect([status, stdout.toString()]).toEqual([128, ''])
  expect(stderr).toContain('Permission denied')
})
