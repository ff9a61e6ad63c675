// The permission to keep a WebSocket open. It is checked again when news say that it may have ended, and when
// its token or key expires. While the database does not answer nobody is shown out, and the check is
// repeated. A long answer's permission is checked after each part.
import { Failure } from '@hawser/contract/failures'

export interface PermissionParts {
  /** Rejects when that cannot be found out. */
  holds(): Promise<boolean>
  onLost(): void
  /** When the token or key that it rests on ends, in milliseconds since 1970. */
  ends_at?: number | undefined
}

export interface Permission extends Disposable {
  /** Resolves when there was an answer, or none for now; then it asks again by itself. */
  recheck(): Promise<void>
}

/** A few at a time: the database has others to serve. */
export async function recheckAll(permissions: readonly Permission[]): Promise<void> {
  for (let at = 0; at < permissions.length; at += atOnce)
    await Promise.all(permissions.slice(at, at + atOnce).map(async (each) => each.recheck()))
}

/** Characters of a long answer between two checks. */
const between_characters = 256 * 1024

/** Passes on a long answer until the caller loses the right to it; `ask` throws then. */
export async function* whilePermitted(
  pieces: AsyncIterable<string>,
  ask: () => Promise<unknown>,
): AsyncGenerator<string> {
  let characters = 0
  for await (const piece of pieces) {
    yield piece
    characters += piece.length
    if (characters < between_characters) continue
    characters = 0
    await ask().catch((error: unknown) => {
      if (error instanceof Failure && error.status < 500) throw error
    })
  }
}

const retry_ms = 5_000
const atOnce = 100
/** The longest time that a timer of Node takes. */
const longest_ms = 2 ** 31 - 1

export function permission({ holds, onLost, ends_at }: PermissionParts): Permission {
  let over = false
  let retry: NodeJS.Timeout | undefined
  let asking = false
  let again = false

  async function ask(): Promise<void> {
    if (over) return
    if (asking) return void (again = true)
    clearTimeout(retry)
    asking = true
    again = false
    const answer = await holds().catch(() => undefined)
    asking = false
    if (over) return
    if (answer === false) return onLost()
    if (again) await ask()
    else if (answer === undefined) retry = setTimeout(() => void ask(), retry_ms).unref()
  }

  let ending: NodeJS.Timeout | undefined
  function awaitEnd(ends: number): void {
    const left_ms = Math.max(ends - Date.now(), 0) + 1_000
    ending =
      left_ms > longest_ms
        ? setTimeout(() => awaitEnd(ends), longest_ms).unref()
        : setTimeout(() => void ask(), left_ms).unref()
  }
  if (ends_at !== undefined) awaitEnd(ends_at)
  // Changes while the socket was being opened count, too.
  void ask()
  return {
    recheck: ask,
    [Symbol.dispose]() {
      over = true
      clearTimeout(retry)
      clearTimeout(ending)
    },
  }
}
