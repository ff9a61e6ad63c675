// Composition of the SSH gateway: keys, limits, legs to devices, devices that join by SSH, screens of
// terminals, and recording. Closing gives sessions their time to end.
import { sessionLimits } from '@hawser/contract/limits'
import { compatibleAlgorithms, serverAlgorithms } from '@hawser/ssh'
import { askToLetGo } from '../cluster/let-go.ts'
import { publicListen, type Config } from '../config.ts'
import { parseTarget } from '../domain/access/logins.ts'
import { policyOfSessions, type OpenSession } from '../domain/sessions/revocation.ts'
import { hashThread } from '../gateway/channels/hash-thread.ts'
import type { Recording } from '../gateway/channels/session.ts'
import {
  dialDevice,
  gatewayKeys,
  type DeviceLegParts,
  type FindTunnel,
} from '../gateway/device/device-leg.ts'
import { spareLegs, type SpareLegs } from '../gateway/device/spare-legs.ts'
import { agentlessEndpoint, type Agentless } from '../gateway/login/agentless.ts'
import { passwordGuesses } from '../gateway/login/guesses.ts'
import { hostKeys } from '../gateway/login/host-keys.ts'
import { startGateway, type Gateway, type GatewayParts } from '../gateway/login/listen.ts'
import { loginReports, type LoginReports } from '../gateway/login/login-report.ts'
import { mostSources, remembered_ms, startups, type Startups } from '../gateway/login/startups.ts'
import { iso, second_ms } from '../kit/clock.ts'
import { Counter } from '../kit/counter.ts'
import { fairShare, type FairShare } from '../kit/fair-share.ts'
import { newUid } from '../kit/ids.ts'
import { limiter } from '../kit/limiter.ts'
import { screenThread } from '../recording/screen-thread.ts'
import { sessionRecorder } from '../recording/tap.ts'
import { screens_bytes, terminalScreen } from '../recording/terminal-screen.ts'
import { arrivals } from '../tunnel/arrivals.ts'
import { Meter } from '../tunnel/meter.ts'
import { openResumable, resumableMemory } from '../tunnel/resumable.ts'
import type { Rooms } from './rooms.ts'
import type { Tunnels } from './tunnels.ts'

/** Waiting frames of one namespace: all of its clients may be lost at the same moment. */
const waitingFrames = 500

export interface Ssh extends AsyncDisposable {
  readonly gateway: Gateway
  readonly agentless: Agentless
  /** The screens of all terminals, with and without a client. */
  readonly screens: Pick<FairShare, 'held_bytes'>
  /** Legs to devices that wait for the next login. */
  readonly spares: SpareLegs
  /** All that are open here, those of services too. */
  readonly openSessions: Map<string, OpenSession>
  /** Sessions that could not be recorded, and either continued unrecorded or were ended. */
  readonly recordingFailures: Counter<'unrecorded' | 'ended'>
  readonly logins: Pick<LoginReports, 'accepted' | 'refused'>
  /** Connections that have not logged in. */
  readonly startups: Pick<Startups, 'size'>
}

export async function openSsh(rooms: Rooms, tunnels: Tunnels): Promise<Ssh> {
  const { config, clock, bus, log, background, failedLogins: failures } = rooms
  await using opened = new AsyncDisposableStack()
  let over = false
  const resume = openResuming(rooms, opened, tunnels.find, () => over)
  const spares = openSpares(rooms, opened, {
    findTunnel: tunnels.find,
    openResumable: resume,
    compression: config.HAWSER_COMPRESSION,
  })
  const reports = loginReports(rooms.refusals)
  const agentless = openAgentless(rooms, tunnels, reports)
  const arriving = await openStartups(rooms)
  const screens = opened.use(screenThread(waitingFrames))
  const memory = fairShare(screens_bytes)
  const recordingFailures = new Counter(['unrecorded', 'ended'] as const)
  const openSessions = new Map<string, OpenSession>()
  const gateway = await startGateway({
    open: openSessions,
    ...listening(config),
    hostKeys: await hostKeys({
      keys: rooms.stores.hostKeys,
      vault: rooms.vault,
      now: () => iso(clock.now()),
      later: background.later,
    }),
    startups: arriving,
    lostRight: rooms.revocation.lostRight,
    mayBeHeld: rooms.revocation.mayBeHeld,
    standing: rooms.revocation.standing,
    attachable: rooms.tickets.attachable,
    isClustered: rooms.clustered,
    letGo: askToLetGo(bus),
    screen: (size, tenant_id) => terminalScreen(size, { tenant_id, thread: screens, memory }),
    clock,
    logins: rooms.logins,
    parseTarget,
    sessions: rooms.sessions,
    failures,
    guesses: passwordGuesses(),
    reports,
    lines: rooms.lines,
    agentless,
    preparations: limiter(clock, sessionLimits.preparations),
    isCutOff: () => !bus.connected,
    findTunnel: tunnels.find,
    signer: rooms.signer,
    approvals: rooms.approvals,
    identities: rooms.identities,
    gatewayKey: gatewayKeys(),
    loginKey: rooms.loginKeyOf,
    openResumable: resume,
    spares,
    policies: { of: policyOfSessions, now: rooms.revocation.policyOf },
    detached: rooms.detached,
    // Agents have secrets made with this word, so it stays.
    detachSecret: (session_uid) => rooms.vault.mark('kept terminal', session_uid),
    hashing: background.own(hashThread()),
    recording: openRecording(rooms, recordingFailures),
    log,
  })
  opened.defer(async () => {
    await gateway.stop(config.HAWSER_DRAIN * second_ms)
    over = true
  })
  const closing = opened.move()
  return {
    gateway,
    agentless,
    screens: memory,
    spares,
    openSessions,
    recordingFailures,
    logins: reports,
    startups: arriving,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

function listening(
  config: Config,
): Pick<GatewayParts, 'listen' | 'algorithms' | 'compression' | 'trusted' | 'idle_ms' | 'keepalive_ms'> {
  return {
    listen: publicListen(config, config.HAWSER_SSH),
    algorithms: {
      ...(config.HAWSER_SSH_ALGORITHMS === 'modern' ? serverAlgorithms : compatibleAlgorithms),
      ...(config.HAWSER_COMPRESSION === 'never' ? { compression: ['none'] } : {}),
    },
    compression: config.HAWSER_COMPRESSION,
    trusted: config.HAWSER_TRUSTED_PROXIES,
    idle_ms: config.HAWSER_SSH_IDLE * second_ms,
    keepalive_ms: config.HAWSER_SSH_KEEPALIVE * second_ms,
  }
}

/** Streams to devices that outlive their tunnels, until the gateway has stopped. */
function openResuming(
  { bus }: Rooms,
  opened: AsyncDisposableStack,
  find: FindTunnel,
  isOver: () => boolean,
): NonNullable<DeviceLegParts['openResumable']> {
  const parts = {
    arrivals: opened.use(arrivals(bus)),
    memory: resumableMemory(),
    left: new Set<string>(),
    isOver,
  }
  return (device, tunnel, { id, grace_s }, signal) => {
    const { uid, tenant_id } = device
    const findTunnel = () => find(device).catch(() => undefined)
    return openResumable(parts, tunnel, { uid, tenant_id, id, grace_s, findTunnel }, signal)
  }
}

function openSpares(
  { bus }: Rooms,
  opened: AsyncDisposableStack,
  parts: Pick<DeviceLegParts, 'findTunnel' | 'openResumable' | 'compression'>,
): SpareLegs {
  const spares = opened.use(
    spareLegs({
      dial: (device, grace_s, signal) => dialDevice({ ...parts, grace_s }, device, newUid(), signal),
    }),
  )
  // Logins ask the database in any case; this closes legs to devices that are no longer ours.
  opened.use(bus.hear('device.changed', (changed) => spares.drop(({ uid }) => uid === changed.uid)))
  opened.use(
    bus.hear('namespace.changed', (changed) =>
      spares.drop((device) => device.tenant_id === changed.tenant_id),
    ),
  )
  opened.use(bus.missed(() => spares.drop(() => true)))
  return spares
}

function openAgentless(
  { agentless, failedLogins, log }: Rooms,
  tunnels: Tunnels,
  reports: LoginReports,
): Agentless {
  return agentlessEndpoint({
    rules: agentless,
    failures: failedLogins,
    reports,
    enter: tunnels.endpoints.bring,
    seen: tunnels.registry.seen,
    meter(socket) {
      const meter = new Meter()
      meter.carry(socket)
      return meter
    },
    log,
  })
}

async function openStartups({ config, clock, stores, background }: Rooms): Promise<Startups> {
  const { knownSources } = stores
  return startups(clock, {
    perSource: config.HAWSER_SSH_PER_SOURCE,
    rate: config.HAWSER_SSH_RATE_LIMIT,
    memory: {
      known: await knownSources.list(iso(clock.now() - remembered_ms), mostSources),
      note: (source, at) =>
        background.later('source.known', async () => void (await knownSources.note(source, iso(at)))),
    },
  })
}

function openRecording(
  { clock, recordings, revocation }: Rooms,
  failures: Ssh['recordingFailures'],
): Recording {
  return {
    wanted: revocation.recordingOf,
    recorder: ({ record, tenant_id, device_uid, username, person }, onFailed) =>
      sessionRecorder({
        recordings,
        about: { tenant_id, session_uid: record.uid, device_uid, username, person },
        settings: { record: false, continueUnrecorded: false },
        onBegun: () => record.note({ recorded: 1, posted: 0, index_at: iso(clock.now()) }),
        onOverBudget: () => record.note({ unrecorded: 1 }),
        onMasked: (secrets_masked) => record.note({ secrets_masked }),
        onFailed(_, goesOn) {
          failures.add(goesOn ? 'unrecorded' : 'ended')
          onFailed(goesOn)
        },
      }),
  }
}
