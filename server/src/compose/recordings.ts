// Composition of recordings: their signing key, storage, quota, search, and the sweep of old and orphaned
// ones.
import path from 'node:path'
import type { Nodes } from '../cluster/nodes.ts'
import type { Config } from '../config.ts'
import type { Audit } from '../domain/audit/audit.ts'
import { recordingSweep } from '../domain/sessions/recording-sweep.ts'
import { iso } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { JournalName } from '../recording/journal.ts'
import { recordingKey } from '../recording/key.ts'
import { recordingQuota, type QuotaParts } from '../recording/quota.ts'
import { recordings, type Recordings } from '../recording/recordings.ts'
import { diskStorage } from '../recording/storage/disk.ts'
import type { Ledger } from '../recording/storage/ledger.ts'
import { search as startSearch, type Search } from '../search/search.ts'
import { adopt, isAdopted } from '../storage/search/sqlite.ts'
import type { Foundation } from './foundation.ts'

export async function openRecordings(foundation: Foundation, audit: Audit) {
  const { config, log, clock, stores, vault, background, disks, clustered, node, serving } = foundation
  const key = await recordingKey({ keys: stores.recordingKeys, vault, now: () => iso(clock.now()) })
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
  const storage = await recordingStorage(config, log, ledger)
  // Closes after the recordings: a stop finishes the open ones, and then the storage uploads them.
  if (Symbol.asyncDispose in storage) background.own(storage)
  const quota = quotaOf(config.HAWSER_RECORDING_QUOTA, stores)
  if (serving)
    log.info({
      event: 'recording.limit',
      megabytes: quota.quota_bytes / mebi,
      message:
        quota.quota_bytes === 0
          ? 'recordings have no quota (HAWSER_RECORDING_QUOTA is 0)'
          : 'the recordings of each namespace have a quota (HAWSER_RECORDING_QUOTA)',
    })
  const recorded = background.own(
    recordings({
      storage,
      key,
      clock,
      quota: recordingQuota({
        isLow: () => disks !== undefined && disks.recordings.state !== 'ok',
        ...quota,
        used: storage.used,
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
      onEnded: (name) => search.ended(name),
      onRemoved: (tenant_id, session_uid) => search.remove(tenant_id, session_uid),
    }),
  )
  const search: Search = await openSearch(foundation, recorded)
  const sweepRecordings = recordingSweep({
    stores,
    audit,
    recordings: recorded,
    clock,
    days: config.HAWSER_RECORDING_DAYS,
  })
  const unsent = (): number => ('waiting' in storage ? storage.waiting : 0)
  return { recordings: recorded, unsent, recordingKey: key.public_key, search, sweepRecordings }
}

export type RecordingRooms = Awaited<ReturnType<typeof openRecordings>>

/** Closes recordings that a crash or another node's end cut off, in the background. */
export function closeUnfinished(
  { recordings: recorded, stores, clock, log, background }: Foundation & RecordingRooms,
  nodes: Nodes | undefined,
): void {
  const closed: Parameters<Recordings['recover']>[0] = async (
    { tenant_id, session_uid, channel },
    ending,
  ) => {
    log.warn({ event: 'recording.closed', session: session_uid, channel, ending })
    await stores.of(tenant_id).sessions.save(session_uid, { recorded: 1, index_at: iso(clock.now()) })
  }
  background.later('recording.recovery', () => recorded.recover(closed))
  nodes?.onCleanup(() => background.later('recording.inheritance', () => recorded.inherit(closed)))
}

const mebi = 1024 * 1024
const usualQuota_bytes = 10_000 * mebi

/**
 * By default a namespace has the usual quota, or twice what it held when first measured: an upgrade must not
 * end recordings where there were many before. Decided once and stored.
 */
function quotaOf(
  setting: Config['HAWSER_RECORDING_QUOTA'],
  stores: Foundation['stores'],
): Pick<QuotaParts, 'quota_bytes' | 'ownQuota'> {
  if (setting !== 'auto') return { quota_bytes: setting }
  return {
    quota_bytes: usualQuota_bytes,
    ownQuota: async (tenant_id, used_bytes) =>
      (await stores.namespaces.decideRecordingQuota(tenant_id, Math.max(usualQuota_bytes, 2 * used_bytes))) ??
      usualQuota_bytes,
  }
}

/** The code of a store is loaded only where it is used. */
async function recordingStorage(config: Config, log: Log, ledger: Ledger | undefined) {
  const folder = path.join(config.HAWSER_DATA, 'recordings')
  const { HAWSER_RECORDINGS: place } = config
  if (!place.startsWith('s3:')) return diskStorage(place || folder)
  const { objectStorage } = await import('../recording/storage/object-storage.ts')
  return objectStorage({
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

/**
 * The search over recordings. With SQLite its index is a file of its own, which is made anew where it is missing.
 */
async function openSearch(
  { config, log, clock, stores, bus, background, disks, serving }: Foundation,
  recordings: Pick<Recordings, 'read' | 'channels'>,
): Promise<Search> {
  const file = path.join(config.HAWSER_DATA, 'search.db')
  if (!config.HAWSER_DATABASE && !isAdopted(file)) {
    // Marked first: a crash in between repeats both.
    await stores.searchQueue.markAll()
    adopt(file)
  }
  const of = (name: JournalName | undefined) => ({ session: name?.session_uid, channel: name?.channel })
  const searching = background.own(
    startSearch({
      place: config.HAWSER_DATABASE ? { url: config.HAWSER_DATABASE } : { file },
      queue: stores.searchQueue,
      journals: { read: recordings.read, list: recordings.channels },
      clock,
      // With SQLite the index shares the disk with the database, which needs the rest of it more.
      hasRoom: () => config.HAWSER_DATABASE !== '' || disks === undefined || disks.data.state === 'ok',
      onIndexed: (name, about) => log.debug({ event: 'search.indexed', ...of(name), ...about }),
      onError: (err, name) => log.error({ event: 'search.failed', ...of(name), err }),
      onGivenUp: ({ uid }) => log.error({ event: 'search.given-up', session: uid }),
    }),
  )
  background.own(
    bus.hear('namespace.changed', ({ tenant_id }) =>
      background.later('search.settings', () => searching.namespaceChanged(tenant_id)),
    ),
  )
  if (serving) searching.start()
  return searching
}
