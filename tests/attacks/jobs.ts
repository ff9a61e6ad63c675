// Counts what node:crypto computes: on the only thread, while everybody waits, and on other threads, while
// nobody does. A job that another thread has done comes back to the loop by a callback of its own; one that
// was done at once never does.
import { createHook } from 'node:async_hooks'

export interface Jobs extends Disposable {
  /** Names of Node, such as SIGNREQUEST, of what another thread has computed so far. */
  readonly elsewhere: readonly string[]
  /** Signatures, verifications and exchanges that were computed at once, or have not come back. */
  readonly here: readonly string[]
}

const costly = /^(SIGN|VERIFY|DH|ECDH|DIFFIEHELLMAN|KEYPAIRGEN|DERIVEBITS)/

export function countJobs(): Jobs {
  const begun = new Map<number, string>()
  const elsewhere: string[] = []
  const hook = createHook({
    init: (id, type) => void (costly.test(type) && begun.set(id, type)),
    before(id) {
      const type = begun.get(id)
      begun.delete(id)
      if (type !== undefined) elsewhere.push(type)
    },
  }).enable()
  return {
    elsewhere,
    get here() {
      return [...begun.values()]
    },
    [Symbol.dispose]: () => void hook.disable(),
  }
}
