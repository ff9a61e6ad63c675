// A queue between someone who pushes at once and someone who takes in time, with a named bound: `push` says
// no when it is full, and what happens then is for the caller to say. After `end` what is left can still be
// taken.

/** Input of the peer that waits to be taken, in order. */
export interface Queue<T> extends AsyncIterable<T> {
  /** False: the queue is full or has ended, and the item was dropped. */
  push(item: T): boolean
  /** Undefined after the last; throws the error that the queue ended with. */
  next(): Promise<T | undefined>
  end(error?: Error): void
  readonly length: number
}

/** `onTaken`: called for each item when it is taken. */
export function queue<T>(most: number, onTaken: (item: T) => void = () => undefined): Queue<T> {
  const items: T[] = []
  const waiting: { resolve: (item: T | undefined) => void; reject: (error: Error) => void }[] = []
  let ended = false
  let failure: Error | undefined

  const next = async (): Promise<T | undefined> => {
    if (items.length > 0) {
      const item = items.shift()!
      onTaken(item)
      return item
    }
    if (failure) throw failure
    if (ended) return undefined
    return new Promise((resolve, reject) => void waiting.push({ resolve, reject }))
  }

  return {
    push(item) {
      if (ended) return false
      const taker = waiting.shift()
      if (taker) {
        taker.resolve(item)
        onTaken(item)
      } else if (items.length >= most) return false
      else items.push(item)
      return true
    },
    next,
    end(error) {
      if (ended) return
      ended = true
      failure = error
      for (const taker of waiting.splice(0)) {
        if (error) taker.reject(error)
        else taker.resolve(undefined)
      }
    },
    get length() {
      return items.length
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const item = await next()
        if (item === undefined) return
        yield item
      }
    },
  }
}
