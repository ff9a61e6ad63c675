// Journals that a thread reads without having them: the server's own thread knows where they are, opens them
// and gives out parts of them on request. A journal that was taken back cannot be read any further, which
// ends the work that reads it.
import type { Calls } from './calls.ts'
import type { Reading } from './storage/storage.ts'

export type JournalReader = {
  at(journal: number, offset: number, length: number): Promise<Uint8Array>
  size(journal: number): Promise<number>
}

export interface OpenJournals {
  readonly reader: JournalReader
  /** Returns the number by which the other thread reads the journal. */
  lend(file: Reading): number
  takeBack(journal: number): void
}

export function lentJournals(): OpenJournals {
  const open = new Map<number, Reading>()
  let last = 0
  const of = (journal: number): Reading => {
    const file = open.get(journal)
    if (!file) throw new Error('the journal is closed')
    return file
  }
  return {
    reader: {
      at: async (journal, offset, length) => of(journal).at(offset, length),
      size: async (journal) => of(journal).size(),
    },
    lend(file) {
      open.set(++last, file)
      return last
    },
    takeBack: (journal) => void open.delete(journal),
  }
}

/** The journal on the side of the reading thread. */
export function borrowed(server: Calls<JournalReader>, journal: number): Reading {
  return {
    size: () => server.call('size', journal),
    at: async (offset, length) => Buffer.from(await server.call('at', journal, offset, length)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
