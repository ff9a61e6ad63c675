// Composition of everything but what listens: it makes every room, in order, and passes each what it needs.
// When the rooms are disposed they are closed in reverse order. The administrator's commands need no more
// than this.
import { createPublicKey } from 'node:crypto'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { version } from '@hawser/contract/version'
import { blobOf, fingerprintMd5, fingerprintSha256, parsePublicKeyLine, publicKeyLine } from '@hawser/ssh'
import type { Bus } from '../bus/bus.ts'
import { addressText, nodes, type Nodes } from '../cluster/nodes.ts'
import type { Config } from '../config.ts'
import { engine } from '../connectors/engine.ts'
import { publicPem, type SupervisorParts } from '../connectors/supervisor.ts'
import { apiKeys } from '../domain/access/api-keys.ts'
import { firewall } from '../domain/access/firewall.ts'
import { logins, type Logins } from '../domain/access/logins.ts'
import { publicKeys } from '../domain/access/public-keys.ts'
import { signer, type Signer } from '../domain/access/signer.ts'
import type { Deactivated } from '../domain/access/tag-use.ts'
import type { Usage } from '../domain/billing/usage.ts'
import { gate, type Gate } from '../domain/callers/callers.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { shellHubTokens } from '../domain/callers/shellhub-tokens.ts'
import { tokens, type Tokens } from '../domain/callers/tokens.ts'
import { acceptRules } from '../domain/devices/accept-rules.ts'
import { agentReleases, type AgentReleases } from '../domain/devices/agent-releases.ts'
import { agentUpdates, type AgentUpdates } from '../domain/devices/agent-updates.ts'
import { agentless, type AgentlessRules } from '../domain/devices/agentless.ts'
import { connectors } from '../domain/devices/connectors.ts'
import { containerDevices } from '../domain/devices/container-devices.ts'
import { deviceView } from '../domain/devices/device-view.ts'
import { devices } from '../domain/devices/devices.ts'
import { enrolmentKeys, type EnrolmentKeyRules } from '../domain/devices/enrolment-keys.ts'
import { enrolmentTokens } from '../domain/devices/enrolment-tokens.ts'
import { enrolment } from '../domain/devices/enrolment.ts'
import { joining } from '../domain/devices/joining.ts'
import { pairings } from '../domain/devices/pairings.ts'
import { presence } from '../domain/devices/presence.ts'
import { tags } from '../domain/devices/tags.ts'
import { tunnelRules, type TunnelRules } from '../domain/devices/tunnels.ts'
import { namespaces, type NamespaceAdministration } from '../domain/namespaces/namespaces.ts'
import { probeThreads } from '../domain/people/credentials.ts'
import { identity } from '../domain/people/identity.ts'
import { fiveTries, lockout } from '../domain/people/lockout.ts'
import { mfa } from '../domain/people/mfa.ts'
import { signIn, type SignInCounters } from '../domain/people/sign-in.ts'
import { users, type UserAdministration } from '../domain/people/users.ts'
import { liveSessions, type LiveSessions } from '../domain/sessions/live-sessions.ts'
import { recordingRules } from '../domain/sessions/recordings.ts'
import { sessions, type SessionWatching } from '../domain/sessions/sessions.ts'
import { revocation, type Revocation } from '../domain/sessions/revocation.ts'
import { terminals, type TerminalTickets } from '../domain/sessions/terminals.ts'
import { watchTickets, type WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { announcements } from '../domain/system/announcements.ts'
import { health, type HealthCheck } from '../domain/system/health.ts'
import { sweeps } from '../domain/system/sweeps.ts'
import { system } from '../domain/system/system.ts'
import { neighbourhood } from '../kit/address.ts'
import { agentArchives, type AgentArchives } from '../http/agent-archives.ts'
import { iso, minute_ms, second_ms, systemClock, type Clock } from '../kit/clock.ts'
import { lifetime } from '../kit/lifetime.ts'
import type { Log } from '../kit/log.ts'
import { emails } from '../mail/emails.ts'
import { mailer } from '../mail/mailer.ts'
import { emptyCast } from '../recording/frames.ts'
import { deviceName } from '../tunnel/registry.ts'
import { openBilling } from './billing.ts'
import { openFoundation, type Foundation, type Setting } from './foundation.ts'
import { openRecordings, type RecordingRooms } from './recordings.ts'

export interface ServerOptions {
  config: Config
  log: Log
  clock?: Clock
  /** See `Setting`. */
  serving?: boolean
  /** See `Setting`. */
  agents?: string | undefined
}

/** The interface's operations, and who may call them. */
export interface OperationRooms {
  readonly rules: AllRules
  readonly gate: Gate
  readonly signIns: SignInCounters
  /** Throws a Failure that says why people cannot sign in, if they cannot. */
  ready(): Promise<void>
  /** From here on the health check says that the server is not ready. */
  drain(): void
  readonly archives: AgentArchives
}

/** What the administrator's commands use beside the operations. */
export interface AdministrationRooms {
  readonly users: UserAdministration
  readonly namespaces: NamespaceAdministration
  setupCode(): Promise<string | undefined>
  readonly tokens: Tokens
  /** Undefined without a payment provider. */
  readonly usage: Usage | undefined
  readonly releases: AgentReleases
  readonly updates: AgentUpdates
}

/** The rules about connections to devices. */
export interface ConnectionRooms {
  readonly tunnels: TunnelRules
  readonly logins: Logins
  readonly agentless: AgentlessRules
  readonly loginKeyOf: EnrolmentKeyRules['loginKeyOf']
  readonly signer: Signer
  readonly sessions: LiveSessions
  readonly watch: SessionWatching['watch']
  readonly watchTickets: WatchTickets
  readonly tickets: TerminalTickets
  /** Ends the connections that a change forbids. */
  readonly revocation: Revocation
  readonly supervision: Pick<SupervisorParts, 'engine' | 'connectors' | 'devices'>
  /** Undefined where this process is the only one on the database. */
  readonly nodes: Nodes | undefined
}

export interface Rooms
  extends Foundation, RecordingRooms, OperationRooms, AdministrationRooms, ConnectionRooms, AsyncDisposable {}

export async function openRooms({
  config,
  log,
  clock = systemClock,
  serving = false,
  agents,
}: ServerOptions): Promise<Rooms> {
  const background = lifetime((what, err) => log.error({ event: `${what}.failed`, err }))
  try {
    return await makeRooms({ config, log, clock, background, serving, agents })
  } catch (error) {
    await background[Symbol.asyncDispose]()
    throw error
  }
}

async function makeRooms(setting: Setting): Promise<Rooms> {
  const { config, log, clock, background, serving } = setting
  const foundation = await openFoundation(setting)
  const {
    database,
    stores,
    vault,
    bus,
    clustered,
    node,
    self,
    register,
    limiter,
    disks,
    isFull,
    url,
    lines,
  } = foundation
  const mail = background.own(
    mailer({
      smtp: config.HAWSER_SMTP || undefined,
      from: config.HAWSER_MAIL_FROM,
      outbox: path.join(config.HAWSER_DATA, 'outbox'),
      log,
    }),
  )
  const issued = await tokens({ stores, vault, clock })
  const locks = lockout({ stores, clock })
  const who = signIn({
    stores,
    tokens: issued,
    clock,
    onAttempt({ result, request_id: reqId, ...about }) {
      if (result !== 'refused' || lines.allows(neighbourhood(about.source)))
        log.info({ event: `sign-in.${result}`, reqId, ...about })
    },
  })
  const present = background.own(
    presence({ stores, clock, bus, node, onError: (err) => log.error({ event: 'presence.failed', err }) }),
  )
  // One process owns a SQLite file, so devices that it has as online were this process's. On PostgreSQL other
  // nodes may have their tunnels.
  if (database.name === 'sqlite') {
    present.adopt(await stores.presence.online())
    await stores.liveSessions.closeOlderThan(iso(clock.now()))
  }
  const live = background.own(
    liveSessions({
      stores,
      clock,
      node,
      register,
      onError: (err) => log.error({ event: 'session.unwritten', err }),
    }),
  )
  const listen = config.HAWSER_NODE_ADDRESS
  const alive =
    node === '' || !serving
      ? undefined
      : background.own(
          await nodes({
            stores,
            id: node,
            address: clustered && listen ? addressText(listen) : undefined,
            async returned() {
              log.warn({
                event: 'node.returned',
                message: 'other nodes took this one for lost; it writes its devices and sessions again',
              })
              await present.revive()
              await live.revive()
            },
            onLost: (id, left) => log.warn({ event: 'node.lost', node: id, ...left }),
            onError: (err) => log.error({ event: 'node.unsigned', err }),
          }),
        )
  const recorded = await openRecordings(foundation)
  const { recordings, sweepRecordings } = recorded
  const revoking = background.own(
    revocation({
      bus,
      stores,
      later: background.later,
      sweepRecordings,
      // On PostgreSQL without NATS a command of the administrator may run elsewhere, and nobody hears of it.
      recheck_ms: database.name === 'postgres' && !clustered ? minute_ms : undefined,
    }),
  )
  background.own(
    await sweeps({
      stores,
      clock,
      recordings: sweepRecordings,
      onError: (err) => log.error({ event: 'sweep.failed', err }),
    }),
  )

  const mailing = { stores, vault, clock, mailer: mail, emails: emails(url), background }
  const people = { ...mailing, lockout: locks, signIn: who, identity: identity(mailing) }
  const userRules = users({ ...people, bus, registration: config.HAWSER_REGISTRATION })
  const paying = await openBilling({ config, log, clock, stores, bus, background, url })
  const { billed } = paying
  const namespaceRules = namespaces({ stores, bus, clock, billed })
  let draining = false
  const healthy = health({
    checks: healthChecks(stores, clock, node),
    onChange: (part, err) =>
      err === undefined
        ? log.info({ event: 'health.restored', part })
        : log.error({ event: 'health.failed', part, err }),
  })
  async function ready(): Promise<void> {
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
    await healthy()
  }
  const systemRules = system({
    stores,
    vault,
    clock,
    lockout: locks,
    signIn: who,
    presence: present,
    users: userRules.admin,
    namespaces: namespaceRules.admin,
    url: config.HAWSER_URL,
    sshPort: config.HAWSER_SSH_PUBLIC_PORT || config.HAWSER_SSH.port,
    disk: () => disks?.data.state ?? 'ok',
    ready,
  })
  const joins = joining({
    stores,
    bus,
    clock,
    billed,
    newPerSource: limiter('new devices', config.HAWSER_RATE_LIMIT),
    wrongTokens: limiter('wrong enrolment tokens', { max: 30, window_ms: 10 * minute_ms }),
    isFull,
    onJoined: ({ tenant_id: tenant, uid: device, enrolled_with, ...about }) =>
      log[about.why === undefined ? 'info' : 'warn']({
        event: 'device.joined',
        tenant,
        device,
        with: `${enrolled_with.kind} ${enrolled_with.name}`,
        ...about,
      }),
    onRefused({ tenant_id: tenant, ...about }) {
      if (lines.allows(neighbourhood(about.source)))
        log.warn({ event: 'enrolment.refused', tenant, ...about })
    },
  })
  const archives = agentArchives(setting.agents, (file, err) =>
    log.error({ event: 'agent.unreadable', file, err }),
  )
  const releases = await agentReleases({ stores, vault, clock, packages: archives.list })
  const updates = background.own(
    agentUpdates({
      stores,
      releases,
      bus,
      clock,
      mostAtOnce: config.HAWSER_AGENT_UPDATES,
      requests: limiter('agent updates', { max: 20, window_ms: minute_ms }),
      decides: async () => serving && (node === '' || (await stores.nodes.first()) === node),
      onStopped: (tenant_id, reason) => log.warn({ event: 'updates.stopped', tenant: tenant_id, reason }),
      onError: (err) => log.error({ event: 'updates.failed', err }),
    }),
  )
  if (serving) background.later('updates', () => updates.decide())
  const auth = enrolment({
    stores,
    tokens: issued,
    presence: present,
    bus,
    clock,
    callsPerDevice: limiter('device calls', config.HAWSER_DEVICE_RATE_LIMIT),
    joining: joins,
    updates,
  })
  const signing = signer(clock, bus, (device, fingerprint) =>
    log.warn({ event: 'signature.refused', device, fingerprint }),
  )
  const watching = watchTickets({ stores, vault, clock })
  const sessionRules = sessions({
    tickets: watching,
    stores,
    view: deviceView({ stores, presence: present, updates, clock }),
    bus,
    clock,
    recordings,
    emptyCast,
  })
  const keys = { parse: parsePublicKeyLine, line: publicKeyLine, fingerprint: fingerprintMd5 }
  const terminalRules = terminals({ stores, clock, bus, register, keys })
  const deviceRules = devices({
    stores,
    presence: present,
    bus,
    clock,
    auth,
    updates,
    signer: signing,
    mostTags: config.HAWSER_DEVICE_TAGS,
    billed,
    isConnected: async (uid) =>
      self.hasTunnel?.(uid) === true || (await isOnAnotherNode(bus, deviceName(uid))),
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
    vault,
    engine: engines,
    bus,
    clock,
    leave: containers.leave,
  })
  const enrolmentKeyRules = enrolmentKeys({
    stores,
    vault,
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
    agents: updates,
    enrolmentKeys: enrolmentKeyRules,
    enrolmentTokens: enrolmentTokens({ stores, clock }),
    acceptRules: acceptRules({ stores }),
    pairings: pairings({
      stores,
      vault,
      clock,
      fiveTries: (subject, wrong, attempt) => locks.judge(subject, fiveTries, wrong, attempt),
      wrongCodes: limiter('wrong pairing codes', { max: 30, window_ms: 10 * minute_ms }),
      addressOf: systemRules.addressOf,
      fingerprintOf: pemFingerprint,
      accept: deviceRules.accept,
      onConfirmed: ({ tenant_id: tenant, uid: device, ...about }) =>
        log.info({ event: 'device.paired', tenant, device, ...about }),
    }),
    tags: tags({ stores, onDeactivated }),
    publicKeys: publicKeys({ stores, clock, keys }),
    apiKeys: apiKeys({ stores, bus, clock }),
    namespaces: namespaceRules,
    sessions: sessionRules,
    terminals: terminalRules,
    recordings: recordingRules({ stores, recordings }),
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
    ...foundation,
    ...recorded,
    rules,
    gate: gates,
    signIns: who.counts,
    ready,
    drain: () => void (draining = true),
    users: userRules.admin,
    namespaces: namespaceRules.admin,
    setupCode: systemRules.setupCode,
    tokens: issued,
    usage: paying.usage,
    releases,
    updates,
    archives,
    tunnels: tunnelRules({ stores, gate: gates, shellHub, presence: present, clock, clustered }),
    logins: logins({
      stores,
      clock,
      billed,
      onUnrunnable: (tenant_id, rules) =>
        log.warn({ event: 'firewall.unrunnable', tenant_id, rules: rules.slice(0, 10) }),
    }),
    agentless: agentless({ stores, clock, joining: joins }),
    loginKeyOf: enrolmentKeyRules.loginKeyOf,
    signer: signing,
    sessions: live,
    watch: sessionRules.watch,
    watchTickets: watching,
    tickets: terminalRules.tickets,
    revocation: revoking,
    supervision: { engine: engines, connectors: connectorRules.supervision, devices: containers },
    nodes: alive,
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** The fingerprint of a public key in PEM, as OpenSSH shows it. */
function pemFingerprint(pem: string): string | undefined {
  // Node would take a private key, too, and derive the public one.
  if (!pem.includes('PUBLIC KEY')) return undefined
  try {
    return fingerprintSha256(blobOf(createPublicKey(pem)))
  } catch {
    return undefined
  }
}

/** What signing in needs. Sign-ins are written, so a database that can only be read is not enough. */
function healthChecks(stores: Foundation['stores'], clock: Clock, node: string): HealthCheck[] {
  const nobody = 'nobody can sign in'
  return [
    {
      part: 'database',
      sentence: `The database does not answer: ${nobody}.`,
      counts_ms: second_ms,
      run: stores.ping,
    },
    {
      part: 'database writes',
      sentence: `The database cannot be written: ${nobody}.`,
      counts_ms: 5 * second_ms,
      run: () => stores.attempts.count(`health ${node}`, iso(clock.now()), iso(clock.now() + minute_ms)),
    },
    {
      part: 'passwords',
      sentence: `Passwords cannot be checked: ${nobody}.`,
      counts_ms: second_ms,
      run: probeThreads,
    },
  ]
}

/** Whether another node has registered the name. Throws a Failure when a node does not answer. */
async function isOnAnotherNode(bus: Bus, name: string): Promise<boolean> {
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
