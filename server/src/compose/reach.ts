// Composition of what reaches devices: the tunnels of agents, the SSH gateway in front of them, devices that
// join by SSH instead, containers behind their engine, recording, and the live view of sessions.
import type { Server } from 'node:http'
import { Failure } from '@hawser/contract/failures'
import { terminalPath } from '@hawser/contract/terminals'
import { tunnelPaths } from '@hawser/contract/tunnel'
import { compatibleAlgorithms, fingerprintMd5, serverAlgorithms } from '@hawser/ssh'
import { publicListen, type Config } from '../config.ts'
import { connectorSupervisor } from '../connectors/supervisor.ts'
import { sessionName } from '../domain/sessions/live-sessions.ts'
import { parseTarget } from '../domain/access/logins.ts'
import { ticketName } from '../domain/sessions/terminals.ts'
import { agentlessEndpoint } from '../gateway/agentless.ts'
import { hostKeys } from '../gateway/host-keys.ts'
import { gatewayKeys, type FindTunnel } from '../gateway/device-leg.ts'
import { startGateway, type Gateway } from '../gateway/listen.ts'
import { loginReports, type LoginReports } from '../gateway/login-report.ts'
import { probe } from '../gateway/probe.ts'
import { startups } from '../gateway/startups.ts'
import { terminalEndpoint } from '../http/terminal.ts'
import type { UpgradeHandlers, Upgrade } from '../http/upgrade.ts'
import { iso, minute_ms, second_ms } from '../kit/clock.ts'
import { Counter } from '../kit/counter.ts'
import { limiter as ownLimiter } from '../kit/limiter.ts'
import { lineLimiter } from '../kit/line-limiter.ts'
import type { Log } from '../kit/log.ts'
import { sessionRecorder } from '../recording/tap.ts'
import type { Rooms } from './rooms.ts'
import { acceptMessageSocket } from '../http/message-socket.ts'
import { admission } from '../tunnel/admission.ts'
import { conflicts } from '../tunnel/conflicts.ts'
import { tunnelEndpoints } from '../tunnel/endpoints.ts'
import { deviceName, registry, type Registry } from '../tunnel/registry.ts'
import { tunnelEndings, type TunnelEnding } from '../tunnel/tunnel.ts'
import { watchEndpoint, watchPath } from '../http/watch.ts'

/** Tunnels that one device may open in ten seconds; it needs one. */
const tunnelsPerDevice = { max: 10, window_ms: 10 * second_ms }
/** Legs to devices that are prepared for one address while a person types a password there. */
const preparations = { max: 20, window_ms: minute_ms }
/** Lines about the tunnel of one device in a minute; one whose tunnel flaps must not fill the log. */
const linesPerDevice = { perSource: 10, together: Infinity }
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
          onListening: (address) => (rooms.self.address = address),
          log,
          tunnel: (uid, least) => tunnels.find(uid, least),
          http: () => http,
        })
      : undefined
  const recordingFailures = new Counter(['unrecorded', 'ended'] as const)
  const tunnelCounts = { opened: new Counter(['']), closed: new Counter(tunnelEndings) }
  const tunnelLines = rooms.background.own(
    lineLimiter({
      ...linesPerDevice,
      onDropped: ({ source: device, ...dropped }) => log.warn({ event: 'lines.dropped', device, ...dropped }),
    }),
  )
  const tunnels: Registry = registry({
    ...rooms.tunnels,
    isElsewhere: async (uid) => rooms.clustered && (await bus.seek(deviceName(uid))) !== undefined,
    held({ uid }, number) {
      bus.tell('tunnel.taken', { uid, number })
      return bus.hold(deviceName(uid), (least) =>
        Number(least) <= number ? JSON.stringify(rooms.self.address) : undefined,
      )
    },
    probe,
    onOpened({ uid, tenant_id }, origin) {
      tunnelCounts.opened.add('')
      if (tunnelLines.allows(uid)) log.info({ event: 'tunnel.opened', device: uid, tenant_id, ...origin })
    },
    onClosed({ uid, tenant_id }, { ending: reason, detail, lasted_ms }) {
      tunnelCounts.closed.add(reason)
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
  rooms.self.hasTunnel = (uid) => tunnels.find(uid) !== undefined
  const entries = tunnelEndpoints({
    registry: tunnels,
    conflicts: conflicts({
      clock,
      find: tunnels.find,
      // A node that is cut off can ask nobody; all its agents may come back at such a time.
      elsewhere: async (uid) => (bus.connected ? neighbours?.tunnelOf(uid, 0) : undefined),
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
              'Two machines use this identity; `hawser-agent reset-identity` on the copy gives it its own.',
          })
        rooms.background.later('device.conflict', () => rooms.tunnels.conflicted(device, report))
      },
    }),
    admission: admission(clock, config.HAWSER_TUNNEL_RATE_LIMIT),
    hold: rooms.register,
    perDevice: ownLimiter(clock, tunnelsPerDevice),
    onError: ({ uid }, err) => log.error({ event: 'tunnel.failed', device: uid, err }),
  })
  const findTunnel: FindTunnel = async (device) =>
    tunnels.find(device.uid, device.tunnel) ?? neighbours?.findTunnel(device)
  const failures = rooms.limiter('failed logins', config.HAWSER_SSH_FAILURE_LIMIT)
  const reports = loginReports(log, rooms.lines)
  const agentless = agentlessEndpoint({
    rules: rooms.agentless,
    failures,
    reports,
    enter: entries.bring,
    seen: tunnels.seen,
    log,
  })
  const arriving = startups(clock, {
    perSource: config.HAWSER_SSH_PER_SOURCE,
    rate: config.HAWSER_SSH_RATE_LIMIT,
  })
  const gateway = await startGateway({
    listen: publicListen(config, config.HAWSER_SSH),
    hostKeys: await hostKeys({
      kept: stores.hostKeys,
      vault: rooms.vault,
      now: () => iso(clock.now()),
      later: rooms.background.later,
    }),
    algorithms: config.HAWSER_SSH_ALGORITHMS === 'modern' ? serverAlgorithms : compatibleAlgorithms,
    trusted: config.HAWSER_TRUSTED_PROXIES,
    startups: arriving,
    idle_ms: config.HAWSER_SSH_IDLE * second_ms,
    logins: rooms.logins,
    parseTarget,
    sessions: rooms.sessions,
    failures,
    reports,
    lines: rooms.lines,
    agentless,
    preparations: ownLimiter(clock, preparations),
    findTunnel,
    signer: rooms.signer,
    gatewayKey: gatewayKeys(),
    loginKey: rooms.loginKeyOf,
    recording: {
      wanted: rooms.revocation.recordingOf,
      recorder: ({ record, tenant_id, device_uid, username }, onFailed) =>
        sessionRecorder({
          recordings: rooms.recordings,
          about: { tenant_id, session_uid: record.uid, device_uid, username },
          settings: { record: false, continueUnrecorded: false },
          onBegun: () => record.note({ recorded: 1 }),
          onFailed(_, goesOn) {
            recordingFailures.add(goesOn ? 'unrecorded' : 'ended')
            onFailed(goesOn)
          },
        }),
    },
    log,
  })

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
    await stores.of(tenant_id).sessions.save(session_uid, { recorded: 1 })
  }
  rooms.background.later('recording.recovery', () => rooms.recordings.recover(closed))
  rooms.nodes?.onCleanup(() =>
    rooms.background.later('recording.inheritance', () => rooms.recordings.inherit(closed)),
  )

  let stopping = false
  const watching = watchEndpoint({
    gate: rooms.gate,
    tickets: rooms.watchTickets,
    watch: rooms.watch,
    onError: (err) => log.error({ event: 'viewer.failed', err }),
  })
  const terminals = terminalEndpoint({
    tickets: rooms.tickets,
    terminal: gateway.terminal,
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
    recheckPeople(whose) {
      terminals.recheck(whose)
      watching.recheck(whose)
    },
  })
  const enter = async (path: string, upgrade: Upgrade): Promise<void> => {
    if (stopping) throw new Failure('unavailable', { retryAfter: 10 })
    const device = await rooms.tunnels.admit(upgrade.bearer, entries.admit)
    return entries.enter(device, path, upgrade, () => rooms.tunnels.admit(upgrade.bearer, () => undefined))
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
      // Not before: while sessions get their time to end, changes still end them.
      applying[Symbol.dispose]()
      await supervisor.stop()
      watching.close()
      await neighbours?.stop()
      terminals.close()
      await tunnels.drain(Math.min(config.HAWSER_DRAIN, tunnels.size / drainedPerSecond) * second_ms)
    },
  }
}
