// What tests of connectors with a real engine stand on: a service, an engine, a key that the namespace knows,
// and the steps they are told in: a connector is made, a container appears as a device, somebody logs in to
// it with the real client.
import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import type { Connector } from '@hawser/contract/connectors'
import type { Device } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { folder, keygen, quietArgs, run, type Folder, type Outcome } from '../../ssh/test/programs.ts'
import { startDocker, type Docker } from '../harness/docker.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { eventually, watch, type Running } from './way.ts'

export interface Dock extends AsyncDisposable {
  readonly docker: Docker
  readonly service: Service
  readonly world: World
  readonly owner: Client
  /** On the client's side: `olga` is a key for every user of every device. */
  readonly where: Folder
  /** Makes a connector and waits for its state. */
  connect(body: object, state?: string): Promise<Connector>
  state(uid: string, state: string): Promise<Connector>
  /** The device of a container, once there is one that fits. */
  device(name: string, fits?: Partial<Device>): Promise<Device>
  /** The same, accepted and online. */
  accepted(name: string): Promise<Device>
  devices(): Promise<Device[]>
  sshid(name: string, user?: string): string
  args(...more: string[]): string[]
  ssh(
    name: string,
    command: string,
    how?: { readonly user?: string; readonly flags?: readonly string[]; readonly input?: string },
  ): Promise<Outcome>
  start(
    name: string,
    command: string | undefined,
    how?: { readonly user?: string; readonly flags?: readonly string[] },
  ): Running
}

type Start = Parameters<typeof startDocker>[0] | (() => Promise<Docker>)

export async function openDock(start: Start = {}): Promise<Dock> {
  await using opened = new AsyncDisposableStack()
  const docker = opened.use(await (typeof start === 'function' ? start() : startDocker(start)))
  const env = { HAWSER_SSH_FAILURE_LIMIT: '0/60', HAWSER_CONNECTOR_ALLOW: `127.0.0.1, ${docker.socket}` }
  const service = opened.use(await startService({ env }))
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const where = opened.use(folder())
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } } })

  const sshid = (name: string, user = 'root'): string => `${user}@${sample.namespace}.${name}@127.0.0.1`
  const args = (...more: string[]): string[] => [
    ...quietArgs(service.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
    ...more,
  ]
  const devices = async (): Promise<Device[]> => {
    const all: Device[] = []
    for (let page = 1; ; page += 1) {
      const { body, total } = await owner.devices.list({ query: { page, per_page: 100 } })
      all.push(...body)
      if (all.length >= total || body.length === 0) return all
    }
  }
  const dock: Dock = {
    docker,
    service,
    world,
    owner,
    where,
    async connect(body, state = 'connected') {
      const { uid } = (
        await owner.connectors.create({
          body: { enable: true, port: docker.port, address: '127.0.0.1', ...body },
        })
      ).body
      return dock.state(uid, state)
    },
    state: async (uid, state) =>
      eventually(async () => {
        const { body } = await owner.connectors.get({ params: { uid } })
        expect(body.status, body.status.message).toMatchObject({ state })
        return body
      }),
    device: async (name, fits = {}) =>
      eventually(async () => {
        const found = (await devices()).find((device) => device.name === name)
        expect(found, `a device ${name}`).toBeDefined()
        expect(found).toMatchObject(fits)
        return found!
      }),
    async accepted(name) {
      const { uid, status } = await dock.device(name)
      if (status !== 'accepted') await owner.devices.accept({ params: { uid } })
      return dock.device(name, { status: 'accepted', online: true })
    },
    devices,
    sshid,
    args,
    ssh: async (name, command, { user, flags = [], input } = {}) =>
      run('ssh', [...args(...flags), sshid(name, user), command], input),
    start: (name, command, { user, flags = [] } = {}) =>
      watch('ssh', [...args(...flags), sshid(name, user), ...(command === undefined ? [] : [command])]),
    [Symbol.asyncDispose]: async () => whole.disposeAsync(),
  }
  const whole = opened.move()
  return dock
}

/** One for all tests of a file. */
export function sharedDock(start?: Start): Dock {
  vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
  let opened: Dock | undefined
  beforeAll(async () => {
    opened = await openDock(start)
  })
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]()
  })
  // Tests name it before it is there, so this asks the real one each time.
  return new Proxy({} as Dock, {
    get(_, name) {
      if (!opened) throw new Error('it is not there yet: it is for use inside of tests')
      return Reflect.get(opened, name, opened) as unknown
    },
  })
}
