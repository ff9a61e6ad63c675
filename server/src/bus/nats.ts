// The bus between nodes, on NATS core: a fact is told here at once and published for the others; a name that
// is held is a subject with one subscriber, so that asking for one that nobody holds is answered at once by
// the NATS server ("no responders"), and a node that dies no longer holds anything. While NATS is away news are
// not kept: when it is back, the hearers are told that they may have missed some, and so are those on the
// other nodes if this one had any to tell. Reconnecting, and subscribing anew, is the client library's work.
// NATS itself is not trusted: everything that nodes say there is sealed (sealed.ts), and what cannot be
// opened is not answered.
import { connect, NoRespondersError, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import type { Bus, News } from './bus.ts'
import { localBus } from './local.ts'
import { Refused, seal, type Reason } from './sealed.ts'

export interface NatsBusOptions {
  /**
   * Addresses, separated by commas: nats:// or tls://, with a user and a password or a token if there are
   * any.
   */
  readonly servers: string
  /** The beginning of all subjects: another installation on the same NATS has another one. */
  readonly prefix: string
  readonly name: string
  /** The key of the installation: messages on NATS are sealed with keys made from it. */
  readonly masterKey: Buffer
  onEvent(event: 'nats.connected' | 'nats.lost' | 'nats.failed' | 'nats.refused', error?: Error): void
}

/** For an answer from another node; that nobody holds a name is known sooner. */
const answer_ms = 3_000
/** A node that cannot be heard is noticed within two of these. */
const ping_ms = 2_000
/** News from this long before a lost connection was noticed may have been lost with it. */
const unsure_ms = 3 * ping_ms
/** Several nodes come back at the same time, and news missed from this one are looked up once. */
const gather_ms = 1_000
/** Each refused message is counted, but each reason is logged at most once in this time. */
const complaint_ms = 10_000

const cutOff = (cause?: unknown): Failure =>
  new Failure('unavailable', {
    message: 'This node is cut off from the others; try again.',
    retryAfter: 5,
    cause,
  })

function refusalsOf(onEvent: NatsBusOptions['onEvent']) {
  const complained = new Map<Reason, number>()
  let count = 0

  function add(error: unknown): void {
    if (!(error instanceof Refused)) return onEvent('nats.failed', error as Error)
    count += 1
    const now = performance.now()
    if (now - (complained.get(error.reason) ?? -Infinity) < complaint_ms) return
    complained.set(error.reason, now)
    onEvent('nats.refused', error)
  }

  return {
    add,
    get count() {
      return count
    },
  }
}

function answerTo(
  message: Msg,
  { open, sealAnswer }: ReturnType<typeof seal>,
  answer: Parameters<Bus['hold']>[1],
  refuse: (error: unknown) => void,
): void {
  try {
    const { text, id } = open(message.subject, message.data)
    // Silence would make the other node wait.
    const respond = (said?: string): void => void message.respond(sealAnswer(id, said ?? ''))
    Promise.resolve(answer(text)).then(respond, () => respond())
  } catch (cause) {
    refuse(cause)
  }
}

export async function natsBus(options: NatsBusOptions): Promise<Bus & AsyncDisposable> {
  const { prefix, onEvent } = options
  const untoldSubject = `${prefix}.untold`
  const here = localBus()
  const connection = await connect(connectionOptions(options))
  const missed = new Set<() => void>()
  const sealed = seal(options.masterKey)
  const { seal: close, open, openAnswer } = sealed
  const refusals = refusalsOf(onEvent)
  let connected = true
  let losses = 0
  let closing = false
  let told_at = -Infinity
  let untold = false
  let gathering: NodeJS.Timeout | undefined

  function checkAgain(): void {
    for (const hearer of missed) hearer()
  }

  void follow(connection, (status) => {
    if (status === 'lost' && connected) {
      losses += 1
      onEvent('nats.lost')
      untold ||= performance.now() - told_at < unsure_ms
    }
    if (status === 'back' && !connected) {
      onEvent('nats.connected')
      checkAgain()
      if (untold) connection.publish(untoldSubject, close(untoldSubject, '').bytes)
      untold = false
    }
    connected = status === 'back'
  })
  void connection.closed().then((error) => {
    connected = false
    if (!closing) onEvent('nats.failed', error instanceof Error ? error : undefined)
  })
  connection.subscribe(`${prefix}.news.>`, {
    callback(error, message) {
      if (error) return
      const what = message.subject.slice(`${prefix}.news.`.length)
      try {
        here.tell(
          what as keyof News,
          JSON.parse(open(message.subject, message.data).text) as News[keyof News],
        )
      } catch (cause) {
        refusals.add(cause)
      }
    },
  })
  connection.subscribe(untoldSubject, {
    callback(error, message) {
      if (error) return
      try {
        open(message.subject, message.data)
      } catch (cause) {
        return refusals.add(cause)
      }
      gathering ??= setTimeout(() => {
        gathering = undefined
        checkAgain()
      }, gather_ms).unref()
    },
  })
  await connection.flush()

  return {
    tell(what, news) {
      here.tell(what, news)
      // Counts for limits are worth nothing later.
      if (what !== 'limit.counted') {
        told_at = performance.now()
        untold ||= !connected
      }
      if (!connected) return
      const subject = `${prefix}.news.${what}`
      connection.publish(subject, close(subject, JSON.stringify(news)).bytes)
    },
    hear: here.hear,
    hold(name, answer) {
      const listed = here.hold(name, answer)
      const held = connection.subscribe(`${prefix}.held.${name}`, {
        callback: (error, message) => {
          if (!error) answerTo(message, sealed, answer, refusals.add)
        },
      })
      return {
        // NATS handles what a node sends in order: its answer means that it has the subscription, too.
        known: async () => (connected ? connection.flush().catch(() => undefined) : undefined),
        [Symbol.dispose]() {
          listed[Symbol.dispose]()
          held.unsubscribe()
        },
      }
    },
    holds: here.holds,
    async seek(name, question = '') {
      if (!connected) throw cutOff()
      const before = losses
      const subject = `${prefix}.held.${name}`
      const { bytes, id } = close(subject, question)
      try {
        const answer = await connection.request(subject, bytes, { timeout: answer_ms })
        return openAnswer(id, answer.data) || undefined
      } catch (error) {
        if (error instanceof Refused) refusals.add(error)
        if (
          error instanceof Error &&
          (error instanceof NoRespondersError || error.cause instanceof NoRespondersError)
        )
          return undefined
        throw connected && losses === before ? error : cutOff(error)
      }
    },
    missed(hearer) {
      missed.add(hearer)
      return { [Symbol.dispose]: () => void missed.delete(hearer) }
    },
    get connected() {
      return connected
    },
    get refused() {
      return refusals.count
    },
    async [Symbol.asyncDispose]() {
      closing = true
      clearTimeout(gathering)
      await connection.close()
    },
  }
}

function connectionOptions({ servers, name }: NatsBusOptions): Parameters<typeof connect>[0] {
  const urls = servers.split(',').map((server) => new URL(server.trim()))
  const { username, password, protocol } = urls[0]!
  const user = decodeURIComponent(username)
  return {
    servers: urls.map((url) => url.host),
    name: `hawser ${name}`,
    // A node hears its own news directly, and does not ask itself.
    noEcho: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: ping_ms,
    maxPingOut: 2,
    ...defined({ tls: protocol === 'tls:' ? {} : undefined }),
    ...(password ? { user, pass: decodeURIComponent(password) } : user ? { token: user } : {}),
  }
}

async function follow(
  connection: NatsConnection,
  onStatus: (status: 'lost' | 'back') => void,
): Promise<void> {
  for await (const { type } of connection.status()) {
    if (type === 'disconnect' || type === 'staleConnection') onStatus('lost')
    if (type === 'reconnect') onStatus('back')
  }
}
