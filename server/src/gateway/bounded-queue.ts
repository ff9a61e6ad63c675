// A queue of bounded length. Its items are passed on in order; one that finds the queue full is refused.
import type { Queue } from '@hawser/ssh'

/** The same bound as that of a connection and of its channels. */
const most = 256

export function boundedQueue<T extends object>(): Queue<T> {
  const items: T[] = []
  let waiting: ((item: T | undefined) => void) | undefined
  let ended = false
  const next = async (): Promise<T | undefined> => {
    const item = items.shift()
    if (item || ended) return item
    return new Promise((resolve) => (waiting = resolve))
  }
  const give = (item: T | undefined): boolean => {
    const taker = waiting
    waiting = undefined
    taker?.(item)
    return taker !== undefined
  }
  return {
    push(item) {
      if (ended || (items.length >= most && !waiting)) return false
      if (!give(item)) items.push(item)
      return true
    },
    next,
    end() {
      ended = true
      if (items.length === 0) give(undefined)
    },
    get length() {
      return items.length
    },
    async *[Symbol.asyncIterator]() {
      for (let item = await next(); item; item = await next()) yield item
    },
  }
}
