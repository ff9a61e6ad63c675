// A recorded session without a device: its record in the database, and a journal with what it showed, as a
// session of the gateway leaves them when it is over.
import { randomBytes } from 'node:crypto'
import { sample } from '@hawser/contract/examples'
import type { Mark } from '../../server/src/recording/journal.ts'
import type { Service } from './service.ts'

export interface Shown {
  readonly device?: string
  readonly username?: string
  readonly tenant?: string
  /** The person of the session. */
  readonly person?: { readonly id: string; readonly name: string }
  /** Pieces of output, and marks between them. */
  readonly lines: readonly (string | Mark)[]
  /** Called after each of them. */
  readonly between?: () => void
  readonly size?: { readonly width: number; readonly height: number }
}

const usual = { width: 80, height: 24 }

/** Returns the uid of the session. */
export async function recordSession(
  { clock, stores, recordings }: Pick<Service['rooms'], 'clock' | 'stores' | 'recordings'>,
  {
    device = sample.device,
    username = 'root',
    tenant = sample.tenant,
    person,
    lines,
    between,
    size = usual,
  }: Shown,
): Promise<string> {
  const uid = randomBytes(32).toString('hex')
  const now = new Date(clock.now()).toISOString()
  await stores.of(tenant).sessions.insert({
    uid,
    device_uid: device,
    username,
    ip_address: '192.0.2.1',
    started_at: now,
    last_seen: now,
    active: 0,
    authenticated: 1,
    recorded: 1,
    type: 'shell',
    term: 'xterm',
    position: '{"latitude":0,"longitude":0}',
    index_at: now,
    ...(person && { person_kind: 'user', person_id: person.id, person_name: person.name }),
  })
  const about = { tenant_id: tenant, session_uid: uid, device_uid: device, username, term: 'xterm' }
  const recording = await recordings.begin({ ...about, ...size })
  recording.mark({ type: 'program', program: 'shell' })
  for (const line of lines) {
    if (typeof line === 'string') await recording.output(Buffer.from(line))
    else recording.mark(line)
    between?.()
  }
  await recording.finish()
  return uid
}
