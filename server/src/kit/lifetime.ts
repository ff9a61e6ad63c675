// Lifetimes. Whoever opens something closes it: parts are pushed here in the order of their birth and shut
// down in reverse. Work that goes on after an answer was given (an e-mail, a batch) is counted here too, so
// that a stopping server waits for it instead of cutting it off.

export interface Lifetime extends AsyncDisposable {
  /** Registers something to close; returns it. */
  own<T extends AsyncDisposable | Disposable>(part: T): T
  /** Runs work that nobody waits for; it is awaited when the lifetime ends. */
  later(what: string, work: () => Promise<void>): void
  /** Resolves when all such work of the moment is done. */
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
