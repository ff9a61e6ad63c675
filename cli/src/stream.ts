// Responses as streams, for those that may not fit into memory: the contract's client would read them whole.
// The client still makes the request and reads refusals.
import { Readable } from 'node:stream'
import { ApiError, call, type ClientOptions, type RawInput } from '@hawser/contract/client'
import type { Operation } from '@hawser/contract/operation'

export async function openStream(op: Operation, input: RawInput, options: ClientOptions): Promise<Readable> {
  let stream: Response['body'] = null
  const take: typeof fetch = async (address, init) => {
    const response = await (options.fetch ?? fetch)(address, init)
    if (!response.ok) return response
    stream = response.body
    return new Response(null, { status: response.status, headers: response.headers })
  }
  const result = await call(op, input, { ...options, fetch: take })
  if (result.status < 200 || result.status > 299) throw new ApiError(result)
  return stream ? Readable.fromWeb(stream) : Readable.from([])
}
