// Composition of everything but what listens: it makes every room, in order, and passes each what it needs.
// When the rooms are disposed they are closed in reverse order. The administrator's commands need no more
// than this.
import { createPublicKey } from 'node:crypto'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { version } from '@hawser/contract/version'
import { blobOf, fingerprintMd5, fingerprintSha256, parsePublicKeyLine, publicKeyLine } from '@hawser/ssh'
import type { Bus } from '../bus/bus.ts'
import type { Nodes } from '../cluster/nodes.ts'
import type { Config } from '../config.ts'
import { engine } from '../connectors/engine.ts'
import { publicPem, type SupervisorParts } from '../connectors/supervisor.ts'
import { apiKeys } from '../domain/access/api-keys.ts'
import { explain } from '../domain/access/explain.ts'
import { firewall } from '../domain/access/firewall.ts'
import { logins, type Logins } from '../domain/access/logins.ts'
import { identityCertificates, type IdentityReader } from '../domain/access/identity-certificates.ts'
import { policies } from '../domain/access/policies.ts'
import { publicKeys } from '../domain/access/public-keys.ts'
import { signer, type Signer } from '../domain/access/signer.ts'
import type { Deactivated } from '../domain/access/tag-use.ts'
import type { Subscriptions } from '../domain/billing/subscriptions.ts'
import type { Usage } from '../domain/billing/usage.ts'
import { stranger } from '../domain/audit/audit.ts'
import { gate, type Gate } from '../domain/callers/callers.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { shellHubTokens } from '../domain/callers/shellhub-tokens.ts'
import { tokens, type Tokens } from '../domain/callers/tokens.ts'
import { acceptRules } from '../domain/devices/accept-rules.ts'
import { agentReleases, type AgentReleases } from '../domain/devices/agent-releases.ts'
import { agentUpdates, type AgentUpdates } from '../domain/devices/agent-updates.ts'
import { agentless, type AgentlessRules } from '../domain/devices/agentless.ts'
import type { Budgets } from '../domain/devices/budgets.ts'
import { connectors } from '../domain/devices/connectors.ts'
import { containerDevices } from '../domain/devices/container-devices.ts'
import { containers } from '../domain/devices/containers.ts'
import { deviceWaiting } from '../domain/devices/device-waiting.ts'
import { deviceNotes } from '../domain/devices/device-notes.ts'
import { deviceView } from '../domain/devices/device-view.ts'
import { devices } from '../domain/devices/devices.ts'
import { enrolmentKeys, type EnrolmentKeyRules } from '../domain/devices/enrolment-keys.ts'
import { enrolmentTokens } from '../domain/devices/enrolment-tokens.ts'
import { callLimits, enrolment } from '../domain/devices/enrolment.ts'
import { joining } from '../domain/devices/joining.ts'
import { pairings } from '../domain/devices/pairings.ts'
import { presence } from '../domain/devices/presence.ts'
import { deviceReports, type DeviceReports } from '../domain/devices/reports.ts'
import { tags } from '../domain/devices/tags.ts'
import type { DeviceTrafficSums } from '../domain/devices/traffic.ts'
import { tunnelRules, type TunnelRules } from '../domain/devices/tunnels.ts'
import type { NamespaceAdministration } from '../domain/namespaces/namespaces.ts'
import { endOldClaims } from '../domain/people/identity.ts'
import { fiveTries, lockout } from '../domain/people/lockout.ts'
import { signIn, type SignInCounters } from '../domain/people/sign-in.ts'
import { noteUse } from '../domain/people/sign-ins.ts'
import type { UserAdministration } from '../domain/people/users.ts'
import type { KeptSessions } from '../domain/sessions/kept-sessions.ts'
import { closeLost, type LiveSessions } from '../domain/sessions/live-sessions.ts'
import { recordingRules } from '../domain/sessions/recordings.ts'
import { searchRules } from '../domain/sessions/search.ts'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import { revocation, type Revocation, type RevocationParts } from '../domain/sessions/revocation.ts'
import { terminals, type TerminalTickets } from '../domain/sessions/terminals.ts'
import type { WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { announcements } from '../domain/system/announcements.ts'
import { health } from '../domain/system/health.ts'
import { sweeps } from '../domain/system/sweeps.ts'
import { system } from '../domain/system/system.ts'
import { neighbourhood } from '../kit/address.ts'
import { agentArchives, type AgentArchives } from '../http/agent-archives.ts'
import { approvals, type Approvals } from '../gateway/approvals.ts'
import {
  identityCertificates as identitySigner,
  type IdentityCertificates,
} from '../gateway/identity-certificates.ts'
import { iso, minute_ms, second_ms, systemClock, type Clock } from '../kit/clock.ts'
import { lifetime } from '../kit/lifetime.ts'
import type { Log } from '../kit/log.ts'
import { mailer } from '../mail/mailer.ts'
import { parseQuery } from '../search/query.ts'
import { deviceName } from '../tunnel/registry.ts'
import { openBilling } from './billing.ts'
import { openEvidence, type EvidenceRooms } from './evidence.ts'
import { openFoundation, type Foundation, type Setting } from './foundation.ts'
import { healthChecks } from './health-checks.ts'
import { openNodes } from './nodes.ts'
import { openStreams, type StreamRooms } from './streams.ts'
import { openPeople } from './people.ts'
import { openRecordings, type RecordingRooms } from './recordings.ts'
import { openLiveSessions, openSessions } from './sessions.ts'
import { openTraffic } from './traffic.ts'

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
  readonly streams: StreamRooms['delivery']
}

/** What the administrator's commands use beside the operations. */
export interface AdministrationRooms {
  readonly users: UserAdministration
  readonly namespaces: NamespaceAdministration
  setupCode(): Promise<string | undefined>
  readonly tokens: Tokens
  /** Undefined without a payment provider. */
  readonly usage: Usage | undefined
  readonly subscriptions: Subscriptions | undefined
  readonly releases: AgentReleases
  readonly updates: AgentUpdates
  /** What devices report through their tunnels. */
  readonly reports: DeviceReports
}

/** The rules about connections to devices. */
export interface ConnectionRooms {
  readonly tunnels: TunnelRules
  readonly logins: Logins
  readonly agentless: AgentlessRules
  readonly loginKeyOf: EnrolmentKeyRules['loginKeyOf']
  readonly signer: Signer
  readonly approvals: Approvals
  readonly identities: IdentityCertificates & IdentityReader
  readonly sessions: LiveSessions
  readonly kept: KeptSessions
  readonly traffic: DeviceTrafficSums
  readonly budgets: Budgets
  readonly watching: SessionWatching
  readonly watchTickets: WatchTickets
  readonly tickets: TerminalTickets
  /** Ends the connections that a change forbids. */
  readonly revocation: Revocation
  readonly supervision: Pick<SupervisorParts, 'engine' | 'connectors' | 'devices'>
  /** Undefined where this process is the only one on the database. */
  readonly nodes: Nodes | undefined
}

export interface Rooms
  extends
    Foundation,
    EvidenceRooms,
    RecordingRooms,
    OperationRooms,
    AdministrationRooms,
    ConnectionRooms,
    AsyncDisposable {}

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
  const evidence = await openEvidence(foundation)
  const { audit, auditedRefusals } = evidence
  const issued = await tokens({ stores, vault, clock })
  const locks = lockout({ stores, clock })
  const who = signIn({
    stores,
    audit,
    tokens: issued,
    clock,
    onAttempt({ result, request_id: reqId, user_id, ...about }) {
      // A name that nobody has may be a password that somebody typed into the wrong field.
      if (result === 'refused' && user_id !== undefined)
        auditedRefusals.add({
          scope: { user_id },
          by: stranger(about.source, reqId),
          action: 'user.sign-in.refused',
          target: { kind: 'user', id: user_id, name: about.username ?? '' },
          reason: about.reason ?? 'failed',
          detail: { method: about.method },
        })
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
    const now = iso(clock.now())
    await closeLost({ stores, audit }, { last_seen: now, now })
  }
  const { live, kept } = openLiveSessions(foundation, evidence)
  const alive = await openNodes(foundation, audit, [present, live])
  const recorded = await openRecordings(foundation, audit)
  const { recordings, sweepRecordings } = recorded
  const { budgets: budgetRules, traffic } = openTraffic(foundation, audit, mail)
  const revoking = background.own(
    revocation({
      bus,
      stores,
      later: background.later,
      sweepRecordings,
      clock,
      stopsRecordings: budgetRules.stopsRecordings,
      recheck: database.name === 'postgres' ? rechecking(bus, clustered) : undefined,
    }),
  )
  background.own(
    await sweeps({
      stores,
      clock,
      claims: (before) => endOldClaims(audit, before),
      recordings: sweepRecordings,
      sessions: (moments) => closeLost({ stores, audit }, moments),
      audit: evidence.auditLog.trim,
      onError: (err) => log.error({ event: 'sweep.failed', err }),
    }),
  )

  const streams = openStreams(foundation, audit)
  const paying = await openBilling({ config, log, clock, stores, audit, bus, background, mailer: mail, url })
  const { billed } = paying
  const people = openPeople(foundation, { audit, mailer: mail, lockout: locks, signIn: who, billed })
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
    ...people.administration,
    url: config.HAWSER_URL,
    sshPort: config.HAWSER_SSH_PUBLIC_PORT || config.HAWSER_SSH.port,
    hasMail: config.HAWSER_SMTP !== '',
    disk: () => disks?.data.state ?? 'ok',
    ready,
  })
  const joins = joining({
    stores,
    audit,
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
      auditedRefusals.add({
        scope: { tenant_id: tenant },
        by: stranger(about.source),
        action: 'enrolment-token.refused',
        target: { kind: 'enrolment token', id: '', name: about.token },
        reason: about.why,
      })
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
      audit,
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
  const stored = { kept: stores.hostKeys, vault, now: () => iso(clock.now()) }
  const approving = await approvals(stored, clock)
  const identifying = await identitySigner(stored, clock)
  const changing = { stores, audit, bus, clock, presence: present, timeline: evidence.timeline }
  const containerRules = containers({
    ...changing,
    onTaken: (err) => log.info({ event: 'container.name_taken', err }),
  })
  const waitingReason = deviceWaiting({ stores, clock })
  const reports = deviceReports({
    ...changing,
    updates,
    containers: containerRules,
    joining: joins,
    changes: limiter('container changes', { max: 30, window_ms: 10 * minute_ms }),
    longestPing_s: config.HAWSER_PING_INTERVAL,
  })
  const auth = enrolment({
    stores,
    tokens: issued,
    presence: present,
    bus,
    clock,
    ...callLimits(limiter, config.HAWSER_DEVICE_RATE_LIMIT),
    joining: joins,
    updates,
    approvalKey: approving.publicKey,
  })
  const signing = signer(clock, bus, (device, fingerprint) =>
    log.warn({ event: 'signature.refused', device, fingerprint }),
  )
  const isConnected = async (uid: string): Promise<boolean> =>
    self.hasTunnel?.(uid) === true || (await isOnAnotherNode(bus, deviceName(uid)))
  const sessionRooms = openSessions(foundation, {
    audit,
    view: deviceView({ stores, presence: present, updates, clock }),
    recordings,
    stopsRecordings: budgetRules.stopsRecordings,
    isConnected,
  })
  const keys = { parse: parsePublicKeyLine, line: publicKeyLine, fingerprint: fingerprintMd5 }
  const terminalRules = terminals({ stores, clock, bus, register, keys })
  const identityRules = identityCertificates({ stores, clock, keys, signer: identifying })
  const deviceRules = devices({
    stores,
    audit,
    traffic,
    timeline: evidence.timeline,
    presence: present,
    bus,
    clock,
    auth,
    updates,
    signer: signing,
    mostTags: config.HAWSER_DEVICE_TAGS,
    billed,
    isConnected,
    nameFreed: (tenant_id) =>
      background.later('container.names', () => containerRules.followNames(tenant_id, null)),
    waitingReason,
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
  const ofConnectors = containerDevices({
    containers: containerRules,
    stores,
    audit,
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
    audit,
    vault,
    engine: engines,
    bus,
    clock,
    leave: ofConnectors.leave,
  })
  const enrolmentKeyRules = enrolmentKeys({
    stores,
    audit,
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
  const loginRules = logins({
    stores,
    clock,
    billed,
    onUnrunnable: (tenant_id, rules) =>
      log.warn({ event: 'firewall.unrunnable', tenant_id, rules: rules.slice(0, 10) }),
  })
  const onDeactivated = (about: Deactivated): void => log.warn({ event: 'firewall.deactivated', ...about })
  const rules: AllRules = {
    devices: deviceRules,
    notes: deviceNotes({ stores, audit, clock }),
    agents: updates,
    enrolmentKeys: enrolmentKeyRules,
    enrolmentTokens: enrolmentTokens({ stores, audit, clock }),
    acceptRules: acceptRules({ stores, audit }),
    budgets: budgetRules,
    pairings: pairings({
      stores,
      audit,
      vault,
      clock,
      fiveTries: (subject, wrong, attempt) => locks.judge(subject, fiveTries, wrong, attempt, () => true),
      wrongCodes: limiter('wrong pairing codes', { max: 30, window_ms: 10 * minute_ms }),
      addressOf: systemRules.addressOf,
      fingerprintOf: pemFingerprint,
      accept: deviceRules.accept,
      onConfirmed: ({ tenant_id: tenant, uid: device, ...about }) =>
        log.info({ event: 'device.paired', tenant, device, ...about }),
    }),
    tags: tags({ stores, audit, onDeactivated }),
    publicKeys: publicKeys({ stores, audit, clock, bus, keys }),
    apiKeys: apiKeys({ stores, audit, bus, clock }),
    identityCertificates: identityRules,
    ...people.rules,
    sessions: sessionRooms.rules,
    terminals: terminalRules,
    recordings: {
      ...recordingRules({ stores, audit, recordings }),
      ...searchRules({ stores, audit, search: recorded.search, parse: parseQuery }),
    },
    firewall: firewall({ stores, audit, onDeactivated }),
    policies: policies({ stores, audit, bus }),
    logins: {
      ...evidence.refusals.rules,
      explain: explain({
        stores,
        logins: loginRules,
        keys,
        isConnected,
        offlineReason: evidence.timeline.offlineReason,
        waitingReason,
        mustWait: (source) => self.mustWait?.(source) ?? 0,
      }),
    },
    announcements: announcements({ stores }),
    billing: paying.rules,
    connectors: connectorRules,
    audit: evidence.auditLog,
    auditStreams: streams.rules,
    system: systemRules,
  }
  const shellHub = shellHubTokens({ stores, clock, days: config.HAWSER_SHELLHUB_TOKENS })
  const onUsed = noteUse({ stores, clock, later: background.later })
  const gates = gate({ stores, tokens: issued, shellHub, clock, onUsed })
  return {
    ...foundation,
    ...recorded,
    rules,
    gate: gates,
    signIns: who.counts,
    ready,
    drain: () => void (draining = true),
    ...people.administration,
    setupCode: systemRules.setupCode,
    tokens: issued,
    ...evidence,
    usage: paying.usage,
    subscriptions: paying.subscriptions,
    releases,
    updates,
    reports,
    archives,
    streams: streams.delivery,
    tunnels: tunnelRules({ ...changing, gate: gates, shellHub, reports, clustered }),
    logins: loginRules,
    agentless: agentless({ stores, clock, joining: joins, presence: present }),
    loginKeyOf: enrolmentKeyRules.loginKeyOf,
    signer: signing,
    approvals: approving,
    identities: { ...identifying, ...identityRules.identities },
    sessions: live,
    kept,
    traffic,
    budgets: budgetRules,
    watching: sessionRooms.watching,
    watchTickets: sessionRooms.watchTickets,
    tickets: terminalRules.tickets,
    revocation: revoking,
    supervision: { engine: engines, connectors: connectorRules.supervision, devices: ofConnectors },
    nodes: alive,
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/**
 * What has to be checked because nobody hears of changes: with several nodes, sessions while this node is cut
 * off from the others; with one, everything, because a command of the administrator may run elsewhere.
 */
const rechecking = (bus: Bus, clustered: boolean): RevocationParts['recheck'] =>
  clustered
    ? { every_ms: 10 * second_ms, what: () => (bus.connected ? undefined : 'sessions') }
    : { every_ms: minute_ms, what: () => 'all' }

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
