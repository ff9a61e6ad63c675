// The gauges of the metrics beside those of requests: tunnels, sessions, refusals, other nodes and the disk.
import { cipherImplementation } from '@hawser/ssh'
import type { Metrics, Sample } from '../http/metrics.ts'
import { diskStates } from '../kit/disk.ts'
import type { Reach } from './reach.ts'
import type { Rooms } from './rooms.ts'
import type { Tls } from './tls.ts'

const samplesOf = (
  label: string,
  counts: Iterable<[string, number]>,
  others: Readonly<Record<string, string>> = {},
): Sample[] => Array.from(counts, ([name, value]) => ({ labels: { ...others, [label]: name }, value }))

export function watchRooms(figures: Metrics, rooms: Rooms, reach: Reach): void {
  figures.gauge('hawser_tunnels', 'Devices that hold a tunnel to this server.', () => reach.tunnels.size)
  figures.counter('hawser_tunnels_opened_total', 'Tunnels that devices opened.', () =>
    reach.tunnelCounts.opened.of(''),
  )
  figures.counter('hawser_tunnels_closed_total', 'Tunnels that ended or were refused, and why.', () =>
    samplesOf('reason', reach.tunnelCounts.closed),
  )
  figures.gauge('hawser_recordings', 'Terminals that are being recorded.', () => rooms.recordings.count)
  figures.gauge('hawser_sessions', 'SSH sessions that are going on.', () => reach.sessions.size)
  figures.gauge(
    'hawser_ssh_unauthenticated',
    'SSH connections that have not logged in.',
    () => reach.ssh.unauthenticated,
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
  figures.counter(
    'hawser_signatures_refused_total',
    'Signatures that agents asked for and did not get.',
    () => rooms.signer.refused,
  )
  figures.counter(
    'hawser_ssh_refused_total',
    'SSH connections that were refused before they could try anything, and why.',
    () => samplesOf('reason', reach.ssh.refused),
  )
  figures.gauge(
    'hawser_ssh_openssl',
    '1 while OpenSSL is called directly for SSH packets, 0 while node:crypto is used, which costs more.',
    () => Number(cipherImplementation().name === 'openssl'),
  )
  if (rooms.clustered) {
    figures.gauge('hawser_nats_connected', '1 while this node hears the others.', () =>
      Number(rooms.bus.connected),
    )
    figures.counter(
      'hawser_nats_refused_total',
      'Messages on NATS that no other node said, or that came too late or twice.',
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
  const { disks } = rooms
  if (disks) {
    figures.gauge(
      'hawser_disk_free_bytes',
      'Free space of the disk with the data folder.',
      () => disks.data.free_bytes,
    )
    figures.gauge(
      'hawser_disk_state',
      '0: there is room; 1: low, nothing is recorded; 2: full, only signing in, reading and deleting work.',
      () => diskStates.indexOf(disks.data.state),
    )
  }
}

export function watchTls(figures: Metrics, tls: Tls): void {
  figures.gauge(
    'hawser_tls_certificate_expiry_timestamp_seconds',
    'When the TLS certificate in use expires, in seconds since 1970; 0 while there is none.',
    () => Math.floor((tls.certificate?.expires_at ?? 0) / 1000),
  )
  figures.gauge(
    'hawser_tls_refused',
    'TLS connections that were refused before their handshake, since the start.',
    () => tls.refused,
  )
}
