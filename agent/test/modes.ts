// The two ways in which an agent runs: as one user without special rights, and as root for all users of the
// system. What a session can do is the same in both, so one suite is held against both. The second needs
// root, since it makes a user; where the tests do not run as root its name says why it was not run.
import { afterAll, beforeAll, describe } from 'vitest'
import { isRoot, secret, startDevice, usersOfSystem, type Device, type DeviceOptions } from './device.ts'
import { makePerson, type Person } from './person.ts'
import { ownAccount } from '../src/users.ts'

export interface Place extends Device {
  /** The user of a session. */
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

/** Runs a suite in both modes. */
export function inBothModes(suite: (place: Place, root: boolean) => void, options: DeviceOptions = {}): void {
  describe('one user', () => {
    suite(shared(alone, options), false)
  })
  asUsersOfTheSystem((place) => suite(place, true), options)
}

/** Runs a suite as root, with users of the system. */
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
