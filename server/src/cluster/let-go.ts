// A node asks another to let go of a session whose person has reattached here. The device's agent then hands
// the terminal to the asking node (gateway/terminal/take-over.ts).
import type { Bus } from '../bus/bus.ts'
import type { Gateway } from '../gateway/login/listen.ts'
import type { RestoreParts } from '../gateway/terminal/restore.ts'

type Reattached = Parameters<Gateway['handOver']>[1]
type Question = Reattached & { readonly session: string }

const nameOf = (node: string): string => `let-go.${node}`

/** A session's node that does not answer loses the terminal all the same. */
export const askToLetGo =
  (bus: Pick<Bus, 'seek'>): RestoreParts['letGo'] =>
  async (node, session, by) => {
    const question: Question = { session, ...by }
    await bus.seek(nameOf(node), JSON.stringify(question)).catch(() => undefined)
  }

/** Answers once the session is let go. */
export const letsGo = (bus: Pick<Bus, 'hold'>, node: string, handOver: Gateway['handOver']): Disposable =>
  bus.hold(nameOf(node), (question) => {
    const { session, ...by } = JSON.parse(question) as Question
    handOver(session, by)
    return 'done'
  })
