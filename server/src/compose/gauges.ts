// The metrics other than those of requests and the process. Every figure is read at a scrape, mostly from
// memory; labels are words of closed lists. docs/guides/monitoring.md explains them.
import { version } from '@hawser/contract/version'
import { cipherImplementation } from '@hawser/ssh'
import { waitingPasswords } from '../domain/people/credentials.ts'
import type { Metrics, Sample } from '../http/metrics.ts'
import { second_ms } from '../kit/clock.ts'
import { diskStates, type Disk } from '../kit/disk.ts'
import type { Reach } from './reach.ts'
import type { Rooms } from './rooms.ts'
import type { Tls } from './tls.ts'

/** The database counts devices for the metrics at most this often. */
const counted_ms = 15 * second_ms
/** A scrape does not wait longer for the database. */
const patience_ms = 2 * second_ms

const samplesOf = (
  label: string,
  counts: Iterable<readonly [string, number]>,
  others: Readonly<Record<string, string>> = {},
): Sample[] => Array.from(counts, ([name, value]) => ({ labels: { ...others, [label]: name }, value }))

export function watchRooms(figures: Metrics, rooms: Rooms, reach: Reach): void {
  figures.gauge('hawser_build_info', 'Always 1; the labels say which version runs.', () => [
    { labels: { version, node: process.versions.node, database: rooms.database.name }, value: 1 },
  ])
  figures.gauge('hawser_ready', '1 while people can sign in, as /healthcheck says.', () =>
    rooms.ready().then(
      () => 1,
      () => 0,
    ),
  )
  watchPeople(figures, rooms, reach)
  watchDevices(figures, rooms, reach)
  watchRecordings(figures, rooms, reach)
  watchStreams(figures, rooms)
  watchDatabase(figures, rooms)
  if (rooms.disks) watchDisk(figures, rooms.disks)
}

function watchPeople(figures: Metrics, rooms: Rooms, reach: Reach): void {
  figures.gauge('hawser_sessions', 'Open sessions on devices.', () => reach.sessions.size)
  figures.gauge(
    'hawser_sessions_held',
    'Sessions without a client, which their person can reattach.',
    () => reach.held.count,
  )
  figures.gauge(
    'hawser_sessions_held_bytes',
    'Memory that the screens of held sessions take.',
    () => reach.held.held_bytes,
  )
  figures.gauge(
    'hawser_screens_bytes',
    'Memory that the screens of all terminals take, held ones and those with a client.',
    () => reach.screens.held_bytes,
  )
  figures.counter('hawser_sessions_total', 'Sessions on devices, by what they were for.', () =>
    samplesOf('type', rooms.sessions.types),
  )
  figures.gauge(
    'hawser_service_requests_open',
    'Requests and WebSockets on their way to services of devices.',
    () => reach.services.open,
  )
  figures.counter(
    'hawser_service_requests_total',
    'Requests to services of devices, by the status of the answer.',
    () => samplesOf('status', reach.services.requests),
  )
  figures.counter('hawser_logins_total', 'Logins to devices by result, and why they were refused.', () => [
    ...samplesOf('method', reach.logins.accepted, { result: 'accepted', reason: '' }),
    ...samplesOf('reason', reach.logins.refused, { result: 'refused', method: '' }),
  ])
  figures.counter('hawser_sign_ins_total', 'Sign-ins by result, and why they were refused.', () => [
    ...samplesOf('method', rooms.signIns.accepted, { result: 'accepted', reason: '' }),
    ...samplesOf('method', rooms.signIns.challenged, { result: 'challenged', reason: '' }),
    ...samplesOf('reason', rooms.signIns.refused, { result: 'refused', method: '' }),
  ])
  figures.gauge(
    'hawser_ssh_unauthenticated',
    'SSH connections that have not logged in.',
    () => reach.ssh.unauthenticated,
  )
  figures.counter(
    'hawser_ssh_refused_total',
    'SSH connections that were refused before they could try anything, and why.',
    () => samplesOf('reason', reach.ssh.refused),
  )
  figures.counter(
    'hawser_signatures_refused_total',
    'Signatures that agents requested and did not get.',
    () => rooms.signer.refused,
  )
  figures.gauge(
    'hawser_ssh_openssl',
    '1 while OpenSSL is called directly for SSH packets, 0 while node:crypto is used, which costs more.',
    () => Number(cipherImplementation().name === 'openssl'),
  )
}

function watchDevices(figures: Metrics, rooms: Rooms, reach: Reach): void {
  const totals = cached(() => rooms.stores.totals.count())
  figures.gauge(
    'hawser_devices',
    'Devices of all namespaces, by status; the same on every node.',
    async () => {
      const count = await totals()
      if (!count) return []
      return samplesOf('status', [
        ['accepted', count['devices.accepted']],
        ['pending', count['devices.pending']],
        ['rejected', count['devices.rejected']],
      ])
    },
  )
  figures.gauge(
    'hawser_devices_online',
    'Accepted devices of all namespaces that are online; the same on every node.',
    async () => {
      const count = await totals()
      return count ? count['online.accepted'] : []
    },
  )
  figures.gauge('hawser_tunnels', 'Devices that hold a tunnel to this server.', () => reach.tunnels.size)
  figures.counter('hawser_tunnels_opened_total', 'Tunnels that devices opened.', () =>
    reach.tunnelCounts.opened.of(''),
  )
  figures.counter('hawser_tunnels_closed_total', 'Tunnels that ended or were refused, and why.', () =>
    samplesOf('reason', reach.tunnelCounts.closed),
  )
  figures.counter(
    'hawser_budget_changes_total',
    'Data budgets that came to another state: under, warned (80 per cent) or over.',
    () => samplesOf('state', rooms.budgets.changes),
  )
}

function watchRecordings(figures: Metrics, rooms: Rooms, reach: Reach): void {
  figures.gauge('hawser_recordings', 'Terminals that are being recorded.', () => rooms.recordings.count)
  figures.counter(
    'hawser_recording_failures_total',
    'Sessions that could not be recorded, and whether they went on unrecorded or were ended.',
    () => samplesOf('session', reach.recordingFailures),
  )
  figures.gauge(
    'hawser_recording_unwritten_bytes',
    'Bytes of recordings in memory that are not in their files yet.',
    () => rooms.recordings.unwritten_bytes,
  )
  figures.gauge(
    'hawser_recordings_unsent',
    'Finished recordings that wait for their upload to the bucket.',
    () => rooms.unsent(),
  )
  const backlog = cached(() => rooms.stores.searchQueue.backlog())
  figures.gauge(
    'hawser_search_waiting',
    'Recorded sessions that are over and not indexed; the same on every node.',
    async () => (await backlog())?.count ?? [],
  )
  figures.gauge(
    'hawser_search_waiting_seconds',
    'Time since the oldest of them ended; 0 while there is none.',
    async () => {
      const waiting = await backlog()
      if (!waiting) return []
      const age_ms = waiting.oldest === null ? 0 : rooms.clock.now() - Date.parse(waiting.oldest)
      return Math.max(0, Math.round(age_ms / 1000))
    },
  )
  figures.counter(
    'hawser_search_indexed_total',
    'Recorded terminals that were indexed: whole, cut (damaged or too large) or gone in between; and failures.',
    () => samplesOf('result', rooms.search.indexed),
  )
}

function watchStreams(figures: Metrics, rooms: Rooms): void {
  const count = cached(() => rooms.stores.auditStreamQueue.figures())
  figures.gauge(
    'hawser_audit_streams',
    'Audit streams of all namespaces that are switched on, and whether their receivers take entries; the same on every node.',
    async () => {
      const found = await count()
      return found ? samplesOf('state', Object.entries(found)) : []
    },
  )
  figures.counter('hawser_audit_stream_batches_total', 'Batches of audit entries, by result.', () =>
    samplesOf('result', rooms.streams.batches),
  )
  figures.counter(
    'hawser_audit_stream_entries_total',
    'Audit entries that receivers took, and that were given up.',
    () => samplesOf('result', rooms.streams.entries),
  )
}

function watchDatabase(figures: Metrics, rooms: Rooms): void {
  const { point, list } = rooms.database.figures
  figures.histogram(
    'hawser_database_seconds',
    'Time that statements took: point reads and writes, and lists.',
    'statement',
    { point: point.durations, list: list.durations },
  )
  figures.gauge('hawser_queue_length', 'What waits for its turn, by queue.', () =>
    samplesOf('queue', [
      ['passwords', waitingPasswords()],
      ['database', point.waiting()],
      ['lists', list.waiting()],
    ]),
  )
  if (rooms.clustered) {
    figures.gauge('hawser_nats_connected', '1 while this node hears the others.', () =>
      Number(rooms.bus.connected),
    )
    figures.counter(
      'hawser_nats_refused_total',
      'Messages on NATS that no other node sent, or that came too late or twice.',
      () => rooms.bus.refused,
    )
  }
  const { nodes } = rooms
  if (nodes)
    figures.gauge(
      'hawser_database_silence_seconds',
      'Time since this node last wrote its heartbeat into the database.',
      () => Math.round((performance.now() - nodes.signed_at) / 1000),
    )
}

function watchDisk(figures: Metrics, { data, recordings }: { data: Disk; recordings: Disk }): void {
  figures.gauge(
    'hawser_disk_free_bytes',
    'Free space of the disk with the data folder.',
    () => data.free_bytes,
  )
  figures.gauge(
    'hawser_disk_reserve_bytes',
    'The reserve on that disk, for signing in and deleting when it is full; 0 while there is none.',
    () => data.reserve_bytes,
  )
  figures.gauge(
    'hawser_disk_state',
    '0: there is room; 1: low, nothing is recorded; 2: full, only signing in, reading and deleting work.',
    () => diskStates.indexOf(data.state),
  )
  if (recordings !== data)
    figures.gauge(
      'hawser_recordings_disk_free_bytes',
      'Free space of the disk with the recordings.',
      () => recordings.free_bytes,
    )
}

/** Asks again when the last answer is old. Undefined when there is no answer in time. */
function cached<T>(ask: () => Promise<T>): () => Promise<T | undefined> {
  let asked_at = -Infinity
  let answer: Promise<T | undefined> = Promise.resolve(undefined)
  return () => {
    if (performance.now() - asked_at >= counted_ms) {
      asked_at = performance.now()
      const late = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => late.resolve(undefined), patience_ms)
      answer = Promise.race([ask().catch(() => undefined), late.promise]).finally(() => clearTimeout(timer))
    }
    return answer
  }
}

export function watchTls(figures: Metrics, tls: Tls): void {
  figures.gauge(
    'hawser_tls_certificate_expiry_timestamp_seconds',
    'When the TLS certificate in use expires, in seconds since 1970; 0 while there is none.',
    () => Math.floor((tls.certificate?.expires_at ?? 0) / 1000),
  )
  figures.counter(
    'hawser_tls_refused_total',
    'TLS connections that were refused before their handshake.',
    () => tls.refused,
  )
}
