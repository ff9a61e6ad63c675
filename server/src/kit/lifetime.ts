// Lifetimes: parts are pushed in the order of their birth and closed in reverse. Background work (an e-mail,
// a batch) is counted, too, so that a stopping server waits for it.

export interface Lifetime extends AsyncDisposable {
  /** Registers something to close; returns it. */
  own<T extends AsyncDisposable | Disposable>(part: T): T
  /** Runs background work; it is awaited when the lifetime ends. */
  later(what: string, work: () => Promise<void>): void
  /** Resolves when the present background work is done. */
  settled(): Promise<void>
}

export function lifetime(onError: (what: string, error: unknown) => void): Lifetime {
  const stack = new AsyncDisposableStack()
  const running = new Set<Promise<void>>()
  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.all(running)
  }
  return {
    own: (part) => stack.use(part),
    later(what, work) {
      const task = work()
        .catch((error: unknown) => onError(what, error))
        .finally(() => running.delete(task))
      running.add(task)
    },
    settled,
    async [Symbol.asyncDispose]() {
      await settled()
      await stack.disposeAsync()
    },
  }
}
