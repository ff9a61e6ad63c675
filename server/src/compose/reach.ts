// Composition of what reaches devices: the tunnels of agents, the SSH gateway in front of them, devices that
// join by SSH instead, containers behind their engine, recording, and the live view of sessions.
import type { Server } from 'node:http'
import { Failure } from '@hawser/contract/failures'
import { DeviceReport } from '@hawser/contract/reports'
import { terminalPath } from '@hawser/contract/terminals'
import { hangUpHeader, tunnelPaths } from '@hawser/contract/tunnel'
import { compatibleAlgorithms, fingerprintMd5, serverAlgorithms } from '@hawser/ssh'
import { publicListen, type Config } from '../config.ts'
import { connectorSupervisor } from '../connectors/supervisor.ts'
import { stranger, theServer } from '../domain/audit/audit.ts'
import type { RefusedLogin } from '../domain/access/refusals.ts'
import type { AuditRefusal } from '../domain/audit/refusals.ts'
import { sessionName } from '../domain/sessions/live-sessions.ts'
import { parseTarget } from '../domain/access/logins.ts'
import { RefusedDevice } from '../domain/devices/tunnels.ts'
import { policyOfSessions } from '../domain/sessions/revocation.ts'
import { ticketName } from '../domain/sessions/terminals.ts'
import { agentlessEndpoint } from '../gateway/agentless.ts'
import { passwordGuesses } from '../gateway/guesses.ts'
import { hashThread } from '../gateway/hash-thread.ts'
import { hostKeys } from '../gateway/host-keys.ts'
import { dialDevice, gatewayKeys, type DeviceLegParts, type FindTunnel } from '../gateway/device-leg.ts'
import { startGateway, type Gateway } from '../gateway/listen.ts'
import { loginReports, type LoginReports } from '../gateway/login-report.ts'
import { probe } from '../gateway/probe.ts'
import { references } from '../gateway/references.ts'
import { spareLegs, type SpareLegs } from '../gateway/spare-legs.ts'
import { mostSources, remembered_ms, startups } from '../gateway/startups.ts'
import { terminalEndpoint } from '../http/terminal.ts'
import { checker, known } from '../http/validate.ts'
import type { UpgradeHandlers, Upgrade } from '../http/upgrade.ts'
import { neighbourhood } from '../kit/address.ts'
import { iso, minute_ms, second_ms } from '../kit/clock.ts'
import { Counter } from '../kit/counter.ts'
import { fairShare, type FairShare } from '../kit/fair-share.ts'
import { newUid } from '../kit/ids.ts'
import { limiter as ownLimiter } from '../kit/limiter.ts'
import { lineLimiter, safeText, type Log } from '../kit/log.ts'
import { keptScreen, screens_bytes } from '../recording/kept-screen.ts'
import { screenThread } from '../recording/screen-thread.ts'
import { sessionRecorder } from '../recording/tap.ts'
import type { Rooms } from './rooms.ts'
import { acceptMessageSocket } from '../http/message-socket.ts'
import { admission } from '../tunnel/admission.ts'
import { arrivals } from '../tunnel/arrivals.ts'
import { conflicts } from '../tunnel/conflicts.ts'
import { openResumable, resumableMemory } from '../tunnel/resumable.ts'
import { nonceOf, tunnelEndpoints } from '../tunnel/endpoints.ts'
import { Meter } from '../tunnel/meter.ts'
import { reportStreams } from '../tunnel/reports.ts'
import { deviceName, registry, type Registry } from '../tunnel/registry.ts'
import { tunnelEndings, type Tunnel, type TunnelEnding } from '../tunnel/tunnel.ts'
import { watchEndpoint, watchPath } from '../http/watch.ts'

/** Tunnels that may be opened with one token of a device in ten seconds; the device needs one. */
const tunnelsPerToken = { max: 10, window_ms: 10 * second_ms }
/** Tunnels of one device from one address, with any token. */
const tunnelsPerDevice = { max: 30, window_ms: 10 * second_ms }
/** Legs to devices that are prepared for one address while a person types a password there. */
const preparations = { max: 20, window_ms: minute_ms }
/** Lines in which one device reports; an agent needs a few in an hour. */
const reportsPerDevice = { max: 20, window_ms: minute_ms }
/** Lines about the tunnel of one device in a minute; one whose tunnel flaps must not fill the log. */
const linesPerDevice = { perSource: 10, together: Infinity }
/** The round trip to a device is measured so long after it has connected. */
const measured_ms = 5 * second_ms
/** Frames of one namespace that wait: all of its clients may be lost at the same moment. */
const waitingFrames = 500
/** How many agents are disconnected in a second when the server stops. */
const drainedPerSecond = 200

export interface Reach {
  readonly doors: UpgradeHandlers
  readonly port: number
  /** Sets the HTTP server that gets requests which other nodes hand over. */
  serveWith(server: Server): void
  readonly tunnels: Pick<Registry, 'size' | 'find' | 'all'>
  /** Tunnels that devices got, and that they lost. */
  readonly tunnelCounts: { readonly opened: Counter<''>; readonly closed: Counter<TunnelEnding> }
  readonly sessions: Gateway['sessions']
  /** Sessions that go on without their client. */
  readonly held: Pick<Gateway['held'], 'count' | 'held_bytes'>
  /** The screens of all terminals, with and without a client. */
  readonly screens: Pick<FairShare, 'held_bytes'>
  /** Legs to devices that wait for the next login. */
  readonly spares: Pick<SpareLegs, 'size' | 'isReady'>
  /** Sessions that could not be recorded, and either went on unrecorded or were ended. */
  readonly recordingFailures: Counter<'unrecorded' | 'ended'>
  /** How many connections to the SSH gateway have not logged in, and those that it has refused. */
  readonly ssh: { readonly unauthenticated: number; readonly refused: Gateway['refused'] }
  /** Logins that were accepted and refused. */
  readonly logins: Pick<LoginReports, 'accepted' | 'refused'>
  /** Ends everything in order. */
  stop(): Promise<void>
}

export async function openReach(rooms: Rooms, config: Config, log: Log): Promise<Reach> {
  const { clock, bus, stores } = rooms
  let http: Server | undefined
  const neighbours =
    rooms.clustered && config.HAWSER_NODE_ADDRESS
      ? await (
          await import('../cluster/neighbours.ts')
        ).startNeighbours({
          bus,
          masterKey: rooms.masterKey,
          listen: config.HAWSER_NODE_ADDRESS,
          onListening(address) {
            rooms.self.address = address
            log.info({ event: 'node.listening', node: rooms.node, ...address })
          },
          log,
          tunnel: (uid, least) => tunnels.find(uid, least),
          http: () => http,
          terminal: async (request) => gateway.give(request),
        })
      : undefined
  const others = neighbours && (await import('../cluster/remote-sessions.ts'))
  const recordingFailures = new Counter(['unrecorded', 'ended'] as const)
  const tunnelCounts = { opened: new Counter(['']), closed: new Counter(tunnelEndings) }
  const tunnelLines = rooms.background.own(
    lineLimiter({
      ...linesPerDevice,
      onDropped: ({ source: device, ...dropped }) => log.warn({ event: 'lines.dropped', device, ...dropped }),
    }),
  )
  const deviceReports = reportStreams({
    read: readReport,
    take: rooms.reports.take,
    heard(device, report) {
      rooms.timeline.heard(device.uid, report)
      // Only the first report of a tunnel has `connection`, and it names every terminal that the agent has kept.
      if (report.connection) gateway.restore.arrived(device, report.kept ?? [])
      if (report.kept) gateway.restore.reported(device, report.kept)
    },
    lines: ownLimiter(clock, reportsPerDevice),
    longestPing_s: config.HAWSER_PING_INTERVAL,
    onError: ({ uid }, err) => log.warn({ event: 'report.failed', device: uid, err }),
  })
  /** Not at once: whoever waits for the device comes first, and after a restart all devices come together. */
  const measureLater = (tunnel: Tunnel): void => {
    const measure = (): void =>
      void tunnel.roundTrip?.().then(
        (ms) => rooms.timeline.note(tunnel.device.uid, { kind: 'round-trip', ms: Math.round(ms) }),
        () => undefined,
      )
    const timer = setTimeout(measure, measured_ms).unref()
    void tunnel.ended.then(() => clearTimeout(timer))
  }
  const tunnels: Registry = registry({
    ...rooms.tunnels,
    up(device, number) {
      rooms.tunnels.up(device, number)
      deviceReports.pinged(device.uid)
    },
    isElsewhere: async (uid) => rooms.clustered && (await bus.seek(deviceName(uid))) !== undefined,
    held({ uid }, number) {
      bus.tell('tunnel.taken', { uid, number })
      return bus.hold(deviceName(uid), (least) =>
        rooms.self.address && Number(least) <= number
          ? JSON.stringify({ ...rooms.self.address, features: [...(tunnels.find(uid)?.features ?? [])] })
          : undefined,
      )
    },
    probe,
    onOpened({ uid, tenant_id, version }, origin) {
      tunnelCounts.opened.add('')
      const tunnel = tunnels.find(uid)
      if (tunnel?.incoming) deviceReports.serve(tunnel, origin?.source)
      if (tunnel?.meter) rooms.traffic.follow(uid, tunnel.meter, tunnel.ended)
      rooms.timeline.note(uid, { kind: 'up', source: origin?.source, version })
      if (tunnel) measureLater(tunnel)
      if (tunnelLines.allows(uid)) log.info({ event: 'tunnel.opened', device: uid, tenant_id, ...origin })
    },
    onClosed(device, { ending: reason, detail, silent, lasted_ms }) {
      const { uid, tenant_id } = device
      tunnelCounts.closed.add(reason)
      if (!tunnels.find(uid)) gateway.restore.left(uid)
      const heard_at = silent ? rooms.tunnels.heardAt(device) : undefined
      rooms.timeline.note(
        uid,
        reason === 'unproved' && lasted_ms === 0
          ? { kind: 'refused' }
          : {
              kind: 'down',
              reason,
              detail: detail && safeText(detail),
              lasted_s: Math.round(lasted_ms / second_ms),
              heard_at: heard_at === undefined ? undefined : iso(heard_at),
            },
      )
      if (tunnelLines.allows(uid))
        log.info({
          event: 'tunnel.closed',
          device: uid,
          tenant_id,
          reason,
          detail,
          lasted_s: Math.round(lasted_ms / second_ms),
        })
    },
    onError: (event, { uid }, err) => log.warn({ event, device: uid, err }),
  })
  const listening = [
    bus.hear('device.changed', ({ uid }) => deviceReports.changed(uid)),
    bus.missed(() => deviceReports.missed()),
  ]
  rooms.self.hasTunnel = (uid) => tunnels.find(uid) !== undefined
  const entries = tunnelEndpoints({
    registry: tunnels,
    conflicts: conflicts({
      clock,
      find: tunnels.find,
      async elsewhere(uid) {
        if (!bus.connected)
          throw new Failure('unavailable', {
            message: 'Other nodes cannot be asked right now.',
            retryAfter: 5,
          })
        return neighbours?.tunnelOf(uid, 0)
      },
      probe,
      onConflict(device, report, first) {
        const { uid, tenant_id } = device
        const [stays, refused] = report.addresses
        if (first)
          log.warn({
            event: 'device.conflict',
            device: uid,
            tenant_id,
            stays,
            refused,
            message:
              'Two machines use this identity; give the copy its own by `hawser-agent reset-identity`, or without an agent by new SSH host keys.',
          })
        if (first) rooms.timeline.note(uid, { kind: 'conflict', addresses: report.addresses })
        rooms.background.later('device.conflict', async () => {
          await rooms.tunnels.conflicted(device, report)
          await rooms.audit.eventOnce(
            { ...theServer, tenant_id },
            {
              action: 'device.conflict',
              target: { kind: 'device', id: uid, name: '' },
              detail: { addresses: report.addresses },
            },
          )
        })
      },
    }),
    signHangUp: rooms.approvals.hangUp,
    admission: admission(clock, config.HAWSER_TUNNEL_RATE_LIMIT),
    hold: rooms.register,
    perToken: ownLimiter(clock, tunnelsPerToken),
    perDevice: ownLimiter(clock, tunnelsPerDevice),
    onError: ({ uid }, err) => log.error({ event: 'tunnel.failed', device: uid, err }),
  })
  const findTunnel: FindTunnel = async (device) =>
    tunnels.find(device.uid, device.tunnel) ?? neighbours?.findTunnel(device)
  let over = false
  const resumable = {
    arrivals: rooms.background.own(arrivals(bus)),
    memory: resumableMemory(),
    left: new Set<string>(),
    isOver: () => over,
  }
  const resume: NonNullable<DeviceLegParts['openResumable']> = (device, tunnel, { id, grace_s }, signal) =>
    openResumable(
      resumable,
      tunnel,
      {
        uid: device.uid,
        tenant_id: device.tenant_id,
        id,
        grace_s,
        findTunnel: () => findTunnel(device).catch(() => undefined),
      },
      signal,
    )
  const spares = spareLegs({
    dial: (device, grace_s, signal) =>
      dialDevice(
        { findTunnel, openResumable: resume, grace_s, compression: config.HAWSER_COMPRESSION },
        device,
        newUid(),
        signal,
      ),
  })
  // Logins ask the database in any case; this is so that nothing stays open to a device that is not ours any more.
  const droppingSpares = [
    bus.hear('device.changed', (changed) => spares.drop(({ uid }) => uid === changed.uid)),
    bus.hear('namespace.changed', (changed) =>
      spares.drop((device) => device.tenant_id === changed.tenant_id),
    ),
    bus.missed(() => spares.drop(() => true)),
  ]
  const failures = rooms.limiter('failed logins', config.HAWSER_SSH_FAILURE_LIMIT)
  rooms.self.mustWait = (source) => failures.peek(neighbourhood(source))
  const reports = loginReports(log, rooms.lines, {
    references: references(clock),
    keep(login) {
      rooms.refusals.note(login)
      const refusal = auditedLogin(login)
      if (refusal) rooms.auditedRefusals.add(refusal)
    },
  })
  const agentless = agentlessEndpoint({
    rules: rooms.agentless,
    failures,
    reports,
    enter: entries.bring,
    seen: tunnels.seen,
    meter(socket) {
      const meter = new Meter()
      meter.carry(socket)
      return meter
    },
    log,
  })
  const arriving = startups(clock, {
    perSource: config.HAWSER_SSH_PER_SOURCE,
    rate: config.HAWSER_SSH_RATE_LIMIT,
    memory: {
      known: await stores.knownSources.list(iso(clock.now() - remembered_ms), mostSources),
      note: (source, at) =>
        rooms.background.later(
          'source.known',
          async () => void (await stores.knownSources.note(source, iso(at))),
        ),
    },
  })
  const screens = screenThread(waitingFrames)
  const screenBytes = fairShare(screens_bytes)
  const gateway = await startGateway({
    listen: publicListen(config, config.HAWSER_SSH),
    hostKeys: await hostKeys({
      kept: stores.hostKeys,
      vault: rooms.vault,
      now: () => iso(clock.now()),
      later: rooms.background.later,
    }),
    algorithms: {
      ...(config.HAWSER_SSH_ALGORITHMS === 'modern' ? serverAlgorithms : compatibleAlgorithms),
      ...(config.HAWSER_COMPRESSION === 'never' ? { compression: ['none'] } : {}),
    },
    compression: config.HAWSER_COMPRESSION,
    trusted: config.HAWSER_TRUSTED_PROXIES,
    startups: arriving,
    idle_ms: config.HAWSER_SSH_IDLE * second_ms,
    keepalive_ms: config.HAWSER_SSH_KEEPALIVE * second_ms,
    lostRight: rooms.revocation.lostRight,
    mayWait: rooms.revocation.mayWait,
    standing: rooms.revocation.standing,
    attachable: rooms.tickets.attachable,
    remote:
      neighbours &&
      others?.remoteSessions({ stores, bus, node: rooms.node, log, open: neighbours.openTerminal }),
    screen: (size, tenant_id) => keptScreen(size, { tenant_id, thread: screens, memory: screenBytes }),
    clock,
    logins: rooms.logins,
    parseTarget,
    sessions: rooms.sessions,
    failures,
    guesses: passwordGuesses(),
    reports,
    lines: rooms.lines,
    agentless,
    preparations: ownLimiter(clock, preparations),
    isCutOff: () => !bus.connected,
    findTunnel,
    signer: rooms.signer,
    approvals: rooms.approvals,
    identities: rooms.identities,
    gatewayKey: gatewayKeys(),
    loginKey: rooms.loginKeyOf,
    openResumable: resume,
    spares,
    policies: { of: policyOfSessions, now: rooms.revocation.policyOf },
    kept: rooms.kept,
    keepSecret: (session_uid) => rooms.vault.mark('kept terminal', session_uid),
    hashing: rooms.background.own(hashThread()),
    recording: {
      wanted: rooms.revocation.recordingOf,
      recorder: ({ record, tenant_id, device_uid, username, person }, onFailed) =>
        sessionRecorder({
          recordings: rooms.recordings,
          about: { tenant_id, session_uid: record.uid, device_uid, username, person },
          settings: { record: false, continueUnrecorded: false },
          onBegun: () => record.note({ recorded: 1, posted: 0, index_at: iso(clock.now()) }),
          onOverBudget: () => record.note({ unrecorded: 1 }),
          onMasked: (secrets_masked) => record.note({ secrets_masked }),
          onFailed(_, goesOn) {
            recordingFailures.add(goesOn ? 'unrecorded' : 'ended')
            onFailed(goesOn)
          },
        }),
    },
    log,
  })

  if (others) listening.push(others.nameSessions(bus, rooms.node, gateway.held, () => rooms.self.address))
  const supervisor = connectorSupervisor({
    ...rooms.supervision,
    tunnels,
    async approve({ uid, tenant_id }, { user, blob }) {
      try {
        await rooms.signer.sign({ uid, tenant_id }, fingerprintMd5(blob), JSON.stringify({ Username: user }))
        return true
      } catch {
        return false
      }
    },
    leading: () => rooms.nodes?.leading ?? true,
    log,
  })
  rooms.background.later('connectors.start', () => supervisor.start())
  rooms.nodes?.onLeading(() => rooms.background.later('connectors.start', () => supervisor.start()))

  // Recordings that a crash cut off are closed in the background, while the server already works.
  const closed: Parameters<Rooms['recordings']['recover']>[0] = async (
    { tenant_id, session_uid, channel },
    ending,
  ) => {
    log.warn({ event: 'recording.closed', session: session_uid, channel, ending })
    await stores.of(tenant_id).sessions.save(session_uid, { recorded: 1, index_at: iso(clock.now()) })
  }
  rooms.background.later('recording.recovery', () => rooms.recordings.recover(closed))
  rooms.nodes?.onCleanup(() =>
    rooms.background.later('recording.inheritance', () => rooms.recordings.inherit(closed)),
  )

  let stopping = false
  const watching = watchEndpoint({
    gate: rooms.gate,
    tickets: rooms.watchTickets,
    sessions: rooms.watching,
    shared: (uid, channel) => gateway.sessions.get(uid)?.shared?.(channel),
    isHere: (uid) => gateway.sessions.has(uid),
    url: rooms.url,
    onError: (err) => log.error({ event: 'viewer.failed', err }),
  })
  const terminals = terminalEndpoint({
    tickets: rooms.tickets,
    terminal: gateway.terminal,
    attach: gateway.attach,
    desk: (uid, hear) => gateway.sessions.get(uid)?.desk?.(hear),
    accept: acceptMessageSocket,
    url: rooms.url,
    onOpened: (about) => log.info({ event: 'terminal.opened', ...about }),
    onError: (err) => log.error({ event: 'terminal.failed', err }),
  })
  const applying = rooms.revocation.apply({
    sessions: gateway.sessions,
    tunnels,
    joined: agentless,
    connectors: supervisor,
    recheckPeople: async (whose) =>
      void (await Promise.all([terminals.recheck(whose), watching.recheck(whose)])),
  })
  const enter = async (path: string, upgrade: Upgrade): Promise<void> => {
    if (stopping) throw new Failure('unavailable', { retryAfter: 10 })
    const { source } = upgrade.from
    const admit = async (inTurn: Parameters<typeof rooms.tunnels.admit>[1]) =>
      rooms.tunnels.admit(upgrade.bearer, inTurn, source)
    try {
      const device = await admit(({ uid, token }) => entries.admit({ uid, token, source }))
      return await entries.enter(device, path, upgrade, () => admit(() => undefined))
    } catch (error) {
      const nonce = nonceOf(upgrade.request)
      if (!(error instanceof RefusedDevice) || nonce === undefined) throw error
      const headers = { [hangUpHeader]: rooms.approvals.hangUp(error.uid, nonce) }
      throw new Failure(error.kind, { headers, cause: error })
    }
  }
  /** Hands a request over to the node that has registered the name; without one it is served here. */
  const orElsewhere = (
    here: UpgradeHandlers[string],
    name: (upgrade: Upgrade) => string | undefined,
  ): UpgradeHandlers[string] => {
    if (!neighbours) return here
    return async (upgrade) => {
      const wanted = name(upgrade)
      if (wanted === undefined || !(await neighbours.handOver(wanted, upgrade))) await here(upgrade)
    }
  }
  return {
    doors: {
      [tunnelPaths.lines]: (upgrade) => enter(tunnelPaths.lines, upgrade),
      [tunnelPaths.streams]: (upgrade) => enter(tunnelPaths.streams, upgrade),
      [tunnelPaths.pickUp]: orElsewhere((upgrade) => entries.pickUp(upgrade), entries.pickUpElsewhere),
      [watchPath]: orElsewhere(
        (upgrade) => watching.enter(upgrade),
        ({ params: { uid = '' } }) =>
          gateway.sessions.has(uid) || !/^[0-9a-f]{64}$/.test(uid) ? undefined : sessionName(uid),
      ),
      [terminalPath]: orElsewhere(
        (upgrade) => terminals.enter(upgrade),
        ({ query }) =>
          rooms.tickets.has(query.get('token') ?? '') ? undefined : ticketName(query.get('token') ?? ''),
      ),
    },
    port: gateway.port,
    serveWith: (server) => void (http = server),
    tunnels,
    tunnelCounts,
    recordingFailures,
    sessions: gateway.sessions,
    held: gateway.held,
    screens: screenBytes,
    spares,
    ssh: {
      get unauthenticated() {
        return arriving.size
      },
      refused: gateway.refused,
    },
    logins: reports,
    async stop() {
      stopping = true
      await gateway.stop(config.HAWSER_DRAIN * second_ms)
      over = true
      spares[Symbol.dispose]()
      await screens[Symbol.asyncDispose]()
      for (const heard of droppingSpares) heard[Symbol.dispose]()
      // Not before: while sessions get their time to end, changes still end them.
      applying[Symbol.dispose]()
      for (const subscription of listening) subscription[Symbol.dispose]()
      await supervisor.stop()
      watching.close()
      await neighbours?.stop()
      terminals.close()
      await tunnels.drain(Math.min(config.HAWSER_DRAIN, tunnels.size / drainedPerSecond) * second_ms)
    },
  }
}

const fitsReport = checker(DeviceReport)
const knownOfReport = known(DeviceReport)

function readReport(line: string): DeviceReport | undefined {
  try {
    const report: unknown = JSON.parse(line)
    return fitsReport(report) ? (knownOfReport(report) as DeviceReport) : undefined
  } catch {
    return undefined
  }
}

/** What the audit log says of a refused login. Undefined: the words of the client name no namespace. */
function auditedLogin(login: RefusedLogin): AuditRefusal | undefined {
  const { tenant_id, reason, rule, detail, method, fingerprint, via, attempts, reference } = login
  const target = parseTarget(login.sshid)
  const [namespace = '', name = ''] = target?.data.split('.', 2) ?? []
  if (!target || (tenant_id === undefined && (namespace === '' || name === ''))) return undefined
  return {
    scope: tenant_id === undefined ? { namespace } : { tenant_id },
    by: stranger(login.source ?? ''),
    action: 'login.refused',
    target: { kind: 'device', id: login.device ?? '', name: name || (login.name ?? '') },
    reason: reason ?? '',
    detail: { reference, username: target.username, via, method, fingerprint, rule, more: detail, attempts },
  }
}
