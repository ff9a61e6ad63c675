// The client's end of a session, as the pipe sees it. Each session channel on it is a Terminal (terminal.ts): when the
// client is lost, one of them may be held, and the end lasts as long as that one. Everything else ends with the
// client, ports on the device included (remote-forwards.ts). Channels that the device wants to open lead to the client
// that opened the session and to no other: a client that reattaches has asked for none.
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  localPair,
  OpenFailure,
  queue,
  Reason,
  type ConnectionEnd,
  type ConnectionEnded,
  type Opening,
} from '@hawser/ssh'
import type { Size } from '../../recording/journal.ts'
import { withoutLeftForwards } from './remote-forwards.ts'
import { clientOf, type ClientEnd } from './client.ts'
import { Terminal, type TerminalParts } from './terminal.ts'

/** The near end of a session that begins without a client. */
export function lostEnd(): ConnectionEnd {
  const [client, near] = localPair()
  void client.end(Reason.connectionLost, 'The server was away.')
  return near
}

export type JoiningEnd = Pick<ConnectionEnd, 'channels' | 'ended'>

export interface NearEnd extends ConnectionEnd {
  /** Takes the channels that another client, which reattached, opens. */
  join(other: JoiningEnd): Promise<void>
  /** Adds a held terminal whose program runs already; undefined: it cannot be held. */
  restore(size: Size, isWhole: boolean): Terminal | undefined
  /** Open terminals, oldest first. */
  readonly terminals: ReadonlySet<Terminal>
  /** Whether the client that opened the session is still there. */
  readonly hasClient: boolean
}

const overSentence = 'The session is over.'
/** Channels that wait for the device. */
const mostOpenings = 256

export function nearEnd(near: ConnectionEnd & ClientEnd, parts: TerminalParts): NearEnd {
  const terminals = new Set<Terminal>()
  const ended = Promise.withResolvers<ConnectionEnded>()
  let left: ConnectionEnded | undefined
  let isStopping = false

  const check = (): void => {
    if (left && terminals.size === 0) ended.resolve(left)
  }
  void near.ended.then(async (how) => {
    // Terminals learn of it at the same moment, and decide whether they are held.
    await nextTurn()
    left = how
    check()
  })

  const ownParts: TerminalParts = {
    ...parts,
    onLost(terminal) {
      // SFTP next to a terminal is lost with the client, and not held.
      const others = [...terminals].filter((one) => one !== terminal && one.isHoldable)
      const isSecond = others.some(({ client }) => client?.end.ended !== near.ended)
      return isStopping || isSecond ? undefined : parts.onLost(terminal)
    },
  }
  function open(type: string): Terminal {
    const terminal = new Terminal(type, ownParts)
    terminals.add(terminal)
    void terminal.closed.then(() => {
      terminals.delete(terminal)
      check()
    })
    return terminal
  }

  const wrap = (opening: Opening, client: ClientEnd): Opening => {
    if (opening.type !== 'session') return opening
    return {
      ...opening,
      accept(payload) {
        const channel = opening.accept(payload)
        const terminal = open(channel.type)
        terminal.begin(clientOf(channel, client, terminal))
        // The channel was on its way when the session was ended.
        if (isStopping) void terminal.stop(overSentence)
        return terminal
      },
    }
  }
  const channels = queue<Opening>(mostOpenings)
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
    get hasClient() {
      return left === undefined
    },
    join: async (other) => join(other, false),
    restore(size, isWhole) {
      const terminal = open('session')
      return terminal.restore(size, isWhole) ? terminal : undefined
    },
    channels,
    requests: withoutLeftForwards(near, ended.promise),
    openEarly: near.openEarly,
    open: async (type, payload, signal) => near.open(type, payload, signal),
    request: async (name, payload) => near.request(name, payload),
    tell: (name, payload) => near.tell(name, payload),
    async end(reason, text) {
      isStopping = true
      for (const terminal of terminals)
        if (terminal.client?.end.ended !== near.ended) void terminal.stop(text ?? overSentence)
      await near.end(reason, text)
      await ended.promise
    },
    ended: ended.promise,
  }
}
