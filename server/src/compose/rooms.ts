// Composition of everything but what listens: every room is made here, in order, and handed what it needs.
// What is opened is closed in reverse order when the rooms are disposed. The administrator's commands need no
// more than this.
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { blobOf, fingerprintMd5, fingerprintSha256, parsePublicKeyLine, publicKeyLine } from '@hawser/ssh'
import type { Bus } from '../bus/bus.ts'
import { localBus } from '../bus/local.ts'
import { ConfigError, type Config } from '../config.ts'
import { engine } from '../connectors/engine.ts'
import { publicPem } from '../connectors/supervisor.ts'
import { agentless } from '../domain/devices/agentless.ts'
import { announcements } from '../domain/system/announcements.ts'
import { apiKeys } from '../domain/access/api-keys.ts'
import { gate } from '../domain/callers/callers.ts'
import { connectors } from '../domain/devices/connectors.ts'
import { containerDevices } from '../domain/devices/container-devices.ts'
import { devices, deviceView } from '../domain/devices/devices.ts'
import { enrolment } from '../domain/devices/enrolment.ts'
import { enrolmentKeys } from '../domain/devices/enrolment-keys.ts'
import { firewall } from '../domain/access/firewall.ts'
import { identity } from '../domain/people/identity.ts'
import { liveSessions } from '../domain/sessions/live-sessions.ts'
import { lockout } from '../domain/people/lockout.ts'
import { logins } from '../domain/access/logins.ts'
import { mfa } from '../domain/people/mfa.ts'
import { namespaces } from '../domain/namespaces/namespaces.ts'
import { nodes } from '../cluster/nodes.ts'
import { presence } from '../domain/devices/presence.ts'
import { publicKeys } from '../domain/access/public-keys.ts'
import { recordingSweep } from '../domain/sessions/recording-sweep.ts'
import { recordingRules } from '../domain/sessions/recordings.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { sessions } from '../domain/sessions/sessions.ts'
import { sharedLimits } from '../cluster/shared-limits.ts'
import { shellHubTokens } from '../domain/callers/shellhub-tokens.ts'
import { signIn } from '../domain/people/sign-in.ts'
import { signer } from '../domain/access/signer.ts'
import { sweeps } from '../domain/system/sweeps.ts'
import { system } from '../domain/system/system.ts'
import type { Deactivated } from '../domain/access/tag-use.ts'
import { tags } from '../domain/devices/tags.ts'
import { terminals } from '../domain/sessions/terminals.ts'
import { tokens } from '../domain/callers/tokens.ts'
import { tunnelRules } from '../domain/devices/tunnels.ts'
import { users } from '../domain/people/users.ts'
import { watchTickets } from '../domain/sessions/watch-tickets.ts'
import { iso, systemClock, type Clock } from '../kit/clock.ts'
import { watchDisk, type Disk } from '../kit/disk.ts'
import { newUuid } from '../kit/ids.ts'
import { lifetime, type Lifetime } from '../kit/lifetime.ts'
import { limiter as ownLimiter, type Limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import { hashOf, masterKey, vault } from '../kit/secrets.ts'
import { letters } from '../mail/emails.ts'
import { post } from '../mail/mailer.ts'
import { openPaying } from './billing.ts'
import { emptyCast } from '../recording/frames.ts'
import { diskKeep } from '../recording/storage/disk.ts'
import type { Ledger } from '../recording/storage/object-storage.ts'
import { recordingKey } from '../recording/key.ts'
import { recordings } from '../recording/recordings.ts'
import { recordingRoom } from '../recording/quota.ts'
import { openDatabase } from '../storage/database.ts'
import { stores as openStores } from '../storage/stores.ts'
import { deviceName } from '../tunnel/registry.ts'

export const version = '0.1.0'

export interface ServerOptions {
  config: Config
  log: Log
  clock?: Clock
  /**
   * It will have doors: on PostgreSQL it is one of the nodes then. A command of the administrator is none.
   */
  serving?: boolean
}

/** Everything but the doors: what the administrator's commands need, and what the doors are put on. */
export async function openRooms({ config, log, clock = systemClock, serving = false }: ServerOptions) {
  const background = lifetime((what, err) => log.error({ event: `${what}.failed`, err }))
  try {
    return await makeRooms(background, config, log, clock, serving)
  } catch (error) {
    await background[Symbol.asyncDispose]()
    throw error
  }
}

async function makeRooms(background: Lifetime, config: Config, log: Log, clock: Clock, serving: boolean) {
  const folder = config.HAWSER_DATA
  if (config.HAWSER_NATS && !(config.HAWSER_DATABASE && config.HAWSER_NODE_ADDRESS))
    throw new ConfigError(
      'HAWSER_NATS: several nodes also need HAWSER_DATABASE, a PostgreSQL that they share, and a HAWSER_NODE_ADDRESS each.',
    )
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const disks = serving ? await watchDisks(background, config, log) : undefined
  const opened = background.own(
    await openDatabase({
      url: config.HAWSER_DATABASE,
      folder,
      now: () => new Date(clock.now()).toISOString(),
      onError: (err) => log.error({ event: 'database.failed', err }),
      onFull: () => disks?.data.wasFull(),
    }),
  )
  for (const name of opened.migrated) log.info({ event: 'schema.migrated', name })
  const stores = openStores(opened)
  const key = masterKey(folder, config.HAWSER_SECRET)
  const secrets = vault(key)
  const clustered = config.HAWSER_NATS !== ''
  /** Nobody else can be on a SQLite file. */
  const node = opened.name === 'postgres' ? newUuid() : ''
  const bus = clustered
    ? background.own(await busBetweenNodes(config.HAWSER_NATS, key, node, log))
    : localBus()
  /**
   * Where the other nodes reach this one, once it listens for them, and whether it has a device's tunnel,
   * once it takes any.
   */
  const self: { address?: { host: string; port: number }; hasTunnel?: (uid: string) => boolean } = {}
  const hold = (name: string): Disposable =>
    bus.hold(name, () => self.address && JSON.stringify(self.address))
  const shared = clustered ? background.own(sharedLimits(bus, node)) : undefined
  const limiter = (name: string, options: Parameters<typeof ownLimiter>[1]): Limiter => {
    const own = ownLimiter(clock, options)
    return shared ? shared.share(name, own) : own
  }
  const url = config.HAWSER_URL || `http://localhost:${config.HAWSER_HTTP.port}`
  const mail = background.own(
    post({
      smtp: config.HAWSER_SMTP || undefined,
      from: config.HAWSER_MAIL_FROM,
      outbox: path.join(folder, 'outbox'),
      log,
    }),
  )
  const issued = await tokens({ stores, vault: secrets, clock })
  const locks = lockout({ stores, clock })
  const who = signIn({ stores, tokens: issued, clock })
  const present = background.own(
    presence({ stores, clock, bus, node, onError: (err) => log.error({ event: 'presence.failed', err }) }),
  )
  // One process owns a SQLite file, so what it says is online was ours; on PostgreSQL other nodes may hold
  // it.
  if (opened.name === 'sqlite') {
    present.adopt(await stores.presence.online())
    await stores.liveSessions.closeOlderThan(iso(clock.now()))
  }
  const live = background.own(
    liveSessions({
      stores,
      clock,
      node,
      hold,
      onError: (err) => log.error({ event: 'session.unwritten', err }),
    }),
  )
  const listen = config.HAWSER_NODE_ADDRESS
  const peerhood =
    node === '' || !serving
      ? undefined
      : background.own(
          await nodes({
            stores,
            id: node,
            // A port that the system chooses is no address that somebody could have had before.
            address: clustered ? (listen?.port ? `${listen.host}:${listen.port}` : '') : undefined,
            async returned() {
              log.warn({
                event: 'node.returned',
                message: 'this node was thought lost; it says again what it has',
              })
              await present.revive()
              await live.revive()
            },
            onLost: (id, left) => log.warn({ event: 'node.lost', node: id, ...left }),
            onError: (err) => log.error({ event: 'node.unsigned', err }),
          }),
        )
  const signingRecordings = await recordingKey({
    kept: stores.recordingKeys,
    vault: secrets,
    now: () => iso(clock.now()),
  })
  const unfinished = stores.unfinishedRecordings
  const ledger: Ledger | undefined =
    clustered && serving
      ? {
          take: (name) => unfinished.take(name, node),
          end: (name) => unfinished.end(name, node),
          release: (name) => unfinished.release(name, node),
          inherit: (limit) => unfinished.inherit(node, limit),
          forget: unfinished.forget,
        }
      : undefined
  const keep = await recordingKeep(config, log, ledger)
  // Before the recordings: they close what is open when the server stops, and then it may still be sent.
  if (Symbol.asyncDispose in keep) background.own(keep)
  const recorded = background.own(
    recordings({
      keep,
      key: signingRecordings,
      clock,
      room: recordingRoom({
        isLow: () => disks !== undefined && disks.recordings.state !== 'ok',
        quota_bytes: config.HAWSER_RECORDING_QUOTA,
        used: keep.used,
        onUsedUp: (tenant) =>
          log.warn({
            event: 'recording.quota',
            tenant,
            message: 'nothing more of this namespace is recorded',
          }),
        onUnmeasured: (tenant, err) => log.warn({ event: 'recording.unmeasured', tenant, err }),
      }),
      onFailed: (err, { session_uid, channel }) =>
        log.error({ event: 'recording.failed', session: session_uid, channel, err }),
    }),
  )
  const sweepRecordings = recordingSweep({
    stores,
    recordings: recorded,
    clock,
    days: config.HAWSER_RECORDING_DAYS,
  })
  background.own(
    await sweeps({
      stores,
      clock,
      recordings: sweepRecordings,
      onError: (err) => log.error({ event: 'sweep.failed', err }),
    }),
  )
  // Whoever deletes a device or a namespace expects its recordings to be gone then, not at the next sweep.
  background.own(
    bus.hear(
      'device.changed',
      ({ status }) => void (status === 'gone' && background.later('sweep', sweepRecordings)),
    ),
  )
  background.own(bus.hear('namespace.changed', () => background.later('sweep', sweepRecordings)))

  const mailing = { stores, vault: secrets, clock, post: mail, letters: letters(url), background }
  const people = { ...mailing, lockout: locks, signIn: who, identity: identity(mailing) }
  const userRules = users({ ...people, registration: config.HAWSER_REGISTRATION })
  const paying = await openPaying({ config, log, clock, stores, bus, background, url })
  const { billed } = paying
  const namespaceRules = namespaces({ stores, bus, clock, billed })
  let draining = false
  const systemRules = system({
    stores,
    vault: secrets,
    clock,
    lockout: locks,
    signIn: who,
    presence: present,
    users: userRules.admin,
    namespaces: namespaceRules.admin,
    url: config.HAWSER_URL,
    sshPort: config.HAWSER_SSH_PUBLIC_PORT || config.HAWSER_SSH.port,
    disk: () => disks?.data.state ?? 'ok',
    async ready() {
      await stores.ping()
      if (disks && !disks.data.writable)
        throw new Failure('unavailable', {
          message: 'The disk of the server is full: nobody can sign in.',
          retryAfter: 60,
        })
      if (draining) throw new Failure('unavailable', { message: 'The server is stopping.', retryAfter: 5 })
      if (!bus.connected)
        throw new Failure('unavailable', {
          message: 'This node is cut off from the others (NATS).',
          retryAfter: 5,
        })
    },
  })
  const isFull = (): boolean => disks?.data.state === 'full'
  const newPerSource = limiter('new devices', config.HAWSER_RATE_LIMIT)
  const auth = enrolment({
    stores,
    tokens: issued,
    presence: present,
    bus,
    clock,
    callsPerDevice: limiter('device calls', config.HAWSER_DEVICE_RATE_LIMIT),
    newPerSource,
    isFull,
  })
  const signing = signer(clock, bus, (device, fingerprint) =>
    log.warn({ event: 'signature.refused', device, fingerprint }),
  )
  const watching = watchTickets({ stores, vault: secrets, clock })
  const sessionRules = sessions({
    tickets: watching,
    stores,
    view: deviceView({ stores, presence: present, clock }),
    bus,
    clock,
    recordings: recorded,
    emptyCast,
  })
  const keys = { parse: parsePublicKeyLine, line: publicKeyLine, fingerprint: fingerprintMd5 }
  const terminalRules = terminals({ stores, clock, bus, hold, keys })
  const deviceRules = devices({
    stores,
    presence: present,
    bus,
    clock,
    auth,
    signer: signing,
    billed,
    isConnected: async (uid) => self.hasTunnel?.(uid) === true || (await heldElsewhere(bus, deviceName(uid))),
    onReplaced: ({ tenant_id: tenant, uid, before, replaced, by }) =>
      log.warn({
        event: 'device.replaced',
        tenant,
        device: uid,
        before,
        replaced: replaced.uid,
        name: replaced.name,
        by,
      }),
  })
  const containers = containerDevices({
    stores,
    presence: present,
    bus,
    clock,
    version: `hawser-${version}`,
    publicPem,
    accept: deviceRules.acceptFor,
    onError: (uid, err) => log.warn({ event: 'container.unaccepted', device: uid, err }),
  })
  const engines = engine({ allow: config.HAWSER_CONNECTOR_ALLOW })
  const connectorRules = connectors({
    stores,
    vault: secrets,
    engine: engines,
    bus,
    clock,
    leave: containers.leave,
  })
  const enrolmentKeyRules = enrolmentKeys({
    stores,
    vault: secrets,
    bus,
    clock,
    keys,
    shown(key, comment) {
      const blob = blobOf(key)
      return {
        public_key: `${publicKeyLine('ssh-ed25519', blob)} ${comment}`,
        fingerprint: fingerprintSha256(blob),
      }
    },
  })
  const onDeactivated = (about: Deactivated): void => log.warn({ event: 'firewall.deactivated', ...about })
  const rules: AllRules = {
    devices: deviceRules,
    enrolmentKeys: enrolmentKeyRules,
    tags: tags({ stores, onDeactivated }),
    publicKeys: publicKeys({ stores, clock, keys }),
    apiKeys: apiKeys({ stores, clock }),
    namespaces: namespaceRules,
    sessions: sessionRules,
    terminals: terminalRules,
    recordings: recordingRules({ stores, recordings: recorded }),
    firewall: firewall({ stores, onDeactivated }),
    announcements: announcements({ stores }),
    users: userRules,
    mfa: mfa(people),
    billing: paying.rules,
    connectors: connectorRules,
    system: systemRules,
  }
  const shellHub = shellHubTokens({ stores, clock, days: config.HAWSER_SHELLHUB_TOKENS })
  const gates = gate({ stores, tokens: issued, shellHub, clock })
  return {
    rules,
    gate: gates,
    tunnels: tunnelRules({ stores, gate: gates, shellHub, presence: present, clock, clustered }),
    logins: logins({
      stores,
      clock,
      billed,
      onUnrunnable: (tenant_id, rules) =>
        log.warn({ event: 'firewall.unrunnable', tenant_id, rules: rules.slice(0, 10) }),
    }),
    agentless: agentless({ stores, clock, newPerSource, isFull }),
    loginKeyOf: enrolmentKeyRules.loginKeyOf,
    signer: signing,
    sessions: live,
    recordings: recorded,
    recordingKey: signingRecordings.public_key,
    watch: sessionRules.watch,
    watchTickets: watching,
    tickets: terminalRules.tickets,
    supervision: { engine: engines, connectors: connectorRules.supervision, devices: containers },
    bus,
    clustered,
    self,
    hold,
    node: peerhood,
    masterKey: key,
    limiter,
    stores,
    database: opened,
    tokens: issued,
    vault: secrets,
    clock,
    users: userRules.admin,
    namespaces: namespaceRules.admin,
    setupCode: systemRules.setupCode,
    usage: paying.usage,
    url,
    background,
    disks,
    isFull,
    drain: () => void (draining = true),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** Whether another node holds the name; a failure that says so when that cannot be found out. */
async function heldElsewhere(bus: Bus, name: string): Promise<boolean> {
  try {
    return (await bus.seek(name)) !== undefined
  } catch (cause) {
    throw new Failure('unavailable', {
      message: 'Another node does not answer; try again.',
      retryAfter: 5,
      cause,
    })
  }
}

/** Loaded only where it is used: one node alone needs no NATS. */
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

/** The disk with the data folder, and the one with the recordings, where that is another. */
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

/** A folder, or a store, whose code is loaded only then. */
async function recordingKeep(config: Config, log: Log, ledger: Ledger | undefined) {
  const folder = path.join(config.HAWSER_DATA, 'recordings')
  const { HAWSER_RECORDINGS: place } = config
  if (!place.startsWith('s3:')) return diskKeep(place || folder)
  const { objectKeep } = await import('../recording/storage/object-storage.ts')
  return objectKeep({
    address: place,
    endpoint: config.HAWSER_S3_ENDPOINT,
    region: config.HAWSER_S3_REGION,
    accessKey: config.HAWSER_S3_ACCESS_KEY,
    secretKey: config.HAWSER_S3_SECRET_KEY,
    folder,
    ledger,
    onDelayed: (err, { session_uid, channel }, again_ms) =>
      log.warn({ event: 'recording.unsent', session: session_uid, channel, again_ms, err }),
  })
}

export type Rooms = Awaited<ReturnType<typeof openRooms>>
