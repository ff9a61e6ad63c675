// Requests that two readers may understand differently: a proxy in front may judge a request by one of two
// Host or Authorization headers, and the server by the other. They are refused before anything else is looked
// at. Node itself refuses two lengths, and a length together with chunks.
import type { IncomingMessage } from 'node:http'
import { Failure } from '@hawser/contract/failures'

/** At most one of each. Lists such as X-Forwarded-For may come in several lines. */
const single = new Set(['host', 'authorization', 'x-api-key', 'origin'])

/** Why the request is refused; undefined: it is not. */
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
