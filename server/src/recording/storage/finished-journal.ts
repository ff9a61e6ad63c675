// Uploads a finished journal; with a ledger only while no other node has finished it. What this node has beyond a
// journal that another node has finished is uploaded as another channel.
import { stat } from 'node:fs/promises'
import type { JournalName } from '../journal.ts'
import { events, placeBefore, readEnd, readHeader } from '../reader.ts'
import { bucketJournal } from './bucket-journal.ts'
import type { DiskStorage } from './disk.ts'
import type { Ledger } from './ledger.ts'
import type { Bucket } from './s3.ts'
import { NotOwner, type UploadQueueParts } from './upload-queue.ts'

/**
 * A node that returns uploads what it has beyond the finished journal if it is longer than this, the usual
 * delay of a replica.
 */
const spare_ms = 5_000

interface UploadParts {
  disk: DiskStorage
  bucket: Bucket
  ledger: Ledger | undefined
  keyOf(name: JournalName): string
  /** Whether the ledger had an entry of this node for the journal. */
  wasOurs(name: JournalName): boolean
  listed(tenant_id: string, session_uid: string): Promise<number[]>
}

export function finishedUpload({
  disk,
  bucket,
  ledger,
  keyOf,
  wasOurs,
  listed,
}: UploadParts): UploadQueueParts['send'] {
  async function upload(name: JournalName, key: string, abort: AbortController): Promise<void> {
    const file = disk.fileOf(name)
    await bucket.upload(key, file, (await stat(file)).size, abort)
  }

  /** Unless another node has; throws when the bucket does not have all of it afterwards. */
  async function send(name: JournalName, abort: AbortController): Promise<void> {
    const whose = (await ledger?.take(name)) ?? 'ours'
    if (whose === 'theirs') throw new NotOwner('another node finishes it')
    if (whose === 'ours') {
      await upload(name, keyOf(name), abort)
      // Another node has finished the journal in between.
      if (ledger && !(await ledger.end(name))) await sendBeside(name, abort)
    } else {
      if (await bucket.has(keyOf(name))) {
        // Another node has finished the journal before.
        if (await hasMore(name)) await sendBeside(name, abort)
      } else if (!wasOurs(name)) await upload(name, keyOf(name), abort)
      // Otherwise another node has removed the journal.
      await ledger!.end(name)
    }
  }

  async function hasMore(name: JournalName): Promise<boolean> {
    await using ours = await disk.read(name)
    await using theirs = await bucketJournal(bucket, keyOf(name))
    // Two journals that share nothing but their number.
    if (JSON.stringify(await readHeader(ours)) !== JSON.stringify(await readHeader(theirs))) return true
    const [our, their] = [await readEnd(ours), await readEnd(theirs)]
    if (!our || !their || our.duration_ms - their.duration_ms <= spare_ms) return false
    const from = placeBefore(our.index, ({ time_ms }) => time_ms <= their.duration_ms)
    for await (const { time_ms } of events(ours, from))
      if (time_ms > their.duration_ms) return our.duration_ms - time_ms > spare_ms
    return false
  }

  async function sendBeside(name: JournalName, abort: AbortController): Promise<void> {
    const { tenant_id, session_uid } = name
    let channel = Math.max(-1, ...(await listed(tenant_id, session_uid)))
    let other: JournalName
    do other = { ...name, channel: (channel += 1) }
    while ((await ledger?.take(other)) === 'theirs' || (await bucket.has(keyOf(other))))
    await upload(name, keyOf(other), abort)
    await ledger?.end(other)
  }

  return send
}
