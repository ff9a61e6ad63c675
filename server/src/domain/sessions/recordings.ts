// Recordings as a player reads them: the recorded terminals of a session, a part of one, and a search in one.
// search.ts searches all.
import { Failure } from '@hawser/contract/failures'
import type { JournalName } from '../../recording/journal.ts'
import type { Recordings } from '../../recording/recordings.ts'
import type { With } from '../audit/parts.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'

export interface RecordingParts extends With<'stores' | 'audit'> {
  recordings: Pick<Recordings, 'channels' | 'facts' | 'part' | 'filmstrip' | 'search' | 'usage'>
}

/** The number of pictures in a filmstrip. */
const usualMoments = 8

export function recordingRules({
  stores,
  audit,
  recordings,
}: RecordingParts): Omit<Rules<'recordings'>, 'find'> {
  async function terminals(uid: string, tenant_id: string): Promise<JournalName[]> {
    if (!(await stores.of(tenant_id).sessions.find(uid))) throw new Failure('notFound')
    return recordings.channels(tenant_id, uid)
  }
  /** A recorded terminal that the caller is about to see something of. */
  async function one(
    { uid, channel }: { uid: string; channel: string },
    caller: MemberCaller,
  ): Promise<JournalName> {
    const all = await terminals(uid, caller.tenant_id)
    const name = all.find((terminal) => terminal.channel === Number(channel))
    if (!name) throw new Failure('notFound', { message: 'The session has no such recorded terminal.' })
    // A player asks for part after part.
    await audit.eventOnce(caller, {
      action: 'recording.played',
      target: { kind: 'session', id: uid, name: '' },
    })
    return name
  }
  return {
    usage: async (_, { tenant_id }) => recordings.usage(tenant_id),
    async list({ params }, { tenant_id }) {
      return Promise.all((await terminals(params.uid, tenant_id)).map((name) => recordings.facts(name)))
    },
    async window({ params, query }, caller, end) {
      const name = await one(params, caller)
      const { time_ms, size, screen, typist, events, next } = await recordings.part(
        name,
        query.from === undefined ? { at_ms: query.at ?? 0 } : { from: query.from },
        end?.signal,
      )
      return {
        time_ms,
        width: size.width,
        height: size.height,
        screen: screen.toString('base64'),
        typist,
        events: events.map((event) =>
          'bytes' in event ? { time_ms: event.time_ms, bytes: event.bytes.toString('base64') } : event,
        ),
        next: next ?? null,
      }
    },
    async filmstrip({ params, query }, caller, end) {
      const most = query.moments ?? usualMoments
      const moments = await recordings.filmstrip(await one(params, caller), most, end?.signal)
      return moments.map(({ time_ms, size, output }) => ({
        time_ms,
        ...size,
        output: output.toString('base64'),
      }))
    },
    async search({ params, query }, caller, end) {
      const name = await one(params, caller)
      const { hits, next } = await recordings.search(name, query.text, query.from ?? 0, end?.signal)
      return { found: [...hits], next: next ?? null }
    },
  }
}
