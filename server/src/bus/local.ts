// The bus within one process: hearers are called at once, in the order in which they began to listen.
import { EventEmitter } from 'node:events'
import type { Bus } from './bus.ts'

export function localBus(): Bus {
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  return {
    tell: (what, news) => void emitter.emit(what, news),
    hear(what, hearer) {
      emitter.on(what, hearer)
      return { [Symbol.dispose]: () => void emitter.off(what, hearer) }
    },
  }
}
