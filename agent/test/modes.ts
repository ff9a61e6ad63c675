// The two ways in which an agent runs: as one user without special rights, and as root for all users of the
// system. What a session can do is the same in both, so one suite is held against both. The second needs
// root, since it makes a user; where the tests do not run as root its name says why it was not run.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import { isRoot, secret, startDevice, usersOfSystem, type Device, type DeviceOptions } from './device.ts'
import { ownAccount } from '../src/users.ts'

export interface Person extends AsyncDisposable {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** A group that the person is in beside the first. */
  readonly club: { readonly name: string; readonly gid: number }
  readonly home: string
  readonly password: string
}

/** A user of this system, for as long as a test runs. */
export async function makePerson(...options: string[]): Promise<Person> {
  const name = `hawser-${randomBytes(4).toString('hex')}`
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
 * Programs of the system that change its users; another test may hold their lock for a moment. `chpasswd`
 * reads its argument.
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

export interface Place extends Device {
  /** Who a session runs as. */
  readonly who: Pick<Person, 'name' | 'uid' | 'gid' | 'home' | 'password'> & {
    readonly groups: readonly number[]
  }
}

async function alone(options: DeviceOptions): Promise<Place> {
  const device = await startDevice(options)
  return { ...device, who: { ...ownAccount(), home: device.where.file('home'), password: secret } }
}

async function asRoot(options: DeviceOptions): Promise<Place> {
  const person = await makePerson()
  const device = await startDevice({ user: person.name, users: usersOfSystem(), ...options })
  return {
    ...device,
    who: { ...person, groups: [person.gid, person.club.gid] },
    async [Symbol.asyncDispose]() {
      await device[Symbol.asyncDispose]()
      await person[Symbol.asyncDispose]()
    },
  }
}

export const onlyAsRoot = 'only when the tests run as root, because it makes users of the system'

/** Holds a suite against both; the place is for use inside of tests. */
export function inBothModes(suite: (place: Place, root: boolean) => void, options: DeviceOptions = {}): void {
  describe('one user', () => {
    suite(shared(alone, options), false)
  })
  asUsersOfTheSystem((place) => suite(place, true), options)
}

/** Holds a suite against the second one alone. */
export function asUsersOfTheSystem(suite: (place: Place) => void, options: DeviceOptions = {}): void {
  describe.runIf(isRoot)(`users of the system (${onlyAsRoot})`, () => {
    suite(shared(asRoot, options))
  })
}

function shared(start: (options: DeviceOptions) => Promise<Place>, options: DeviceOptions): Place {
  let started: Place | undefined
  beforeAll(async () => {
    started = await start(options)
  })
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]()
  })
  return new Proxy({} as Place, {
    get(_, name) {
      if (!started) throw new Error('the place is not there yet: it is for use inside of tests')
      return Reflect.get(started, name, started) as unknown
    },
  })
}
