// The bus within one process: hearers are called at once, in the order in which they began to listen. There
// are no other nodes, so nothing is missed, and whatever is not here is held by nobody.
import { EventEmitter } from 'node:events'
import type { Bus, HeldName } from './bus.ts'

const nothing: Disposable = { [Symbol.dispose]: () => undefined }
const held: HeldName = { ...nothing, known: () => Promise.resolve() }

export function localBus(): Bus {
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  return {
    tell: (what, news) => void emitter.emit(what, news),
    hear(what, hearer) {
      emitter.on(what, hearer)
      return { [Symbol.dispose]: () => void emitter.off(what, hearer) }
    },
    hold: () => held,
    seek: () => Promise.resolve(undefined),
    missed: () => nothing,
    connected: true,
    refused: 0,
  }
}
