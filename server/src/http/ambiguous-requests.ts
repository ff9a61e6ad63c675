// Requests that two readers may understand differently: a proxy may judge by one of two Host or Authorization
// headers, and the server by the other. They are refused first of all. Node itself refuses two lengths, and a
// length with chunks.
import type { IncomingMessage } from 'node:http'
import { Failure } from '@hawser/contract/failures'

/** Lists such as X-Forwarded-For may come in several lines. */
const single = new Set(['host', 'authorization', 'x-api-key', 'origin'])

/** Undefined: the request is not ambiguous. */
export function ambiguityOf({ rawHeaders, headers, httpVersion }: IncomingMessage): Failure | undefined {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!single.has(name)) continue
    if (seen.has(name)) return refusal('The request repeats a header that may occur only once.')
    seen.add(name)
  }
  if (headers.host === undefined && httpVersion === '1.1') return refusal('The request has no Host header.')
  return undefined
}

const refusal = (message: string): Failure =>
  new Failure('invalid', { message, headers: { connection: 'close' } })
