// Recordings as a player reads them, in the caller's namespace: the recorded terminals of a session, a part
// of one, and a search for text in one.
import { Failure } from '@hawser/contract/failures'
import type { JournalName } from '../../recording/journal.ts'
import type { Recordings } from '../../recording/recordings.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'

export interface RecordingParts {
  stores: Stores
  recordings: Pick<Recordings, 'channels' | 'facts' | 'part' | 'search'>
}

export function recordingRules({ stores, recordings }: RecordingParts): Rules<'recordings'> {
  async function terminals(uid: string, tenant_id: string): Promise<JournalName[]> {
    if (!(await stores.of(tenant_id).sessions.find(uid))) throw new Failure('notFound')
    return recordings.channels(tenant_id, uid)
  }
  async function one(
    { uid, channel }: { uid: string; channel: string },
    tenant_id: string,
  ): Promise<JournalName> {
    const name = (await terminals(uid, tenant_id)).find((terminal) => terminal.channel === Number(channel))
    if (!name) throw new Failure('notFound', { message: 'The session has no such recorded terminal.' })
    return name
  }
  return {
    async list({ params }, { tenant_id }) {
      return Promise.all((await terminals(params.uid, tenant_id)).map((name) => recordings.facts(name)))
    },
    async window({ params, query }, { tenant_id }) {
      const name = await one(params, tenant_id)
      const { time_ms, size, screen, events, next } = await recordings.part(
        name,
        query.from === undefined ? { at_ms: query.at ?? 0 } : { from: query.from },
      )
      return {
        time_ms,
        width: size.width,
        height: size.height,
        screen: screen.toString('base64'),
        events: events.map((event) =>
          'bytes' in event ? { time_ms: event.time_ms, bytes: event.bytes.toString('base64') } : event,
        ),
        next: next ?? null,
      }
    },
    async search({ params, query }, { tenant_id }) {
      const { hits, next } = await recordings.search(
        await one(params, tenant_id),
        query.text,
        query.from ?? 0,
      )
      return { found: [...hits], next: next ?? null }
    },
  }
}
