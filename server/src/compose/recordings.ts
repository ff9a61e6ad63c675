// Composition of what is recorded: the key that signs recordings, where they are stored, their quota, the
// search over them, and the sweep that removes old ones and those of devices and namespaces that are gone.
import path from 'node:path'
import type { Config } from '../config.ts'
import type { Audit } from '../domain/audit/audit.ts'
import { recordingSweep } from '../domain/sessions/recording-sweep.ts'
import { iso } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { recordingKey } from '../recording/key.ts'
import { recordingQuota, type QuotaParts } from '../recording/quota.ts'
import { recordings, type Recordings } from '../recording/recordings.ts'
import { diskStorage } from '../recording/storage/disk.ts'
import type { Ledger } from '../recording/storage/object-storage.ts'
import type { Search } from '../search/search.ts'
import type { Foundation } from './foundation.ts'
import { openSearch } from './search.ts'

export interface RecordingRooms {
  readonly recordings: Recordings
  /** The public half of the key that signs them. */
  readonly recordingKey: string
  /** Finished recordings that wait for their upload to the bucket. */
  unsent(): number
  readonly search: Search
  /** Removes recordings that are too old or whose device or namespace was deleted. */
  readonly sweepRecordings: () => Promise<void>
}

export async function openRecordings(foundation: Foundation, audit: Audit): Promise<RecordingRooms> {
  const { config, log, clock, stores, vault, background, disks, clustered, node, serving } = foundation
  const key = await recordingKey({
    kept: stores.recordingKeys,
    vault,
    now: () => iso(clock.now()),
  })
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
  // Owned before the recordings, and so closed after them: a stop closes open recordings and then sends them.
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

const mebi = 1024 * 1024
const usualQuota_bytes = 10_000 * mebi

/**
 * By default a namespace has the usual quota, or twice what it held when it was first measured: an upgrade
 * must not end the recordings of whoever had many before there was a quota. That is decided once and stored.
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

/** A folder, or a store, whose code is loaded only then. */
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
