// Composition of tunnels: the registry, agents' reports in them, and the endpoints at which agents open them.
// Closing disconnects the agents, spread over some time, because they all come back elsewhere.
import { Failure } from '@hawser/contract/failures'
import { deviceLimits } from '@hawser/contract/limits'
import { DeviceReport } from '@hawser/contract/reports'
import { hangUpHeader } from '@hawser/contract/tunnel'
import { RefusedDevice } from '../domain/devices/tunnels.ts'
import type { FindTunnel } from '../gateway/device/device-leg.ts'
import { probe } from '../gateway/device/probe.ts'
import type { Gateway } from '../gateway/login/listen.ts'
import type { Upgrade } from '../http/upgrade.ts'
import { checker, known } from '../http/validate.ts'
import { second_ms } from '../kit/clock.ts'
import { Counter } from '../kit/counter.ts'
import { limiter } from '../kit/limiter.ts'
import { lineLimiter, type LineLimiter } from '../kit/log.ts'
import { admission } from '../tunnel/admission.ts'
import { conflicts, type Conflicts } from '../tunnel/conflicts.ts'
import { nonceOf, tunnelEndpoints, type TunnelEndpoints } from '../tunnel/endpoints.ts'
import { deviceName, registry, type Registry } from '../tunnel/registry.ts'
import { reportStreams, type ReportStreams } from '../tunnel/reports.ts'
import { tunnelEndings, type Tunnel, type TunnelEnding } from '../tunnel/tunnel.ts'
import type { Rooms } from './rooms.ts'

/** Per minute; a device whose tunnel flaps must not fill the log. */
const linesPerDevice = { perSource: 10, together: Infinity }
/** The delay between the connection of a device and the measurement of its round trip. */
const measured_ms = 5 * second_ms
/** How many agents are disconnected in a second when the server stops. */
const drainedPerSecond = 200

export interface Tunnels extends AsyncDisposable {
  readonly registry: Registry
  readonly counts: { readonly opened: Counter<''>; readonly closed: Counter<TunnelEnding> }
  readonly endpoints: Pick<TunnelEndpoints, 'bring' | 'pickUp' | 'pickUpElsewhere'>
  /** On this node or another. */
  readonly find: FindTunnel
  /** Opens the tunnel of an agent. */
  enter(path: string, upgrade: Upgrade): Promise<void>
  /** Passes on the agents' reports of detached terminals. Must be called before the first tunnel opens. */
  restoreWith(restore: Gateway['restore']): void
  /** Refuses new tunnels from here on. */
  refuse(): void
}

export function openTunnels(rooms: Rooms): Tunnels {
  const { config, clock, bus, log, background, neighbours } = rooms
  const counts = { opened: new Counter(['']), closed: new Counter(tunnelEndings) }
  let restore: Gateway['restore'] | undefined
  const reports = openReports(rooms, () => restore)
  const lines = background.own(
    lineLimiter({
      ...linesPerDevice,
      onDropped: ({ source: device, ...dropped }) => log.warn({ event: 'lines.dropped', device, ...dropped }),
    }),
  )
  const tunnels = openRegistry(rooms, reports, counts, lines, (uid) => restore?.left(uid))
  const endpoints = tunnelEndpoints({
    registry: tunnels,
    conflicts: openConflicts(rooms, tunnels.find),
    sign: rooms.approvals,
    admission: admission(clock, config.HAWSER_TUNNEL_RATE_LIMIT),
    hold: rooms.register,
    perToken: limiter(clock, deviceLimits.tunnelsOfToken),
    perDevice: limiter(clock, deviceLimits.tunnels),
    onError: ({ uid }, err) => log.error({ event: 'tunnel.failed', device: uid, err }),
  })
  const hearing = [
    bus.hear('device.changed', ({ uid }) => reports.changed(uid)),
    bus.missed(() => reports.missed()),
  ]
  let refusing = false
  return {
    registry: tunnels,
    counts,
    endpoints,
    find: async (device) => tunnels.find(device.uid, device.tunnel) ?? neighbours?.findTunnel(device),
    async enter(path, upgrade) {
      if (refusing) throw new Failure('unavailable', { retryAfter: 10 })
      await enter(rooms, endpoints, path, upgrade)
    },
    restoreWith: (gateway) => void (restore = gateway),
    refuse: () => void (refusing = true),
    async [Symbol.asyncDispose]() {
      for (const heard of hearing) heard[Symbol.dispose]()
      await tunnels.drain(Math.min(config.HAWSER_DRAIN, tunnels.size / drainedPerSecond) * second_ms)
    },
  }
}

function openReports(rooms: Rooms, restore: () => Gateway['restore'] | undefined): ReportStreams {
  return reportStreams({
    read: readReport,
    take: rooms.reports.take,
    heard(device, report) {
      rooms.timeline.heard(device.uid, report)
      // Only the first report of a tunnel has `connection`, and it names every detached terminal of the agent.
      if (report.connection) restore()?.arrived(device, report.kept ?? [])
      if (report.kept) restore()?.reported(device, report.kept)
    },
    lines: limiter(rooms.clock, deviceLimits.reports),
    longestPing_s: rooms.config.HAWSER_PING_INTERVAL,
    onError: ({ uid }, err) => rooms.log.warn({ event: 'report.failed', device: uid, err }),
  })
}

function openRegistry(
  rooms: Rooms,
  reports: ReportStreams,
  counts: Tunnels['counts'],
  lines: LineLimiter,
  left: (uid: string) => void,
): Registry {
  const { bus, log, neighbours, timeline } = rooms
  const tunnels: Registry = registry({
    ...rooms.tunnels,
    up(device, number) {
      rooms.tunnels.up(device, number)
      reports.pinged(device.uid)
    },
    isElsewhere: async (uid) => (await bus.seek(deviceName(uid))) !== undefined,
    held({ uid }, number) {
      bus.tell('tunnel.taken', { uid, number })
      return bus.hold(deviceName(uid), (least) =>
        neighbours && Number(least) <= number
          ? JSON.stringify({ ...neighbours.address, features: [...(tunnels.find(uid)?.features ?? [])] })
          : undefined,
      )
    },
    probe,
    onOpened({ uid, tenant_id, version }, origin) {
      counts.opened.add('')
      const tunnel = tunnels.find(uid)
      if (tunnel?.incoming) reports.serve(tunnel, origin?.source)
      if (tunnel?.meter) rooms.traffic.follow(uid, tunnel.meter, tunnel.ended)
      timeline.note(uid, { kind: 'up', source: origin?.source, version })
      if (tunnel) measureLater(tunnel, (ms) => timeline.note(uid, { kind: 'round-trip', ms }))
      if (lines.allows(uid)) log.info({ event: 'tunnel.opened', device: uid, tenant_id, ...origin })
    },
    onClosed(device, closed) {
      const { uid, tenant_id } = device
      const { ending: reason, detail, silent, lasted_ms } = closed
      counts.closed.add(reason)
      if (!tunnels.find(uid)) left(uid)
      timeline.tunnelEnded(uid, closed, silent ? rooms.tunnels.heardAt(device) : undefined)
      const lasted_s = Math.round(lasted_ms / second_ms)
      if (lines.allows(uid))
        log.info({ event: 'tunnel.closed', device: uid, tenant_id, reason, detail, lasted_s })
    },
    onError: (event, { uid }, err) => log.warn({ event, device: uid, err }),
  })
  return tunnels
}

/** Not at once: people who wait for the device come first, and after a restart all devices come together. */
function measureLater(tunnel: Tunnel, measured: (ms: number) => void): void {
  const timer = setTimeout(
    () =>
      void tunnel.roundTrip?.().then(
        (ms) => measured(Math.round(ms)),
        () => undefined,
      ),
    measured_ms,
  ).unref()
  void tunnel.ended.then(() => clearTimeout(timer))
}

function openConflicts(rooms: Rooms, find: Registry['find']): Conflicts {
  const { clock, bus, log, timeline, background, neighbours } = rooms
  return conflicts({
    clock,
    find,
    async elsewhere(uid) {
      if (!bus.connected)
        throw new Failure('unavailable', { message: 'Other nodes cannot be asked right now.', retryAfter: 5 })
      return neighbours?.tunnelOf(uid, 0)
    },
    probe,
    onConflict(device, report, first) {
      const { uid, tenant_id } = device
      const [stays, refused] = report.addresses
      if (first) {
        log.warn({
          event: 'device.conflict',
          device: uid,
          tenant_id,
          stays,
          refused,
          message:
            'Two machines use this identity; give the copy its own by `hawser-agent reset-identity`, or without an agent by new SSH host keys.',
        })
        timeline.note(uid, { kind: 'conflict', addresses: report.addresses })
      }
      background.later('device.conflict', () => rooms.tunnels.conflicted(device, report))
    },
  })
}

async function enter(
  rooms: Rooms,
  endpoints: TunnelEndpoints,
  path: string,
  upgrade: Upgrade,
): Promise<void> {
  const { source } = upgrade.from
  const admit = async (inTurn: Parameters<typeof rooms.tunnels.admit>[1]) =>
    rooms.tunnels.admit(upgrade.bearer, inTurn, source)
  try {
    const device = await admit(({ uid, token }) => endpoints.admit({ uid, token, source }))
    return await endpoints.enter(device, path, upgrade, () => admit(() => undefined))
  } catch (error) {
    const nonce = nonceOf(upgrade.request)
    if (!(error instanceof RefusedDevice) || nonce === undefined) throw error
    const headers = { [hangUpHeader]: rooms.approvals.hangUp(error.uid, nonce) }
    throw new Failure(error.kind, { headers, cause: error })
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
