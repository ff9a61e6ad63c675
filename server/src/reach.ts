// Composition of what reaches devices: tunnels that agents hold, the SSH gateway in front of them, and the news that end
// them; containers that are reached by way of their engine; what is recorded of sessions, and who watches them. A device that is no longer accepted has no sessions, one that is rejected or gone has no tunnel either.
import { Failure } from '@hawser/contract/failures'
import { tunnelPaths } from '@hawser/contract/tunnel'
import { fingerprintMd5 } from '@hawser/ssh'
import type { Config } from './config.ts'
import { connectorSupervisor } from './connectors/supervisor.ts'
import { parseTarget } from './domain/logins.ts'
import { hostKeys } from './gateway/host-keys.ts'
import { vouchers } from './gateway/inner.ts'
import { startGateway, type Gateway } from './gateway/listen.ts'
import { probe } from './gateway/probe.ts'
import type { Doors, Upgrade } from './http/upgrade.ts'
import { iso, minute_ms, second_ms } from './kit/clock.ts'
import { limiter } from './kit/limiter.ts'
import type { Log } from './kit/log.ts'
import { sessionRecorder } from './recording/tap.ts'
import type { Rooms } from './server.ts'
import { tunnelDoors } from './tunnel/doors.ts'
import { registry, type Registry } from './tunnel/registry.ts'
import { watchDoor, watchPath } from './watch.ts'

/** Tunnels that one device may open in ten seconds; it needs one. */
const tunnelsPerDevice = { max: 10, window_ms: 10 * second_ms }
/** Legs to devices that are made ready for one address while somebody types there. */
const guesses = { max: 20, window_ms: minute_ms }
/** Agents let go in a second when the server stops. */
const farewells = 200

export interface Reach {
  readonly doors: Doors
  readonly port: number
  readonly tunnels: Pick<Registry, 'size' | 'find' | 'all'>
  readonly sessions: Gateway['sessions']
  /** Ends everything in good order. */
  stop(): Promise<void>
}

export async function openReach(rooms: Rooms, config: Config, log: Log): Promise<Reach> {
  const { clock, bus, stores } = rooms
  const tunnels = registry({
    ...rooms.tunnels,
    probe,
    onError: (event, { uid }, err) => log.warn({ event, device: uid, err }),
  })
  const entries = tunnelDoors({
    registry: tunnels,
    admissions: limiter(clock, config.HAWSER_TUNNEL_RATE_LIMIT),
    perDevice: limiter(clock, tunnelsPerDevice),
    seen: rooms.tunnels.up,
    onError: ({ uid }, err) => log.error({ event: 'tunnel.failed', device: uid, err }),
  })
  const wanted = async (tenant_id: string): Promise<boolean> => (await stores.namespaces.find(tenant_id))?.session_record === 1
  const gateway = await startGateway({
    listen: config.HAWSER_SSH,
    hostKeys: await hostKeys({
      kept: stores.hostKeys,
      vault: rooms.vault,
      now: () => iso(clock.now()),
      later: rooms.background.later,
    }),
    trusted: config.HAWSER_TRUSTED_PROXIES,
    perSource: config.HAWSER_SSH_PER_SOURCE,
    idle_ms: config.HAWSER_SSH_IDLE * second_ms,
    logins: rooms.logins,
    parseTarget,
    sessions: rooms.sessions,
    failures: limiter(clock, config.HAWSER_SSH_FAILURE_LIMIT),
    guesses: limiter(clock, guesses),
    find: tunnels.find,
    signer: rooms.signer,
    voucher: vouchers(),
    recording: {
      wanted,
      recorder: ({ record, tenant_id, device_uid, username }, onFailed) =>
        sessionRecorder({
          recordings: rooms.recordings,
          about: { tenant_id, session_uid: record.uid, device_uid, username },
          wanted: false,
          onBegun: () => record.note({ recorded: 1 }),
          onFailed,
        }),
    },
    log,
  })

  const supervisor = connectorSupervisor({
    ...rooms.supervision,
    tunnels,
    seen: rooms.tunnels.up,
    approve({ uid, tenant_id }, { user, blob }) {
      try {
        rooms.signer.sign({ uid, tenant_id }, fingerprintMd5(blob), JSON.stringify({ Username: user }))
        return true
      } catch {
        return false
      }
    },
    log,
  })
  rooms.background.later('connectors.start', () => supervisor.start())

  const endSessions = (device_uid: string): void => {
    for (const session of gateway.sessions.values())
      if (session.device_uid === device_uid) session.end('The device is no longer available.')
  }
  const leave = (uid: string): void => {
    endSessions(uid)
    tunnels.drop(uid, 'The device may not connect any more.')
  }
  const hearing = [
    bus.hear('session.closed', ({ uid }) => gateway.sessions.get(uid)?.end('The session was closed by an administrator.')),
    bus.hear('device.changed', ({ tenant_id, uid, status }) => {
      if (status === 'rejected' || status === 'gone') leave(uid)
      else if (status !== 'accepted') endSessions(uid)
      supervisor.poke(tenant_id)
    }),
    bus.hear('connector.changed', ({ tenant_id, uid }) => supervisor.changed(tenant_id, uid)),
    bus.hear('namespace.changed', ({ tenant_id }) => {
      rooms.background.later('tunnels.left', async () => {
        if (await stores.namespaces.find(tenant_id)) return
        supervisor.forget(tenant_id)
        for (const { device } of tunnels.all()) if (device.tenant_id === tenant_id) leave(device.uid)
      })
      rooms.background.later('recording.switched', async () => {
        const sessions = [...gateway.sessions.values()].filter((session) => session.tenant_id === tenant_id)
        if (sessions.length === 0) return
        const on = await wanted(tenant_id)
        for (const session of sessions) session.record(on)
      })
    }),
  ]

  // What a crash has cut off is closed while people already work.
  rooms.background.later('recording.recovery', () =>
    rooms.recordings.recover(async ({ tenant_id, session_uid, channel }, ending) => {
      log.warn({ event: 'recording.closed', session: session_uid, channel, ending })
      await stores.of(tenant_id).sessions.save(session_uid, { recorded: 1 })
    }),
  )

  let stopping = false
  const watching = watchDoor({ gate: rooms.gate, watch: rooms.watch, onError: (err) => log.error({ event: 'viewer.failed', err }) })
  const enter = async (path: string, upgrade: Upgrade): Promise<void> => {
    if (stopping) throw new Failure('unavailable', { retryAfter: 10 })
    return entries.enter(await rooms.tunnels.admit(upgrade.bearer, upgrade.from), path, upgrade)
  }
  return {
    doors: {
      [tunnelPaths.lines]: (upgrade) => enter(tunnelPaths.lines, upgrade),
      [tunnelPaths.streams]: (upgrade) => enter(tunnelPaths.streams, upgrade),
      [tunnelPaths.pickUp]: (upgrade) => entries.pickUp(upgrade),
      [watchPath]: (upgrade) => watching.enter(upgrade),
    },
    port: gateway.port,
    tunnels,
    sessions: gateway.sessions,
    async stop() {
      stopping = true
      for (const ear of hearing) ear[Symbol.dispose]()
      await gateway.stop(config.HAWSER_DRAIN * second_ms)
      await supervisor.stop()
      watching.close()
      await tunnels.drain(Math.min(config.HAWSER_DRAIN, tunnels.size / farewells) * second_ms)
    },
  }
}
