// What a caller learns whose change was too late: another was first to take what can be there only once.
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../../storage/stores.ts'

/** For the `catch` of a change. Without a message, the caller reads that of every conflict. */
export const orConflict =
  ({ isDuplicate }: Pick<Stores, 'isDuplicate'>, says: { readonly message?: string } = {}) =>
  (error: unknown): never => {
    if (isDuplicate(error)) throw new Failure('conflict', { ...says, cause: error })
    throw error
  }
