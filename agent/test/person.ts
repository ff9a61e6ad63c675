// Users of the system for tests that run as root: one is made, and goes again with all that it had.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Person extends AsyncDisposable {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** A second group. */
  readonly club: { readonly name: string; readonly gid: number }
  readonly home: string
  readonly password: string
}

/** A user of this system, for the time of a test. */
export const makePerson = async (...options: string[]): Promise<Person> =>
  makeNamed(`hawser-${randomBytes(4).toString('hex')}`, ...options)

/** Fails when there is one of this name. */
export async function makeNamed(name: string, ...options: string[]): Promise<Person> {
  const password = randomBytes(8).toString('hex')
  await administer('groupadd', `${name}-club`)
  await administer(
    'useradd',
    '--create-home',
    '--shell',
    '/bin/bash',
    '--groups',
    `${name}-club`,
    ...options,
    name,
  )
  await administer('chpasswd', `${name}:${password}\n`)
  const [, , uid, gid, , home] = execFileSync('getent', ['passwd', name], { encoding: 'utf8' }).split(':')
  const club = execFileSync('getent', ['group', `${name}-club`], { encoding: 'utf8' }).split(':')[2]
  return {
    name,
    uid: Number(uid),
    gid: Number(gid),
    club: { name: `${name}-club`, gid: Number(club) },
    home: home!,
    password,
    async [Symbol.asyncDispose]() {
      await administer('userdel', '--remove', '--force', name)
      await administer('groupdel', `${name}-club`)
    },
  }
}

/**
 * Programs that change users; another test may hold their lock for a moment. `chpasswd` reads its argument.
 */
export async function administer(program: string, ...args: string[]): Promise<void> {
  for (let tries = 20; ; tries -= 1) {
    try {
      if (program === 'chpasswd')
        execFileSync(program, args.slice(1), { input: args[0]!, stdio: ['pipe', 'pipe', 'pipe'] })
      else execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      return
    } catch (error) {
      const said = String((error as { stderr?: Buffer }).stderr ?? '')
      if (tries === 0 || !/lock|try again/.test(said))
        throw new Error(`${program} ${args.join(' ')}: ${said}`, { cause: error })
      await sleep(200)
    }
  }
}
