// The interface to the storage of journals: append to one, read it at any place, list those of a session,
// remove them. After a crash the storage knows which journals were begun and not finished.
import type { JournalName } from '../journal.ts'

export interface JournalStorage {
  /**
   * The channel is the first free number from the given one on. `isOld`: the session may have journals from
   * before this process started.
   */
  create(name: JournalName, isOld?: boolean): Promise<Appending>
  read(name: JournalName): Promise<Reading>
  list(tenant_id: string, session_uid: string): Promise<JournalName[]>
  used(tenant_id: string): Promise<number>
  /** Returns how many there were. */
  remove(tenant_id: string, session_uid: string): Promise<number>
  unfinished(): Promise<JournalName[]>
  /** Opens an unfinished journal to finish it. */
  reopen(name: JournalName): Promise<Appending & Reading>
  /** For an unfinished journal in which nothing can be read. */
  discard(name: JournalName): Promise<void>
  /** Copies a few unfinished journals of lost nodes from the shared bucket, for this node to finish. */
  inherited?(): Promise<JournalName[]>
  /** Continues uploads from before this process started. */
  resume?(): Promise<void>
}

export interface Appending {
  readonly name: JournalName
  append(bytes: Buffer[]): Promise<void>
  /** Everything appended so far survives a loss of power. */
  sync(): Promise<void>
  cut(length: number): Promise<void>
  /** `finished`: nothing will ever be appended again. */
  close(finished: boolean): Promise<void>
}

export interface Reading extends AsyncDisposable {
  size(): Promise<number>
  /** Returns fewer bytes than requested only at the end of the journal. */
  at(offset: number, length: number): Promise<Buffer>
}
