// Composition of the search over recordings: where its index is, the list of what is to be indexed, and what
// the log says about it. Beside SQLite the index is a file of its own, which is made anew
// where it is missing.
import path from 'node:path'
import type { JournalName } from '../recording/journal.ts'
import type { Recordings } from '../recording/recordings.ts'
import { search, type Search } from '../search/search.ts'
import { adopt, isAdopted } from '../storage/search/sqlite.ts'
import type { Foundation } from './foundation.ts'

export async function openSearch(
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
    search({
      place: config.HAWSER_DATABASE ? { url: config.HAWSER_DATABASE } : { file },
      queue: stores.searchQueue,
      journals: { read: recordings.read, list: recordings.channels },
      clock,
      // Beside SQLite the index shares the disk with the database, which needs the rest of it more.
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
