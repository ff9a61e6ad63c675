// Opens what everything else needs: the database, secrets, the bus, shared limits and the disks. `background` owns
// what is opened here and closes it in reverse order.
import { mkdirSync } from 'node:fs'
import { Failure } from '@hawser/contract/failures'
import type { Bus, HeldName } from '../bus/bus.ts'
import { localBus } from '../bus/local.ts'
import type { NeighbourParts, Neighbours } from '../cluster/neighbours.ts'
import { sharedLimits } from '../cluster/shared-limits.ts'
import { ConfigError, type Config } from '../config.ts'
import type { Clock } from '../kit/clock.ts'
import { watchDisk, type Disk } from '../kit/disk.ts'
import { newUuid } from '../kit/ids.ts'
import type { Lifetime } from '../kit/lifetime.ts'
import { limiter as ownLimiter, type Limiter } from '../kit/limiter.ts'
import { lineLimiter, type LineLimiter, type Log } from '../kit/log.ts'
import {
  hashOf,
  hasMasterKey,
  masterKey as readMasterKey,
  vault as openVault,
  type Vault,
} from '../kit/secrets.ts'
import { openDatabase } from '../storage/database.ts'
import { stores as openStores, type Stores } from '../storage/stores.ts'

export interface Setting {
  readonly config: Config
  readonly log: Log
  readonly clock: Clock
  /** Runs background work, and closes everything when the server stops. */
  readonly background: Lifetime
  /**
   * Whether this process listens, and so is one of the nodes on PostgreSQL. A command of the administrator
   * does not.
   */
  readonly serving: boolean
  /** The folder of the agents for devices; undefined: this process offers none. */
  readonly agents: string | undefined
}

export interface Foundation extends Setting {
  readonly database: Awaited<ReturnType<typeof openDatabase>>
  readonly stores: Stores
  readonly masterKey: Buffer
  readonly vault: Vault
  readonly bus: Bus
  /** Whether several nodes share the database and talk over NATS. */
  readonly clustered: boolean
  /** This process's id on the database; empty on SQLite, which one process owns. */
  readonly node: string
  /** Undefined without other nodes, and where this process does not listen. */
  readonly neighbours: Neighbours | undefined
  /** The ports of this process, which audit streams may not use; each listener adds its own. */
  readonly ports: Set<number>
  /** Lets other nodes find this node under the name. */
  register(name: string): HeldName
  /** On any node. Throws a Failure when a node does not answer. */
  isHeld(name: string): Promise<boolean>
  /** A limit that all nodes count together. */
  limiter(name: string, options: Parameters<typeof ownLimiter>[1]): Limiter
  /** Only a process that serves watches the disks. */
  readonly disks: { readonly data: Disk; readonly recordings: Disk } | undefined
  isFull(): boolean
  /** The address that e-mails name. */
  readonly url: string
  /** Limits lines of the log that strangers cause, by their source. */
  readonly lines: LineLimiter
}

/** Per minute. */
const refusalLines = { perSource: 20, together: 300 }

export async function openFoundation(setting: Setting): Promise<Foundation> {
  const { config, log, clock, background, serving } = setting
  const folder = config.HAWSER_DATA
  if (config.HAWSER_NATS && !(config.HAWSER_DATABASE && config.HAWSER_NODE_ADDRESS))
    throw new ConfigError(
      'HAWSER_NATS: several nodes also need HAWSER_DATABASE, a PostgreSQL that they share, and a HAWSER_NODE_ADDRESS each.',
    )
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const disks = serving ? await watchDisks(background, config, log) : undefined
  const database = background.own(
    await openDatabase({
      url: config.HAWSER_DATABASE,
      folder,
      now: () => new Date(clock.now()).toISOString(),
      onError: (err) => log.error({ event: 'database.failed', err }),
      onFull: () => disks?.data.wasFull() === true,
    }),
  )
  for (const name of database.migrated) log.info({ event: 'schema.migrated', name })
  const stores = openStores(database)
  // A new key could open nothing of what is sealed here, and a backup would then include it as if it could.
  if (!hasMasterKey(folder, config.HAWSER_SECRET) && (await stores.signingKeys.list()).length > 0)
    throw new ConfigError(
      `There is no master key in ${folder}, and the database was sealed with one: copy master.key from a ` +
        'backup or from another node into the folder, or set HAWSER_SECRET as it was set before.',
    )
  const masterKey = readMasterKey(folder, config.HAWSER_SECRET)
  const clustered = config.HAWSER_NATS !== ''
  /** Only one process can use a SQLite file. */
  const node = database.name === 'postgres' ? newUuid() : ''
  const bus = clustered
    ? background.own(await busBetweenNodes(config.HAWSER_NATS, masterKey, node, log))
    : localBus()
  const listen = clustered && serving && config.HAWSER_NODE_ADDRESS
  const neighbours = listen
    ? background.own(await openNeighbours({ bus, masterKey, listen, log }, node))
    : undefined
  const shared = clustered ? background.own(sharedLimits(bus, node)) : undefined

  return {
    ...setting,
    database,
    stores,
    masterKey,
    vault: openVault(masterKey),
    bus,
    clustered,
    node,
    neighbours,
    ports: configuredPorts(config),
    register: (name) => bus.hold(name, () => neighbours && JSON.stringify(neighbours.address)),
    isHeld: (name) => isHeld(bus, name),
    limiter(name, options) {
      const own = ownLimiter(clock, options)
      return shared ? shared.share(name, own) : own
    },
    disks,
    isFull: () => disks?.data.state === 'full',
    lines: background.own(
      lineLimiter({
        ...refusalLines,
        onDropped: (dropped) => log.warn({ event: 'lines.dropped', ...dropped }),
      }),
    ),
    url: config.HAWSER_URL || defaultUrl(config),
  }
}

function configuredPorts(config: Config): Set<number> {
  const { HAWSER_HTTP, HAWSER_HTTPS, HAWSER_SSH, HAWSER_METRICS, HAWSER_NODE_ADDRESS } = config
  const listening = [HAWSER_HTTP, HAWSER_HTTPS, HAWSER_SSH, HAWSER_METRICS, HAWSER_NODE_ADDRESS]
  return new Set(listening.flatMap((where) => (where && 'port' in where ? where.port : [])))
}

async function isHeld(bus: Bus, name: string): Promise<boolean> {
  try {
    return bus.holds(name) || (await bus.seek(name)) !== undefined
  } catch (cause) {
    throw new Failure('unavailable', {
      message: 'Another node does not answer; try again.',
      retryAfter: 5,
      cause,
    })
  }
}

export function defaultUrl({ HAWSER_TLS_CERT, HAWSER_HTTP, HAWSER_HTTPS }: Config): string {
  return HAWSER_TLS_CERT ? `https://localhost:${HAWSER_HTTPS.port}` : `http://localhost:${HAWSER_HTTP.port}`
}

/** The code is loaded only where it is used: a single node needs no NATS. */
async function busBetweenNodes(
  servers: string,
  key: Buffer,
  node: string,
  log: Log,
): Promise<Bus & AsyncDisposable> {
  const { natsBus } = await import('../bus/nats.ts')
  try {
    return await natsBus({
      servers,
      prefix: `hawser.${hashOf(`sealed bus ${key.toString('hex')}`).slice(0, 16)}`,
      name: node,
      masterKey: key,
      onEvent: (event, err) => (event === 'nats.connected' ? log.info({ event }) : log.error({ event, err })),
    })
  } catch (cause) {
    throw new Failure('unavailable', {
      message: `NATS does not answer (${(cause as Error).message}); see HAWSER_NATS.`,
      cause,
    })
  }
}

/** The code is loaded only where it is used. */
async function openNeighbours(parts: NeighbourParts, node: string): Promise<Neighbours> {
  const { startNeighbours } = await import('../cluster/neighbours.ts')
  const neighbours = await startNeighbours(parts)
  parts.log.info({ event: 'node.listening', node, ...neighbours.address })
  return neighbours
}

async function watchDisks(
  background: Lifetime,
  config: Config,
  log: Log,
): Promise<{ data: Disk; recordings: Disk }> {
  const watch = async (folder: string, reserve_bytes: number): Promise<Disk> =>
    background.own(
      await watchDisk({
        folder,
        low_bytes: config.HAWSER_DISK_LOW,
        reserve_bytes,
        onChange: (state, free_bytes) =>
          log[state === 'ok' ? 'info' : 'warn']({ event: `disk.${state}`, folder, free_bytes }),
        onError: (err) => log.error({ event: 'disk.failed', folder, err }),
      }),
    )
  const data = await watch(config.HAWSER_DATA, config.HAWSER_DATABASE ? 0 : config.HAWSER_DISK_RESERVE)
  const { HAWSER_RECORDINGS: place } = config
  return { data, recordings: place && !place.startsWith('s3:') ? await watch(place, 0) : data }
}
