// The client's end of a session, as the pipe sees it. Terminals on it are kept (kept-terminal.ts): when the
// client is lost, one of them may go on without it, and the end lasts as long as that terminal. Everything
// else ends with the client, ports on the device included (remote-forwards.ts). Channels that the device wants
// to open lead to the client that opened the session and to no other: who comes back has asked for none.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { OpenFailure, type ConnectionEnd, type ConnectionEnded, type Opening } from '@hawser/ssh'
import { boundedQueue } from './bounded-queue.ts'
import { clientOf, KeptTerminal, type ClientEnd, type KeptTerminalParts } from './kept-terminal.ts'
import { withoutLeftForwards } from './remote-forwards.ts'

/** What is needed of the connection of a client that continues the session. */
export type JoiningEnd = Pick<ConnectionEnd, 'channels' | 'ended'>

export interface KeptEnd extends ConnectionEnd {
  /** Takes what another client, which continues the session, opens beside its terminal. */
  join(other: JoiningEnd): Promise<void>
  /** Terminals that go on, the oldest first. */
  readonly terminals: ReadonlySet<KeptTerminal>
}

const overSentence = 'The session is over.'

export function keptEnd(near: ConnectionEnd & ClientEnd, parts: KeptTerminalParts): KeptEnd {
  const terminals = new Set<KeptTerminal>()
  const ended = Promise.withResolvers<ConnectionEnded>()
  let left: ConnectionEnded | undefined
  let isStopping = false

  const check = (): void => {
    if (left && terminals.size === 0) ended.resolve(left)
  }
  void near.ended.then(async (how) => {
    // Terminals hear of it at the same moment, and decide whether they go on.
    await nextTurn()
    left = how
    check()
  })

  const kept: KeptTerminalParts = {
    ...parts,
    onLost(terminal) {
      // Files beside a terminal are lost with the same client, and not held.
      const others = [...terminals].filter((one) => one !== terminal && one.isHoldable)
      const isSecond = others.some(({ client }) => client?.ended !== near.ended)
      return !isStopping && !isSecond && parts.onLost(terminal)
    },
  }

  const wrap = (opening: Opening, client: ClientEnd): Opening => {
    if (opening.type !== 'session') return opening
    return {
      ...opening,
      accept(payload) {
        const channel = opening.accept(payload)
        const terminal = new KeptTerminal(channel.type, kept)
        terminals.add(terminal)
        void terminal.closed.then(() => {
          terminals.delete(terminal)
          check()
        })
        terminal.begin(clientOf(channel, client, terminal))
        // The channel was on its way when the session was ended.
        if (isStopping) void terminal.stop(overSentence)
        return terminal
      },
    }
  }
  /** Channels of the client that opened the session, and of others that continue it. */
  const channels = boundedQueue<Opening>()
  const join = async (other: JoiningEnd, isFirst: boolean): Promise<void> => {
    for await (const opening of other.channels) {
      const taken = isFirst || opening.type === 'session' ? channels.push(wrap(opening, other)) : false
      if (!taken) opening.refuse(OpenFailure.resourceShortage, 'This is not possible now.')
    }
  }
  void join(near, true)
  void ended.promise.then(() => channels.end())

  return {
    terminals,
    join: async (other) => join(other, false),
    channels,
    requests: withoutLeftForwards(near, ended.promise),
    openEarly: near.openEarly,
    open: async (type, payload, signal) => near.open(type, payload, signal),
    request: async (name, payload) => near.request(name, payload),
    tell: (name, payload) => near.tell(name, payload),
    async end(reason, text) {
      isStopping = true
      for (const terminal of terminals)
        if (terminal.client?.ended !== near.ended) void terminal.stop(text ?? overSentence)
      await near.end(reason, text)
      await ended.promise
    },
    ended: ended.promise,
  }
}
