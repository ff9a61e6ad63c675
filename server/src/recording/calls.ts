// Calls between two threads: each side offers functions and calls those of the other by name. Arguments and
// results are copied.
import { Failure, type FailureKind } from '@hawser/contract/failures'

export interface Port {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

export type CallHandlers = Readonly<Record<string, (...given: never[]) => unknown>>

interface Asked {
  readonly ask: number
  readonly name: string
  readonly given: unknown[]
}
interface Answered {
  readonly answer: number
  readonly value?: unknown
  readonly error?: {
    readonly message: string
    readonly stack?: string | undefined
    readonly kind?: FailureKind
    /** For the log. */
    readonly cause?: string
  }
}

export interface Calls<Theirs extends CallHandlers> {
  call<N extends keyof Theirs & string>(
    name: N,
    ...given: Parameters<Theirs[N]>
  ): Promise<Awaited<ReturnType<Theirs[N]>>>
  end(error: Error): void
  readonly waiting: number
}

export function calls<Theirs extends CallHandlers>(port: Port, ours: CallHandlers): Calls<Theirs> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0

  async function answer({ ask, name, given }: Asked): Promise<void> {
    try {
      const own = ours[name]
      if (!own) throw new Error(`there is no ${name}`)
      port.postMessage({ answer: ask, value: await own(...(given as never[])) })
    } catch (error) {
      const { message, stack } = error instanceof Error ? error : new Error(String(error))
      const cause = error instanceof Failure && error.cause instanceof Error ? error.cause.message : message
      const kind = error instanceof Failure ? { kind: error.kind, cause } : {}
      port.postMessage({
        answer: ask,
        error: { message, ...(stack === undefined ? {} : { stack }), ...kind },
      })
    }
  }

  function answered({ answer: id, value, error }: Answered): void {
    const question = waiting.get(id)
    waiting.delete(id)
    if (!error) return question?.resolve(value)
    const { kind, message, stack, cause } = error
    question?.reject(
      kind
        ? new Failure(kind, { message, cause: new Error(cause) })
        : Object.assign(new Error(message), { stack }),
    )
  }

  port.on('message', (message) => {
    if (isAsked(message)) void answer(message)
    else answered(message as Answered)
  })
  return {
    async call(name, ...given) {
      const id = ++last
      const question = Promise.withResolvers<unknown>()
      waiting.set(id, question)
      port.postMessage({ ask: id, name, given })
      return (await question.promise) as never
    },
    end(error) {
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    },
    get waiting() {
      return waiting.size
    },
  }
}

const isAsked = (message: unknown): message is Asked =>
  typeof message === 'object' && message !== null && 'ask' in message
