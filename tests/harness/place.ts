// A service with the world of the examples in it and a client for everyone who may knock: people of every
// role, a member of another namespace, an API key, the sample device, nobody. `await using place = await
// startPlace()` for a test that wants a place of its own; `sharedPlace()` for tests that only add to what is
// there, or only ask.
import { afterAll, beforeAll } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { begunDatabase, startService, type Service, type ServiceOptions } from './service.ts'
import { buildWorld, type World } from './world.ts'

const people = ['owner', 'administrator', 'operator', 'observer', 'stranger'] as const
type Person = (typeof people)[number]

export interface Place extends Service, Readonly<Record<Person, Client>> {
  readonly world: World
  /** Made by the administrator. */
  readonly key: Client
  readonly device: Client
  readonly nobody: Client
  /** Enrols as an agent does, another device with every call. */
  enrol(wanted?: {
    hostname?: string
    mac?: string
    tenant_id?: string
    public_key?: string
  }): Promise<Enrolled>
  /** Enrols and accepts. */
  accepted(hostname: string): Promise<Enrolled>
}

export interface Enrolled {
  readonly uid: string
  readonly token: string
  readonly name: string
  /** The agent's body, to send it again. */
  readonly body: Parameters<Client['devices']['auth']>[0]['body']
}

export async function startPlace(options: ServiceOptions = {}): Promise<Place> {
  const service = await startService(options)
  const world = await buildWorld(service)
  const clients = await Promise.all(
    people.map(async (person) => [person, service.api({ token: await world.token(person) })] as const),
  )
  const nobody = service.api()
  let devices = 0

  async function enrol({
    hostname,
    mac,
    tenant_id = sample.tenant,
    public_key,
  }: Parameters<Place['enrol']>[0] = {}): Promise<Enrolled> {
    const number = ++devices
    const body = {
      info: {
        id: 'debian',
        pretty_name: 'Debian GNU/Linux 12 (bookworm)',
        version: 'v0.16.4',
        arch: 'amd64',
        platform: 'native',
      },
      ...(hostname === undefined ? {} : { hostname }),
      identity: { mac: mac ?? `00:00:5e:00:54:${number.toString(16).padStart(2, '0')}` },
      public_key: public_key ?? `-----BEGIN RSA PUBLIC KEY-----\n${number}\n-----END RSA PUBLIC KEY-----\n`,
      tenant_id,
    }
    const { uid, token, name } = (await nobody.devices.auth({ body })).body
    return { uid, token, name, body }
  }

  const place = {
    world,
    ...(Object.fromEntries(clients) as Record<Person, Client>),
    key: service.api({ apiKey: sample.apiKey }),
    device: service.api({ token: await world.deviceToken() }),
    nobody,
    enrol,
    async accepted(hostname: string) {
      const device = await enrol({ hostname })
      await place.owner.devices.accept({ params: { uid: device.uid } })
      return device
    },
  }
  return Object.assign(service, place)
}

/** For `describe.each`: promises hold on both. */
export const bothDatabases: readonly (readonly [string, () => Promise<ServiceOptions>])[] = [
  ['SQLite', async () => ({})],
  ['PostgreSQL', async () => ({ database: await begunDatabase() })],
]

/** For all tests of a file or a `describe`. */
export function sharedPlace(options: () => Promise<ServiceOptions> = async () => ({})): Place {
  let started: Place | undefined
  beforeAll(async () => {
    started = await startPlace(await options())
  })
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]()
  })
  // Tests name it before it is there, so this stands in for it.
  return new Proxy({} as Place, {
    get(_, name) {
      if (!started) throw new Error('the place is not there yet: it is for use inside of tests')
      return Reflect.get(started, name, started) as unknown
    },
    has: (_, name) => started !== undefined && Reflect.has(started, name),
  })
}
