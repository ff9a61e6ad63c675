// The bus within one process: hearers are called at once, in the order in which they began to listen. Without
// other nodes, nothing is missed, and nobody else holds names.
import { EventEmitter } from 'node:events'
import type { Bus } from './bus.ts'

const nothing: Disposable = { [Symbol.dispose]: () => undefined }

export function localBus(): Bus {
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  /** How often each name is held: a newer holder may come before the older one has gone. */
  const names = new Map<string, number>()
  return {
    tell: (what, news) => void emitter.emit(what, news),
    hear(what, hearer) {
      emitter.on(what, hearer)
      return { [Symbol.dispose]: () => void emitter.off(what, hearer) }
    },
    hold(name) {
      names.set(name, (names.get(name) ?? 0) + 1)
      const stack = new DisposableStack()
      stack.defer(() => {
        const left = (names.get(name) ?? 1) - 1
        if (left > 0) names.set(name, left)
        else names.delete(name)
      })
      return { known: () => Promise.resolve(), [Symbol.dispose]: () => stack.dispose() }
    },
    holds: (name) => names.has(name),
    seek: () => Promise.resolve(undefined),
    missed: () => nothing,
    connected: true,
    refused: 0,
  }
}
