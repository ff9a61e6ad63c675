// The answer to a change that came too late: another one has taken a name, or a place, that exists once.
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../../storage/stores.ts'

/** For the `catch` of a change. Without a message, the caller reads that of every conflict. */
export const orConflict =
  ({ isDuplicate }: Pick<Stores, 'isDuplicate'>, says: { readonly message?: string } = {}) =>
  (error: unknown): never => {
    if (isDuplicate(error)) throw new Failure('conflict', { ...says, cause: error })
    throw error
  }
