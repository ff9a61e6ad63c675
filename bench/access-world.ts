// Everything for bench/access.ts: a server program on fresh data with one person, one namespace and one key
// to log in with; agents in the form in which devices run them; and a sshd next to them that the same key
// opens.
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { client } from '@hawser/contract/client'
import type { Architecture } from '../packages/registry.ts'
import { writeAgent } from '../packages/tarball.ts'
import { collectable } from './collect.ts'
import { owner, plantFleet, tenant_id } from './fleet.ts'
import { makeKey, startSshd, user, type Destination, type Keys, type Sshd } from './openssh.ts'
import { freePort, profiling, startHawser, startProcess, type Program, type Running } from './programs.ts'

export interface Settings {
  readonly folder: string
  /** Put before the commands of sshd and agents. */
  readonly before: readonly string[]
  readonly profiles: string | undefined
  /** The usual limits of a server; else none, because they would be what is measured. */
  readonly usualLimits?: boolean
  /** Additional settings of the server. */
  readonly env?: Readonly<Record<string, string>>
  /** A planted data folder; else one without devices. */
  readonly data?: string
}

export interface World extends AsyncDisposable {
  readonly server: Program
  readonly token: string
  readonly keys: Keys
  readonly sshd: Sshd
  /** Straight to sshd. */
  readonly straight: Destination
  startAgent(name: string, options?: AgentOptions): Promise<Agent>
  startOldAgent(name: string, version: 1 | 2): Promise<Agent>
}

export interface AgentOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Absent: the server's own. */
  readonly port?: number
  /** Absent: the Node of the bench, with which it would share its pages. */
  readonly node?: string
}

export interface Agent extends Running {
  /** Through the gateway and this agent. */
  readonly through: Destination
}

/** Limits that would be what is measured. */
const unlimited = {
  HAWSER_TRUSTED_PROXIES: 'none',
  HAWSER_SSH_PER_SOURCE: '100000',
  HAWSER_SSH_RATE_LIMIT: '0/10',
}
/** Empty: the defaults of a server. */
const usual = { HAWSER_TRUSTED_PROXIES: 'none', HAWSER_RATE_LIMIT: '', HAWSER_DEVICE_RATE_LIMIT: '' }

export async function buildWorld({
  folder,
  before,
  profiles,
  usualLimits = false,
  env,
  data = path.join(folder, 'data'),
}: Settings): Promise<World> {
  await using building = new AsyncDisposableStack()
  await plantFleet(data, 0, () => undefined)
  const sshPort = await freePort()
  const server = building.use(
    await startHawser(data, {
      profiles,
      flags: [collectable],
      env: { ...(usualLimits ? usual : unlimited), HAWSER_SSH: `127.0.0.1:${sshPort}`, ...env },
    }),
  )
  const keys = makeKey(folder, 'client_key')
  const sshd = building.use(await startSshd(folder, before, keys))
  const token = await signIn(server.port)
  const api = client({ url: `http://127.0.0.1:${server.port}`, token })
  const body = {
    data: Buffer.from(keys.line).toString('base64'),
    name: 'bench',
    username: '.*',
    filter: { hostname: '.*' },
  }
  await api.publicKeys.create({ body })
  const main = await writeAgent(path.join(folder, 'agent'), process.arch as Architecture)
  const ending = building.move()

  async function startAgent(
    name: string,
    { env = {}, port = server.port, node = process.execPath }: AgentOptions = {},
  ): Promise<Agent> {
    const single =
      process.getuid?.() === 0 ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$bench$no-password-fits-this' }
    const running = ending.use(
      startProcess([...before, node, ...profiling(profiles), collectable, main], {
        HAWSER_SERVER_ADDRESS: `http://127.0.0.1:${port}`,
        HAWSER_TENANT_ID: tenant_id,
        HAWSER_PRIVATE_KEY: path.join(folder, `${name}.key`),
        HAWSER_PREFERRED_HOSTNAME: name,
        HAWSER_PREFERRED_IDENTITY: name,
        ...single,
        ...env,
      }),
    )
    return accepted(running, name)
  }

  async function startOldAgent(name: string, version: 1 | 2): Promise<Agent> {
    const url = `http://127.0.0.1:${server.port}`
    const args = ['bench/old-agent.ts', url, tenant_id, String(version), name]
    return accepted(ending.use(startProcess([...before, process.execPath, ...args])), name)
  }

  async function accepted(running: Running, name: string): Promise<Agent> {
    const uid = await running.printed(/"tunnel\.up","uid":"([0-9a-f]+)"/)
    await api.devices.accept({ params: { uid } })
    return { ...running, through: { port: sshPort, user: `${user}@harbour.${name}`, keys } }
  }

  return {
    server,
    token,
    keys,
    sshd,
    straight: { port: sshd.port, user, keys },
    startAgent,
    startOldAgent,
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
}

export async function signIn(port: number): Promise<string> {
  const { username, password } = owner
  const { body } = await client({ url: `http://127.0.0.1:${port}` }).users.login({
    body: { username, password },
  })
  return body.token
}

/** Accepted devices, all with the key in that file. */
export async function plantAgents(folder: string, count: number): Promise<{ data: string; keyFile: string }> {
  const data = path.join(folder, 'many')
  const keyFile = path.join(folder, 'many.key')
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  // A tenth of a fleet is not accepted.
  await plantFleet(
    data,
    Math.ceil(count / 90) * 100,
    () => undefined,
    publicKey.export({ type: 'pkcs1', format: 'pem' }),
  )
  return { data, keyFile }
}
