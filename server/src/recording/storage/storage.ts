// Where journals are kept, as the rest of the room sees it: bytes that are appended to, read at any place,
// listed by session, and removed. A journal that was begun and not finished is known as such after a crash.
import type { JournalName } from '../journal.ts'

export interface Keep {
  /**
   * A new, empty journal; the channel is the first number that is free from the given one on. `isOld`: the
   * session may have journals from before this start.
   */
  create(name: JournalName, isOld?: boolean): Promise<Appending>
  read(name: JournalName): Promise<Reading>
  /** The journals of one session, in order. */
  list(tenant_id: string, session_uid: string): Promise<JournalName[]>
  /** What the journals of a namespace take up. */
  used(tenant_id: string): Promise<number>
  /** Removes all of them, and says how many there were. */
  remove(tenant_id: string, session_uid: string): Promise<number>
  /** Those that were begun and not finished. */
  unfinished(): Promise<JournalName[]>
  /** Opens one of them to bring it to its end. */
  reopen(name: JournalName): Promise<Appending & Reading>
  /** Forgets one in which nothing can be read. */
  discard(name: JournalName): Promise<void>
  /**
   * Brings here, to be brought to their ends, some that nodes which are gone have left in a place that all
   * share.
   */
  inherited?(): Promise<JournalName[]>
  /** Goes on with what was under way before this start. */
  resume?(): Promise<void>
}

export interface Appending {
  readonly name: JournalName
  append(bytes: Buffer[]): Promise<void>
  /** What was appended survives a loss of power. */
  sync(): Promise<void>
  /** Cuts off everything behind it. */
  cut(length: number): Promise<void>
  /** Closes; finished: nothing more will be appended, ever. */
  close(finished: boolean): Promise<void>
}

export interface Reading extends AsyncDisposable {
  /** As it is now. */
  size(): Promise<number>
  /** Fewer bytes than asked for only at the end. */
  at(offset: number, length: number): Promise<Buffer>
}
